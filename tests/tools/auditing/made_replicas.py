# SPDX-License-Identifier: Apache-2.0
"""Replicas made for tests, and what a survey says of them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.files.file_names import FileKind
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence, Place, SurveyTask
from raftlog.tools.auditing.survey.segment_survey import survey_segment


class Batch(NamedTuple):
    """A batch with a record at each of some offsets, all of one value."""

    offsets: range
    epoch: int
    value: bytes


BASE: list[Batch] = [
    Batch(range(10), epoch=0, value=b"a"),
    Batch(range(10, 20), epoch=0, value=b"b"),
    Batch(range(20, 30), epoch=1, value=b"c"),
    Batch(range(30, 40), epoch=1, value=b"d"),
]


def encode(batch: Batch, *, key: bytes | None = None) -> bytes:
    """Write a batch."""
    base_offset = batch.offsets.start
    builder = RecordBatchBuilder(base_offset, partition_leader_epoch=batch.epoch)
    for _ in batch.offsets:
        builder.append(1_700_000_000_000 + base_offset, key, batch.value)
    return builder.build()


class Replicas:
    """Replicas of a partition whose segments are in memory."""

    def __init__(self, *, topic: str = "__cluster_metadata") -> None:
        self.topic = topic
        self.data: dict[str, bytes] = {}

    def add(self, name: str, segments: dict[int, bytes]) -> PartitionEvidence:
        """Survey a replica of some segments, by their base offsets."""
        place = Place(name, self.topic, 0)
        files = []
        for base_offset, data in segments.items():
            path = f"{name}/{self.topic}-0/{base_offset:020}.log"
            self.data[path] = data
            is_raft = self.topic == "__cluster_metadata"
            task = SurveyTask(place, path, FileKind.LOG, base_offset=base_offset, is_raft=is_raft)
            files.append(survey_segment(task, BufferSource(memoryview(data)), {}))
        return PartitionEvidence(place, tuple(files))

    def read(self, segment: FileEvidence, start_offset: int, end_offset: int) -> Iterator[RecordBatch]:
        """Read batches again, as the reader of files does."""
        for piece in split(BufferSource(memoryview(self.data[segment.task.path]))):
            if isinstance(piece, RecordBatch) and start_offset <= piece.base_offset < end_offset:
                yield piece


def log_of(batches: Sequence[Batch]) -> bytes:
    """Write consecutive batches."""
    return b"".join(map(encode, batches))
