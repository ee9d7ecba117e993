"""`hearth sweep`: an experiment as a matrix, on this machine or a cluster."""

import argparse
import os
import sys
import time
from pathlib import Path

from .command import HearthError
from .sweeps import Sweep, cluster, local

ABOUT = """Runs each cell of a matrix: every combination of machines, policies, programs and seeds that a file names.

What is done is kept in a store, so that the same command goes on where it stopped. Rows go to standard output as CSV,
in the matrix's order: the same bytes wherever the cells ran."""
EXAMPLES = """examples:
  hearth sweep credits.toml >credits.csv
  hearth sweep credits.toml --cluster tcp://head:8786 --output credits.csv
  hearth sweep credits.toml --list

exit codes:
  0    all cells are done
  1    some failed, and the others are there; or the output could not be written
  2    wrong input
  4    Dask is not installed
  6    another sweep writes to the store
  130  interrupted (Ctrl-C); what was done is kept"""


class Progress:
    """How far a sweep is: a line that is written over on a terminal, else one now and then."""

    EVERY_S = 60

    def __init__(self):
        self.began = self.last = time.monotonic()
        self.failed = 0

    def told(self, cell, result, done, all):
        now = time.monotonic()
        if result.output is None:
            self.failed += 1
            self.line(f"failed: {said(cell)}: {result.message}", keeps=True)
        if not sys.stderr.isatty() and now - self.last < self.EVERY_S:
            return
        self.last = now
        left_s = (now - self.began) / done * (all - done)
        failed = f", {self.failed} failed" if self.failed else ""
        self.line(f"{done} of {all} cells{failed}, some {left_s:.0f} s left", keeps=not sys.stderr.isatty())

    @staticmethod
    def line(text, keeps):
        clear = "\r\x1b[K" if sys.stderr.isatty() else ""
        print(f"{clear}{text}", end="\n" if keeps else "", file=sys.stderr, flush=True)

    def finish(self):
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def said(cell):
    return ", ".join(f"{name}={value}" for name, value in cell.at.items())


def count(text):
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise argparse.ArgumentTypeError("give a whole number from 1 to 1024")
    return int(text)


def output(text):
    """A file that can be written, said before hours are spent."""
    path = Path(text)
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"{text} cannot be written: name a file in a folder that you may write to")
    return path


def parser():
    parser = argparse.ArgumentParser("hearth sweep", description=ABOUT, epilog=EXAMPLES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", metavar="FILE", type=Path, help="the matrix, a TOML file: docs/sweeps.md")
    parser.add_argument("--store", metavar="FILE", type=Path, help="where cells are kept [default: here, with the FILE's name and .sqlite]")
    parser.add_argument("--output", type=output, metavar="FILE", help="write the rows there, in place of standard output")
    parser.add_argument("--jobs", type=count, metavar="N", help="cells at a time [default: the number of CPUs]")
    parser.add_argument("--cluster", metavar="ADDRESS", help="run cells on a Dask cluster: tcp://HOST:PORT of its scheduler")
    parser.add_argument("--list", action="store_true", help="print the cells, and whether they are done; run nothing")
    return parser


def sweep(options):
    with Sweep(options.file, options.store) as sweep:
        if options.list:
            done = sweep.store.done()
            for cell in sweep.cells:
                why = sweep.store.message(cell.key)
                print(f"{'done' if cell.key in done else f'failed: {why}' if why else 'to do'}: {said(cell)}")
            return 0
        missing = len(sweep.missing())
        kept = f"; {len(sweep.cells) - missing} are in {sweep.store_path}" if missing < len(sweep.cells) else ""
        print(f"{sweep.matrix.title}: {len(sweep.cells)} cells{kept}", file=sys.stderr)
        failed = run(sweep, options) if missing else []
        text = sweep.csv()
    if options.output:
        part = options.output.with_name(f".{options.output.name}.part")
        part.write_text(text)
        part.rename(options.output)
    else:
        sys.stdout.write(text)
        sys.stdout.flush()
    if failed:
        print(f"error: {len(failed)} of {missing} cells failed; they are tried again the next time", file=sys.stderr)
    return 1 if failed else 0


def run(sweep, options):
    progress = Progress()
    executor = cluster(options.cluster) if options.cluster else local(options.jobs)
    try:
        return sweep.run(executor, progress.told)
    except KeyboardInterrupt:
        executor.shutdown(wait=False)
        raise
    finally:
        progress.finish()


def main(words=None):
    words = sys.argv[1:] if words is None else words
    # `hearth sweep` hands its own name on.
    options = parser().parse_args(words[1:] if words[:1] == ["sweep"] else words)
    try:
        return sweep(options)
    except HearthError as wrong:
        print(f"error: {wrong}", file=sys.stderr)
        return wrong.code or 1
    except OSError as wrong:
        print(f"error: {wrong.filename or 'output'}: {wrong.strerror}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted: what was done is kept, and the same command goes on", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
