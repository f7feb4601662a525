# SPDX-License-Identifier: Apache-2.0
"""Segments made for tests, and what a survey says of them."""

from collections.abc import Sequence
from typing import Final
from unittest import mock

from raftlog.records.batches import iterator
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.control_batch import write_control_batch
from raftlog.records.batches.iterator import BufferSource
from raftlog.records.batches.window import ByteSource
from raftlog.records.files.file_names import FileKind
from raftlog.records.messages.control import LeaderChangeMessage
from raftlog.records.rules import Severity
from raftlog.tools.auditing.evidence import FileEvidence, Place, SurveyTask
from raftlog.tools.auditing.survey.segment_survey import survey_segment
from raftlog.tools.catalogue.findings import Finding
from tests.strategies import TIMESTAMP

PATH: Final = "logs/00000000000000000000.log"
TINY_CHUNK: Final = 200
"""So that a chunk has a batch or two."""


def task(base_offset: int | None = 0, *, is_raft: bool = True) -> SurveyTask:
    """Return the task of a segment of a metadata log beside ``bootstrap.checkpoint``, or of a topic's."""
    place = Place("logs", "__cluster_metadata" if is_raft else "orders", 0)
    return SurveyTask(place, PATH, FileKind.LOG, base_offset=base_offset, is_raft=is_raft, has_bootstrap=is_raft)


def survey(
    log: bytes | ByteSource, base_offset: int | None = 0, *, is_raft: bool = True, chunk_size: int | None = None
) -> FileEvidence:
    """Survey a log without indexes.

    Args:
        log: its bytes.
        base_offset: of its name.
        is_raft: whether it is one of raft.
        chunk_size: how many bytes to read at once, if not as many as usual.
    """
    source = BufferSource(log) if isinstance(log, bytes) else log
    with mock.patch.object(iterator, "CHUNK_SIZE", chunk_size or iterator.CHUNK_SIZE):
        return survey_segment(task(base_offset, is_raft=is_raft), source, {})


def places(evidence: FileEvidence) -> list[tuple[str, int | None, int | None]]:
    """Return rule, position and offset of each finding that is more than harmless."""
    return [
        (finding.rule, finding.position, finding.offset)
        for finding in evidence.findings
        if finding.severity is not Severity.HARMLESS
    ]


def finding(evidence: FileEvidence, rule: str) -> Finding:
    """Return the one finding of a rule."""
    (found,) = (finding for finding in evidence.findings if finding.rule == rule)
    return found


def data_batch(base_offset: int, epoch: int = 1, count: int = 1, timestamp: int = TIMESTAMP) -> bytes:
    """Return a batch of frames as a leader of raft writes it."""
    builder = RecordBatchBuilder(base_offset, partition_leader_epoch=epoch)
    builder.extend([(timestamp, None, b"\x01\x14\0\0")] * count)
    return builder.build()


def leader_change(base_offset: int, epoch: int) -> bytes:
    """Return what an epoch of raft starts with."""
    return write_control_batch([LeaderChangeMessage(1)], base_offset=base_offset, epoch=epoch, timestamp=TIMESTAMP)


def raft_log(counts: Sequence[int], base_offset: int = 0, batches_per_epoch: int = 4) -> list[bytes]:
    """Return the batches of a raft log, with so many records each; of each epoch the first is its LeaderChange."""
    batches = []
    for index, count in enumerate(counts):
        epoch, place = divmod(index, batches_per_epoch)
        batch = data_batch(base_offset, epoch + 1, count) if place else leader_change(base_offset, epoch + 1)
        batches.append(batch)
        base_offset += count if place else 1
    return batches


def with_base_offset(batch: bytes, base_offset: int) -> bytes:
    """Return a batch with another base offset, which no CRC covers."""
    return base_offset.to_bytes(8, "big", signed=True) + batch[8:]


def with_epoch(batch: bytes, epoch: int) -> bytes:
    """Return a batch with another epoch, which no CRC covers."""
    return batch[:12] + epoch.to_bytes(4, "big", signed=True) + batch[16:]
