# SPDX-License-Identifier: Apache-2.0
"""Checks producers: their epochs, the sequences of their batches, and their transactions.

The survey of a segment sorts the batches of a chunk by producer, and compares each with its producer's previous batch;
in the next chunk, a producer's last state precedes its batches. That takes a few passes of numpy per chunk; Python
handles a single batch only if a transaction begins or ends there, or a rule is broken.

The judgement of a partition then compares what its segments' evidence contains about producers, and its producer
snapshots.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import attrs

from raftlog.records.files.file_names import FileKind, FileState
from raftlog.tools.auditing.batches.batch_table import BatchTable
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence, ProducerSpan, SurveyTask
from raftlog.tools.auditing.producers.producer_faults import epoch_fault, mixed_fault, sequence_fault
from raftlog.tools.auditing.producers.producer_history import COORDINATOR_TOPICS, ProducerHistory, ProducerState
from raftlog.tools.auditing.producers.producer_rows import (
    SEQUENCE_MASK,
    OffsetProgress,
    ProducerRows,
    bad_epochs,
    bad_sequences,
)
from raftlog.tools.auditing.producers.transaction_rules import AbortMarker, TransactionSurvey
from raftlog.tools.catalogue.findings import Finding

if TYPE_CHECKING:
    from raftlog.tools.auditing.batches.batch_table import Longs

HANGING_MS: Final = 15 * 60 * 1000
"""No transaction may take longer than this, unless ``transaction.max.timeout.ms`` was changed."""


@attrs.frozen
class _Batch:
    """What the survey keeps of a producer's first or last data batch; offsets and sequences are inclusive."""

    first_offset: int = -1
    last_offset: int = -1
    epoch: int = -1
    sequence: int = -1
    last_sequence: int = -1
    timestamp: int = -1
    is_transactional: bool = False


_NO_BATCH: Final = _Batch()
_GAP_AFTER: Final = -1
"""Replaces a count of holes and differs from every count, so that there is a hole before the producer's next batch."""


@attrs.define
class _Producer:
    """What a producer has written in the segment so far.

    Attributes:
        first_epoch, last_epoch: producer epochs of its first and last batch, data or marker.
        holes: number of holes in the offsets before its last batch.
        first, last: its first and last data batch.
        has_faults: whether one of its epochs or sequences is wrong.
    """

    first_epoch: int
    last_epoch: int
    holes: int = 0
    first: _Batch = _NO_BATCH
    last: _Batch = _NO_BATCH
    has_faults: bool = False

    @property
    def last_sequence(self) -> int:
        """The sequence that precedes its next one; a new epoch starts at 0, which follows the greatest sequence."""
        return SEQUENCE_MASK if self.last_epoch > self.last.epoch else self.last.last_sequence


class ProducerSurvey:
    """Surveys the producers of one segment.

    Args:
        task: the segment.
    """

    def __init__(self, task: SurveyTask) -> None:
        self._path = task.path
        self._has_sequences = task.place.topic not in COORDINATOR_TOPICS
        self._progress = OffsetProgress()
        self._producers: dict[int, _Producer] = {}
        self._transactions = TransactionSurvey(task.path)
        self._greatest_timestamp = (-1, -1)  # The timestamp, and the base offset of its batch.

    def take(self, table: BatchTable) -> list[Finding]:
        """Return the findings about producers in the next batches of the segment."""
        if len(table) == 0 or not (self._producers or (table.producer_ids >= 0).any()):
            return []
        self._note_timestamp(table)
        rows = ProducerRows.of(table, *self._progress.take(table))
        if len(rows) == 0:
            return []
        rows = self._with_earlier(rows)
        findings = list(self._transaction_findings(table, rows))
        odd_epochs = list(bad_epochs(rows))
        findings += [self._epoch_finding(table, rows, *odd) for odd in odd_epochs]
        sound = _without(rows, [odd for odd, _ in odd_epochs])
        self._note_producers(table, sound)
        for odd, _ in odd_epochs:
            self._note_fault(int(rows.producers[odd])).holes = _GAP_AFTER
        unnumbered = rows.are_data & (rows.sequences < 0) & (rows.rows >= 0)
        for producer_id in set(rows.producers[unnumbered].tolist()):
            self._note_fault(producer_id)  # The rule batch-producer reports them.
        if self._has_sequences:
            findings += self._sequence_findings(table, sound if sound.are_data.all() else sound.take(sound.are_data))
        return findings

    def aborted(self) -> tuple[AbortMarker, ...]:
        """Return the segment's ABORT markers, in order, with what is known of the transactions that they end."""
        return tuple(self._transactions.aborted)

    def spans(self, indexed_offsets: Mapping[int, int] | None = None) -> tuple[ProducerSpan, ...]:
        """Return what each producer wrote, by ascending producer id.

        Args:
            indexed_offsets: first offsets of transactions according to the transaction index, by the offset of their
                ABORT marker (``IndexSurveys.first_offsets``).
        """
        known = sorted(self._producers.items())
        return tuple([self._span(producer_id, producer, indexed_offsets or {}) for producer_id, producer in known])

    def _span(self, producer_id: int, producer: _Producer, indexed_offsets: Mapping[int, int]) -> ProducerSpan:
        first, last = producer.first, producer.last
        timestamp, timestamp_offset = self._greatest_timestamp
        markers = self._transactions.markers(producer_id)
        return ProducerSpan(
            producer_id,
            first_epoch=producer.first_epoch,
            last_epoch=producer.last_epoch,
            first_offset=first.first_offset,
            first_data_epoch=first.epoch,
            first_sequence=first.sequence,
            last_offset=last.last_offset,
            last_data_epoch=last.epoch,
            last_sequence=last.last_sequence,
            last_timestamp=last.timestamp,
            first_marker_offset=markers.first_offset,
            coordinator_epochs=markers.coordinator_epochs,
            open_offset=self._transactions.open_offset(producer_id),
            indexed_offset=indexed_offsets.get(markers.first_offset, -1),
            later_timestamp=timestamp if timestamp_offset > last.last_offset else -1,
            empty_marker_count=markers.empty_count,
            first_empty_marker_offset=markers.first_empty_offset,
            is_transactional=first.is_transactional,
            is_marker_first=markers.is_first_alone,
            is_marker_abort=markers.is_first_abort,
            has_faults=producer.has_faults,
        )

    def _note_timestamp(self, table: BatchTable) -> None:
        row = int(table.max_timestamps.argmax())
        timestamp = int(table.max_timestamps[row])
        if timestamp > self._greatest_timestamp[0]:
            self._greatest_timestamp = timestamp, int(table.base_offsets[row])

    def _with_earlier(self, rows: ProducerRows) -> ProducerRows:
        """Add the last state of each producer of these rows that was seen before, as a row before its other rows."""
        import numpy as np

        here = rows.producers[rows.firsts].tolist()
        seen = [(id_, self._producers[id_]) for id_ in here if id_ in self._producers]
        if not seen:
            return rows

        def longs(values: Iterator[int]) -> "Longs":
            return np.fromiter(values, dtype=np.int64, count=len(seen))

        sequences = longs(producer.last_sequence for _, producer in seen)
        earlier = ProducerRows(
            np.full(len(seen), -1, dtype=np.int64),
            longs(id_ for id_, _ in seen),
            longs(producer.last_epoch for _, producer in seen),
            sequences,
            sequences,
            longs(producer.holes for _, producer in seen),
            np.array([producer.last is not _NO_BATCH for _, producer in seen], dtype=bool),
            np.array([self._transactions.open_offset(id_) >= 0 for id_, _ in seen], dtype=bool),
        )
        return rows.with_earlier(earlier)

    def _epoch_finding(self, table: BatchTable, rows: ProducerRows, odd: int, expected: int) -> Finding:
        place = _place(table, int(rows.rows[odd]))
        return epoch_fault(self._path, int(rows.producers[odd]), int(rows.epochs[odd]), expected, *place)

    def _sequence_findings(self, table: BatchTable, rows: ProducerRows) -> Iterator[Finding]:
        for odd, expected in bad_sequences(rows):
            names = int(rows.producers[odd]), int(rows.epochs[odd]), int(rows.sequences[odd])
            self._note_fault(names[0])
            yield sequence_fault(self._path, *names, expected, *_place(table, int(rows.rows[odd])))

    def _transaction_findings(self, table: BatchTable, rows: ProducerRows) -> Iterator[Finding]:
        """Take the batches that begin, end or interrupt a transaction, in order of offsets, and yield the findings."""
        import numpy as np

        continues = np.concatenate(([False], rows.are_same & rows.are_open[:-1]))  # The row before has one open.
        events = np.flatnonzero((rows.rows >= 0) & (~rows.are_data | (rows.are_open != continues)))
        for index in events[np.argsort(rows.rows[events])].tolist():
            producer_id, row = int(rows.producers[index]), int(rows.rows[index])
            finding = None
            if not rows.are_data[index]:
                finding = self._transactions.end(table.run.batch(row))
            elif rows.are_open[index]:
                self._transactions.begin(producer_id, int(table.base_offsets[row]))
            elif rows.holes[index] == rows.holes[index - 1]:
                first_offset = self._transactions.open_offset(producer_id)
                finding = mixed_fault(self._path, producer_id, first_offset, *_place(table, row))
            if finding is not None:
                yield finding

    def _note_fault(self, producer_id: int) -> _Producer:
        producer = self._producers.setdefault(producer_id, _Producer(-1, -1))
        producer.has_faults = True
        return producer

    def _note_producers(self, table: BatchTable, rows: ProducerRows) -> None:
        """Keep each producer's first and last batches."""
        rows = rows.take(rows.rows >= 0)
        for first, last in _ends_of_producers(rows):
            producer = self._producers.setdefault(
                int(rows.producers[first]), _Producer(int(rows.epochs[first]), int(rows.epochs[last]))
            )
            producer.last_epoch, producer.holes = int(rows.epochs[last]), int(rows.holes[last])
        data = rows if rows.are_data.all() else rows.take(rows.are_data)
        for first, last in _ends_of_producers(data):
            producer = self._producers[int(data.producers[first])]
            if producer.first is _NO_BATCH:
                producer.first = _kept(table, data, first)
            producer.last = _kept(table, data, last)


def _without(rows: ProducerRows, odd: Sequence[int]) -> ProducerRows:
    """Return rows without some of them, each of which then counts as a hole."""
    import numpy as np

    if not odd:
        return rows
    left_out = np.zeros(len(rows), dtype=bool)
    left_out[list(odd)] = True
    return attrs.evolve(rows, holes=rows.holes + np.cumsum(left_out)).take(~left_out)


def _ends_of_producers(rows: ProducerRows) -> Iterator[tuple[int, int]]:
    """Yield the index of each producer's first and last row."""
    if len(rows) == 0:
        return
    firsts = rows.firsts.tolist()
    yield from zip(firsts, [*[first - 1 for first in firsts[1:]], len(rows) - 1], strict=True)


def _kept(table: BatchTable, rows: ProducerRows, index: int) -> _Batch:
    row = int(rows.rows[index])
    return _Batch(
        int(table.base_offsets[row]),
        int(table.last_offsets[row]),
        int(rows.epochs[index]),
        int(rows.sequences[index]),
        int(rows.last_sequences[index]),
        int(table.max_timestamps[row]),
        bool(rows.are_open[index]),
    )


def _place(table: BatchTable, row: int) -> tuple[int, int]:
    """Return the offset and the position of a batch."""
    return int(table.base_offsets[row]), int(table.positions[row])


# Over the segments of a partition


def judge_producers(evidence: PartitionEvidence) -> Iterator[Finding]:
    """Yield the findings about the producers of a partition, from all its segments and producer snapshots."""
    snapshots = _producer_snapshots(evidence)
    history = ProducerHistory()
    for segment in evidence.segments:
        if (snapshot := snapshots.pop(segment.task.base_offset, None)) is not None:
            yield from _judge_snapshot(evidence, snapshot, history)
        yield from history.add(segment)
    if (snapshot := snapshots.pop(evidence.end_offset, None)) is not None:
        yield from _judge_snapshot(evidence, snapshot, history)
    yield from history.past_log_end()
    yield from _judge_open_transactions(history)
    if history.first_empty_marker is not None:
        offset, path = history.first_empty_marker
        reason = f"{history.empty_markers} markers end transactions without records in this partition"
        yield Finding(path, "transaction-empty", reason, offset=offset)


def _judge_open_transactions(history: ProducerHistory) -> Iterator[Finding]:
    """Yield the transactions that no marker ends, unless offsets after them are missing: one may be the marker's."""
    for state in history.states.values():
        if state.open_offset < 0 or state.open_breaks != history.breaks:
            continue
        open_ms = state.later_timestamp - state.last_timestamp
        reason = f"a transaction of producer {state.producer_id}, epoch {state.epoch}, has no marker"
        if state.last_timestamp >= 0 and open_ms > HANGING_MS:
            reason += f", and the log continues for {open_ms} ms after its last record at offset {state.last_offset}"
            yield Finding(state.open_path, "transaction-hanging", reason, offset=state.open_offset)
        else:
            yield Finding(state.open_path, "transaction-open", reason, offset=state.open_offset)


def _producer_snapshots(evidence: PartitionEvidence) -> dict[int | None, FileEvidence]:
    return {
        file.task.base_offset: file
        for file in evidence.files
        if file.task.kind is FileKind.PRODUCER_SNAPSHOT
        and file.task.state is FileState.CURRENT
        and file.contents is not None
    }


def _judge_snapshot(evidence: PartitionEvidence, snapshot: FileEvidence, history: ProducerHistory) -> Iterator[Finding]:
    """Compare a producer snapshot with the log before it, if that part of the log is complete.

    A producer that only the log has is accepted: it has expired. So is one that only the snapshot has: its batches
    were deleted.
    """
    if history.breaks or history.end_offset != snapshot.task.base_offset or snapshot.contents is None:
        return
    for entry in snapshot.contents["entries"]:
        state = history.states.get(entry["producer_id"])
        if state is None or state.has_faults:  # The fault in the log is already reported.
            continue
        wrong = [
            f"{name.replace('_', ' ')} {entry[name]}, but the log has {expected}"
            for name, expected in _expected_fields(state, entry, evidence.start_offset)
            if entry[name] != expected
        ]
        if wrong:
            reason = f"producer {state.producer_id}: {'; '.join(wrong)}"
            yield Finding(snapshot.task.path, "producer-snapshot", reason, offset=snapshot.task.base_offset)


def _expected_fields(
    state: ProducerState, entry: Mapping[str, int], log_start_offset: int
) -> Iterator[tuple[str, int]]:
    """Yield the fields of a producer's entry that follow from the log, with the expected value of each."""
    yield "producer_epoch", state.epoch
    if state.last_offset >= 0:
        is_forgotten = state.epoch > state.last_epoch  # At a marker of a newer epoch, Kafka forgets the last batch.
        yield "last_offset", -1 if is_forgotten else state.last_offset
        yield "last_sequence", -1 if is_forgotten else state.last_sequence
    first_offset = entry["current_transaction_first_offset"]
    if first_offset < 0 or first_offset >= log_start_offset:
        yield "current_transaction_first_offset", state.open_offset
