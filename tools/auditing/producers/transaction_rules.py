# SPDX-License-Identifier: Apache-2.0
"""Surveys the transactions of a segment: where each begins, and the marker that ends it.

``producer_rules`` selects the batches that begin, end or interrupt a transaction, many batches at a time. This module
handles only these, one by one.

Source: ProducerAppendInfo, ProducerStateManager.
"""

from typing import TYPE_CHECKING, Final

import attrs

from raftlog.errors import DecodeError, MissingExtraError
from raftlog.records.batches.batch import RecordBatch
from raftlog.tools.auditing.producers.producer_faults import coordinator_fault
from raftlog.tools.catalogue.findings import Finding

if TYPE_CHECKING:
    from raftlog.records.messages.control import EndTxnMarker

UNKNOWN: Final = -1
"""Stands for an offset or an epoch that is not known from the segment alone."""


@attrs.frozen
class AbortMarker:
    """An ABORT marker, and what is known from its segment of the transaction that it ends.

    Attributes:
        producer_id: producer of the transaction.
        first_offset: base offset of the transaction's first batch in this segment; -1 if there is none.
        last_offset: offset of the marker.
        last_stable_offset: first offset of the earliest transaction of another producer that is open at the marker, in
            this segment; the offset after the marker if there is none.
        next_first_offset: if none is open at the marker: first offset of the transaction of another producer that
            begins next in this segment; -1 if none does.
        is_beginning_here: whether the transaction is known to begin at ``first_offset``, not in an earlier segment.
        is_read: whether the marker can be read; if not, it may be a COMMIT.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    is_beginning_here: bool
    is_read: bool = True
    next_first_offset: int = UNKNOWN


@attrs.define
class Markers:
    """What is known of a producer's markers in a segment.

    Attributes:
        first_offset: offset of its first marker.
        coordinator_epochs: coordinator epochs of its first and last marker.
        is_first_alone: whether the segment has no transactional batch of the producer before the first marker.
        is_first_abort: whether the first marker is an ABORT.
        empty_count: number of the markers after the first that ended no transaction.
        first_empty_offset: offset of the first of these; -1 if there is none.
    """

    first_offset: int
    coordinator_epochs: tuple[int, int]
    is_first_alone: bool
    is_first_abort: bool = False
    empty_count: int = 0
    first_empty_offset: int = UNKNOWN


_NO_MARKERS: Final = Markers(UNKNOWN, (UNKNOWN, UNKNOWN), is_first_alone=False)


class TransactionSurvey:
    """Tracks the transactions of a segment, in order of offsets.

    Attributes:
        aborted: the ABORT markers so far.

    Args:
        path: of the segment.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._open: dict[int, int] = {}  # First offsets by producer, in the order in which they begin.
        self._markers: dict[int, Markers] = {}
        self._awaiting: dict[int, list[int]] = {}  # By producer: numbers of the markers without a next transaction yet.
        self.aborted: list[AbortMarker] = []

    def open_offset(self, producer_id: int) -> int:
        """Return the first offset of a producer's open transaction, or -1."""
        return self._open.get(producer_id, UNKNOWN)

    def markers(self, producer_id: int) -> Markers:
        """Return what is known of a producer's markers."""
        return self._markers.get(producer_id, _NO_MARKERS)

    def begin(self, producer_id: int, offset: int) -> None:
        """Begin a transaction of a producer at the base offset of a batch, unless the producer has one open."""
        if producer_id in self._open:
            return
        self._open[producer_id] = offset
        for other in [other for other in self._awaiting if other != producer_id]:
            for number in self._awaiting.pop(other):
                self.aborted[number] = attrs.evolve(self.aborted[number], next_first_offset=offset)

    def end(self, batch: RecordBatch) -> Finding | None:
        """Take a control batch of a producer, which ends its transaction if it is a marker.

        A control batch whose marker cannot be read ends the transaction, too.

        Returns:
            A finding about the marker, or None.
        """
        try:
            marker = _read_marker(batch)
        except DecodeError as error:
            self._note(batch, UNKNOWN, is_committed=False, is_read=False)
            return Finding(
                self._path, error.rule or "control-value", error.reason, batch.position, offset=batch.base_offset
            )
        if marker is None:
            return None
        return self._note(batch, marker.coordinator_epoch, is_committed=marker.committed)

    def _note(self, batch: RecordBatch, epoch: int, *, is_committed: bool, is_read: bool = True) -> Finding | None:
        producer_id = batch.producer_id
        first_offset = self._open.pop(producer_id, UNKNOWN)
        markers = self._markers.get(producer_id)
        if not is_committed:
            if not self._open:
                self._awaiting.setdefault(producer_id, []).append(len(self.aborted))
            others = next(iter(self._open.values()), batch.base_offset + 1)
            is_beginning_here = first_offset != UNKNOWN and markers is not None
            self.aborted.append(
                AbortMarker(producer_id, first_offset, batch.base_offset, others, is_beginning_here, is_read)
            )
        if markers is None:
            is_abort = is_read and not is_committed
            self._markers[producer_id] = Markers(batch.base_offset, (epoch, epoch), first_offset == UNKNOWN, is_abort)
            return None
        if first_offset == UNKNOWN:
            markers.first_empty_offset = batch.base_offset if markers.empty_count == 0 else markers.first_empty_offset
            markers.empty_count += 1
        return self._coordinator_fault(batch, markers, epoch)

    def _coordinator_fault(self, batch: RecordBatch, markers: Markers, epoch: int) -> Finding | None:
        first, last = markers.coordinator_epochs
        markers.coordinator_epochs = (first, epoch)
        return coordinator_fault(self._path, batch.producer_id, epoch, last, batch.base_offset, batch.position)


def _read_marker(batch: RecordBatch) -> "EndTxnMarker | None":
    """Return the marker of a control batch; None if it has none, or its records are damaged (reported elsewhere).

    Raises:
        DecodeError: the first record is sound, but not a valid control record.
    """
    from raftlog.records.messages.control import (  # Slow to import, and few segments have control records.
        EndTxnMarker,
        read_control_record,
    )

    try:
        record = next(iter(batch.records(check_crc=False)), None)
    except (DecodeError, MissingExtraError):
        return None
    if record is None:
        return None
    value = read_control_record(record.key, record.value).value
    return value if isinstance(value, EndTxnMarker) else None
