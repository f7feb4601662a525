# SPDX-License-Identifier: Apache-2.0
"""Stores evidence on disk, so that the next run surveys only files that have changed or were not reached.

The store is an SQLite database with one row per file, which survives the death of the process at any time. Evidence is
valid as long as the file, its indexes and the rules are the same. A file counts as the same if its inode, size and
times are. Bit rot changes none of these, so operators should run with ``--fresh`` from time to time.
"""

import functools
import hashlib
import os
import sqlite3
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self
from urllib.parse import quote

import attrs

from raftlog import __version__
from raftlog.errors import StorageError
from raftlog.tools.auditing.evidence import FileEvidence, SurveyTask
from raftlog.tools.auditing.survey.survey import survey as survey_file
from raftlog.tools.catalogue.audit_rules import CATALOGUE, UNREAD_RULES

_COMMIT_COUNT: Final = 256
_COMMIT_SECONDS: Final = 2.0
_COMMIT_CHARACTERS: Final = 8 * 1024 * 1024
"""Evidence is committed after this many files, this much time, or this much evidence."""
_WAIT_SECONDS: Final = 60
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS evidence (
    path BLOB PRIMARY KEY, -- as the operating system has it
    key TEXT NOT NULL,     -- of the task and the rules: another one once the file has changed
    run TEXT NOT NULL,     -- the last run that saw the file
    evidence TEXT NOT NULL -- FileEvidence as JSON
) WITHOUT ROWID
"""


class EvidenceStore:
    """Stores evidence in a file; a context manager. Only one process writes to it; others may read it.

    Args:
        path: of the database; it is created if it does not exist.
        run_id: of the current run.

    Attributes:
        reused_files: number of files that were not surveyed in this run, indexes included.

    Raises:
        StorageError: it cannot be opened, or is not such a database.
    """

    def __init__(self, path: str, run_id: str) -> None:
        self._path = path
        self._run_id = run_id
        self._waiting = 0
        self._waiting_characters = 0
        self._committed_at = time.monotonic()
        self.reused_files = 0
        try:
            self._database = sqlite3.connect(path, timeout=_WAIT_SECONDS)
            # Uncommitted rows stay in memory: writing them early would lock out surveying processes until the commit.
            self._database.execute("PRAGMA cache_spill = OFF")
            self._database.execute(_TABLE)
            self._database.commit()
        except sqlite3.Error as error:
            raise self._failure("open", error) from error

    def take(self, file: FileEvidence) -> None:
        """Store the evidence of a file, unless it came from here or the file could not be read.

        Raises:
            StorageError: the disk failed.
        """
        path, key = os.fsencode(file.task.path), key_of(file.task)
        try:
            rows = self._database.execute("SELECT key FROM evidence WHERE path = ?", (path,)).fetchall()
            if rows == [(key,)]:
                self.reused_files += 1 + len(file.task.indexes)
                self._database.execute("UPDATE evidence SET run = ? WHERE path = ?", (self._run_id, path))
            elif not any(finding.rule in UNREAD_RULES for finding in file.findings):
                row = (path, key, self._run_id, evidence := file.to_json())
                self._database.execute("INSERT OR REPLACE INTO evidence VALUES (?, ?, ?, ?)", row)
                self._waiting_characters += len(evidence)
            self._waiting += 1
            if self._is_time_to_commit():
                self._commit()
        except sqlite3.Error as error:
            raise self._failure("write", error) from error

    def forget(self) -> None:
        """Delete everything, so that all files are surveyed again.

        Raises:
            StorageError: the disk failed.
        """
        try:
            self._database.execute("DELETE FROM evidence")
            self._commit()
        except sqlite3.Error as error:
            raise self._failure("write", error) from error

    def drop_unseen(self) -> None:
        """Delete the evidence of files that this run has not seen, since they no longer exist.

        Raises:
            StorageError: the disk failed.
        """
        try:
            self._database.execute("DELETE FROM evidence WHERE run <> ?", (self._run_id,))
            self._commit()
        except sqlite3.Error as error:
            raise self._failure("write", error) from error

    def _is_time_to_commit(self) -> bool:
        is_much = self._waiting >= _COMMIT_COUNT or self._waiting_characters >= _COMMIT_CHARACTERS
        return is_much or time.monotonic() > self._committed_at + _COMMIT_SECONDS

    def _commit(self) -> None:
        self._database.commit()
        self._waiting = self._waiting_characters = 0
        self._committed_at = time.monotonic()

    def _failure(self, operation: str, error: sqlite3.Error) -> StorageError:
        return StorageError(self._path, operation, f"{error}; without this file, everything is surveyed again")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._database.commit()  # Evidence from before an interrupt is kept.
        except sqlite3.Error:
            pass  # An error that ended the run matters more; without one, the next run surveys a few files again.
        finally:
            self._database.close()


@attrs.frozen
class StoredSurvey:
    """Returns the stored evidence of a file, or surveys it. Picklable; each process opens the store for itself.

    Attributes:
        path: of the store.
        survey: the function that surveys a file.
    """

    path: str
    survey: Callable[[SurveyTask], FileEvidence] = survey_file

    def __call__(self, task: SurveyTask) -> FileEvidence:
        """Return the evidence of a file."""
        return self._stored(task) or self.survey(task)

    def _stored(self, task: SurveyTask) -> FileEvidence | None:
        query = "SELECT evidence FROM evidence WHERE path = ? AND key = ?"
        try:
            rows = _reader(self.path, os.getpid()).execute(query, (os.fsencode(task.path), key_of(task))).fetchall()
            return FileEvidence.from_json(rows[0][0]) if rows else None
        except Exception:  # The store is busy or damaged; surveying the file gives the same evidence.
            return None


class _Reader(sqlite3.Connection):
    """A connection that closes itself."""

    def __del__(self) -> None:
        self.close()


@functools.lru_cache(maxsize=1)
def _reader(path: str, process_id: int) -> sqlite3.Connection:
    """Return this process's own connection: one inherited by a fork belongs to the parent."""
    uri = f"file:{quote(os.fsencode(os.path.abspath(path)))}?mode=ro"  # noqa: PTH100
    # Not bound to this thread: the garbage collector may close it in another thread.
    return sqlite3.connect(uri, uri=True, timeout=_WAIT_SECONDS, check_same_thread=False, factory=_Reader)


def key_of(task: SurveyTask) -> str:
    """Return a key that differs whenever the evidence of a file may differ."""
    return hashlib.blake2b(f"{_rules_key()} {task!r}".encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


@functools.cache
def _rules_key() -> str:
    rules = sorted(map(repr, CATALOGUE.values()))
    return f"{__version__} {hashlib.blake2b(repr(rules).encode()).hexdigest()}"
