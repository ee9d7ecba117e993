"""What cells of a sweep came to: an SQLite file, so that a sweep goes on where it stopped."""

import fcntl
import sqlite3
from contextlib import contextmanager
from pathlib import Path

from .command import HearthError

VERSION = 1
TABLES = """create table cells (
    key text primary key,          -- of the command, its files and the program
    words text not null,           -- the command, as JSON
    output text,                   -- what it printed; null if it failed
    message text,                  -- why it failed
    seconds real not null,         -- how long it took
    at text not null default (datetime('now'))
) without rowid"""


@contextmanager
def locked(path):
    """One sweep at a time writes to a store. Raises HearthError while another does. The file beside it stays: what is
    removed could be locked twice."""
    with open(f"{path}.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HearthError(f"another sweep writes to {path}: wait for it, or name another file with --store", 6) from None
        yield


class Store:
    """Cells by their keys. Raises HearthError for a file that is no store, or of another edition."""

    def __init__(self, path):
        self.path = Path(path)
        try:
            self.database = sqlite3.connect(self.path, timeout=30)
            version = self.database.execute("pragma user_version").fetchone()[0]
            is_empty = not self.database.execute("select count(*) from sqlite_master").fetchone()[0]
        except sqlite3.DatabaseError as wrong:
            raise HearthError(f"{path} cannot be used as a store: {wrong}", 2) from wrong
        if is_empty:
            with self.database:
                self.database.execute(TABLES)
                self.database.execute(f"pragma user_version = {VERSION}")
        elif version != VERSION:
            self.database.close()
            raise HearthError(f"{path} is a store of version {version}, and this edition has {VERSION}: name another file with --store", 2)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.database.close()

    def output(self, key):
        """What a cell printed; None if it has not been done, or failed."""
        row = self.database.execute("select output from cells where key = ?", (key,)).fetchone()
        return row and row[0]

    def message(self, key):
        """Why a cell failed; None if it did not."""
        row = self.database.execute("select message from cells where key = ?", (key,)).fetchone()
        return row and row[0]

    def done(self):
        """The keys of cells that need not be done again."""
        return {key for key, in self.database.execute("select key from cells where output is not null")}

    def keep(self, key, words, output, message, seconds):
        """What came of a cell, whole or not at all."""
        with self.database:
            self.database.execute(
                "insert or replace into cells (key, words, output, message, seconds) values (?, ?, ?, ?, ?)",
                (key, words, output, message, seconds))
