# SPDX-License-Identifier: Apache-2.0
"""Copies of what a real Kafka wrote, to be spoiled and surveyed."""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.tools.auditing.evidence import PartitionEvidence, SurveyTask, group_by_place
from raftlog.tools.auditing.survey.survey import survey
from raftlog.tools.auditing.survey.tasks import find_tasks
from tests.golden_files import GOLDEN

METADATA = "__cluster_metadata-0"
LOG = "00000000000000000000.log"


def copy_of(scenario: str, tmp_path: Path) -> Path:
    """Copy a node's log directory, such as ``wire/data/n2``; it may be written to."""
    copied = Path(shutil.copytree(GOLDEN / scenario, tmp_path / "node"))
    for path in copied.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return copied


def batches_of(path: Path) -> list[bytes]:
    """Return the batches of a sound file."""
    return [bytes(batch.buffer) for batch in split(BufferSource(path.read_bytes())) if isinstance(batch, RecordBatch)]


def change_batches(path: Path, change: Callable[[list[bytes]], Iterable[bytes]]) -> None:
    """Write a file again with other batches."""
    path.write_bytes(b"".join(change(batches_of(path))))


def index_at(path: Path, offset: int) -> int:
    """Return which batch of a sound file starts at an offset."""
    return [RecordBatch(batch).base_offset for batch in batches_of(path)].index(offset)


def change_text(path: Path, old: str, new: str) -> None:
    """Replace text in a small file, where it must be."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def partitions(*paths: Path) -> list[PartitionEvidence]:
    """Survey directories."""
    return group_by_place(survey(task) for task in find_tasks(map(str, paths)) if isinstance(task, SurveyTask))


def partition(path: Path) -> PartitionEvidence:
    """Survey the directory of one partition."""
    (found,) = (each for each in partitions(path) if each.place.topic)
    return found
