# SPDX-License-Identifier: Apache-2.0
"""Logs of idempotent and transactional producers, made batch by batch, with what happened to each producer."""

from collections.abc import Iterable, Sequence

import attrs
from hypothesis import strategies as st

from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.columns.columns import BatchColumns, Chunk, read_columns
from raftlog.records.files.file_names import FileKind
from raftlog.records.messages.control import EndTxnMarker, write_control_record
from raftlog.tools.auditing.batches.batch_table import BatchTable
from raftlog.tools.auditing.evidence import (
    EpochSeen,
    FileEvidence,
    LogExtent,
    PartitionEvidence,
    Place,
    SurveyTask,
)
from raftlog.tools.auditing.indexes.index_rules import IndexSurveys
from raftlog.tools.auditing.producers.producer_rules import ProducerSurvey, judge_producers
from raftlog.tools.catalogue.findings import Finding

TIMESTAMP = 1_700_000_000_000
PLACE = Place("node", "orders", 0)
LAST_SEQUENCE = 2**31 - 1


@attrs.frozen
class Step:
    """A batch to be written: records of a producer, or a marker that ends its transaction."""

    producer_id: int = 7
    epoch: int = 0
    sequence: int = 0
    count: int = 2
    is_transactional: bool = False
    committed: bool | None = None
    """None for records."""
    coordinator_epoch: int = 3
    timestamp: int = TIMESTAMP
    leader_epoch: int = 1

    @property
    def offset_count(self) -> int:
        """How many offsets the batch takes."""
        return 1 if self.committed is not None else self.count

    def write(self, offset: int) -> bytes:
        """Return the batch."""
        is_marker = self.committed is not None
        builder = RecordBatchBuilder(
            offset,
            partition_leader_epoch=self.leader_epoch,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=-1 if is_marker else self.sequence,
            is_transactional=self.is_transactional or is_marker,
            is_control=is_marker,
        )
        if self.committed is None:
            for _ in range(self.count):
                builder.append(self.timestamp, b"k", b"v")
        else:
            builder.append(self.timestamp, *write_control_record(EndTxnMarker(self.committed, self.coordinator_epoch)))
        return builder.build()


def batches(steps: Iterable[Step | None], base_offset: int = 0) -> list[bytes]:
    """Write batches end to end; None leaves five offsets out."""
    written = []
    for step in steps:
        if step is not None:
            written.append(step.write(base_offset))
        base_offset += 5 if step is None else step.offset_count
    return written


def offsets_of(steps: Sequence[Step], base_offset: int = 0) -> list[int]:
    """Return the base offset of each batch."""
    return [base_offset + sum(step.offset_count for step in steps[:index]) for index in range(len(steps))]


def tables(log: bytes, chunk: int | None = None) -> list[BatchTable]:
    """Read a log's headers, so many batches at a time."""
    found = []
    for piece in read_columns(log, (), data_only=False):
        if isinstance(piece, Chunk):
            run = piece.batches.run
            size = chunk or len(run)
            found += [BatchTable(BatchColumns(run.part(at, at + size))) for at in range(0, len(run), size)]
    return found


def segment_task(
    base_offset: int = 0, size_bytes: int = 0, *, topic: str = "orders", is_raft: bool = False
) -> SurveyTask:
    """Return the task of a segment with all its indexes."""
    stem = f"node/{topic}-0/{base_offset:020}"
    kinds = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX)
    return SurveyTask(
        attrs.evolve(PLACE, topic=topic),
        f"{stem}.log",
        FileKind.LOG,
        base_offset=base_offset,
        is_raft=is_raft,
        indexes={kind: f"{stem}{kind.value}" for kind in kinds},
        size_bytes=size_bytes,
    )


def extent_of(found: Sequence[BatchTable]) -> LogExtent | None:
    """Return what some batches span."""
    if not found:
        return None
    return LogExtent(
        int(found[0].base_offsets[0]),
        max(int(table.last_offsets.max()) for table in found) + 1,
        0,
        0,
        max(int(table.max_timestamps.max()) for table in found),
        sum(map(len, found)),
        sum(int(table.record_counts.sum()) for table in found),
    )


def epochs_of(found: Sequence[BatchTable]) -> tuple[EpochSeen, ...]:
    """Return the leader epochs of some batches in order, each with its first offset."""
    starts: dict[int, int] = {}
    for table in found:
        for epoch, offset in zip(table.epochs.tolist(), table.base_offsets.tolist(), strict=True):
            starts.setdefault(epoch, offset)
    return tuple(EpochSeen(epoch, offset) for epoch, offset in starts.items())


def survey(
    log: bytes,
    base_offset: int = 0,
    *,
    indexes: dict[FileKind, bytes] | None = None,
    chunk: int | None = None,
    task: SurveyTask | None = None,
) -> FileEvidence:
    """Survey the producers of a segment, and the indexes that are given."""
    task = task or segment_task(base_offset, len(log))
    producers, index_surveys = ProducerSurvey(task), IndexSurveys(task, indexes or {})
    findings: list[Finding] = []
    found = tables(log, chunk)
    for table in found:
        findings += producers.take(table)
        index_surveys.take(table)
    extent = extent_of(found)
    if indexes is not None:
        findings += index_surveys.end(extent, producers.aborted())
    spans = producers.spans(index_surveys.first_offsets)
    return FileEvidence(
        task,
        tuple(findings),
        extent=extent,
        epochs=epochs_of(found),
        producers=spans,
        stable_offsets=index_surveys.stable_offsets,
    )


def partition_of(*segments: Sequence[Step | None], extra: Iterable[FileEvidence] = ()) -> PartitionEvidence:
    """Survey segments that follow each other."""
    files, base_offset = [], 0
    for steps in segments:
        files.append(survey(b"".join(batches(steps, base_offset)), base_offset))
        base_offset += sum(5 if step is None else step.offset_count for step in steps)
    return PartitionEvidence(PLACE, (*files, *extra))


def rules_and_offsets(findings: Iterable[Finding]) -> list[tuple[str, int | None]]:
    """Return what matters of findings."""
    return [(finding.rule, finding.offset) for finding in findings]


@st.composite
def sound_logs(draw: st.DrawFn, max_size: int = 24) -> list[Step]:
    """Logs of four producers, as brokers let them write: the even ones have transactions."""
    epochs = dict.fromkeys(range(4), 0)
    sequences = {id_: draw(st.sampled_from([0, 17, LAST_SEQUENCE - 2])) for id_ in range(4)}
    open_ids: set[int] = set()
    steps = []
    for id_, move, count in draw(
        st.lists(
            st.tuples(
                st.integers(0, 3), st.sampled_from(["write", "write", "commit", "abort", "bump"]), st.integers(1, 3)
            ),
            max_size=max_size,
        )
    ):
        if move == "bump" and id_ not in open_ids:
            epochs[id_], sequences[id_] = epochs[id_] + 1, 0
        elif move == "write" or id_ % 2:
            steps.append(Step(id_, epochs[id_], sequences[id_], count, is_transactional=id_ % 2 == 0))
            sequences[id_] = (sequences[id_] + count) & LAST_SEQUENCE
            open_ids |= {id_} if id_ % 2 == 0 else set()
        else:
            steps.append(Step(id_, epochs[id_], committed=move == "commit", coordinator_epoch=len(steps) // 8))
            open_ids.discard(id_)
    return steps


def last_stable_offset(evidence: PartitionEvidence) -> int:
    """Where the earliest transaction begins that is found to be open; without one the end of the log."""
    rules = {"transaction-open", "transaction-hanging"}
    offsets = [each.offset for each in judge_producers(evidence) if each.rule in rules and each.offset is not None]
    return min(offsets, default=evidence.end_offset)
