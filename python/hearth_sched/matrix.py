"""An experiment as a matrix: a TOML file whose axes multiply into cells, each a command with a key of its content."""

import hashlib
import itertools
import json
import os
import shlex
import shutil
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from .command import HearthError, build, digest, options

# Commands that can be swept: what they print is the same whenever and wherever they run.
COMMANDS = ("compare", "emulate", "lab")
# Options that may be given several times: an option's list is of these.
REPEATED = ("file", "program")
# Options that a sweep gives itself, and where to say the like.
OWN = {"json": "is not for a sweep: its rows are CSV", "csv": "is what a sweep prints anyway", "jobs": "is 1 for each cell: --jobs of hearth sweep",
       "seeds": "are single cells: name them in an axis called seed", "report": "is not for a sweep: it has no pages",
       "keep": "is not for a sweep: it has a store"}
KEYS = {"title", "command", "axes", "options"}
# What an axis or an option is that is no option of the command: its words, and single seeds.
PROGRAM, SEED = "program", "seed"
MOST_CELLS = 1_000_000


@dataclass(frozen=True)
class File:
    """What a file beside the sweep's holds, by its path from there."""

    name: str
    content: bytes
    is_program: bool


@dataclass(frozen=True)
class Cell:
    """A run: where it is on the axes, the command's words, and the files that these name, to be there where it runs.
    `build` is Hearth's, `programs` are checksums of the host's programs that run in a guest."""

    at: dict
    words: tuple
    files: tuple = field(repr=False)
    build: str
    programs: tuple

    @property
    def key(self):
        """The same for the same command of the same build, with the same files and programs."""
        files = [(file.name, hashlib.sha256(file.content).hexdigest(), file.is_program) for file in self.files]
        return hashlib.sha256(json.dumps([self.words, files, self.build, self.programs]).encode()).hexdigest()


class Matrix:
    """A sweep's file. Raises HearthError, which says what is wrong with it and where."""

    def __init__(self, path):
        self.path = Path(path)
        try:
            about = tomllib.loads(self.path.read_text())
        except (OSError, UnicodeDecodeError) as wrong:
            raise HearthError(f"{path} cannot be read: {getattr(wrong, 'strerror', None) or wrong}", 2) from wrong
        except tomllib.TOMLDecodeError as wrong:
            raise HearthError(f"{path}: {wrong}", 2) from wrong
        self._check_keys(about)
        self.title = about.get("title", self.path.stem)
        self.command, self.axes, self.options = about["command"], about["axes"], about.get("options", {})
        self._check_values()

    def _wrong(self, what):
        return HearthError(f"{self.path}: {what}", 2)

    def _check_keys(self, about):
        unknown = sorted(about.keys() - KEYS)
        if unknown:
            raise self._wrong(f"there is no key {unknown[0]!r} here; there are {', '.join(sorted(KEYS))}")
        missing = [key for key in ("command", "axes") if key not in about]
        if missing:
            raise self._wrong(f"{missing[0]!r} is missing")
        if about["command"] not in COMMANDS:
            raise self._wrong(f"command = {about['command']!r}: give one of {', '.join(COMMANDS)}")
        for name in ("axes", "options"):
            if not isinstance(about.get(name, {}), dict):
                raise self._wrong(f"{name!r} is to be a table: [{name}]")

    def _check_values(self):
        for name, values in self.axes.items():
            if not isinstance(values, list) or not values:
                raise self._wrong(f"axes.{name} is to be a list of one value or more")
            if any(isinstance(value, (dict, list)) for value in values):
                raise self._wrong(f"axes.{name}: a value is a name, a number or a truth, not a list or table")
            if len({json.dumps(value) for value in values}) < len(values):
                raise self._wrong(f"axes.{name} has a value twice")
        twice = sorted(self.axes.keys() & self.options.keys())
        if twice:
            raise self._wrong(f"{twice[0]!r} is an axis and an option")
        for name in {*self.axes, *self.options} & OWN.keys():
            raise self._wrong(f"{name!r} {OWN[name]}")
        for seed in [*self.axes.get(SEED, []), *([self.options[SEED]] if SEED in self.options else [])]:
            if type(seed) is not int or seed < 1:
                raise self._wrong(f"a seed is a whole number from 1, not {seed!r}")
        if self.size > MOST_CELLS:
            raise self._wrong(f"{self.size:,} cells; {MOST_CELLS:,} is the most")

    @property
    def size(self):
        """How many cells there are."""
        count = 1
        for values in self.axes.values():
            count *= len(values)
        return count

    def cells(self):
        """Each combination of the axes' values, the last axis fastest."""
        built, read = build(), {}
        for values in itertools.product(*self.axes.values()):
            at = dict(zip(self.axes, values))
            words = self._words(at | self.options)
            files = tuple(file for word in words if (file := self._file(word, read)))
            yield Cell(at, words, files, built, self._programs(at | self.options))

    def _words(self, values):
        values = dict(values)
        of_program = shlex.split(str(values.pop(PROGRAM, "")))
        seed = values.pop(SEED, None)
        if seed is not None:
            values["seeds"] = f"{seed}-{seed}"
        command = [self.command, "--csv", "--jobs", "1", *options(values, REPEATED)]
        return (*command, *(["--"] if of_program else []), *of_program)

    def _file(self, word, read):
        """A file of this name beside the sweep's, or below; None if there is none. It is read once."""
        if word not in read:
            path, parts = self.path.parent / word, Path(word).parts
            is_beside = parts and not word.startswith(("/", "-")) and ".." not in parts and path.is_file()
            read[word] = File(word, path.read_bytes(), os.access(path, os.X_OK)) if is_beside else None
        return read[word]

    def _programs(self, values):
        """Of programs of the host that run in a guest: the command, and what loads a published scheduler."""
        if self.command != "emulate":
            return ()
        names = [name for name in str(values.get("schedulers", "")).split(",") if not name.startswith(("kernel", "hearth:"))]
        first = [words[0] for words in map(shlex.split, [str(values.get(PROGRAM, "")), *names]) if words]
        return tuple(digest(Path(path)) for path in map(shutil.which, first) if path)
