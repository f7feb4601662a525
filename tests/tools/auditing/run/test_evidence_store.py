# SPDX-License-Identifier: Apache-2.0
"""The store of evidence: evidence is found again only for the same file and rules, and deleted with the file."""

import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import StorageError
from raftlog.records.files.file_names import FileKind
from raftlog.tools.auditing.evidence import FileEvidence, LogExtent, Place, SurveyTask
from raftlog.tools.auditing.run import evidence_store
from raftlog.tools.auditing.run.evidence_store import EvidenceStore, StoredSurvey, key_of
from raftlog.tools.catalogue.findings import Finding

TASK = SurveyTask(Place("n1", "orders", 0), "n1/orders-0/a\udcff.log", FileKind.LOG, fingerprint="1:2:3:4")


def evidence(task: SurveyTask, end: int = 1) -> FileEvidence:
    """The evidence of a file."""
    return FileEvidence(task, extent=LogExtent(0, end, 0, 0, 0, 1, 1))


def unexpected(task: SurveyTask) -> FileEvidence:
    """A survey that must not be made."""
    raise AssertionError(f"{task.path} is surveyed")


def surveyed_now(task: SurveyTask) -> FileEvidence:
    """A survey whose result differs from the stored one."""
    return evidence(task, 999)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where the store is."""
    return str(tmp_path / "evidence.sqlite")


changes = st.fixed_dictionaries(
    {},
    optional={
        "fingerprint": st.just("other"),
        "size_bytes": st.just(77),
        "is_raft": st.just(True),
        "was_named": st.just(True),
        "snapshot_offsets": st.just((5,)),
        "indexes": st.just({FileKind.OFFSET_INDEX: "n1/orders-0/a.index"}),
        "path": st.just("n1/orders-0/b.log"),
    },
)


@settings(max_examples=30, deadline=None)
@given(change=changes)
def test_only_the_same_file_is_found_again(change: dict[str, Any]) -> None:
    """Stored evidence is used for an equal task, and for no other."""
    task = attrs.evolve(TASK, **change)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/x.sqlite"
        with EvidenceStore(path, "run") as store:
            store.take(evidence(TASK))
        found = StoredSurvey(path, surveyed_now)(task)

        assert found == evidence(task, 1 if task == TASK else 999)
        assert (key_of(task) == key_of(TASK)) == (task == TASK)


def test_a_new_version_surveys_everything(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other rules may find other things in the same file."""
    with EvidenceStore(path, "run") as store:
        store.take(evidence(TASK))
    monkeypatch.setattr(evidence_store, "_rules_key", lambda: "other rules")

    assert StoredSurvey(path, surveyed_now)(TASK) == evidence(TASK, 999)


def test_unreadable_files_are_surveyed_again(path: str) -> None:
    """A permission may have been given since."""
    with EvidenceStore(path, "run") as store:
        store.take(FileEvidence(TASK, (Finding(TASK.path, "file-unreadable", "permission denied"),)))

    assert StoredSurvey(path, surveyed_now)(TASK) == evidence(TASK, 999)


def test_reuse_is_counted_and_deleted_files_are_dropped(path: str) -> None:
    """A second run counts the files that it did not read; files that it has not seen are deleted on request."""
    other = attrs.evolve(TASK, path="b.log")
    indexed = attrs.evolve(TASK, path="c.log", indexes={FileKind.OFFSET_INDEX: "c.index"})
    with EvidenceStore(path, "first") as store:
        for task in (TASK, other, indexed):
            store.take(evidence(task))
        assert store.reused_files == 0
    with EvidenceStore(path, "second") as store:
        for task in (TASK, indexed):
            store.take(StoredSurvey(path, unexpected)(task))
        assert store.reused_files == 3
        store.drop_unseen()

    assert StoredSurvey(path, surveyed_now)(other) == evidence(other, 999)
    assert StoredSurvey(path, unexpected)(TASK) == evidence(TASK)


def test_everything_can_be_forgotten(path: str) -> None:
    """Then every file is surveyed again."""
    with EvidenceStore(path, "run") as store:
        store.take(evidence(TASK))
        store.forget()

    assert StoredSurvey(path, surveyed_now)(TASK) == evidence(TASK, 999)


def test_a_process_that_is_killed_leaves_what_it_had(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Evidence from before the last commit is kept for the next run, whatever becomes of this one."""
    monkeypatch.setattr(evidence_store, "_COMMIT_COUNT", 10)
    monkeypatch.setattr(evidence_store, "_COMMIT_SECONDS", 3600)
    tasks = [attrs.evolve(TASK, path=f"{number}.log") for number in range(25)]
    store = EvidenceStore(path, "run")
    for task in tasks:
        store.take(evidence(task))
    store._database.close()  # As a process that dies does it: nothing is committed.

    found = [StoredSurvey(path, surveyed_now)(task) == evidence(task) for task in tasks]
    assert found == [True] * 20 + [False] * 5


def test_a_store_that_is_damaged(path: str) -> None:
    """A file that is not a database is one clear error; a survey that cannot open the store reads the file."""
    Path(path).write_bytes(b"no database at all, " * 100)

    with pytest.raises(StorageError, match="without this file, everything is surveyed again"):
        EvidenceStore(path, "run")
    assert StoredSurvey(path, surveyed_now)(TASK) == evidence(TASK, 999)


def test_evidence_that_cannot_be_understood(path: str) -> None:
    """A row of another program is not trusted."""
    with EvidenceStore(path, "run") as store:
        store.take(evidence(TASK))
    database = sqlite3.connect(path)
    database.execute("UPDATE evidence SET evidence = '{\"task\": 1}'")
    database.commit()
    database.close()

    assert StoredSurvey(path, surveyed_now)(TASK) == evidence(TASK, 999)


def test_uncommitted_rows_lock_out_no_reader(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Surveying processes find stored evidence while megabytes wait to be committed."""
    monkeypatch.setattr(evidence_store, "_WAIT_SECONDS", 0)
    monkeypatch.setattr(evidence_store, "_COMMIT_SECONDS", 3600)
    with EvidenceStore(path, "run-1") as store:
        store.take(evidence(TASK))
    with EvidenceStore(path, "run-2") as store:
        for number in range(60):
            finding = Finding(TASK.path, "batch-crc", "x" * 100_000)
            store.take(FileEvidence(attrs.evolve(TASK, path=f"{number}.log"), (finding,)))
        assert StoredSurvey(path, unexpected)(TASK) == evidence(TASK)
