"""A real Dask cluster of several workers on this machine."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
from distributed import LocalCluster

import hearth_sched as hearth
from conftest import SMALL
from hearth_sched import cli
from hearth_sched.sweeps import Sweep


def test_a_cluster_gives_the_same_bytes_also_when_a_worker_is_killed(small, monkeypatch):
    small.write_text(SMALL.replace("[1, 2]", str(list(range(1, 13)))))
    with Sweep(small) as sweep:
        assert sweep.run(ThreadPoolExecutor(2)) == []
        here = sweep.csv()
    with LocalCluster(n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None) as workers:
        killed = []

        def kill_one(cell, result, done, all):
            if done == 5:
                pid = next(iter(workers.workers.values())).pid
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

        with Sweep(small, small.with_name("cluster.sqlite")) as sweep:
            executor = hearth.cluster(workers.scheduler_address)
            assert sweep.run(executor, kill_one) == []
            assert killed and sweep.csv() == here


def test_a_cluster_that_is_not_there_is_said(small, capsys, monkeypatch):
    assert cli.main([str(small), "--cluster", "tcp://127.0.0.1:9"]) == 2
    assert "there is no Dask scheduler at tcp://127.0.0.1:9" in capsys.readouterr().err
