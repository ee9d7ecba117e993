"""Runs the cells of a matrix that a store does not have yet, on any executor of `concurrent.futures`, and gives all as
rows."""

import csv
import io
import json
import os
import tempfile
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from . import store as stores
from .command import HearthError, build, run
from .matrix import Cell, Matrix


@dataclass
class Result:
    """What came of a cell: what it printed, or why it failed; and how long it took."""

    output: str | None
    message: str | None
    seconds: float


def do(cell: Cell) -> Result:
    """Runs a cell, where an executor has brought it."""
    began = time.monotonic()
    try:
        if build() != cell.build:
            raise HearthError("the worker has another build of Hearth: install the same on all, or share a folder (HEARTH_BIN)")
        with tempfile.TemporaryDirectory(prefix="hearth-sweep-") as folder:
            for file in cell.files:
                path = Path(folder) / file.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(file.content)
                path.chmod(0o755 if file.is_program else 0o644)
            return Result(run(cell.words, cwd=folder), None, time.monotonic() - began)
    except (HearthError, OSError) as failed:
        return Result(None, str(failed), time.monotonic() - began)


def local(jobs=None):
    """An executor for this machine: each cell is a process of its own."""
    return ThreadPoolExecutor(jobs or os.cpu_count())


def cluster(address, retries=3):
    """An executor for a Dask cluster, by its scheduler's address: a cell whose worker dies is done by another."""
    try:
        from distributed import Client
    except ImportError as wrong:
        raise HearthError("a cluster needs Dask: pip install 'hearth-sched[cluster]'", 4) from wrong
    try:
        client = Client(address, timeout=10, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as wrong:
        raise HearthError(f"there is no Dask scheduler at {address}: {wrong}", 2) from wrong
    return client.get_executor(retries=retries, pure=False)


class Sweep:
    """A matrix and its store. `with Sweep(path) as sweep: sweep.run()`; then `sweep.rows()`."""

    def __init__(self, path, store=None):
        self.matrix = Matrix(path)
        self.cells = list(self.matrix.cells())
        self.store_path = Path(store or Path(path).with_suffix(".sqlite").name)
        self._open = ExitStack()

    def __enter__(self):
        self._open.enter_context(stores.locked(self.store_path))
        try:
            self.store = self._open.enter_context(stores.Store(self.store_path))
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(self, *_):
        self._open.close()

    def missing(self):
        """The cells that have not been done, or failed."""
        done = self.store.done()
        return [cell for cell in self.cells if cell.key not in done]

    def run(self, executor, told=lambda cell, result, done, all: None):
        """Does what is missing; `told` hears of each cell that has ended. Returns the cells that failed, with why."""
        cells, failed = self.missing(), []
        futures = {executor.submit(do, cell): cell for cell in cells}
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                cell = futures[future]
                try:
                    result = future.result()
                except CancelledError:
                    raise
                except Exception as lost:  # Whatever an executor says of a worker that it lost.
                    result = Result(None, f"its worker was lost: {lost}", 0.0)
                self.store.keep(cell.key, json.dumps(cell.words), result.output, result.message, result.seconds)
                if result.output is None:
                    failed.append((cell, result.message))
                told(cell, result, done, len(cells))
        except BaseException:
            for future in futures:
                future.cancel()
            raise
        return failed

    def rows(self):
        """All rows of all cells that are done, in the matrix's order: values by column, the axes' first."""
        for cell in self.cells:
            output = self.store.output(cell.key)
            for row in csv.DictReader(io.StringIO(output or "")):
                yield {name: str(value) for name, value in cell.at.items() if name not in row} | row

    def csv(self):
        """These as CSV: the same bytes wherever and in whatever order cells were done."""
        rows = list(self.rows())
        columns = list(dict.fromkeys(column for row in rows for column in row))
        text = io.StringIO()
        lines = csv.DictWriter(text, columns, lineterminator="\n")
        lines.writeheader()
        lines.writerows(rows)
        return text.getvalue()
