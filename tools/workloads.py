"""Programs that people run, as `hearth emulate` takes them: what each needs here, the files that it works on, its
command, and how much it does. Of tools/bench-schedulers."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import kept

ROOT = Path(__file__).resolve().parent.parent
REQUESTS = ROOT / "tools/programs/requests.c"
# Those that `make bench-parallel` has.
PARALLEL = ROOT / "crates/hearth-share/benches/programs"
POSTGRES = Path("/usr/lib/postgresql/15/bin")
PYTHON = "/usr/bin/python3"
# A user who is nobody in particular: PostgreSQL refuses to run as root.
NOBODY = 65534

# Commands (or files) and the packages of Debian 12 that have them: tools/install-packages.
PACKAGES = ["cc=build-essential", "make=make", "sort=coreutils", "gzip=gzip", "xz=xz-utils", "sqlite3=sqlite3",
            f"{POSTGRES}/postgres=postgresql-15", "setpriv=util-linux", "redis-server=redis-server",
            "redis-benchmark=redis-tools", "/usr/sbin/nginx=nginx-light", "wrk=wrk", "/usr/bin/python3=python3-minimal",
            "hackbench=rt-tests", "ip=iproute2",
            f"/usr/lib/{os.uname().machine}-linux-gnu/libopenblas.so=libopenblas-dev"]

# Rows into a table in memory, and distinct values of it, twice.
SQL = """create table t(a integer primary key, b);
with recursive c(x) as (select 1 union all select x + 1 from c where x < {rows})
insert into t select x, hex(x * 7919 % 4001) from c;
select count(distinct b) from t, (select 1 union select 2);"""

# A server for each copy of the benchmark.
REDIS = """for n in $(seq 0 {last}); do
redis-server --port 0 --unixsocket /tmp/redis$n --save '' --appendonly no >/dev/null &
until redis-cli -s /tmp/redis$n ping >/dev/null 2>&1; do sleep 0.01; done; done"""
# Of the two kinds of requests, the last's percentiles.
REDIS_CLIENTS = """redis-benchmark -s /tmp/redis$HEARTH_COPY -t set,get -n REQUESTS -r 1000 -c 8 >/tmp/said$HEARTH_COPY || exit
awk '/throughput summary/ { rate = $3 }
/milliseconds \\(cumulative/ { part = $1 + 0; for (name in least) if (part < least[name]) seen[name] = 0;
else if (!seen[name]) { seen[name] = 1; us[name] = $3 * 1000 } }
BEGIN { least["p50"] = 50; least["p99"] = 99; least["p999"] = 99.9 }
END { print "requests_per_s", rate; for (name in us) print "response_us_" name, us[name] }' /tmp/said$HEARTH_COPY >>$HEARTH_MEASURES
"""

NGINX = """daemon off; worker_processes {workers}; pid /tmp/nginx.pid; error_log /tmp/nginx.log; user root root;
events {{ worker_connections 256; }}
http {{ access_log off; client_body_temp_path /tmp/n1; proxy_temp_path /tmp/n2; fastcgi_temp_path /tmp/n3;
uwsgi_temp_path /tmp/n4; scgi_temp_path /tmp/n5; keepalive_requests 1000000;
server {{ listen 127.0.0.1:8080; location / {{ root /tmp/www; }} }} }}
"""
# wrk goes by time. Each of its threads ends after so many requests instead, and says when it began and ended.
WRK = """local ffi = require("ffi")
ffi.cdef("typedef struct { long s, ns; } hearth_time; int clock_gettime(int, hearth_time *);")
local threads, count, time = {}, 0, ffi.new("hearth_time")
local function now()
  ffi.C.clock_gettime(1, time)
  return tonumber(time.s) * 1e6 + tonumber(time.ns) / 1e3
end
function setup(thread) table.insert(threads, thread) end
function request()
  began = began or now()
  return wrk.format()
end
function response()
  count = count + 1
  served, ended = count, now()
  if count == REQUESTS then wrk.thread:stop() end
end
function done(summary, latency, requests)
  local from, to, all = math.huge, 0, 0
  for _, thread in ipairs(threads) do
    from, to = math.min(from, thread:get("began")), math.max(to, thread:get("ended"))
    all = all + thread:get("served")
  end
  local file = io.open(os.getenv("HEARTH_MEASURES"), "a")
  file:write(string.format("requests_per_s %.6g\\n", all * 1e6 / (to - from)))
  for name, part in pairs({p50 = 50, p99 = 99, p999 = 99.9}) do
    file:write(string.format("response_us_%s %.6g\\n", name, latency:percentile(part)))
  end
  file:close()
end
"""

PGBENCH = """cd /tmp && {postgres}/pgbench -h /tmp -U postgres -n -M prepared -b select-only@3 -b simple-update@1 \\
-c {clients} -j 2 -t {transactions} -l --log-prefix=/tmp/transactions postgres >/tmp/said || exit
awk '/^tps/ {{ print "requests_per_s", $3 }}' /tmp/said >>$HEARTH_MEASURES
cat /tmp/transactions* | awk '{{ print $3 }}' | sort -n | awk '{{ us[NR] = $1 }}
function rank(part) {{ place = int(part * NR + 0.999999); return us[place < 1 ? 1 : place] }}
END {{ print "response_us_p50", rank(0.5); print "response_us_p99", rank(0.99); print "response_us_p999", rank(0.999) }}' \\
>>$HEARTH_MEASURES; rm /tmp/transactions*"""
# Its data is unpacked for each turn, which changes it.
POSTGRES_START = f"""rm -rf /tmp/data && tar xf data.tar -C /tmp && chown -R {NOBODY}:{NOBODY} /tmp/data || exit
mkdir -p {POSTGRES.parent}/lib; chmod 1777 /tmp
/usr/bin/setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups {POSTGRES}/postgres -D /tmp/data -k /tmp -h '' -F \\
-c shared_buffers=32MB -c max_connections=40 -c autovacuum=off -c dynamic_shared_memory_type=mmap >/tmp/log 2>&1 &
for try in $(seq 200); do {POSTGRES}/psql -h /tmp -U postgres -c 'select 1' postgres >/dev/null 2>&1 && exit; sleep 0.1; done
tail /tmp/log >&2; exit 1"""

SCRIPT = """import collections, heapq, json, re, sys
def words(count):
    seed = 1
    for _ in range(count):
        seed = (seed * 1103515245 + 12345) % 2147483648
        yield "%x" % (seed >> 12)
text = " ".join(words(int(sys.argv[1])))
counts = collections.Counter(re.findall("[0-9a-f]{2}", text))
records = [{"word": word, "count": count, "tail": text[at:at + 20]} for at, (word, count) in enumerate(counts.items())]
back = json.loads(json.dumps(records))
assert heapq.nlargest(3, (record["count"] for record in back))
"""


def sources(count):
    """The guest's own programs, preprocessed, so that headers need not come along; and a Makefile of so many."""
    def prepare(into):
        programs = ROOT / "crates/hearth-guest/programs"
        every = [source for folder in (".", "tasks", "region") for source in sorted(programs.glob(f"{folder}/*.c"))]
        # counters.c takes in an object of the build's.
        every = [source for source in every if source.name != "counters.c"][:count]
        for source in every:
            with open(into / f"{source.parent.name}-{source.stem}.i", "w") as out:
                subprocess.run(["gcc", "-E", "-P", source], stdout=out, check=True)
        objects = " ".join(f"{source.parent.name}-{source.stem}.o" for source in every)
        (into / "Makefile").write_text(f"all: {objects}\n%.o: %.i\n\tgcc -O0 -w -c $< -o $@\n")

    return prepare


def compiler():
    """What gcc runs."""
    said = subprocess.run(["gcc", "-print-prog-name=cc1"], stdout=subprocess.PIPE, text=True, check=True)
    return ["gcc", "as", said.stdout.strip()]


def python(into):
    """The script, and the modules of Python's own library that it reads, compiled as they are on a system in use."""
    (into / "script.py").write_text(SCRIPT)
    code = SCRIPT.splitlines()[0] + "\nfor module in list(sys.modules.values()): print(getattr(module, '__file__', None) or '')"
    done = subprocess.run([PYTHON, "-I", "-S", "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    shutil.rmtree(into / "lib", ignore_errors=True)
    for file in sorted({Path(line) for line in done.stdout.splitlines() if line.startswith("/usr/lib/python")}):
        to = into / "lib" / file.relative_to("/usr/lib")
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, to)
    subprocess.run([PYTHON, "-m", "compileall", "-q", "-b", "--invalidation-mode", "unchecked-hash", into / "lib"], check=True)
    for source in (into / "lib").rglob("*.py"):
        source.unlink()


def database(into):
    """PostgreSQL's data, with pgbench's tables. It is made where its user, who is not root, can reach it."""
    if (into / "data.tar").exists():
        return
    user = [] if os.getuid() else ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    with tempfile.TemporaryDirectory(prefix="hearth-postgres-") as place:
        data = Path(place) / "data"
        if user:
            os.chown(place, NOBODY, NOBODY)

        def run(*words):
            # What is started keeps a pipe open, so this is a file.
            with open(into / "said", "w") as said:
                done = subprocess.run([*user, *map(str, words)], stdout=said, stderr=said, cwd="/",
                                      env={**os.environ, "TZ": "GMT"})
            if done.returncode:
                sys.exit(f"PostgreSQL's data could not be made:\n{(into / 'said').read_text()}")

        run(POSTGRES / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--wal-segsize=1", "--no-sync",
            "--no-locale", "-E", "UTF8")
        run(POSTGRES / "pg_ctl", "-D", data, "-o", f"-k {place} -h '' -F", "-w", "start")
        try:
            run(POSTGRES / "pgbench", "-h", place, "-U", "postgres", "-i", "-q", "postgres")
        finally:
            run(POSTGRES / "pg_ctl", "-D", data, "-w", "stop")
        shutil.make_archive(into / "data", "tar", place, "data")
    (into / "said").unlink()


def compiled(folder, source, *flags):
    kept.compiled(folder / source.stem, ["-O2", "-pthread", *flags], [source])


class Program:
    """A command and what it does. `needs`: programs that have to be here. `takes`: programs that come along, and
    `files`. `before`: what starts its server. `prepare`: makes its files in a folder. `judged_by`: the measure that
    says most of it."""

    def __init__(self, about, needs, command, copies=1, takes=list, files=list, prepare=lambda folder: None, before=None,
                 judged_by="guest_ms"):
        self.about, self.needs, self.command, self.copies, self.takes = about, needs, command, copies, takes
        self.files, self.prepare, self.before, self.judged_by = files, prepare, before, judged_by

    def lacks(self):
        return [name for name in self.needs if not shutil.which(name) and not Path(name).exists()]

    def arguments(self):
        yield from ["--copies", str(self.copies)]
        for program in self.takes():
            yield from ["--program", program]
        for file in self.files():
            yield from ["--file", file]
        if self.before:
            yield from ["--before", self.before]
        yield from ["--", *self.command]


def shell(text):
    """Programs that the guest's shell has itself, such as sort, are named with their folder."""
    return ["sh", "-c", text]


def words(lines):
    return lambda folder: kept.words(folder, lines)


def hinted(name, command):
    """A program of the paper on data affinity."""
    return dict(needs=["cc", "ip"], command=shell(f"ip link set lo up; exec ./{name} {command}"),
                takes=lambda: ["ip"], files=lambda: [name], prepare=lambda folder: kept.hinting(folder, name))


def parallel(about, name, size, times, *flags):
    return Program(about, ["cc"], [f"./{name}", str(size), str(times)],
                   prepare=lambda folder: compiled(folder, PARALLEL / f"{name}.c", *flags))


def answers(workers, count):
    """How the pool of requests is called: some 80,000 instructions each, on 64 KiB."""
    return f"./requests {workers} {count} 40 64"


def requests(workers, count):
    return Program(f"{workers} threads that answer {count} requests, each on its own 64 KiB", ["cc"],
                   answers(workers, count).split(), prepare=lambda folder: compiled(folder, REQUESTS),
                   judged_by="response_us_p99")


def beside_gzip(about, command, lines, before=None):
    """The pool of requests, and gzip beside it."""
    def prepare(folder):
        compiled(folder, REQUESTS)
        kept.words(folder, lines)

    return Program(about, ["cc", "gzip"], shell(f"{command}; code=$?; wait; exit $code"), takes=lambda: ["gzip"],
                   files=lambda: ["requests", "words"], prepare=prepare, before=before, judged_by="response_us_p99")


def web(workers, requests):
    def prepare(folder):
        (folder / "nginx.conf").write_text(NGINX.format(workers=workers))
        (folder / "load.lua").write_text(WRK.replace("REQUESTS", str(requests)))

    start = """ip link set lo up; mkdir -p /tmp/www /var/lib/nginx /var/log/nginx
seq 800 >/tmp/www/index.html
/usr/sbin/nginx -c $PWD/nginx.conf &
for try in $(seq 100); do [ -e /tmp/nginx.pid ] && exit; sleep 0.05; done; cat /tmp/nginx.log >&2; exit 1"""
    return Program(f"nginx with {workers} workers, and wrk with 2 threads and 16 connections",
                   ["/usr/sbin/nginx", "wrk", "ip"],
                   ["wrk", "-t2", "-c16", "-d1s", "-s", "load.lua", "http://127.0.0.1:8080/index.html"],
                   takes=lambda: ["ip", "/usr/sbin/nginx"], files=lambda: [".", "/etc/passwd", "/etc/group"],
                   prepare=prepare, before=start, judged_by="requests_per_s")


def containers(cpus, lines, workers, count):
    """Two control groups of equal weight: one compresses, the other answers."""
    def within(group, command):
        return f"mkdir -p /sys/fs/cgroup/{group}; (echo 0 >/sys/fs/cgroup/{group}/cgroup.procs; {command})"

    batch = within("batch", f"for n in $(seq {2 * cpus}); do /usr/bin/gzip -c words >/dev/null & done; wait")
    server = within("server", f"exec {answers(workers, count)}")
    return beside_gzip(f"two control groups: {2 * cpus} times gzip, and {workers} threads that answer requests",
                       f"{batch} & {server}", lines, "echo +cpu >/sys/fs/cgroup/cgroup.subtree_control")


def mix(cpus, lines, workers, count):
    """A batch beside a server, without any groups. The batch outlasts the server, also where this begins late."""
    batch = f"for n in $(seq {cpus}); do /usr/bin/gzip -c words >/dev/null & done"
    return beside_gzip(f"{cpus} times gzip beside {workers} threads that answer requests",
                       f"{batch}; {answers(workers, count)}", lines)


def programs(cpus, size):
    """All of them for a machine of so many CPUs. `size`: 1 is some thousand million instructions each."""
    def scaled(count, least=1):
        return max(int(count * size), least)

    jobs = cpus * 3 // 2
    return {
        "make": Program(f"make -B -j{jobs}, {scaled(1)} times: {scaled(8, 2)} preprocessed sources at most, gcc -O0", ["make", "gcc"],
                        shell(f"for n in $(seq {scaled(1)}); do make -s -B -j{jobs} || exit; done"),
                        takes=lambda: ["make", *compiler()], files=lambda: ["."], prepare=sources(scaled(8, 2))),
        "sort": Program(f"{jobs} copies of sort", ["sort"], ["sort", "words"], jobs, prepare=words(scaled(80000, 2000))),
        "xz": Program(f"xz with {cpus} threads", ["xz"], ["xz", f"-T{cpus}", "-1", "--block-size=64KiB", "-c", "words"],
                      prepare=words(scaled(500000, 20000))),
        "sqlite": Program(f"{jobs} copies of sqlite3, with a table in memory", ["sqlite3"],
                          ["sqlite3", ":memory:", SQL.format(rows=scaled(7000, 500))], jobs),
        "postgres": Program("PostgreSQL, and pgbench with 16 clients that read and, one time in four, write",
                            [POSTGRES / "postgres", "setpriv"],
                            shell(PGBENCH.format(postgres=POSTGRES, clients=16, transactions=scaled(20, 2))),
                            takes=lambda: [f"{POSTGRES}/{name}" for name in ("postgres", "pgbench", "psql")] + ["setpriv"],
                            files=lambda: ["data.tar", "/usr/share/postgresql/15", "/etc/passwd", "/etc/group"],
                            prepare=database, before=POSTGRES_START, judged_by="requests_per_s"),
        "redis": Program(f"{cpus // 2} servers of redis, each with redis-benchmark: 8 clients", ["redis-server", "redis-benchmark"],
                         shell(REDIS_CLIENTS.replace("REQUESTS", str(scaled(1500, 100)))), cpus // 2,
                         takes=lambda: ["redis-server", "redis-benchmark", "redis-cli"],
                         before=REDIS.format(last=cpus // 2 - 1), judged_by="requests_per_s"),
        "nginx": web(cpus // 2, scaled(4000, 100)),
        "python": Program(f"{jobs} copies of a script: texts, counting, JSON", [PYTHON],
                          [PYTHON, "-I", "-S", "script.py", str(scaled(4000, 300))], jobs,
                          files=lambda: ["lib:/usr/lib"], prepare=python),
        "stencil": parallel(f"an OpenMP stencil of {cpus} threads", "stencil", 600_000, scaled(60), "-fopenmp"),
        "cg": parallel(f"conjugate gradients by OpenMP, {cpus} threads", "cg", 384, scaled(60), "-fopenmp", "-lm"),
        "blas": parallel(f"products of matrices by OpenBLAS, {cpus} threads", "product", 512, scaled(3), "-lopenblas"),
        "hackbench": Program("hackbench: 2 groups of 10 senders and 10 receivers, by pipes", ["hackbench"],
                             ["hackbench", "-p", "-g", "2", "-f", "10", "-l", str(scaled(250, 10))]),
        "pipelines": Program(f"{jobs // 2} pipelines of sort, uniq and sort", ["sort", "uniq"],
                             shell("/usr/bin/sort words | /usr/bin/uniq -c | /usr/bin/sort -n"), jobs // 2, takes=lambda: ["sort", "uniq"],
                             files=lambda: ["words"], prepare=words(scaled(30000, 2000))),
        "chat": Program("10 rooms of 4 users", **hinted("chat", f"plain 10 4 {scaled(200, 10)}")),
        "chat-hints": Program("the same with hints", **hinted("chat", f"hints 10 4 {scaled(200, 10)}")),
        "requests-half": requests(cpus // 2, scaled(10000, 100)),
        "requests-full": requests(cpus, scaled(10000, 100)),
        "requests-fourfold": requests(4 * cpus, scaled(10000, 100)),
        "mix": mix(cpus, scaled(120000, 2000), cpus // 2, scaled(5000, 50)),
        "containers": containers(cpus, scaled(30000, 1000), cpus // 2, scaled(5000, 50)),
    }
