# SPDX-License-Identifier: Apache-2.0
"""Decides whether a replica may become a voter, and whether the voters after a change could go on committing.

A voter that lags, or that is out of touch, counts in the majority and does not help to reach it: until it has all
records, nothing may be committed.

Source: LeaderState#isReplicaCaughtUp. Differs: DECISIONS.md 57.
"""

from typing import Final

from raftlog.quorum.leadership import Leadership, ReplicaProgress
from raftlog.quorum.replica import LocalReplica
from raftlog.voters.voter_set import ReplicaKey, VoterSet

_HOUR_MS: Final = 3_600_000


def steady_since_ms(replica: LocalReplica, before: ReplicaProgress | None, caught_up_ms: int) -> int:
    """Return since when a replica that fetches now has been in touch and has not lagged; -1 if it lags now.

    Args:
        replica: this replica, the leader.
        before: the progress up to the Fetch before this one, or None.
        caught_up_ms: when the replica last had all of the leader's log, or -1.
    """
    now_ms, bound_ms = replica.now_ms, replica.config.new_voter_max_lag_ms
    if caught_up_ms < 0 or now_ms - caught_up_ms > bound_ms:
        return -1
    if before is None or before.steady_since_ms < 0 or now_ms - before.fetched_ms > bound_ms:
        return now_ms
    return before.steady_since_ms


def is_caught_up(replica: LocalReplica, leadership: Leadership, key: ReplicaKey) -> bool:
    """Whether a replica may become a voter.

    It must have fetched lately, and must not have lagged for some time. It also must have the last VotersRecord: one
    that knows only older voters could stand for election among them (KAFKA-19933).
    """
    known, config, now_ms = leadership.progress.get(key), replica.config, replica.now_ms
    if known is None:
        return False
    if config.new_voter_stabilization_ms == 0:
        return known.caught_up_wall_ms > 0 and now_ms - known.fetched_ms < _HOUR_MS
    voters_offset = replica.log.control_records.last_voter_set_offset
    return (
        known.steady_since_ms >= 0
        and now_ms - known.fetched_ms <= config.new_voter_max_lag_ms
        and now_ms - known.steady_since_ms >= config.new_voter_stabilization_ms
        and (voters_offset is None or known.end_offset > voters_offset)
    )


def is_majority_in_touch(replica: LocalReplica, leadership: Leadership, voters: VoterSet) -> bool:
    """Whether a majority of voters, which may include this leader, has fetched within the timeout of check quorum."""
    if replica.config.new_voter_stabilization_ms == 0:
        return True
    others = _others_in_touch(replica, leadership, voters)
    return others + voters.is_voter(replica.identity.key) >= voters.majority_size


def can_elect_without(replica: LocalReplica, leadership: Leadership) -> bool:
    """Whether the other voters of the set in force, as far as they are in touch, can elect a leader by themselves.

    They must be able to, if this leader removes itself: it votes for none of them once it alone has the record that
    says so, as its log is longer then, and it does not stand, as it is no voter any more. Of two voters, the other one
    cannot.
    """
    if replica.config.new_voter_stabilization_ms == 0:
        return True
    return _others_in_touch(replica, leadership, replica.voters) >= replica.voters.majority_size


def _others_in_touch(replica: LocalReplica, leadership: Leadership, voters: VoterSet) -> int:
    """Return how many voters other than this leader have fetched within the timeout of check quorum."""
    in_touch, timeout_ms = 0, replica.config.check_quorum_timeout_ms
    for node in voters.voters.values():
        known = leadership.progress_of(node)
        is_recent = known is not None and replica.now_ms - known.fetched_ms <= timeout_ms
        in_touch += is_recent and not node.is_voter(replica.identity.key)
    return in_touch
