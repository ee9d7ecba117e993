"""Where the processes of a bench run: CPUs that share a cache, control groups, children that end with it."""

import contextlib
import ctypes
import os
import signal
import sys
import time
import traceback
from pathlib import Path

MIB = 1 << 20
DIE_WITH_PARENT = 1
ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def end_on_signals():
    """Signals lead to the usual ending, with all that is to be taken away; no second one breaks into it."""
    def end(number, _):
        for one in ENDING:
            signal.signal(one, signal.SIG_IGN)
        sys.exit(128 + number)
    for one in ENDING:
        signal.signal(one, end)


class Machine:
    """One CPU's cache domain: its CPUs, the last level, and what a CPU has to itself, in bytes."""

    def __init__(self):
        may = os.sched_getaffinity(0)
        self.cpu = min(may)
        self.others, self.last_bytes, self.private_bytes = [], 32 * MIB, MIB
        levels = {}
        for index in Path(f"/sys/devices/system/cpu/cpu{self.cpu}/cache").glob("index*"):
            read = lambda name: (index / name).read_text().strip()
            if read("type") != "Instruction":
                levels[int(read("level"))] = (int(read("size").rstrip("K")) << 10, numbers(read("shared_cpu_list")))
        if levels:
            self.last_bytes, cpus = levels[max(levels)]
            self.others = sorted(cpus & may - {self.cpu})
            self.private_bytes = sum(size for level, (size, _) in levels.items() if level < max(levels)) or MIB

    def noisy_bytes(self):
        """Four times the last level, but all neighbours' at most a quarter of what memory is free."""
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return min(4 * self.last_bytes, free // 4 // (1 + len(self.others)))

    def told(self):
        others = f"{len(self.others)} more share" if len(self.others) != 1 else "1 more shares"
        return f"CPU {self.cpu}; {others} its last-level cache of {self.last_bytes / MIB:.0f} MiB"


def numbers(text):
    """Those of a list such as 0-3,8."""
    ranges = [part.split("-") for part in text.split(",")]
    return {number for ends in ranges for number in range(int(ends[0]), int(ends[-1]) + 1)}


class Cgroups:
    """One for the program, one for who pays, one for the others; in the order of `NAMES`."""

    NAMES = ["principal", "paying", "others"]

    def __init__(self, root):
        self.root, self.base = root, root / f"hearth-bench-isolation-{os.getpid()}"
        self.has_given_cpu = False

    def make(self):
        """Returns why their shares of CPU time cannot be set, if so."""
        self.base.mkdir()
        without = None
        if "cpu" not in (self.root / "cgroup.controllers").read_text().split():
            without = f"{self.root} has no cpu controller"
        else:
            try:
                if "cpu" not in (self.root / "cgroup.subtree_control").read_text().split():
                    (self.root / "cgroup.subtree_control").write_text("+cpu")
                    self.has_given_cpu = True
                (self.base / "cgroup.subtree_control").write_text("+cpu")
            except OSError as error:
                without = f"the cpu controller cannot be given to cgroups: {error.strerror}"
        for name in self.NAMES:
            (self.base / name).mkdir()
        return without

    def folder(self, name):
        return self.base / name

    def path(self, name):
        """The name as Hearth has it: a path in the hierarchy."""
        return f"/{self.base.name}/{name}"

    def remove(self):
        for folder in [*(self.base / name for name in self.NAMES), self.base]:
            for _ in range(100):
                try:
                    folder.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.02)
        if self.has_given_cpu:
            with contextlib.suppress(OSError):
                (self.root / "cgroup.subtree_control").write_text("-cpu")


def cgroups_or_why():
    """The cgroups to be made, or why there are none."""
    if os.geteuid():
        return None, "this is not root"
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    root = next((Path(mount[1]) for mount in mounts if mount[2] == "cgroup2"), None)
    return (Cgroups(root), None) if root else (None, "there is no cgroup hierarchy of version 2")


class Child:
    """A process of its own that runs a function on a CPU, in a cgroup; it dies with this one."""

    def __init__(self, work, cpu, cgroup):
        # A signal must not come between its start and the moment from when on it is killed at the end.
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        sys.stdout.flush()
        self.pid = os.fork()
        if not self.pid:
            self.run(work, cpu, cgroup)

    def run(self, work, cpu, cgroup):
        try:
            for one in ENDING:
                signal.signal(one, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
            os.setpgid(0, 0)
            ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
            if cgroup:
                (cgroup / "cgroup.procs").write_text("0")
            os.sched_setaffinity(0, [cpu])
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)

    def kill(self):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.setpgid(self.pid, self.pid)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


@contextlib.contextmanager
def child(work, cpu, cgroup):
    started = Child(work, cpu, cgroup)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        yield started
    finally:
        started.kill()
