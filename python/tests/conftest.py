"""Tests run the real command: `make python` says where it is."""

import pytest

from hearth_sched import command

SMALL = """command = "compare"
[axes]
machine = ["sgi-4d340", "xeon-smp2"]
policies = ["plain", "fair"]
seed = [1, 2]
[options]
program = "matrix+matrix"
scale = 0.01
"""


@pytest.fixture(scope="session", autouse=True)
def built():
    return command.program("compare")


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A sweep of eight cells."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    monkeypatch.chdir(tmp_path)
    return path
