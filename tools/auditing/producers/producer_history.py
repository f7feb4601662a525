# SPDX-License-Identifier: Apache-2.0
"""The state of each producer of a partition, carried from segment to segment, and the findings where it does not fit.

Missing offsets, in a segment or between two, can explain anything but a step back. So across them there are no findings
about gaps in sequences or about transactions, and after them no producer snapshot is compared.
"""

from collections.abc import Iterator
from typing import Final

import attrs

from raftlog.records.files.file_names import FileKind
from raftlog.tools.auditing.evidence import FileEvidence, LogExtent, ProducerSpan, StableOffset, SurveyTask
from raftlog.tools.auditing.producers.producer_faults import coordinator_fault, epoch_fault, mixed_fault, sequence_fault
from raftlog.tools.auditing.producers.producer_rows import is_written_already, next_sequence
from raftlog.tools.catalogue.findings import Finding

COORDINATOR_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Topics in which every batch of a producer has sequence 0: a coordinator writes them in the producer's name."""


@attrs.define
class ProducerState:
    """What a producer has written so far. A number is -1 if it is unknown.

    Attributes:
        producer_id: the producer.
        epoch: producer epoch of its last batch, data or marker.
        last_offset, last_epoch, last_sequence, last_timestamp: those of its last data batch.
        last_breaks: number of breaks in the log that are known to precede its last data batch.
        coordinator_epoch: coordinator epoch of its last marker.
        open_offset: first offset of its open transaction.
        open_breaks: number of breaks in the log that are known to precede that offset.
        open_path: path of the segment in which its open transaction begins.
        later_timestamp: the greatest timestamp that is known to follow its last data batch, in ms.
        has_faults: whether one of its epochs or sequences is wrong, in a segment or between two.
    """

    producer_id: int
    epoch: int = -1
    last_offset: int = -1
    last_epoch: int = -1
    last_sequence: int = -1
    last_timestamp: int = -1
    last_breaks: int = -1
    coordinator_epoch: int = -1
    open_offset: int = -1
    open_breaks: int = -1
    open_path: str = ""
    later_timestamp: int = -1
    has_faults: bool = False

    @property
    def expected_sequence(self) -> int:
        """The first sequence of its next batch, if its epoch does not change."""
        return 0 if self.epoch > self.last_epoch else next_sequence(self.last_sequence)


class ProducerHistory:
    """Carries producers over the segments of a partition.

    Attributes:
        states: the state of each producer, by its id.
        breaks: number of breaks so far. A segment is one if its offsets are incomplete or out of order, or its bytes
            are damaged; so is a boundary between two segments where offsets are not consecutive.
        start_offset: where the first segment starts; retention has deleted everything before it.
        end_offset: end of the last segment so far, exclusive; None before the first one.
        empty_markers: number of markers that ended no transaction.
        first_empty_marker: offset of the first such marker of some producer and path of its segment; None before that.
    """

    def __init__(self) -> None:
        self.states: dict[int, ProducerState] = {}
        self.breaks = 0
        self.start_offset: int | None = None
        self.end_offset: int | None = None
        self.empty_markers = 0
        self.first_empty_marker: tuple[int, str] | None = None
        self._past_end: list[tuple[SurveyTask, StableOffset]] = []

    def add(self, segment: FileEvidence) -> Iterator[Finding]:
        """Take the next segment, and yield the findings where its producers do not continue those before it."""
        extent = segment.extent
        if self.start_offset is None:
            self.start_offset = segment.task.base_offset or 0
        if extent is None:
            self._pass_over(segment)
            return
        is_behind = self.end_offset is not None and extent.start_offset < self.end_offset
        self.breaks += self.end_offset not in {None, extent.start_offset}
        breaks_before = self.breaks
        if self.breaks == 0:
            yield from self._past_end_faults(segment)
            yield from self._stable_offset_faults(segment, extent)
        self.breaks += _is_damaged(segment) or not is_whole(extent)
        for state in self.states.values():
            state.later_timestamp = max(state.later_timestamp, extent.max_timestamp)
        for span in segment.producers:
            state = self.states.setdefault(span.producer_id, ProducerState(span.producer_id))
            if not is_behind:  # The rule segment-overlap reports offsets that are in two segments.
                yield from self._compare(segment, state, span)
            self._count_empty_markers(segment, state, span)
            self._go_on(segment, state, span, breaks_before)
        self.end_offset = max(extent.end_offset, self.end_offset or 0)

    def _pass_over(self, segment: FileEvidence) -> None:
        """Take a segment without sound batches, which ends at its base offset."""
        base_offset = segment.task.base_offset or 0
        self.breaks += _is_damaged(segment) or self.end_offset not in {None, base_offset}
        self.end_offset = max(base_offset, self.end_offset or 0)

    def _compare(self, segment: FileEvidence, state: ProducerState, span: ProducerSpan) -> Iterator[Finding]:
        """Yield findings where the producer's first batch and first marker in a segment do not fit its state."""
        path = segment.task.path
        offsets = [offset for offset in (span.first_offset, span.first_marker_offset) if offset >= 0]
        first_offset = min(offsets, default=None)  # None if the segment has only markers that cannot be read.
        if span.first_epoch < state.epoch:
            state.has_faults = True
            yield epoch_fault(path, span.producer_id, span.first_epoch, state.epoch, first_offset)
        elif state.last_sequence >= 0 and span.first_sequence >= 0:
            yield from self._compare_sequences(segment, state, span)
        finding = coordinator_fault(
            path, span.producer_id, span.coordinator_epochs[0], state.coordinator_epoch, span.first_marker_offset
        )
        if finding is not None and span.first_marker_offset >= 0:
            yield finding
        is_data_first = span.first_offset == first_offset and not span.is_transactional
        if is_data_first and state.open_offset >= 0 and state.open_breaks == self.breaks:
            yield mixed_fault(path, span.producer_id, state.open_offset, span.first_offset)
        if self.breaks == 0 and (finding := self._index_fault(segment, state, span)) is not None:
            yield finding

    def _stable_offset_faults(self, segment: FileEvidence, extent: LogExtent) -> Iterator[Finding]:
        """Yield the last stable offsets of a transaction index that transactions of earlier segments contradict.

        It is where the earliest transaction of another producer began that is open at the marker. A transaction that
        retention has cut off may have begun before the log start.
        """
        if not segment.stable_offsets:
            return
        task, start_offset = segment.task, self.start_offset or 0
        ends = {span.producer_id: span.first_marker_offset for span in segment.producers}
        begun = sorted(
            (state.open_offset, state.producer_id) for state in self.states.values() if state.open_offset >= 0
        )
        for entry in segment.stable_offsets:
            still_open = (
                offset
                for offset, producer_id in begun
                if producer_id != entry.producer_id and not 0 <= ends.get(producer_id, -1) < entry.marker_offset
            )
            earliest = next(still_open, None)
            is_right = entry.offset == earliest or (earliest is None and entry.offset >= extent.start_offset)
            if not is_right and entry.offset >= start_offset:
                log = "none began that was" if earliest is None else f"the one from offset {earliest} on was"
                yield _stable_offset_fault(task, entry, f"though of earlier transactions {log} still open")
            elif entry.offset >= extent.end_offset and entry.offset != entry.marker_offset + 1:
                self._past_end.append((task, entry))

    def _past_end_faults(self, segment: FileEvidence) -> Iterator[Finding]:
        """Yield the last stable offsets past the end of the segment before, if this one continues its epoch.

        In a later epoch, a follower may have truncated its log to that end, with the transaction that began there.
        """
        for task, entry in self._past_end:
            if segment.epochs and segment.epochs[0].epoch <= entry.marker_epoch:
                yield _stable_offset_fault(task, entry, "past the end of its segment, which the same epoch continues")
        self._past_end.clear()

    def past_log_end(self) -> Iterator[Finding]:
        """Yield the last stable offsets past the log's end, after the last segment."""
        for task, entry in self._past_end:
            yield _stable_offset_fault(task, entry, "past the log's end", "transaction-index-ahead")

    def _index_fault(self, segment: FileEvidence, state: ProducerState, span: ProducerSpan) -> Finding | None:
        """Return a finding if a transaction index contradicts the start of a transaction of an earlier segment."""
        begun, claimed = state.open_offset, span.indexed_offset
        task = segment.task
        index = task.indexes.get(FileKind.TRANSACTION_INDEX)
        if claimed < 0:
            # If there is no offset index either, Kafka rebuilds both.
            is_rebuilt = index is None and FileKind.OFFSET_INDEX not in task.indexes
            is_reported = is_rebuilt or any(finding.path == index for finding in segment.findings)
            if begun < 0 or is_reported or not (span.is_marker_first and span.is_marker_abort):
                return None
            transaction = f"producer {span.producer_id} from offset {begun} on"
            reason = f"no entry for the transaction of {transaction}, which offset {span.first_marker_offset} aborts"
        elif claimed == begun or (begun < 0 and not (self.start_offset or 0) <= claimed < (task.base_offset or 0)):
            return None
        else:
            log = f"it began at offset {begun}" if begun >= 0 else "none was open before this segment"
            reason = f"a transaction of producer {span.producer_id} begins at offset {claimed}, but in the log {log}"
        return Finding(index or task.path, "transaction-index", reason, offset=span.first_marker_offset)

    def _compare_sequences(self, segment: FileEvidence, state: ProducerState, span: ProducerSpan) -> Iterator[Finding]:
        is_newer = span.first_data_epoch > state.epoch
        expected = 0 if is_newer else state.expected_sequence
        if segment.task.place.topic in COORDINATOR_TOPICS or span.first_sequence == expected:
            return
        is_behind = not is_newer and is_written_already(span.first_sequence, expected)
        if is_behind or state.last_breaks == self.breaks:
            names = span.producer_id, span.first_data_epoch, span.first_sequence
            state.has_faults = True
            yield sequence_fault(segment.task.path, *names, expected, span.first_offset)

    def _count_empty_markers(self, segment: FileEvidence, state: ProducerState, span: ProducerSpan) -> None:
        """Count markers that end no transaction, unless its records may be among missing offsets."""
        is_empty = span.is_marker_first and state.open_offset < 0
        count = span.empty_marker_count + is_empty
        if count and self.breaks == 0:
            self.empty_markers += count
            if self.first_empty_marker is None:
                offset = span.first_marker_offset if is_empty else span.first_empty_marker_offset
                self.first_empty_marker = (offset, segment.task.path)

    def _go_on(self, segment: FileEvidence, state: ProducerState, span: ProducerSpan, breaks_before: int) -> None:
        state.epoch = span.last_epoch
        state.has_faults |= span.has_faults
        if span.last_offset >= 0:
            state.last_offset, state.last_epoch = span.last_offset, span.last_data_epoch
            state.last_sequence, state.last_timestamp = span.last_sequence, span.last_timestamp
            state.last_breaks, state.later_timestamp = breaks_before, span.later_timestamp
        if span.first_marker_offset >= 0:
            state.coordinator_epoch = span.coordinator_epochs[1]
            state.open_offset = -1
        if state.open_offset < 0 <= span.open_offset:
            state.open_offset, state.open_breaks = span.open_offset, breaks_before
            state.open_path = segment.task.path


def _stable_offset_fault(
    task: SurveyTask, entry: StableOffset, problem: str, rule: str = "transaction-index"
) -> Finding:
    reason = f"last stable offset {entry.offset} at the marker at {entry.marker_offset}, {problem}"
    path = task.indexes.get(FileKind.TRANSACTION_INDEX, task.path)
    return Finding(path, rule, reason, offset=entry.marker_offset)


def _is_damaged(segment: FileEvidence) -> bool:
    """Return whether bytes of a segment are lost, or its batches are out of order."""
    has_lost = segment.coverage is not None and segment.coverage.damaged_bytes > 0
    return has_lost or any(finding.rule == "offset-order" for finding in segment.findings)


def is_whole(extent: LogExtent) -> bool:
    """Return whether a segment has a record for each offset from its first to its last."""
    return extent.record_count == extent.end_offset - extent.start_offset
