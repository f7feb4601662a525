# SPDX-License-Identifier: Apache-2.0
"""What a leader knows, from its election until its epoch ends: its replicas, its timers, and fetches that wait.

Source: LeaderState.
"""

from collections import deque
from typing import NamedTuple

import attrs

from raftlog.errors import BufferExhaustedError
from raftlog.quorum.pending_reads import PendingReads
from raftlog.quorum.seam.identity import ReceivedRequest
from raftlog.records.batches.accumulator import BatchAccumulator
from raftlog.records.messages.raft.fetch_messages import (
    FetchRequest,
    FetchSnapshotRequestPartitionSnapshot,
)
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import Endpoints, ReplicaKey, VoterNode, VoterSet


class ReplicaProgress(NamedTuple):
    """How far a replica is, according to its last valid Fetch.

    Attributes:
        end_offset: exclusive: the replica has flushed the leader's log up to there.
        fetched_ms: monotonic time of the Fetch.
        fetched_wall_ms: time of day of the Fetch.
        leader_end_offset: of the leader's log at that time, exclusive.
        caught_up_wall_ms: when the replica last had all of the leader's log; -1 if it never had.
        caught_up_ms: the same in monotonic time.
        steady_since_ms: monotonic time since when the replica has been in touch and has not lagged; -1 if it does lag.
    """

    end_offset: int
    fetched_ms: int
    fetched_wall_ms: int
    leader_end_offset: int
    caught_up_wall_ms: int
    caught_up_ms: int = -1
    steady_since_ms: int = -1


class WaitingFetch(NamedTuple):
    """A Fetch that is not answered yet.

    Attributes:
        received: how it arrived.
        request: to be answered.
    """

    received: ReceivedRequest
    request: FetchRequest


class ParkedFetch(NamedTuple):
    """A Fetch that found nothing new, and waits for records or for a higher high watermark.

    Attributes:
        fetch: the request.
        log_start_offset: for the answer if nothing comes until the deadline.
        deadline_ms: monotonic time.
    """

    fetch: WaitingFetch
    log_start_offset: int
    deadline_ms: int


class ReadFetch(NamedTuple):
    """A Fetch whose records are being read.

    Attributes:
        fetch: the request.
        number: of the effect.
    """

    fetch: WaitingFetch
    number: int


class WaitingSnapshotRead(NamedTuple):
    """A FetchSnapshot whose bytes are being read.

    Attributes:
        received: how it arrived.
        asked: which bytes of which snapshot.
        key: of the replica that asks.
    """

    received: ReceivedRequest
    asked: FetchSnapshotRequestPartitionSnapshot
    key: ReplicaKey


class PendingAppend(NamedTuple):
    """Records that an application has appended, and that are not committed yet.

    Attributes:
        number: of the append.
        last_offset: of its records, inclusive.
    """

    number: int
    last_offset: int


class VersionUpgrade(NamedTuple):
    """What a leader keeps for an upgrade of kraft.version: the voters until it is requested, the level from then on.

    Attributes:
        voters: while kraft.version is 0, the static voters with what they have told the leader of themselves.
        requested: the level that the leader has written, or is writing; None if no upgrade was requested.

    Source: KRaftVersionUpgrade.
    """

    voters: VoterSet | None = None
    requested: KRaftVersion | None = None


class Joiner(NamedTuple):
    """A replica that is to become a voter.

    Attributes:
        key: of the replica.
        endpoints: where it listens.
        ack_when_committed: whether the answer waits for the commit.
    """

    key: ReplicaKey
    endpoints: Endpoints
    ack_when_committed: bool


class PendingVoterChange(NamedTuple):
    """A request to add or remove a voter that is under way.

    Attributes:
        received: how the request arrived.
        deadline_ms: monotonic time at which the request is answered at the latest.
        joiner: the voter to be added; None for a removal.
        offset: of the VotersRecord; None as long as it is not written.
        is_answered: whether the request is answered already.
    """

    received: ReceivedRequest
    deadline_ms: int
    joiner: Joiner | None = None
    offset: int | None = None
    is_answered: bool = False


@attrs.define(eq=False)
class Leadership:
    """The state of one leadership.

    Attributes:
        epoch: that is led.
        begin_deadline_ms: when voters that do not fetch are told again who leads.
        check_quorum_deadline_ms: when the leader resigns, unless a majority of voters fetches before.
        entering: the number of the effect that enters the epoch in the log, until it is reported.
        flushing: the number of the effect that flushes the log, until it is reported.
        epoch_start_offset: the first offset of the epoch; None until the log has entered the epoch.
        batches: the records to be appended; None until then.
        voters_offset: offset of the last VotersRecord that this leader has written, in its log or not yet; None if it
            has written none.
        voter_change: the request to add or remove a voter that is under way, or None.
        handed_end_offset: the end, exclusive, of the records that were handed to the log.
        pending: the appends that are not committed yet, in the order of their offsets.
        progress: of the replicas that have fetched in this epoch, the one that fetched last at the end.
        static_keys: by id, the key with which a voter without a directory id has fetched last.
        fetched_voters: the voters, as the voter set names them, that have fetched since a majority last did.
        parked: fetches that wait, at most one per replica: by its key in the voter set, or else by its own.
        parked_until_ms: when the next of them may have to be answered, or an earlier time; None if none waits.
        reads: the reads that wait for a majority.
        reading: fetches whose records are being read, likewise.
        upgrade: of kraft.version.
        reading_snapshots: fetches of snapshots whose bytes are being read, by the number of the effect.
        is_resignation_due: whether the leader is to resign.
        preferred_successor: the voter that is to be the next leader, or None.
    """

    epoch: int
    begin_deadline_ms: int
    check_quorum_deadline_ms: int
    entering: int | None = None
    flushing: int | None = None
    epoch_start_offset: int | None = None
    batches: BatchAccumulator | None = None
    voters_offset: int | None = None
    voter_change: PendingVoterChange | None = None
    handed_end_offset: int = 0
    pending: deque[PendingAppend] = attrs.field(factory=deque)
    progress: dict[ReplicaKey, ReplicaProgress] = attrs.field(factory=dict)
    static_keys: dict[int, ReplicaKey] = attrs.field(factory=dict)
    fetched_voters: set[ReplicaKey] = attrs.field(factory=set)
    parked: dict[ReplicaKey, ParkedFetch] = attrs.field(factory=dict)
    parked_until_ms: int | None = None
    reads: PendingReads = attrs.field(factory=PendingReads)
    reading: dict[ReplicaKey, ReadFetch] = attrs.field(factory=dict)
    upgrade: VersionUpgrade = attrs.field(factory=VersionUpgrade)
    reading_snapshots: dict[int, WaitingSnapshotRead] = attrs.field(factory=dict)
    is_resignation_due: bool = False
    preferred_successor: ReplicaKey | None = None

    def check_room(self, limit: int) -> None:
        """Check that one more append may wait to be committed.

        Raises:
            BufferExhaustedError: so many as the limit wait already.
        """
        if len(self.pending) >= limit:
            raise BufferExhaustedError(f"{len(self.pending)} appends are not committed yet")

    def progress_of(self, voter: VoterNode) -> ReplicaProgress | None:
        """Return the progress of a voter; of a voter without a directory id, that of its last Fetch."""
        if voter.voter_key.directory_id is not None:
            return self.progress.get(voter.voter_key)
        key = self.static_keys.get(voter.voter_key.id)
        return None if key is None else self.progress.get(key)

    def take_progress(self, key: ReplicaKey, node: VoterNode | None) -> ReplicaProgress | None:
        """Return what was known of a replica that fetches now, and forget it.

        A voter without a directory id has one place, whatever directories come in its name.

        Args:
            key: of the replica.
            node: its entry in the voter set; None if it is an observer.
        """
        if node is not None and node.voter_key.directory_id is None:
            last = self.static_keys.get(key.id)
            if last is not None and last != key:
                self.progress.pop(last, None)
            self.static_keys[key.id] = key
        return self.progress.pop(key, None)
