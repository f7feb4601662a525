# SPDX-License-Identifier: Apache-2.0
"""The state of one partition of a coordinator's topic, which is advanced batch by batch, as Kafka's loader does it.

The latest value of each key counts, and a tombstone removes it: a compacted topic cannot say more. One exception is an
offset that a transaction commits: it is pending until the transaction's marker, and then takes effect unless a later
record has set the same offset, or is dropped. A tombstone also removes what is pending for its key. An update of a
share partition is merged into what there is, and its topic is not compacted.

Source: CoordinatorLoaderImpl, GroupCoordinatorShard#replay, OffsetMetadataManager#replay and
#replayEndTransactionMarker, TransactionStateManager#loadTransactionMetadata, ShareCoordinatorShard#replay.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import attrs

from raftlog.errors import DecodeError
from raftlog.records.messages.control import EndTxnMarker, read_control_record
from raftlog.records.messages.coordinator import UnknownCoordinatorRecord, read_coordinator_record
from raftlog.tools.coordinators.share_batches import merged_share_state
from raftlog.tools.image.cluster_image import RefusedRecord

OFFSET: Final = "OffsetCommit"
"""The name of the entries of committed offsets, of either type of key."""
PENDING: Final = "PendingOffset"
"""The name of the entries of offsets that an open transaction commits: then producer id, group, topic and partition."""
SHARE_STATE: Final = "ShareSnapshot"
"""The name of the entries of share partitions: snapshots, with the updates after them."""
_SHARE_UPDATE: Final = "ShareUpdate"
_COMMITS: Final = frozenset({"OffsetCommitKey", "LegacyOffsetCommitKey"})
_NO_PRODUCER: Final = -1

EntryKey = tuple[Hashable, ...]
"""The identity of an entry: the name of its record without ``Key``, and the fields of the key."""
CoordinatorRow = tuple[int, bytes | None, bytes | None]
"""Offset, key and value of a record."""


class CoordinatorBatch(NamedTuple):
    """A batch of a coordinator's topic.

    Attributes:
        next_offset: the offset after its last record, exclusive; compaction does not change it.
        timestamp: the latest time of its records, in ms since the Unix epoch.
        producer_id: -1 for a batch of the coordinator itself.
        is_control: whether it has the marker that ends a transaction.
        records: those that compaction has left, in order.
    """

    next_offset: int
    timestamp: int
    producer_id: int
    is_control: bool
    records: Sequence[CoordinatorRow]


class CoordinatorEntry(NamedTuple):
    """The latest value of a key.

    Attributes:
        offset: of the record that has it.
        version: of the value.
        value: its fields.
    """

    offset: int
    version: int
    value: Mapping[str, Any]


class CoordinatorChange(NamedTuple):
    """A change of one entry.

    Attributes:
        offset, record_index: of the record that made it, and its index among the records of its batch.
        timestamp: of its batch, in ms since the Unix epoch.
        record: the name of its type; for an offset of a transaction, that of the marker.
        key: of the entry.
        before, after: the entry; None if there is none.
    """

    offset: int
    record_index: int
    timestamp: int
    record: str
    key: EntryKey
    before: CoordinatorEntry | None
    after: CoordinatorEntry | None


@attrs.define
class CoordinatorState:
    """The state of one partition; ``apply`` advances it by one batch.

    Attributes:
        topic: the coordinator's topic.
        report: is called with each change; None if nobody asks.
        entries: the latest values, by key, in the order in which the keys were first set.
        end_offset: the records below it have had effect, exclusive.
        timestamp: of the last batch, in ms since the Unix epoch; -1 if there is none.
        refusals: records that cannot be read, or whose type is not known; they have no effect.
    """

    topic: str
    report: Callable[[CoordinatorChange], None] | None = None
    entries: dict[EntryKey, CoordinatorEntry] = attrs.field(factory=dict)
    end_offset: int = 0
    timestamp: int = -1
    refusals: list[RefusedRecord] = attrs.field(factory=list)
    _at: tuple[int, int, str] = attrs.field(default=(-1, -1, ""), init=False)
    _pending: dict[int, set[EntryKey]] = attrs.field(factory=dict, init=False)

    def apply(self, batch: CoordinatorBatch) -> None:
        """Advance the state by the next batch. Bad records become refusals; nothing is raised for them."""
        self.timestamp = batch.timestamp
        for index, (offset, key, value) in enumerate(batch.records):
            try:
                if batch.is_control:
                    self._end(offset, index, batch.producer_id, key, value)
                else:
                    self._replay(offset, index, batch.producer_id, key, value)
            except DecodeError as error:
                self.refusals.append(RefusedRecord(offset, index, error.reason, is_unreadable=True))
        self.end_offset = batch.next_offset

    def _replay(self, offset: int, index: int, producer_id: int, key: bytes | None, value: bytes | None) -> None:
        record = read_coordinator_record(self.topic, key, value)
        if isinstance(record, UnknownCoordinatorRecord):
            reason = f"no release of Kafka that raftlog knows has records of type {record.type} here"
            self.refusals.append(RefusedRecord(offset, index, reason, is_unknown=True))
            return
        name = record.key_type.name.removesuffix("Key")
        self._at = offset, index, name
        fields = tuple(record.key.values())
        is_commit = record.key_type.name in _COMMITS
        found: EntryKey = (OFFSET if is_commit else name, *fields)
        if record.value is None or record.version is None:
            if name == _SHARE_UPDATE:
                self.refusals.append(RefusedRecord(offset, index, "an update of a share partition has no value"))
                return
            self._remove(found)
            if is_commit:
                self._remove_pending(fields)
            return
        entry = CoordinatorEntry(offset, record.version, record.value)
        if name == _SHARE_UPDATE:
            found = (SHARE_STATE, *fields)
            before = self.entries.get(found)
            entry = entry._replace(value=merged_share_state(before and before.value, record.value))
        if is_commit and producer_id != _NO_PRODUCER:
            pending: EntryKey = (PENDING, producer_id, *fields)
            self._pending.setdefault(producer_id, set()).add(pending)
            self._set(pending, entry)
        else:
            self._set(found, entry)

    def _end(self, offset: int, index: int, producer_id: int, key: bytes | None, value: bytes | None) -> None:
        """Replay the marker that ends a producer's transaction; other control records have no effect."""
        marker = read_control_record(key, value).value
        if not isinstance(marker, EndTxnMarker):
            return
        self._at = offset, index, "COMMIT" if marker.committed else "ABORT"
        for pending in sorted(self._pending.pop(producer_id, ()), key=lambda each: self.entries[each].offset):
            entry = self.entries[pending]
            self._remove(pending)
            found: EntryKey = (OFFSET, *pending[2:])
            existing = self.entries.get(found)
            if marker.committed and (existing is None or entry.offset > existing.offset):
                self._set(found, entry)

    def _remove_pending(self, fields: tuple[Hashable, ...]) -> None:
        for producer_id, keys in self._pending.items():
            pending: EntryKey = (PENDING, producer_id, *fields)
            if pending in keys:
                keys.remove(pending)
                self._remove(pending)

    def _set(self, key: EntryKey, entry: CoordinatorEntry) -> None:
        before = self.entries.get(key)
        self.entries[key] = entry
        self._note(key, before, entry)

    def _remove(self, key: EntryKey) -> None:
        before = self.entries.pop(key, None)
        if before is not None:
            self._note(key, before, None)

    def _note(self, key: EntryKey, before: CoordinatorEntry | None, after: CoordinatorEntry | None) -> None:
        if self.report is not None:
            offset, index, name = self._at
            self.report(CoordinatorChange(offset, index, self.timestamp, name, key, before, after))
