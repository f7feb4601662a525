# SPDX-License-Identifier: Apache-2.0
"""The producers of a partition, carried over its segments in order: where each is, and what does not fit.

What is missing between two batches of a producer may explain anything but a step back: where offsets are missing in a
segment, or between two, nothing is said of gaps, of transactions, or of a producer's state behind them.
"""

from collections.abc import Iterator
from typing import Final

import attrs

from raftlog.records.files.file_names import FileKind
from raftlog.tools.auditing.evidence import FileEvidence, LogExtent, ProducerSpan
from raftlog.tools.auditing.producers.producer_faults import coordinator_fault, epoch_fault, mixed_fault, sequence_fault
from raftlog.tools.auditing.producers.producer_rows import is_written_already, next_sequence
from raftlog.tools.catalogue.findings import Finding

COORDINATOR_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Where each batch of a producer has sequence 0: a coordinator writes it in the producer's name."""


@attrs.define
class ProducerState:
    """What a producer has done so far. Numbers are -1 where nothing is known.

    Attributes:
        producer_id: the producer.
        epoch: of its last batch, data or marker.
        last_offset, last_epoch, last_sequence, last_timestamp: of its last data batch.
        last_breaks: how many breaks in the log there are before its last batch, at least.
        coordinator_epoch: of its last marker.
        open_offset: first offset of its open transaction.
        open_breaks: how many breaks there are before that, at least.
        open_path: the segment that its open transaction begins in.
        later_timestamp: the greatest that is surely behind its last data batch, in ms.
        has_faults: whether an epoch or a sequence of it is wrong, in a segment or from one to the next.
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
        """The first sequence of its next batch, if its epoch stays."""
        return 0 if self.epoch > self.last_epoch else next_sequence(self.last_sequence)


class ProducerHistory:
    """Carries producers over the segments of a partition.

    Attributes:
        states: where each producer is, by its id.
        breaks: in how many places offsets are missing so far.
        start_offset: where the first segment starts; what stood before that, retention has deleted.
        end_offset: after the last segment so far, exclusive; None before the first one.
        empty_markers: how many markers ended no transaction.
        first_empty_marker: offset of one of them and path of its segment, or None.
    """

    def __init__(self) -> None:
        self.states: dict[int, ProducerState] = {}
        self.breaks = 0
        self.start_offset: int | None = None
        self.end_offset: int | None = None
        self.empty_markers = 0
        self.first_empty_marker: tuple[int, str] | None = None

    def add(self, segment: FileEvidence) -> Iterator[Finding]:
        """Take the next segment, and yield what does not fit to those before it."""
        extent = segment.extent
        if self.start_offset is None:
            self.start_offset = segment.task.base_offset or 0
        if extent is None:
            self._pass_over(segment)
            return
        is_behind = self.end_offset is not None and extent.start_offset < self.end_offset
        self.breaks += self.end_offset not in {None, extent.start_offset}
        breaks_before = self.breaks
        self.breaks += _is_damaged(segment) or not is_whole(extent)
        for state in self.states.values():
            state.later_timestamp = max(state.later_timestamp, extent.max_timestamp)
        for span in segment.producers:
            state = self.states.setdefault(span.producer_id, ProducerState(span.producer_id))
            if not is_behind:  # What is in two segments is found elsewhere.
                yield from self._compare(segment, state, span)
            self._count_empty_markers(segment, state, span)
            self._go_on(segment, state, span, breaks_before)
        self.end_offset = max(extent.end_offset, self.end_offset or 0)

    def _pass_over(self, segment: FileEvidence) -> None:
        """Take a segment without sound batches: an empty one reaches up to where it starts."""
        base_offset = segment.task.base_offset or 0
        self.breaks += _is_damaged(segment) or self.end_offset not in {None, base_offset}
        self.end_offset = max(base_offset, self.end_offset or 0)

    def _compare(self, segment: FileEvidence, state: ProducerState, span: ProducerSpan) -> Iterator[Finding]:
        """Yield what the producer's first batch and first marker of a segment do not go on with."""
        path = segment.task.path
        offsets = [offset for offset in (span.first_offset, span.first_marker_offset) if offset >= 0]
        first_offset = min(offsets, default=None)  # None where all that is here are markers that do not read.
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

    def _index_fault(self, segment: FileEvidence, state: ProducerState, span: ProducerSpan) -> Finding | None:
        """Return a finding if a transaction index contradicts where a transaction began in an earlier segment."""
        begun, claimed = state.open_offset, span.indexed_offset
        task = segment.task
        index = task.indexes.get(FileKind.TRANSACTION_INDEX)
        if claimed < 0:
            # Where there is no offset index either, Kafka makes both anew.
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
            reason = f"a transaction of producer {span.producer_id} begins at offset {claimed}, but {log}"
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
        """Count markers that end nothing, as long as nothing is missing that they may have ended."""
        is_empty = span.is_marker_first and state.open_offset < 0
        count = span.empty_marker_count + is_empty
        if count and self.breaks == 0:
            self.empty_markers += count
            if self.first_empty_marker is None:
                self.first_empty_marker = (span.first_marker_offset, segment.task.path)

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


def _is_damaged(segment: FileEvidence) -> bool:
    """Say whether bytes of a segment are lost, or its batches are not in order."""
    has_lost = segment.coverage is not None and segment.coverage.damaged_bytes > 0
    return has_lost or any(finding.rule == "offset-order" for finding in segment.findings)


def is_whole(extent: LogExtent) -> bool:
    """Say whether a segment has a record for each offset from its first to its last."""
    return extent.record_count == extent.end_offset - extent.start_offset
