# SPDX-License-Identifier: Apache-2.0
"""An image of the cluster, which is advanced batch by batch, as Kafka's loader does it.

Records of a metadata transaction have no effect before it ends, and none if it is aborted. So there is no image inside
a transaction, nor inside a batch: only the ends of batches outside of transactions, and the beginnings of transactions,
have one.

Source: MetadataBatchLoader, MetadataLoader#loadSnapshot (KIP-866).
Differs: a record that Kafka's loader dies of is a ``RefusedRecord``, and has no effect (DECISIONS.md, 81).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import attrs

from raftlog.errors import DecodeError, ReplayRefusedError, UnsupportedVersionError
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.messages.generated_source import NOT_USUAL
from raftlog.tools.image.replay import ABORT, BEGIN, FRAME_SIZE, SHAPED_CHANGES, Replay, decoder, read_any
from raftlog.tools.image.tables import Tables

__all__ = [
    "BatchPlace",
    "ClusterImage",
    "MetadataBatch",
    "OpenTransaction",
    "RefusedRecord",
    "StoredControl",
    "image_of_snapshot",
]


class BatchPlace(NamedTuple):
    """Where a batch is stored.

    Attributes:
        path: of the file.
        position: of the batch's first byte in it.
    """

    path: str
    position: int


class StoredControl(NamedTuple):
    """A control record as it is stored.

    Attributes:
        key, value: None is null.
    """

    key: bytes | None
    value: bytes | None


class MetadataBatch(NamedTuple):
    """A batch of the metadata log, or of a snapshot of it.

    Attributes:
        base_offset: of its first record, inclusive.
        next_offset: the offset after its last record, exclusive.
        epoch: of the leader that wrote it.
        timestamp: when it was appended, in ms since the Unix epoch.
        values: of its records, in order; none for a control batch.
        controls: its control records, in order, if they are asked for: an image has nothing of them.
        place: where it is stored, if that is asked for.
    """

    base_offset: int
    next_offset: int
    epoch: int
    timestamp: int
    values: Sequence[bytes | None] = ()
    controls: Sequence[StoredControl] = ()
    place: BatchPlace | None = None


class RefusedRecord(NamedTuple):
    """A record that has no effect, since it cannot be read or contradicts the image.

    Attributes:
        offset: of the record; in a snapshot, its offset there.
        record_index: of the record in its batch, from 0.
        reason: what is wrong.
        is_unreadable: whether the bytes are bad.
        is_unknown: whether its type or version is not known; a later release may know it.
        is_in_snapshot: whether it is a record of the snapshot that the image began with.
    """

    offset: int
    record_index: int
    reason: str
    is_unreadable: bool = False
    is_unknown: bool = False
    is_in_snapshot: bool = False


class _Pending(NamedTuple):
    """A record of an open transaction."""

    offset: int
    record_index: int
    name: str
    replay: Replay
    message: Mapping[str, Any]


@attrs.define
class OpenTransaction:
    """A metadata transaction that has begun, and whose records have no effect yet.

    Attributes:
        offset: of the record that began it.
        name: of the transaction; None if it has none.
        pending: its records so far.
    """

    offset: int
    name: str | None
    pending: list[_Pending] = attrs.field(factory=list)


@attrs.define
class ClusterImage:
    """The cluster as metadata records say; ``apply`` advances it by one batch.

    Attributes:
        tables: the entries.
        end_offset: the records below it are in the image, exclusive; those of aborted transactions have no effect.
        epoch: of the last batch that is in the image; -1 if there is none.
        timestamp: of that batch in ms since the Unix epoch; -1 if there is none.
        read_to: the end of the last batch that was applied, exclusive. It is above ``end_offset`` inside a transaction.
        transaction: the one that is open there, or None.
        refusals: records without effect, in the order in which they would have had it.
        in_snapshot: whether the batches are those of a snapshot, whose offsets are not those of the log.
    """

    tables: Tables = attrs.field(factory=Tables)
    end_offset: int = 0
    epoch: int = -1
    timestamp: int = -1
    read_to: int = 0
    transaction: OpenTransaction | None = None
    refusals: list[RefusedRecord] = attrs.field(factory=list)
    in_snapshot: bool = False

    def apply(self, batch: MetadataBatch) -> None:
        """Advance the image by the next batch. Bad records become refusals; nothing is raised for them."""
        values = batch.values if type(batch.values) is list else list(batch.values)
        index = 0
        while True:
            if self.transaction is None:
                index = SHAPED_CHANGES.apply(self.tables, values, index)
            if index >= len(values):
                break
            self._apply_value(batch, index, values[index])
            index += 1
        self.read_to = batch.next_offset
        if self.transaction is None:
            self._reached(batch.next_offset, batch)

    def _apply_value(self, batch: MetadataBatch, index: int, value: bytes | None) -> None:
        """Apply a record, of whatever type."""
        found = None if value is None else decoder(value[:FRAME_SIZE])
        if found is None or value is None:
            self._apply_unusual(batch, index, value)
            return
        name, read, replay = found
        try:
            message, end = read(value, FRAME_SIZE)
        except NOT_USUAL:
            self._apply_unusual(batch, index, value)
            return
        if end != len(value):
            self._apply_unusual(batch, index, value)
        elif self.transaction is None and replay is not None:
            self._replay(batch.base_offset + index, index, name, replay, message)
        else:
            self._apply_read(batch, index, name, replay, message)

    def _apply_unusual(self, batch: MetadataBatch, index: int, value: bytes | None) -> None:
        """Apply a record that the fast reader cannot read; it may be bad."""
        offset = batch.base_offset + index
        try:
            name, replay, message = read_any(value)
        except UnsupportedVersionError as error:
            refusal = RefusedRecord(offset, index, error.reason, is_unknown=True, is_in_snapshot=self.in_snapshot)
            self.refusals.append(refusal)
        except DecodeError as error:
            refusal = RefusedRecord(offset, index, error.reason, is_unreadable=True, is_in_snapshot=self.in_snapshot)
            self.refusals.append(refusal)
        else:
            self._apply_read(batch, index, name, replay, message)

    def _apply_read(
        self, batch: MetadataBatch, index: int, name: str, replay: Replay | None, message: Mapping[str, Any]
    ) -> None:
        offset = batch.base_offset + index
        if replay is None:
            self._bound(batch, index, name, message)
        elif self.transaction is None:
            self._replay(offset, index, name, replay, message)
        else:
            self.transaction.pending.append(_Pending(offset, index, name, replay, message))

    def _replay(self, offset: int, index: int, name: str, replay: Replay, message: Mapping[str, Any]) -> None:
        try:
            replay(self.tables, message)
        except ReplayRefusedError as error:
            self.refusals.append(RefusedRecord(offset, index, f"{name}: {error}", is_in_snapshot=self.in_snapshot))

    def _bound(self, batch: MetadataBatch, index: int, name: str, message: Mapping[str, Any]) -> None:
        """Apply a record that begins or ends a transaction."""
        offset = batch.base_offset + index
        is_open = self.transaction is not None
        if is_open is (name == BEGIN):
            problem = "a transaction is open already" if is_open else "no transaction is open"
            self.refusals.append(RefusedRecord(offset, index, f"{name}: {problem}", is_in_snapshot=self.in_snapshot))
        elif name == BEGIN:
            if index:
                self._reached(offset, batch)
            self.transaction = OpenTransaction(offset, message["name"])
        else:
            self._close(is_aborted=name == ABORT)

    def _close(self, *, is_aborted: bool) -> None:
        transaction, self.transaction = self.transaction, None
        if transaction is not None and not is_aborted:
            for each in transaction.pending:
                self._replay(*each)

    def _reached(self, end_offset: int, batch: MetadataBatch) -> None:
        self.end_offset, self.epoch, self.timestamp = end_offset, batch.epoch, batch.timestamp


def image_of_snapshot(batches: Iterable[MetadataBatch], end: OffsetAndEpoch, timestamp: int) -> ClusterImage:
    """Return the image that a snapshot says.

    Args:
        batches: its data batches, in order.
        end: its id: the offset after the last record that it covers, and the epoch of that record.
        timestamp: when that record was appended, in ms, as its header says.
    """
    image = ClusterImage(in_snapshot=True)
    for batch in batches:
        image.apply(batch)
    return ClusterImage(image.tables, end.offset, end.epoch, timestamp, end.offset, None, image.refusals)
