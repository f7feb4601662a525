# SPDX-License-Identifier: Apache-2.0
"""Selects the batches and records that a user wants to see."""

import re
from typing import Final, NamedTuple

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.legacy import LegacyBatch, LegacyRecord
from raftlog.records.batches.record import RecordView


class Selection(NamedTuple):
    """Conditions that must all hold; None is no condition.

    Attributes:
        from_offset: first offset, inclusive.
        to_offset: last offset, exclusive.
        since_ms: first timestamp in ms, inclusive.
        until_ms: last timestamp in ms, exclusive.
        only_control: whether to leave out data records.
        types: names of control or message types, in capitals.
        epoch: partition leader epoch of the batch.
        key: the record's key.
    """

    from_offset: int | None = None
    to_offset: int | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    only_control: bool = False
    types: frozenset[str] = frozenset()
    epoch: int | None = None
    key: bytes | None = None

    @property
    def by_record(self) -> bool:
        """Whether headers do not suffice to select."""
        return bool(self.types) or self.key is not None

    @property
    def is_everything(self) -> bool:
        """Whether nothing is left out."""
        return self == _EVERYTHING

    def may_hold(self, batch: RecordBatch | LegacyBatch) -> bool:
        """Whether, by its header, a batch may have selected records."""
        is_control = isinstance(batch, RecordBatch) and batch.is_control
        epoch = batch.partition_leader_epoch if isinstance(batch, RecordBatch) else -1
        return (
            (self.from_offset is None or batch.last_offset >= self.from_offset)
            # A compressed message of magic 1 has the offset of its last record, so its first may be lower.
            and (self.to_offset is None or isinstance(batch, LegacyBatch) or batch.base_offset < self.to_offset)
            and (self.since_ms is None or batch.max_timestamp >= self.since_ms)
            and (is_control or not self.only_control)
            and (self.epoch is None or epoch == self.epoch)
        )

    def holds(self, record: RecordView | LegacyRecord, type_name: str | None) -> bool:
        """Whether a record is selected, if ``may_hold`` is true for its batch."""
        return (
            (self.from_offset is None or record.offset >= self.from_offset)
            and (self.to_offset is None or record.offset < self.to_offset)
            and (self.since_ms is None or record.timestamp >= self.since_ms)
            and (self.until_ms is None or record.timestamp < self.until_ms)
            and (not self.types or type_name in self.types)
            and (self.key is None or record.key == self.key)
        )


_EVERYTHING: Final = Selection()


def parse_time_ms(text: str) -> int:
    """Parse a time: ms since the Unix epoch, or ISO 8601, which without a zone is UTC.

    Raises:
        ValueError: it is neither.
    """
    if text.removeprefix("-").isdigit():
        return int(text)
    from datetime import UTC, datetime  # Imported here, as most dumps do not need it.

    time = datetime.fromisoformat(text)
    return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)


def parse_type(text: str) -> str:
    """Convert a type's name to the form of the tools: ``TopicRecord`` and ``topic_record`` become ``TOPIC_RECORD``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text).upper()
