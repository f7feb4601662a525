# SPDX-License-Identifier: Apache-2.0
"""Positions in a log: an offset with its epoch, its place on disk, and a leader's verdict on a follower's position."""

import enum
import functools
from typing import Final, Self

import attrs

MAX_EPOCH: Final = 2**31 - 1
"""The highest epoch. A replica that has reached it votes and follows, but begins no election."""


@functools.total_ordering
@attrs.frozen
class OffsetAndEpoch:
    """A log offset and a leader epoch; as a snapshot id, an end offset and the epoch of the last record before it.

    Ordered by **epoch first**, then offset: of two logs, the one whose last epoch is higher is the more up to date,
    however short it is. Nothing is checked, as -1 means "unknown" in several messages.

    Source: OffsetAndEpoch#compareTo.
    """

    offset: int
    epoch: int

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, OffsetAndEpoch):
            return NotImplemented
        return (self.epoch, self.offset) < (other.epoch, other.offset)


@attrs.frozen
class EpochEntry:
    """One line of the epoch history: the first offset (inclusive) that was written in, or assigned to, an epoch.

    Source: EpochEntry.
    """

    epoch: int
    start_offset: int


@attrs.frozen
class SegmentPosition:
    """The place of an offset on disk: the segment's base offset and the byte position in its ``.log`` file."""

    base_offset: int
    position: int


@attrs.frozen
class LogOffsetMetadata:
    """A log offset with its place on disk, if that is known. Only the offset is used in comparisons of progress.

    Source: raft LogOffsetMetadata.
    """

    offset: int
    segment_position: SegmentPosition | None = None


class ValidationKind(enum.Enum):
    """A leader's verdict on the offset and epoch at which a follower wants to continue."""

    VALID = "valid"
    """The follower's log is a prefix of this one up to there."""
    DIVERGING = "diverging"
    """The follower holds records that this log does not: it must truncate."""
    SNAPSHOT = "snapshot"
    """This log no longer holds what the follower needs: it must fetch a snapshot."""


@attrs.frozen
class ValidOffsetAndEpoch:
    """The verdict on a fetch position, with the offset and epoch that go with it.

    Attributes:
        kind: the verdict.
        offset_and_epoch: the position itself when valid; the end offset (exclusive) of the last common epoch when
            diverging; the id of the snapshot to fetch otherwise.

    Source: ValidOffsetAndEpoch.
    """

    kind: ValidationKind
    offset_and_epoch: OffsetAndEpoch

    @classmethod
    def valid(cls, offset_and_epoch: OffsetAndEpoch) -> Self:
        """Return the verdict that a fetch may continue at this position."""
        return cls(ValidationKind.VALID, offset_and_epoch)

    @classmethod
    def diverging(cls, offset_and_epoch: OffsetAndEpoch) -> Self:
        """Return the verdict that the logs diverge no later than at this end offset (exclusive) of this epoch."""
        return cls(ValidationKind.DIVERGING, offset_and_epoch)

    @classmethod
    def snapshot(cls, snapshot_id: OffsetAndEpoch) -> Self:
        """Return the verdict that this snapshot must be fetched first."""
        return cls(ValidationKind.SNAPSHOT, snapshot_id)
