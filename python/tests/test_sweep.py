import random
import sqlite3
import subprocess
import sys
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path

import pytest

import hearth_sched as hearth
from conftest import SMALL
from hearth_sched import cli, store
from hearth_sched.sweeps import Result, Sweep, do


class Shuffled(Executor):
    """Does what is submitted in another order, when asked for."""

    def __init__(self, seed):
        self.waiting, self.random = [], random.Random(seed)

    def submit(self, work, /, *words):
        future = Future()
        self.waiting.append((future, work, words))
        self.random.shuffle(self.waiting)
        if len(self.waiting) == 8:
            for future_, work_, words_ in self.waiting:
                future_.set_result(work_(*words_))
        return future


def csv_of(path, executor, **options):
    with Sweep(path, **options) as sweep:
        assert sweep.run(executor) == []
        return sweep.csv()


def test_all_cells_are_the_same_bytes_in_whatever_order_they_are_done(small, tmp_path):
    texts = {csv_of(small, Shuffled(seed), store=tmp_path / f"{seed}.sqlite") for seed in (1, 2)}
    texts.add(csv_of(small, ThreadPoolExecutor(2), store=tmp_path / "two.sqlite"))
    assert len(texts) == 1
    lines = texts.pop().splitlines()
    assert len(lines) == 1 + 8
    assert [line.split(",")[:3] for line in lines[1:4]] == [["plain", "sgi-4d340", "matrix+matrix"]] * 2 + [["fair", "sgi-4d340", "matrix+matrix"]]


def test_a_frame_of_a_sweep_is_what_compare_gives(small):
    swept = hearth.sweep(small).drop(columns="policies")
    asked = hearth.compare("matrix+matrix", machine=["sgi-4d340", "xeon-smp2"], policies=["plain", "fair"], seeds=2, scale=0.01)
    order = ["machine", "policy", "seed"]
    assert swept.sort_values(order, ignore_index=True).equals(asked.sort_values(order, ignore_index=True))


def test_what_is_done_is_not_done_again(small):
    """It stops after three cells, as by an interruption, and goes on."""
    ran = []

    class Stopping(Executor):
        def submit(self, work, cell):
            future = Future()
            if len(ran) < 3:
                ran.append(cell.key)
                future.set_result(work(cell))
            else:
                future.set_exception(KeyboardInterrupt())
            return future

    with Sweep(small) as sweep, pytest.raises(KeyboardInterrupt):
        sweep.run(Stopping())
    with Sweep(small) as sweep:
        # An interruption may be seen before what had ended.
        left = {cell.key for cell in sweep.missing()}
        kept = set(ran) - left
        assert len(left) == 8 - len(kept)
        sweep.run(ThreadPoolExecutor(1), lambda cell, *_: left.remove(cell.key))
        assert not left and not sweep.missing()
    whole = csv_of(small, ThreadPoolExecutor(2), store=small.with_name("whole.sqlite"))
    assert csv_of(small, ThreadPoolExecutor(1)) == whole


def test_a_cell_that_fails_is_said_and_the_others_are_done(small, capsys):
    small.write_text(SMALL.replace('"plain", "fair"', '"fair", "fairr"'))
    assert cli.main([str(small)]) == 1
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1 + 4
    assert err.count('failed: machine=') == 4 and 'there is no policy called "fairr"' in err
    assert "4 of 8 cells failed; they are tried again the next time" in err
    assert cli.main([str(small), "--list"]) == 0
    assert capsys.readouterr().out.count("failed: ") == 4
    with Sweep(small) as sweep:
        assert len(sweep.missing()) == 4


def test_a_cell_is_done_again_when_a_file_that_it_names_changes(small):
    policy = small.with_name("mine.toml")
    said = subprocess.run([hearth.command.program("show"), "show", "policy", "plain"], capture_output=True, text=True, check=True).stdout
    policy.write_text(said)
    small.write_text(SMALL.replace('"plain", "fair"', '"fair", "mine.toml"'))
    before = csv_of(small, ThreadPoolExecutor(2))
    policy.write_text(said.replace("30 ms", "29 ms") + "# another\n")
    with Sweep(small) as sweep:
        assert {cell.at["policies"] for cell in sweep.missing()} == {"mine.toml"}
        assert len(sweep.missing()) == 4
    assert "plain" in before


def test_a_cell_of_another_build_is_refused(small):
    with Sweep(small) as sweep:
        cell = sweep.cells[0]
    other = type(cell)(cell.at, cell.words, cell.files, "another", cell.programs)
    assert other.key != cell.key
    result = do(other)
    assert result.output is None and "another build of Hearth" in result.message


WRONG = {
    "no such key": ('commands = "lab"\n' + SMALL, "there is no key 'commands' here"),
    "no command": (SMALL.replace('command = "compare"', ""), "'command' is missing"),
    "another command": (SMALL.replace("compare", "start"), "give one of compare, emulate, lab"),
    "no TOML": ("command =\n[axes]", "line 1"),
    "no axes": ('command = "compare"', "'axes' is missing"),
    "an axis of nothing": (SMALL.replace("[1, 2]", "[]"), "axes.seed is to be a list"),
    "no list": (SMALL.replace("[1, 2]", "1"), "axes.seed is to be a list"),
    "twice": (SMALL.replace("[1, 2]", "[1, 1]"), "axes.seed has a value twice"),
    "seed 0": (SMALL.replace("[1, 2]", "[0]"), "a seed is a whole number from 1, not 0"),
    "a truth for a seed": (SMALL.replace("[1, 2]", "[true]"), "a seed is a whole number from 1, not True"),
    "seeds": (SMALL.replace("seed =", "seeds ="), "'seeds' are single cells: name them in an axis called seed"),
    "an option that is the sweep's": (SMALL + "json = true\n", "'json' is not for a sweep: its rows are CSV"),
    "axis and option": (SMALL + "seed = 3\n", "'seed' is an axis and an option"),
    "a table for a value": (SMALL.replace("[1, 2]", "[{a = 1}]"), "a value is a name, a number or a truth"),
    "too many": (SMALL.replace("[1, 2]", str(list(range(1, 300_000)))), "1,199,996 cells; 1,000,000 is the most"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_file_that_is_wrong_is_said(name, small, capsys):
    text, said = WRONG[name]
    small.write_text(text)
    assert cli.main([str(small)]) == 2
    err = capsys.readouterr().err
    assert said in err and str(small) in err and err.count("\n") == 1


def test_a_file_that_is_not_there_is_said(tmp_path, capsys):
    assert cli.main([str(tmp_path / "none.toml")]) == 2
    assert "none.toml cannot be read: No such file or directory" in capsys.readouterr().err


def test_a_store_of_another_version_or_another_file_is_left_alone(small, capsys):
    later = small.with_name("later.sqlite")
    with sqlite3.connect(later) as database:
        database.execute("create table t(a)")
        database.execute("pragma user_version = 9")
    text = small.with_name("text")
    text.write_text("no database " * 100)
    for path, said in ((later, "a store of version 9, and this edition has 1"), (text, "cannot be used as a store")):
        before = path.read_bytes()
        assert cli.main([str(small), "--store", str(path)]) == 2
        assert said in capsys.readouterr().err
        assert path.read_bytes() == before


def test_two_sweeps_do_not_write_to_one_store(small, capsys):
    with Sweep(small):
        assert cli.main([str(small)]) == 6
        assert "another sweep writes to" in capsys.readouterr().err
    assert cli.main([str(small), "--list"]) == 0


def test_a_store_never_has_half_a_cell(tmp_path):
    with store.Store(tmp_path / "s.sqlite") as cells:
        cells.keep("k", "[]", None, "why", 1.0)
        assert (cells.output("k"), cells.message("k"), cells.done()) == (None, "why", set())
        cells.keep("k", "[]", "a\n1\n", None, 1.0)
        assert (cells.output("k"), cells.message("k"), cells.done()) == ("a\n1\n", None, {"k"})
        with pytest.raises(sqlite3.IntegrityError):
            cells.keep("k", None, "a\n2\n", None, 1.0)
        assert cells.output("k") == "a\n1\n"
    assert Result("a", None, 0.0).output == "a"


def test_a_sweep_needs_nothing_but_python_itself(small):
    """Without site packages: `make build` links it beside the commands."""
    bin_ = hearth.command.program("compare").parent
    linked = small.with_name("hearth-sweep")
    linked.symlink_to(Path(__file__).parents[1] / "hearth-sweep")
    done = subprocess.run([sys.executable, "-S", linked, "sweep", small, "--jobs", "2"], capture_output=True, text=True,
                          env={"PATH": "/usr/bin:/bin", "HEARTH_BIN": str(bin_)})
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 9, done.stderr


@pytest.mark.parametrize("output", ["/no/such/folder/rows.csv", "/tmp"])
def test_an_output_that_cannot_be_written_is_refused_before_anything_runs(small, output, capsys):
    with pytest.raises(SystemExit) as refused:
        cli.main([str(small), "--output", output])
    assert refused.value.code == 2 and "cannot be written" in capsys.readouterr().err
    with Sweep(small) as sweep:
        assert len(sweep.missing()) == 8
