"""Charts, by matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import changes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def plot_changes(runs: pd.DataFrame, measure: str, over: str = "policy", base: str | None = None, ax: Axes | None = None) -> Axes:
    """How much a measure changes against the first value of a column, in percent, with whiskers from the least to the
    greatest change of the same seed: a row for each other value, of each machine and workload that there is."""
    import matplotlib.pyplot as plt

    rows = changes(runs, measure, over, base)
    told = [name for name in ("machine", "workload", "command", "scale") if name in rows and rows[name].nunique() > 1]
    labels = [", ".join(str(row[name]) for name in [over, *told]) for _, row in rows.iterrows()]
    ax = ax or plt.subplots(figsize=(7, 0.4 * len(rows) + 1.2), layout="constrained")[1]
    places = range(len(rows))
    ax.errorbar(rows["mean"], places, xerr=[rows["mean"] - rows["low"], rows["high"] - rows["mean"]], fmt="o", capsize=3)
    ax.axvline(0, color="grey", linewidth=1)
    ax.set_yticks(places, labels)
    ax.invert_yaxis()
    ax.set_xlabel(f"{measure}: change against {base or runs[over].iloc[0]}, %")
    return ax
