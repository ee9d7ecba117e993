"""Programs whose speed tools/bench-isolation measures: real ones, as far as they are installed.

Of each: why it cannot run here, what is made of it beforehand, and a unit of work, some ten to a hundred
milliseconds, that is the same each time.
"""

import os
import random
import resource
import shutil
import socket
import subprocess
import time
import zlib
from pathlib import Path

try:
    import sqlite3
except ImportError:
    sqlite3 = None
try:
    import lzma
except ImportError:
    lzma = None

WORDS = [f"{stem}{end}" for stem in ("hearth", "cache", "line", "task", "share") for end in ("", "s", "ed", "ing")]


def text(size):
    """A fixed text of words and numbers, some of which recur."""
    draw = random.Random(1)
    lines, length = [], 0
    while length < size:
        line = f"{draw.choice(WORDS)} {draw.choice(WORDS)} {draw.randrange(1 << 20)} {draw.choice(WORDS)}"
        lines.append(line)
        length += len(line) + 1
    return "\n".join(lines).encode()[:size]


class Principal:
    """What all have."""

    def missing(self):
        """Why it cannot run here."""
        return None

    def prepare(self, folder, private_bytes):
        """Makes what it needs, once; `private_bytes` is what a CPU's own caches hold."""

    def begin(self):
        """Comes first in the process that works."""

    def unit(self):
        """One unit of work."""

    def cpu_seconds(self):
        """CPU time so far, also of the processes that it started."""
        times = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(one.ru_utime + one.ru_stime for one in times)


class Sqlite(Principal):
    name = "SQLite, look-ups by index"
    LOOKUPS = 20000
    ROW_BYTES = 160

    def missing(self):
        return None if sqlite3 else "this Python has no sqlite3"

    def prepare(self, folder, private_bytes):
        self.file = folder / "table.sqlite"
        self.file.unlink(missing_ok=True)
        self.rows = 8 * private_bytes // self.ROW_BYTES
        with sqlite3.connect(self.file) as table:
            table.execute("create table t (key integer, value text)")
            order = list(range(self.rows))
            random.Random(1).shuffle(order)
            table.executemany("insert into t values (?, ?)", ((key, f"{key:0120}") for key in order))
            table.execute("create index by_key on t (key)")

    def begin(self):
        self.table = sqlite3.connect(self.file)
        self.table.execute("pragma cache_size = -1000000")
        self.key = 1

    def unit(self):
        query = """with recursive drawn(number, key) as (select 1, ? union all
            select number + 1, (key * 1103515245 + 12345) & 1073741823 from drawn where number < ?)
            select sum(length(value)), max(drawn.key) from drawn join t on t.key = drawn.key % ?"""
        self.key = self.table.execute(query, (self.key, self.LOOKUPS, self.rows)).fetchone()[1]


class Zlib(Principal):
    name = "zlib, 2 MiB"

    def prepare(self, folder, private_bytes):
        self.text = text(2 << 20)

    def unit(self):
        zlib.compress(self.text, 6)


class Xz(Principal):
    name = "xz, 256 KiB"

    def missing(self):
        return None if lzma else "this Python has no lzma"

    def prepare(self, folder, private_bytes):
        self.text = text(256 << 10)

    def unit(self):
        lzma.compress(self.text, preset=6)


class Compiler(Principal):
    name = "cc, a compilation"
    FUNCTIONS = 60

    def missing(self):
        return None if shutil.which("cc") else "there is no cc"

    def prepare(self, folder, private_bytes):
        self.source = folder / "generated.c"
        self.source.write_text("".join(
            f"long f{at}(long *a, long n) {{ long s = {at}; for (long i = 0; i < n; i++) "
            f"{{ s = s * {2 * at + 3} + a[i]; if (s & {1 << at % 30}) a[i] ^= s; else s += a[n - i]; }} return s; }}\n"
            for at in range(self.FUNCTIONS)
        ))

    def unit(self):
        subprocess.run(["cc", "-O1", "-c", self.source, "-o", self.source.with_suffix(".o")], check=True)


def listens(path):
    """Whether a server takes connections at this socket."""
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
            return True
        except OSError:
            return False


class Redis(Principal):
    """The server and who asks it share a CPU."""

    name = "Redis, gets"
    KEYS = "100000"

    def missing(self):
        lacking = [name for name in ("redis-server", "redis-benchmark") if not shutil.which(name)]
        return f"there is no {' and no '.join(lacking)}" if lacking else None

    def prepare(self, folder, private_bytes):
        self.socket = folder.resolve() / f"redis-{os.getpid()}.socket"

    def begin(self):
        # The one before was killed, and has left it.
        self.socket.unlink(missing_ok=True)
        self.server = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "", "--appendonly", "no"],
            stdout=subprocess.DEVNULL)
        while not listens(self.socket):
            if self.server.poll() is not None:
                raise RuntimeError("redis-server does not start")
            time.sleep(0.01)
        self.ask("set", self.KEYS)

    def ask(self, what, count):
        subprocess.run(["redis-benchmark", "-s", self.socket, "-t", what, "-n", count, "-r", self.KEYS, "-d", "100",
                        "-q"], stdout=subprocess.DEVNULL, check=True)

    def unit(self):
        self.ask("get", "5000")

    def cpu_seconds(self):
        fields = Path(f"/proc/{self.server.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return super().cpu_seconds() + sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


PRINCIPALS = [Sqlite(), Zlib(), Xz(), Compiler(), Redis()]
