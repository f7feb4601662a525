# SPDX-License-Identifier: Apache-2.0
"""What surveys found, kept on disk: the next run surveys only what has changed since, or what this one did not reach.

A row a file, in a database of SQLite's: it survives the death of the process at any time. Evidence holds as long as the
file, its indexes and the rules are the same. A file is taken to be the same if its inode, size and times are: bits that
rot on the disk change none of these, so somebody has to survey everything again from time to time.
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
"""After so many files, so long, or so much evidence, what was found is made to last."""
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
    """Keeps evidence in a file; a context manager. Only one process writes to it, and others may read.

    Args:
        path: of the database; it is made if it is not there.
        run_id: of the run that is going on.

    Attributes:
        reused_files: how many were not surveyed in this run, those of indexes included.

    Raises:
        StorageError: it cannot be opened, or is no such database.
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
            # What is not committed stays in memory: to write it early would lock out whoever surveys, until the commit.
            self._database.execute("PRAGMA cache_spill = OFF")
            self._database.execute(_TABLE)
            self._database.commit()
        except sqlite3.Error as error:
            raise self._failure("open", error) from error

    def take(self, file: FileEvidence) -> None:
        """Keep the evidence of a file, unless it came from here; what could not be read is asked for again next time.

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
        """Forget everything: all files are surveyed anew.

        Raises:
            StorageError: the disk failed.
        """
        try:
            self._database.execute("DELETE FROM evidence")
            self._commit()
        except sqlite3.Error as error:
            raise self._failure("write", error) from error

    def drop_unseen(self) -> None:
        """Forget the files that this run has not seen: they are gone.

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
        return StorageError(self._path, operation, f"{error}; without this file everything is surveyed anew")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._database.commit()  # What was surveyed before an interrupt need not be surveyed again.
        except sqlite3.Error:
            pass  # The error that ended the run says more; without one, the next run surveys a few files again.
        finally:
            self._database.close()


@attrs.frozen
class StoredSurvey:
    """Surveys a file, or returns what a store has of it. It pickles; each process opens the store for itself.

    Attributes:
        path: of the store.
        survey: what surveys a file.
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
        except Exception:  # It is busy or damaged, whatever cattrs calls that: the file itself says the same.
            return None


class _Reader(sqlite3.Connection):
    """A connection that closes itself."""

    def __del__(self) -> None:
        self.close()


@functools.lru_cache(maxsize=1)
def _reader(path: str, process_id: int) -> sqlite3.Connection:
    """Return a connection of this process: one that came with a fork belongs to somebody else."""
    uri = f"file:{quote(os.fsencode(os.path.abspath(path)))}?mode=ro"  # noqa: PTH100
    # Not bound to this thread: it may be another one that collects it as garbage, and so closes it.
    return sqlite3.connect(uri, uri=True, timeout=_WAIT_SECONDS, check_same_thread=False, factory=_Reader)


def key_of(task: SurveyTask) -> str:
    """Return a text that is another one if the evidence of a file may be."""
    return hashlib.blake2b(f"{_rules_key()} {task!r}".encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


@functools.cache
def _rules_key() -> str:
    rules = sorted(map(repr, CATALOGUE.values()))
    return f"{__version__} {hashlib.blake2b(repr(rules).encode()).hexdigest()}"
