import io

import pandas as pd
import pytest

import hearth_sched as hearth
from hearth_sched import command
from hearth_sched.plots import plot_changes


@pytest.fixture(scope="module")
def runs():
    return hearth.compare("matrix+matrix", machine=["sgi-4d340", "xeon-smp2"], policies=["standard", "light"], seeds="2-4", scale=0.02)


def test_a_comparison_has_a_row_for_each_run(runs):
    keys = runs[["machine", "policy", "seed"]].value_counts()
    assert len(runs) == len(keys) == 2 * 2 * 3
    assert set(runs["seed"]) == {2, 3, 4}
    assert (runs["cpu_s"] > 0).all() and (runs["misses"] > 0).all()


def test_figures_are_those_that_json_has(runs):
    said = command.document(["compare", "--machine", "sgi-4d340", "--policies", "light", "--seeds", "2-4", "--scale", "0.02", "matrix+matrix"])
    summary = said["policies"][0]["summary"]
    ours = runs[(runs["machine"] == "sgi-4d340") & (runs["policy"] == "light")]
    for measure in ("cpu_s", "last_end_s", "misses", "idle_percent", "switches", "slice_ms"):
        assert summary[measure]["mean"] == pytest.approx(ours[measure].mean(), rel=1e-12)
        assert (summary[measure]["low"], summary[measure]["high"]) == (ours[measure].min(), ours[measure].max())
    causes = [name for name in ours if name.startswith("causes_")]
    assert [part["mean"] for part in summary["causes"]] == pytest.approx(list(ours[causes].mean()))
    assert (ours[causes].sum(axis=1) == ours["misses"]).all()


def test_changes_are_of_the_same_seed_and_machine():
    runs = pd.DataFrame([("a", "w", "x", 1, 10.0), ("a", "w", "x", 2, 20.0), ("a", "w", "y", 1, 11.0), ("a", "w", "y", 2, 18.0),
                         ("b", "w", "x", 1, 4.0), ("b", "w", "y", 1, 8.0)], columns=["machine", "workload", "policy", "seed", "cpu_s"])
    rows = hearth.changes(runs, "cpu_s").set_index("machine")
    assert rows.loc["a", ["mean", "low", "high"]].tolist() == pytest.approx([0, -10, 10])
    assert rows.loc["b", ["mean", "low", "high"]].tolist() == pytest.approx([100, 100, 100])
    assert hearth.changes(runs, "cpu_s", base="y").set_index("machine").loc["b", "mean"] == pytest.approx(-50)
    with pytest.raises(ValueError, match="no run has policy 'z'"):
        hearth.changes(runs, "cpu_s", base="z")


def test_a_chart_has_a_row_for_each_machine(runs):
    ax = plot_changes(runs, "misses")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["light, sgi-4d340", "light, xeon-smp2"]
    image = io.BytesIO()
    ax.figure.savefig(image, format="png")
    assert image.getvalue().startswith(b"\x89PNG")


def test_a_lab_has_a_row_for_each_row_of_each_claim():
    rows = hearth.lab("T", scale=0.01)
    assert {"T1", "T14"} <= set(rows["claim"]) and set(rows["kind"]) == {"input", "outcome"}
    assert set(rows["verdict"]) <= {"holds", "does not hold", "not run"}
    assert rows[rows["holds"] == True]["measured"].notna().all()  # noqa: E712


def test_what_was_recorded_can_be_compared(tmp_path):
    (tmp_path / "words").write_text("b\na\n")
    said = hearth.record("sort", str(tmp_path / "words"), output=tmp_path / "sort.trace")
    assert said["threads"] == 1 and said["data_references"] > 0
    assert len(hearth.compare(trace=tmp_path / "sort.trace", copies=2, policies="fair", machine="sgi-4d340")) == 1


def test_an_error_is_what_the_command_says():
    with pytest.raises(hearth.HearthError, match="no program called \"matrixx\"; did you mean matrix?") as wrong:
        hearth.compare("matrixx")
    assert wrong.value.code == 2


def test_without_the_command_it_says_where_it_looked(monkeypatch, tmp_path):
    monkeypatch.setenv("HEARTH_BIN", str(tmp_path))
    with pytest.raises(hearth.HearthError, match="there is no hearth-lab in .*HEARTH_BIN"):
        hearth.compare("matrix")


@pytest.mark.parametrize("values, words", [
    ({"scale": 0.5, "json": True, "planner": None, "verbose": False}, ["--scale", "0.5", "--json"]),
    ({"policies": ["plain", "fair"]}, ["--policies", "plain,fair"]),
    ({"file": ["a", "b"], "copies": 2}, ["--file", "a", "--file", "b", "--copies", "2"]),
    ({"file": "a"}, ["--file", "a"]),
])
def test_keywords_are_options(values, words):
    assert list(command.options(values, ("file",))) == words
