# SPDX-License-Identifier: Apache-2.0
"""What the consensus core wants done: numbered effects, which its driver carries out.

A driver executes the effects on disks in the order of the list. It reports each with its number. Messages are in the
list as soon as they may be sent: the core holds them back until what they promise is durable.
"""

import enum
from typing import NamedTuple

import attrs

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.seam.snapshot_effects import CleanLog, FetchedSnapshotWork, SnapshotEffect
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.records.messages.raft.raft_messages import RaftRequest, RaftResponse


class Destination(NamedTuple):
    """Where a request goes.

    Attributes:
        id: of the replica, or a negative number for a bootstrap server.
        host: to connect to.
        port: to connect to.
    """

    id: int
    host: str
    port: int


# Effects on the disk: report each with ``Raft.stored`` or ``Raft.log_changed``; a failure with ``Raft.effect_failed``.


@attrs.frozen
class StoreElectionState:
    """Make an election state durable.

    Attributes:
        number: of this effect.
        state: to be stored.
    """

    number: int
    state: QuorumStateData


@attrs.frozen
class EnterEpoch:
    """Begin an epoch in the log, as its leader.

    Attributes:
        number: of this effect.
        epoch: that is begun at the log end.
    """

    number: int
    epoch: int


@attrs.frozen
class AppendAsLeader:
    """Append what this replica has written as leader.

    Attributes:
        number: of this effect.
        batches: whole batches.
        epoch: of the leader.
    """

    number: int
    batches: bytes
    epoch: int


@attrs.frozen
class AppendAsFollower:
    """Append what a leader has sent; damaged batches, and those of a later epoch, are dropped.

    Attributes:
        number: of this effect.
        records: stored batches.
        epoch: of the leader.
    """

    number: int
    records: bytes | memoryview
    epoch: int


@attrs.frozen
class FlushLog:
    """Make all records of the log durable.

    Attributes:
        number: of this effect.
    """

    number: int


@attrs.frozen
class TruncateToEndOffset:
    """Drop the records that diverge from the leader's log.

    Attributes:
        number: of this effect.
        end_offset: from the leader's response: an epoch, and where it ends there, exclusive.
    """

    number: int
    end_offset: OffsetAndEpoch


@attrs.frozen
class ReadLog:
    """Read batches, committed or not, for a follower. Report them with ``Raft.log_read``.

    Attributes:
        number: of this effect.
        offset: of the first record, inclusive.
        max_size_bytes: of the result; the first batch is read whole, whatever its size is.
    """

    number: int
    offset: int
    max_size_bytes: int


@attrs.frozen
class RaiseHighWatermark:
    """Tell the log how far it is committed. There is nothing to report.

    Attributes:
        number: of this effect.
        offset: exclusive.
    """

    number: int
    offset: int


# Effects on the network


@attrs.frozen
class SendRequest:
    """Send a request. Report the response with ``Raft.receive_response``, a failure with ``Raft.request_failed``.

    Attributes:
        number: of this effect.
        destination: where to.
        message: the request.
    """

    number: int
    destination: Destination
    message: RaftRequest


@attrs.frozen
class SendResponse:
    """Answer a request. There is nothing to report.

    Attributes:
        number: of this effect.
        token: that was passed in with the request.
        message: the response.
    """

    number: int
    token: object
    message: RaftResponse


# Effects on the application


class AppendOutcome(enum.Enum):
    """What became of an append."""

    COMMITTED = "committed"
    """A majority of voters has flushed the records: no leader will truncate them."""
    FAILED = "failed"
    """The records were not written, and never will be."""
    UNKNOWN = "unknown"
    """The leadership ended while the records were in the log: the next leader may commit them, or have them dropped."""


class EndAppend(NamedTuple):
    """Tell the application what became of an append. There is nothing to report.

    Attributes:
        number: that ``Raft.append`` returned.
        last_offset: of the records, inclusive.
        outcome: final.
    """

    number: int
    last_offset: int
    outcome: AppendOutcome


class ReadPolicy(enum.Enum):
    """How a leader makes sure that a read is not outdated."""

    MAJORITY = "majority"
    """A majority of voters confirms, after the read has arrived, that this replica leads."""
    LEASE = "lease"
    """Without asking, while no other leader could have been elected. It is refused: DECISIONS.md 59."""


class ReadOutcome(enum.Enum):
    """What became of a read."""

    CONFIRMED = "confirmed"
    """The state up to the offset is up to date: it has all that was committed when the read arrived."""
    FAILED = "failed"
    """The leadership ended. Ask the next leader."""
    TIMED_OUT = "timed_out"
    """No majority has answered in time."""


@attrs.frozen
class EndRead:
    """Tell the application what became of a read. There is nothing to report.

    Attributes:
        number: that ``Raft.read_barrier`` returned.
        outcome: final.
        offset: of a confirmed read: answer it from a state that has all records before this offset, exclusive, such as
            that of a listener whose next offset is not below it. 0 otherwise.
    """

    number: int
    outcome: ReadOutcome
    offset: int = 0


# Effects on listeners


@attrs.frozen
class DeliverBatches:
    """Let a listener read committed batches, control batches included. Report it with ``Raft.delivery_closed``.

    Attributes:
        number: of this effect.
        listener: its number.
        offset: of the first record, inclusive. The first batch may begin before it.
        end_offset: of the records, exclusive. Read them from the log in parts that fit in memory.
    """

    number: int
    listener: int
    offset: int
    end_offset: int


@attrs.frozen
class DeliverSnapshot:
    """Let a listener load a snapshot, which replaces all that it has read. Report it with ``Raft.delivery_closed``.

    Attributes:
        number: of this effect.
        listener: its number.
        snapshot_id: of the snapshot. Its file stays until the delivery is closed.
    """

    number: int
    listener: int
    snapshot_id: OffsetAndEpoch


@attrs.frozen
class DeliverBootstrap:
    """Let a listener read the bootstrap snapshot, which is no committed state. Report it as for ``DeliverSnapshot``.

    Attributes:
        number: of this effect.
        listener: its number.
        snapshot_id: 0-0.
    """

    number: int
    listener: int
    snapshot_id: OffsetAndEpoch


@attrs.frozen
class NotifyLeaderChange:
    """Tell a listener of an epoch, or of its leader. There is nothing to report.

    Attributes:
        number: of this effect.
        listener: its number.
        epoch: the latest one.
        leader_id: of its leader; None if it has none yet, as far as this replica knows.
    """

    number: int
    listener: int
    epoch: int
    leader_id: int | None


@attrs.frozen
class NotifyShutdown:
    """Tell a listener that this replica begins to shut down. There is nothing to report.

    Attributes:
        number: of this effect.
        listener: its number.
    """

    number: int
    listener: int


@attrs.frozen
class EndShutdown:
    """Tell the application that the replica has stopped. There is nothing to report.

    Attributes:
        number: that ``Raft.shutdown`` returned.
        has_timed_out: whether the quorum may have no other leader yet.
    """

    number: int
    has_timed_out: bool


Delivering = DeliverBatches | DeliverSnapshot | DeliverBootstrap
LogWork = (
    EnterEpoch | AppendAsLeader | AppendAsFollower | FlushLog | TruncateToEndOffset | FetchedSnapshotWork | CleanLog
)
Notice = EndAppend | EndRead | Delivering | NotifyShutdown | EndShutdown
"""What is certain already, so that it waits for nothing."""
HeldBack = SendRequest | SendResponse | NotifyLeaderChange
"""What waits until the election state that it depends on is durable."""
Effect = StoreElectionState | LogWork | ReadLog | RaiseHighWatermark | SnapshotEffect | HeldBack | Notice
