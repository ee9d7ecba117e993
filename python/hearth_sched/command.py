"""The command `hearth`: where it is, and what it prints."""

import hashlib
import json
import os
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

# The laboratory's command, and the administrator's, which finds the other.
LABORATORY, COMMAND = "hearth-lab", "hearth"
OF_LABORATORY = ("compare", "emulate", "lab", "record", "list", "show")


class HearthError(Exception):
    """What a command said when it failed, and its exit code."""

    def __init__(self, message, code=None):
        super().__init__(message)
        self.code = code

    def __reduce__(self):
        return HearthError, (str(self), self.code)


def program(name):
    """The program that has a command: in HEARTH_BIN if that is set, else on PATH."""
    wanted = LABORATORY if name in OF_LABORATORY else COMMAND
    folder = os.environ.get("HEARTH_BIN")
    path = shutil.which(wanted, path=folder)
    if not path:
        where = f"in {folder} (HEARTH_BIN)" if folder else "on PATH"
        raise HearthError(f"there is no {wanted} {where}: build it with `make build`, and set HEARTH_BIN to target/release")
    return Path(path).resolve()


@lru_cache(maxsize=None)
def _digest(path, _changed_ns):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def digest(path):
    """The SHA-256 of a program's file."""
    return _digest(str(path), path.stat().st_mtime_ns)


def build():
    """The SHA-256 of all that decides what the laboratory's command prints: itself, its schedulers and its plugin."""
    path = program("compare")
    parts = [path, *sorted(path.parent.glob("*.so")), *sorted((path.parent / "scheduler").glob("*.so"))]
    return hashlib.sha256("".join(map(digest, parts)).encode()).hexdigest()


def run(words, cwd=None):
    """What a command prints. Raises HearthError with what it said if it fails."""
    words = [str(word) for word in words]
    done = subprocess.run([program(words[0]), *words], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        telling = [line for line in said if line.startswith("error:")] or said[-1:]
        message = " ".join(telling).removeprefix("error: ") or f"hearth {words[0]} said nothing"
        raise HearthError(message, done.returncode)
    return done.stdout


def document(words, program=()):
    """The JSON that a command prints, behind what a program that it runs has printed itself."""
    text = run([words[0], "--json", *words[1:], *(["--", *program] if program else [])])
    try:
        return json.loads(text.splitlines()[-1] if program and text else text)
    except json.JSONDecodeError as wrong:
        raise HearthError(f"hearth {words[0]} printed no JSON: {wrong}") from wrong


def options(values, repeated=()):
    """Keywords as a command's options: `True` is a flag, a list has commas between, or is an option for each value
    if that may be repeated. None and False are left out."""
    for name, value in values.items():
        option = f"--{name.replace('_', '-')}"
        values = [value] if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__") else list(value)
        if value is None or value is False:
            continue
        if value is True:
            yield option
        elif name in repeated:
            yield from (word for one in values for word in (option, str(one)))
        else:
            yield from (option, ",".join(map(str, values)))
