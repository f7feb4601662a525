# SPDX-License-Identifier: Apache-2.0
"""Transactions in a segment: where each begins, and the marker that ends it.

Of the batches only those are looked at one by one that begin a transaction, end one, or break into one; which these
are, ``producer_rules`` finds out for many batches at a time.

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
"""Stands for an offset or an epoch that a segment alone does not tell."""


@attrs.frozen
class AbortMarker:
    """An ABORT marker, and what its segment tells of the transaction that it ends.

    Attributes:
        producer_id: whose transaction.
        first_offset: of its first record here; -1 where there is none.
        last_offset: of the marker.
        last_stable_offset: first offset of the earliest transaction that was then open here, of another producer; the
            offset after the marker where there is none.
        is_beginning_here: whether the transaction surely begins at ``first_offset``, and not in an earlier segment.
        is_read: whether it can be read; else it may be a COMMIT.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    is_beginning_here: bool
    is_read: bool = True


@attrs.define
class Markers:
    """What is known of a producer's markers in a segment.

    Attributes:
        first_offset: of its first marker.
        coordinator_epochs: of its first and last marker.
        empty_count: how many markers, but for the first, ended no transaction.
        is_first_alone: whether nothing of a transaction stood before the first one.
        is_first_abort: whether the first one is an ABORT.
    """

    first_offset: int
    coordinator_epochs: tuple[int, int]
    is_first_alone: bool
    is_first_abort: bool = False
    empty_count: int = 0


_NO_MARKERS: Final = Markers(UNKNOWN, (UNKNOWN, UNKNOWN), is_first_alone=False)


class TransactionSurvey:
    """Follows the transactions of a segment, in order of offsets.

    Attributes:
        aborted: the ABORT markers so far.

    Args:
        path: of the segment.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._open: dict[int, int] = {}  # First offsets by producer, in the order in which they begin.
        self._markers: dict[int, Markers] = {}
        self.aborted: list[AbortMarker] = []

    def open_offset(self, producer_id: int) -> int:
        """Return the first offset of a producer's open transaction, or -1."""
        return self._open.get(producer_id, UNKNOWN)

    def markers(self, producer_id: int) -> Markers:
        """Return what is known of a producer's markers."""
        return self._markers.get(producer_id, _NO_MARKERS)

    def begin(self, producer_id: int, offset: int) -> None:
        """Take note of a batch of a producer, by its base offset, that begins a transaction unless one is open."""
        self._open.setdefault(producer_id, offset)

    def end(self, batch: RecordBatch) -> Finding | None:
        """Take note of a control batch of a producer, which ends its transaction if it is a marker.

        Returns:
            What is wrong with it, if anything. One that does not read ends the transaction, too.
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
            others = next(iter(self._open.values()), batch.base_offset + 1)
            is_beginning_here = first_offset != UNKNOWN and markers is not None
            self.aborted.append(
                AbortMarker(producer_id, first_offset, batch.base_offset, others, is_beginning_here, is_read)
            )
        if markers is None:
            is_abort = is_read and not is_committed
            self._markers[producer_id] = Markers(batch.base_offset, (epoch, epoch), first_offset == UNKNOWN, is_abort)
            return None
        markers.empty_count += first_offset == UNKNOWN
        return self._coordinator_fault(batch, markers, epoch)

    def _coordinator_fault(self, batch: RecordBatch, markers: Markers, epoch: int) -> Finding | None:
        first, last = markers.coordinator_epochs
        markers.coordinator_epochs = (first, epoch)
        return coordinator_fault(self._path, batch.producer_id, epoch, last, batch.base_offset, batch.position)


def _read_marker(batch: RecordBatch) -> "EndTxnMarker | None":
    """Return the marker of a control batch; None if it has none, or its records were found to be broken.

    Raises:
        DecodeError: the first record is sound, and no control record.
    """
    from raftlog.records.messages.control import (  # Slow to import; few segments have any.
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
