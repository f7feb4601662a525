# SPDX-License-Identifier: Apache-2.0
"""What the consensus core knows of a listener: how far it is, what it is reading, and what it was told of leaders.

It holds no records: a listener reads the log itself, so a slow one costs no memory.

Source: KafkaRaftClient.ListenerContext.
"""

from typing import Final, NamedTuple

import attrs

from raftlog.invariants import invariant
from raftlog.offsets import OffsetAndEpoch

START: Final = -1
"""The next offset of a listener that has been given nothing yet."""


class Delivery(NamedTuple):
    """What a listener is reading.

    Attributes:
        number: of the effect.
        offset: where the listener is before it, inclusive; ``START`` if it has been given nothing yet.
        end_offset: where the listener is after all of it, exclusive.
        snapshot_id: of the snapshot; None for batches of the log.
    """

    number: int
    offset: int
    end_offset: int
    snapshot_id: OffsetAndEpoch | None = None


@attrs.define(eq=False)
class ListenerContext:
    """A listener.

    Attributes:
        number: that ``Raft.register_listener`` returned.
        next_offset: of the record that it needs next, inclusive; ``START`` if it has been given nothing yet.
        delivery: what it is reading; None if it waits for records.
        resume_ms: the time before which it is given nothing, because it has taken nothing of the last delivery.
        told_epoch: the epoch of the last leader change that it was told.
        told_leader_id: the leader that it was told in that epoch, or None.
        is_registered: False after it was unregistered, until its last delivery is closed.
    """

    number: int
    next_offset: int = START
    delivery: Delivery | None = None
    resume_ms: int | None = None
    told_epoch: int = 0
    told_leader_id: int | None = None
    is_registered: bool = True

    def close(self, delivery: Delivery, next_offset: int) -> None:
        """Note how far the listener has read; only forward, and not past the end of what it was given."""
        before = self.next_offset
        invariant(before == delivery.offset, "listener at {}, but it reads from {}", before, delivery.offset)
        self.next_offset = next_offset
        self.delivery = None
        end = delivery.end_offset
        invariant(before < next_offset <= end, "listener moved from {} to {}, end {}", before, next_offset, end)
