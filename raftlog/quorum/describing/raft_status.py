# SPDX-License-Identifier: Apache-2.0
"""The status of one replica, for the process that it runs in: a value that does not change with the replica.

Unlike the answer to a DescribeQuorum, it does not need a leader, and tells committed voters from uncommitted ones.
"""

import attrs

from raftlog.offsets import MAX_EPOCH, OffsetAndEpoch
from raftlog.quorum.describing.queues import QueueStatus, queues_of
from raftlog.quorum.leadership import Leadership
from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.roles.roles import Role
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import ReplicaKey, VoterSet


@attrs.frozen
class VotersStatus:
    """A voter set, and where it comes from.

    Attributes:
        voters: the set.
        offset: of its VotersRecord; -1 if a bootstrap snapshot has it, None for the configured, static set.
    """

    voters: VoterSet
    offset: int | None


@attrs.frozen(kw_only=True)
class FetcherStatus:
    """What a leader knows of another replica.

    Attributes:
        key: of the replica.
        is_voter: whether it is a voter, according to the set in force at the log end.
        end_offset: exclusive: it has flushed the leader's log up to there. None before its first valid Fetch.
        lag: how many offsets it is away from the leader's log end; None before its first valid Fetch.
        fetched_wall_ms: time of day of its last valid Fetch, in ms since the Unix epoch, or None.
        caught_up_wall_ms: when it last had all of the leader's log, in ms since the Unix epoch; None if it never had.
    """

    key: ReplicaKey
    is_voter: bool
    end_offset: int | None = None
    lag: int | None = None
    fetched_wall_ms: int | None = None
    caught_up_wall_ms: int | None = None


@attrs.frozen(kw_only=True)
class RaftStatus:
    """One replica at one moment.

    Attributes:
        role: with what belongs to it, such as deadlines and votes.
        epoch: the latest one known.
        leader_id: of the leader of that epoch, which may be this replica, or None.
        high_watermark: the end, exclusive, of what is known to be committed; None while a leader has committed nothing.
        committed_offset: the highest high watermark that was known, exclusive: what must never be truncated.
        log_start_offset: inclusive.
        log_end: exclusive, with the epoch of the last record or snapshot.
        flushed_offset: the end, exclusive, of the durable records.
        committed_voters: the last set that no leader can undo.
        uncommitted_voters: the set in force at the log end, if it is not committed yet; otherwise None.
        kraft_version: in force at the log end, committed or not; or the level of an upgrade that is being written.
        is_voter: whether this replica is a voter, according to the set in force at the log end.
        has_been_voter: whether this replica is known to have been a voter, under this directory id. Keep it, and give
            it back as ``StartingPoint.has_been_voter``: a replica that was removed does not join again by itself.
        may_vote: False if this replica may have forgotten a vote: it neither votes nor stands for election.
        is_quarantined: whether the log has lost records that may have been acknowledged: it neither votes nor stands.
        is_out_of_epochs: whether the epoch is the highest one, 2**31 - 1: this replica stands for no election any more.
        halt_reason: why the replica has stopped for good, or None.
        log_refusal: why the log has refused records, which are tried again after a pause; None if it takes them.
        is_disk_full: whether it has refused them for want of room: this replica fetches seldom, and leads no epoch.
        snapshot_refusal: why the last snapshot that was fetched was refused, so that it is fetched again, or None.
        fetchers: if it leads, the other replicas by id: all voters, and the observers that have fetched.
        queues: what waits in this replica, each with its limit.
    """

    role: Role
    epoch: int
    leader_id: int | None
    high_watermark: int | None
    committed_offset: int
    log_start_offset: int
    log_end: OffsetAndEpoch
    flushed_offset: int
    committed_voters: VotersStatus
    uncommitted_voters: VotersStatus | None
    kraft_version: KRaftVersion
    is_voter: bool
    has_been_voter: bool
    may_vote: bool
    is_quarantined: bool
    is_out_of_epochs: bool
    halt_reason: str | None
    log_refusal: str | None
    is_disk_full: bool
    snapshot_refusal: str | None
    fetchers: tuple[FetcherStatus, ...]
    queues: tuple[QueueStatus, ...]


def raft_status(replica: LocalReplica) -> RaftStatus:
    """Return the status of a replica as it is now."""
    leadership, log = replica.leadership, replica.log
    return RaftStatus(
        role=replica.role,
        epoch=replica.epoch,
        leader_id=replica.leader_id,
        high_watermark=replica.high_watermark,
        committed_offset=replica.committed_offset,
        log_start_offset=log.state.start_offset,
        log_end=log.end,
        flushed_offset=log.flushed_offset,
        committed_voters=_committed_voters(replica),
        uncommitted_voters=_uncommitted_voters(replica),
        kraft_version=replica.kraft_version,
        is_voter=replica.is_voter,
        has_been_voter=replica.has_been_voter,
        may_vote=replica.may_vote,
        is_quarantined=log.is_quarantined,
        is_out_of_epochs=replica.epoch >= MAX_EPOCH,
        halt_reason=replica.halt_reason,
        log_refusal=replica.refusals.reason,
        is_disk_full=replica.refusals.is_full,
        snapshot_refusal=replica.snapshots.refusal_reason,
        fetchers=() if leadership is None else _fetchers(replica, leadership),
        queues=queues_of(replica),
    )


def _committed_voters(replica: LocalReplica) -> VotersStatus:
    known = replica.log.control_records
    committed = [each for each in known.voter_sets if each.offset < replica.committed_offset]
    if not committed:
        return VotersStatus(known.static_voters, None)
    return VotersStatus(committed[-1].value, committed[-1].offset)


def _uncommitted_voters(replica: LocalReplica) -> VotersStatus | None:
    sets = replica.log.control_records.voter_sets
    if not sets or sets[-1].offset < replica.committed_offset:
        return None
    return VotersStatus(sets[-1].value, sets[-1].offset)


def _fetchers(replica: LocalReplica, leadership: Leadership) -> tuple[FetcherStatus, ...]:
    """Return the voters other than this replica, and the observers that have fetched."""
    own, voters = replica.identity.key, replica.voters
    states = {node.voter_key: FetcherStatus(key=node.voter_key, is_voter=True) for node in voters.voters.values()}
    end = replica.log.state.end_offset
    for key, known in leadership.progress.items():
        is_voter = voters.is_voter(key)
        entry = voters.voters[key.id].voter_key if is_voter else key
        states[entry] = FetcherStatus(
            key=key,
            is_voter=is_voter,
            end_offset=known.end_offset,
            lag=end - known.end_offset,
            fetched_wall_ms=known.fetched_wall_ms,
            caught_up_wall_ms=None if known.caught_up_wall_ms < 0 else known.caught_up_wall_ms,
        )
    return tuple(states[each] for each in sorted(states, key=lambda key: key.order) if each.id != own.id)
