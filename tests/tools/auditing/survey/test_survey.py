# SPDX-License-Identifier: Apache-2.0
"""Surveying a file: what cannot be read gives a finding, and every byte of a file of batches is accounted for."""

import os
import threading
from pathlib import Path
from typing import Any

import attrs
import pytest

from raftlog.errors import InvariantViolation
from raftlog.records.files.file_names import FileKind
from raftlog.tools.auditing.evidence import FileEvidence, SurveyTask
from raftlog.tools.auditing.survey import survey as module
from raftlog.tools.auditing.survey.survey import survey
from raftlog.tools.auditing.survey.tasks import find_tasks
from raftlog.tools.input.coverage import Coverage
from tests.golden_files import GOLDEN
from tests.tools.made_logs import LOG_NAME, batch, write_log
from tests.work_counts import calls_made

NODE = GOLDEN / "dynamic-quorum/data/n3"


def surveyed(path: Path) -> list[FileEvidence]:
    """Survey what is there."""
    return [survey(task) for task in find_tasks([str(path)]) if isinstance(task, SurveyTask)]


def task_of(path: Path) -> SurveyTask:
    """The task of a file."""
    return next(task for task in find_tasks([str(path)]) if isinstance(task, SurveyTask))


def rules(evidence: FileEvidence) -> list[tuple[str, str]]:
    """The rules of the findings, and the names of the files."""
    return [(finding.rule, Path(finding.path).name) for finding in evidence.findings]


def test_each_kind_of_file_is_surveyed() -> None:
    """Of a real node's files, those with batches have an extent and a coverage, and the others their contents."""
    found = {Path(evidence.task.path).name: evidence for evidence in surveyed(NODE)}

    assert found["meta.properties"].contents is not None
    assert found["quorum-state"].contents is not None
    assert found["bootstrap.checkpoint"].extent is not None
    for name, evidence in found.items():
        assert (evidence.coverage is not None) == name.endswith((".log", ".checkpoint"))
        assert evidence.findings == ()
        assert FileEvidence.from_json(evidence.to_json()) == evidence


def test_vanished_files(tmp_path: Path) -> None:
    """A deleted file is a harmless finding; so is an index, and its segment is surveyed all the same."""
    log = write_log(tmp_path / "orders-0", batch())
    index = log.with_suffix(".index")
    index.write_bytes(b"")
    task = task_of(tmp_path)
    index.unlink()
    evidence = survey(task)
    log.unlink()

    assert rules(evidence) == [("file-gone", index.name)]
    assert evidence.extent is not None
    assert rules(survey(task)) == [("file-gone", LOG_NAME)]


def test_what_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that the system does not open, or stops reading in the middle, is one finding with its words."""
    log = write_log(tmp_path / "orders-0", batch())
    (tmp_path / "orders-0/leader-epoch-checkpoint").mkdir()
    task = task_of(log)

    def fail(*_: Any) -> bytes:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pread", fail)
        (finding,) = survey(task).findings
    assert finding.rule == "file-unreadable"
    assert "Input/output error" in finding.reason

    def refuse(*_: Any) -> int:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refuse)
        (finding,) = survey(task).findings
    assert (finding.rule, finding.reason) == ("file-unreadable", "open failed: Permission denied")


def test_an_index_without_its_segment(tmp_path: Path) -> None:
    """Its files are one finding, at the first of them."""
    (tmp_path / "orders-0").mkdir()
    for suffix in (".index", ".timeindex"):
        (tmp_path / "orders-0" / LOG_NAME).with_suffix(suffix).write_bytes(bytes(8))
    (evidence,) = surveyed(tmp_path)

    assert rules(evidence) == [("index-orphan", "00000000000000000000.index")]
    assert "00000000000000000000.timeindex" in evidence.findings[0].reason


def test_an_index_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that no Kafka writes is not read into memory."""
    monkeypatch.setattr(module, "_MAX_INDEX_SIZE", 100)
    log = write_log(tmp_path / "orders-0", batch())
    log.with_suffix(".index").write_bytes(bytes(101))
    (evidence,) = surveyed(tmp_path)

    assert ("file-unreadable", "00000000000000000000.index") in rules(evidence)
    assert evidence.extent is not None


@pytest.mark.skipif(not hasattr(os, "SEEK_DATA"), reason="the platform does not say where holes are")
def test_a_segment_of_holes(tmp_path: Path) -> None:
    """A sparse segment of a terabyte takes no more work than what was written to it."""
    log = write_log(tmp_path / "orders-0", batch())
    with log.open("r+b") as file:
        file.seek(1 << 39)
        file.write(batch(1))
        file.truncate(1 << 40)
    found: list[FileEvidence] = []

    assert calls_made(lambda: found.extend(surveyed(tmp_path))) < 40_000
    (evidence,) = found
    assert evidence.coverage == Coverage(2 * len(batch()), (1 << 39) - len(batch()), (1 << 39) - len(batch()))
    assert [(finding.rule, finding.position) for finding in evidence.findings] == [
        ("batch-length", len(batch())),
        ("tail-zero", (1 << 39) + len(batch())),
    ]


def test_a_pipe_is_announced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A message says that a named pipe is read, before anything waits for a writer."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    told = []

    def write() -> None:
        with pipe.open("wb") as file:  # Waits for the reader, which has told by then.
            told.append(capsys.readouterr().err)
            file.write(batch())

    writer = threading.Thread(target=write)
    writer.start()
    evidence = survey(task_of(pipe))
    writer.join()

    assert told == [f"raftlog: {pipe} is a pipe: it is read until its writer ends\n"]
    assert evidence.coverage == Coverage(len(batch()))


def test_names_alone(tmp_path: Path) -> None:
    """An unknown file, and one that is being deleted, are never opened, whatever their size."""
    for name in ("notes.txt", "00000000000000000000.log.deleted"):
        path = write_log(tmp_path / "orders-0", batch(), name=name)
        path.chmod(0)
        os.truncate(path, 2**40)
    found = {Path(evidence.task.path).name: evidence for evidence in surveyed(tmp_path)}

    assert rules(found["notes.txt"]) == [("file-unknown", "notes.txt")]
    assert rules(found["00000000000000000000.log.deleted"])[0][0] == "file-left-over"


def test_a_small_file_that_is_huge(tmp_path: Path) -> None:
    """A small file of a terabyte is not read to its end."""
    path = write_log(tmp_path / "orders-0", b"0\n0\n", name="leader-epoch-checkpoint")
    os.truncate(path, 2**40)

    assert [finding.rule for finding in surveyed(tmp_path)[0].findings] == ["file-format"]


@pytest.mark.parametrize("counted", [Coverage(), Coverage(10**6), None])
def test_bytes_that_are_not_accounted_for(
    counted: Coverage | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A survey that loses bytes, or invents some, is reported as a bug, unless the file was truncated meanwhile."""
    log = write_log(tmp_path / "orders-0", batch())
    task = task_of(tmp_path)
    evidence = attrs.evolve(survey(task), coverage=counted)
    monkeypatch.setattr(module, "survey_segment", lambda *_: evidence)
    with pytest.raises(InvariantViolation, match=f"of {len(batch())} bytes are accounted for"):
        survey(task)

    def shrink(*_: Any) -> FileEvidence:
        os.truncate(log, 1)
        return evidence

    monkeypatch.setattr(module, "survey_segment", shrink)
    assert survey(task) == evidence


def test_the_input_is_never_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is opened for reads alone."""
    flags = []
    opened = os.open

    def note(path: str, flag: int, *rest: Any) -> int:
        flags.append(flag)
        return opened(path, flag, *rest)

    monkeypatch.setattr(os, "open", note)
    surveyed(NODE)

    assert len(flags) > 5
    assert not any(flag & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC) for flag in flags)


def test_standard_input_is_a_log() -> None:
    """Piped input is a segment of unknown name."""
    (task,) = (task for task in find_tasks(["-"]) if isinstance(task, SurveyTask))

    assert (task.kind, task.base_offset) == (FileKind.LOG, None)
