"""What tools make once and need not make again, their arguments and figures, the file that the programs of theirs
read, and programs that they compile."""

import argparse
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path


def program(text):
    """An argument that names a program: for argparse."""
    path = Path(text).resolve()
    if not (path.is_file() and os.access(path, os.X_OK)):
        raise argparse.ArgumentTypeError(f"{text} is no program; `make build` builds target/release/hearth")
    return path


def folder(text):
    """An argument that names a folder, which is made if it is not there: for argparse."""
    path = Path(text).resolve()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as wrong:
        raise argparse.ArgumentTypeError(f"{text} is to be a folder: {wrong.strerror}") from wrong
    return path


def names(text, known):
    """An argument that names some of what is known, with commas between: for argparse."""
    chosen = text.split(",")
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise argparse.ArgumentTypeError(f"no {unknown[0]!r}; there are {', '.join(known)}")
    return chosen


def sums(paths):
    """Checksums of what files hold."""
    return [hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in paths]


def output(path, command, built=None, keep=lambda said: said, **how):
    """The JSON that a command prints, or what `keep` makes of it. It lies in a file, with what it is of: another
    command, or a program that was built since, is run. `built` says of which programs else. Raises
    subprocess.CalledProcessError."""
    command = [str(word) for word in command]
    of = {"command": command, "built": built or Path(command[0]).stat().st_mtime_ns}
    if path.exists():
        kept = json.loads(path.read_text())
        if kept["of"] == of:
            return kept["said"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, **how)
    try:
        said = json.loads(done.stdout)
    except json.JSONDecodeError as wrong:
        sys.exit(f"{command[0]} printed no JSON ({wrong}): is it hearth?")
    said = keep(said)
    # Never half of it.
    part = path.with_suffix(".part")
    part.write_text(json.dumps({"of": of, "said": said}))
    part.rename(path)
    return said


def said(path):
    """What lies in such a file; nothing if there is none."""
    return json.loads(path.read_text())["said"] if path.exists() else None


def words(folder, count):
    """A file `words`: the numbers up to a count, their digits backwards, so that they are not in order."""
    (folder / "words").write_text("".join(f"{number}"[::-1] + "\n" for number in range(1, count + 1)))


def ranged(mean, low, high, digits=0, sign=""):
    """A mean, and the least and the most where they differ."""
    mean, low, high = (f"{value:{sign},.{digits}f}" for value in (mean, low, high))
    return mean if low == high else f"{mean} ({low} to {high})"


def compiled(into, flags, sources):
    """A program, made of C."""
    done = subprocess.run(["cc", *sources, *flags, "-o", into], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"the C compiler could not make {into.name}:\n{done.stderr}")
    return into


def hinting(folder, name):
    """A program that says which data it works on, compiled into the folder together with the library."""
    crate = Path(__file__).resolve().parent.parent / "crates/hearth-hints"
    sources = [crate / f"benches/programs/{name}.c", *sorted((crate / "src").glob("*.c"))]
    return compiled(folder / name, ["-O2", "-std=gnu11", "-D_GNU_SOURCE", "-pthread"], sources)
