"""Hearth from Python: its commands as functions that give data frames, and sweeps of many runs.

>>> import hearth_sched as hearth
>>> runs = hearth.compare("matrix+matrix", machine="sgi-4d340", policies=["standard", "light"], seeds=3, scale=0.05)
>>> hearth.changes(runs, "misses", over="policy")

Each function runs the command of its name, whose options are its keywords: `hearth NAME --help`. The program is found
in HEARTH_BIN, or on PATH; what it says when it fails is a HearthError."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

from . import command
from .command import HearthError
from .sweeps import Sweep, cluster, local

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["HearthError", "Sweep", "changes", "cluster", "compare", "emulate", "lab", "local", "observe", "pairs", "record", "sweep"]

Names = str | Sequence[str]


def _frame(text: str) -> pd.DataFrame:
    import pandas as pd

    return pd.read_csv(io.StringIO(text))


def _rows(words: Sequence[str], **options: Any) -> pd.DataFrame:
    name, *of_program = words
    return _frame(command.run([name, "--csv", *command.options(options, ("file", "program")), *of_program]))


def compare(program: str | None = None, *, machine: Names | None = None, policies: Names | None = None, seeds: int | str | None = None,
            scale: float | None = None, **options: Any) -> pd.DataFrame:
    """Programs on simulated machines under several policies: a row for each run.

    `seeds`: 3 is 1 to 3, "4-6" is these. Columns: machine, workload, scale, policy, seed, and the measures of
    docs/measures.md in the units that their names end with (`cpu_s`, `idle_percent`); counts have none."""
    words = ["--", program] if program else []
    return _rows(["compare", *words], machine=machine, policies=policies, seeds=seeds, scale=scale, **options)


def lab(*experiments: str, seeds: int | str | None = None, scale: float | None = None, **options: Any) -> pd.DataFrame:
    """Papers' experiments, run again: a row for each row of each claim, with the paper's figure, ours, its spread over
    the seeds, the band in which it holds, and the claim's verdict."""
    return _rows(["lab", "--", *experiments], seeds=seeds, scale=scale, **options)


def emulate(*program: str, machine: str | None = None, schedulers: Names | None = None, rounds: int | None = None,
            seeds: int | str | None = None, timed: bool = False, **options: Any) -> pd.DataFrame:
    """A command of this host in a real kernel over simulated caches, under several schedulers: a row for each run, with
    the measures of docs/emulate.md, and what the command measured itself. `file` and `program` may be lists."""
    return _rows(["emulate", "--", *program], machine=machine, schedulers=schedulers, rounds=rounds, seeds=seeds,
                 timed=timed, **options)


def pairs(*program: str, rounds: int, machine: str | None = None, schedulers: Names | None = None, seeds: int | str | None = None,
          timed: bool = False, **options: Any) -> pd.DataFrame:
    """The same in rounds: the ratio of each measure to the first scheduler's, with its 95 % interval (`low`, `high`) and
    verdict. The first row of each measure is the first scheduler's against itself."""
    import pandas as pd

    options |= {"machine": machine, "schedulers": schedulers, "rounds": rounds, "seeds": seeds, "timed": timed}
    said = command.document(["emulate", *command.options(options, ("file", "program"))], program)
    rows = []
    for row in said.get("pairs", []):
        for measure, is_ in (row["of"] | row.get("measures", {})).items():
            low, high = is_["interval"] or (None, None)
            rows.append({"scheduler": row["scheduler"], "measure": measure, "pairs": row["pairs"], "ratio": is_["ratio"],
                         "low": low, "high": high, "verdict": is_["verdict"]})
    return pd.DataFrame(rows).sort_values("measure", kind="stable", ignore_index=True)


def record(*program: str, output: str | os.PathLike[str], **options: Any) -> dict[str, Any]:
    """Records the memory references of a program into a file, for `compare(trace=...)`. What was recorded."""
    return command.document(["record", "--output", output, *command.options(options)], program)


def observe(*program: str, **options: Any) -> pd.DataFrame:
    """What affinity could give to programs on this host: a row for each program, with the keys of docs/observe.md.
    Needs privilege. `for_="10s"` is `--for 10s`."""
    import pandas as pd

    options = {name.rstrip("_"): value for name, value in options.items()}
    return pd.json_normalize(command.document(["observe", *command.options(options)], program)["programs"])


def sweep(path: str | os.PathLike[str], *, store: str | os.PathLike[str] | None = None, executor: Executor | None = None) -> pd.DataFrame:
    """All cells of a matrix (docs/sweeps.md): those that the store does not have are run, by this machine's processes
    or another executor of `concurrent.futures`, such as `cluster("tcp://...")`. A row for each row of each cell.
    Raises HearthError if a cell fails, when all others are done."""
    with Sweep(path, store) as cells:
        failed = cells.run(executor or local())
        if failed:
            cell, why = failed[0]
            raise HearthError(f"{len(failed)} cells failed; the first, {cell.at}: {why}", 1)
        return _frame(cells.csv())


def changes(runs: pd.DataFrame, measure: str, over: str = "policy", base: str | None = None) -> pd.DataFrame:
    """How much a measure changes, in percent, against the first value of a column (or `base`), seed by seed: the mean
    of these changes, the least and the greatest. A row for each other value, of each machine and workload."""
    base = base if base is not None else runs[over].iloc[0]
    of_run = [name for name in ("machine", "workload", "command", "scale", "copies") if name in runs and name != over]
    paired = [*of_run, *(name for name in ("seed", "round") if name in runs)]
    by_value = runs.pivot_table(index=paired, columns=over, values=measure, sort=False)
    if base not in by_value:
        raise ValueError(f"no run has {over} {base!r}")
    percent = by_value.div(by_value[base], axis=0).drop(columns=base).sub(1).mul(100)
    rows = percent.melt(ignore_index=False, var_name=over, value_name="percent").dropna().reset_index()
    return rows.groupby([*of_run, over], sort=False)["percent"].agg(mean="mean", low="min", high="max").reset_index()
