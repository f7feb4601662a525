# SPDX-License-Identifier: Apache-2.0
"""The settings of a log in files: segments, indexes, retention."""

from typing import Any, Final

import attrs

from raftlog.log.retention import Retention
from raftlog.storage.segments.log_segment import RollLimits
from raftlog.storage.segments.segment_indexes import IndexLimits

_MAX_SEGMENT_SIZE: Final = (1 << 31) - 1
"""Indexes store a position as 32 bits."""
_MIN_INDEX_SIZE: Final = 24


def _is_position(_: object, attribute: "attrs.Attribute[int]", value: int) -> None:
    if not 0 < value <= _MAX_SEGMENT_SIZE:
        raise ValueError(f"{attribute.name} is {value}, and must be from 1 to {_MAX_SEGMENT_SIZE}")


def _is_not_negative(_: object, attribute: "attrs.Attribute[Any]", value: int | None) -> None:
    if value is not None and value < 0:
        raise ValueError(f"{attribute.name} is {value}, and must not be negative")


@attrs.frozen
class LogConfig:
    """The settings of a log, with the defaults of Kafka's metadata log.

    Attributes:
        segment_size_bytes: maximum size of a segment, unless one append is larger (``metadata.log.segment.bytes``).
        segment_ms: maximum age of a segment, from the timestamp of its first batch to that of the next batch
            (``metadata.log.segment.ms``).
        index_interval_bytes: minimum distance of two entries of an index (``index.interval.bytes``).
        max_index_size_bytes: of each index (``segment.index.bytes``).
        retention_bytes: of the log and all snapshots; None is no limit (``metadata.max.retention.bytes``).
        retention_ms: since the last record in a snapshot; None is no limit (``metadata.max.retention.ms``).
        recovery_point_interval_bytes: a flush stores the recovery point if this many bytes were appended since.

    Raises:
        ValueError: a number is out of range.
    """

    segment_size_bytes: int = attrs.field(default=1024 * 1024 * 1024, validator=_is_position)
    segment_ms: int = attrs.field(default=7 * 24 * 3600 * 1000, validator=_is_not_negative)
    index_interval_bytes: int = attrs.field(default=4096, validator=_is_not_negative)
    max_index_size_bytes: int = attrs.field(default=10 * 1024 * 1024, validator=_is_position)
    retention_bytes: int | None = attrs.field(default=100 * 1024 * 1024, validator=_is_not_negative)
    retention_ms: int | None = attrs.field(default=7 * 24 * 3600 * 1000, validator=_is_not_negative)
    recovery_point_interval_bytes: int = attrs.field(default=64 * 1024 * 1024, validator=_is_not_negative)

    def __attrs_post_init__(self) -> None:
        if self.max_index_size_bytes < _MIN_INDEX_SIZE:
            raise ValueError(f"max_index_size_bytes is {self.max_index_size_bytes}, less than {_MIN_INDEX_SIZE}")

    @property
    def roll_limits(self) -> RollLimits:
        """When a new segment is begun."""
        return RollLimits(self.segment_size_bytes, self.segment_ms)

    @property
    def index_limits(self) -> IndexLimits:
        """How dense and how large indexes are."""
        return IndexLimits(self.index_interval_bytes, self.max_index_size_bytes)

    @property
    def retention(self) -> Retention:
        """Limits above which old snapshots and records are deleted."""
        return Retention(self.retention_bytes, self.retention_ms)
