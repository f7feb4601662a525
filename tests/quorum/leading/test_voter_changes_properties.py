# SPDX-License-Identifier: Apache-2.0
"""Whatever voters a leader is asked for: at most one set is uncommitted, and majorities overlap from set to set."""

import itertools
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Leader
from raftlog.quorum.seam.effects import FlushLog
from raftlog.records.messages.raft.api_versions_messages import ApiVersionsRequest
from raftlog.records.messages.raft.raft_messages import RaftRequest
from raftlog.voters.voter_set import ReplicaKey, VoterSet
from tests.quorum.leading.leaders import SlowDisk
from tests.quorum.leading.voter_requests import EPOCH, ask, errors, fenced_leader, fetch_at_end
from tests.quorum.messages import (
    LOCAL,
    add_voter_request,
    api_versions_response,
    remove_voter_request,
    update_voter_request,
)
from tests.quorum.single_replica import replica_key

KEYS = [*map(replica_key, range(1, 6)), replica_key(3, 7)]
REQUESTS = st.one_of(
    st.builds(add_voter_request, st.sampled_from(KEYS), ack_when_committed=st.booleans()),
    st.builds(remove_voter_request, st.sampled_from(KEYS)),
    st.builds(update_voter_request, st.sampled_from(KEYS), st.just(EPOCH), port=st.integers(1, 3)),
    st.builds(update_voter_request, st.sampled_from(KEYS[:2]), st.just(EPOCH), port=st.integers(1, 3)),
)
BETWEEN = st.lists(
    st.one_of(st.sampled_from(["flush", "answer", "append", "expire"]), st.sampled_from(KEYS[1:])), max_size=3
)


def majorities(voters: VoterSet) -> Iterator[set[ReplicaKey]]:
    """Yield the smallest majorities of a voter set."""
    return (set(each) for each in itertools.combinations(voters.voter_keys, len(voters) // 2 + 1))


class Observed:
    """A leader, what its replicas are known to have flushed, and what is committed by that, counted here.

    Attributes:
        core: the leader.
        asked: how many requests it was sent.
        answered: how many it has answered.
    """

    def __init__(self, core: SlowDisk) -> None:
        self.core, self.asked, self.answered = core, 0, 0
        end = core.log.end_offset.offset
        self._ends = dict.fromkeys(core.machine.last_voter_set.voter_keys, end)
        self._committed, self._in_force = end, core.machine.last_voter_set

    def do(self, step: str | ReplicaKey) -> None:
        """Let something happen between two requests."""
        core = self.core
        if isinstance(step, ReplicaKey):
            self._ends[step] = core.log.end_offset.offset
            fetch_at_end(core, step)
        elif step == "flush":
            core.let_go()
        elif step == "append":
            core.append(b"a")
        elif step == "expire":
            core.sleep(2_000)
        else:
            for each in core.take_requests():
                if isinstance(each.message, ApiVersionsRequest):
                    core.respond(each.number, api_versions_response())
        self._check()

    def ask(self, request: RaftRequest) -> None:
        """Send a request to change voters."""
        self.asked += 1
        self.answered += len(ask(self.core, request))
        self._check()

    def _check(self) -> None:
        core = self.core
        self.answered += len(errors(core))
        assert core.raft.halt_reason is None
        assert self.answered <= self.asked
        in_force = core.machine.last_voter_set
        self._ends[LOCAL] = core.log.flushed_offset
        reached = self._reached_by_majority_of(in_force)
        if isinstance(core.raft.role, Leader):
            mark = core.raft.high_watermark
            assert mark is not None
            # One step may commit with the set before, and then write the next one.
            assert reached <= mark <= max(reached, self._reached_by_majority_of(self._in_force))
            self._committed = mark
        self._in_force = in_force
        sets = list(core.machine.voter_sets())
        assert sum(each.offset >= self._committed for each in sets) <= 1
        for one, other in itertools.pairwise(each.value for each in sets):
            assert all(left & right for left in majorities(one) for right in majorities(other))

    def _reached_by_majority_of(self, voters: VoterSet) -> int:
        """Return what a majority of voters has flushed, if that is above what is committed."""
        flushed = sorted((self._ends.get(each, -1) for each in voters.voter_keys), reverse=True)
        return max(self._committed, flushed[len(voters) // 2])


@given(
    st.sampled_from([(1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)]),
    st.booleans(),
    st.lists(st.tuples(REQUESTS, BETWEEN), min_size=4, max_size=8),
)
def test_at_most_one_voter_set_is_uncommitted(
    voter_ids: tuple[int, ...], is_slow: bool, steps: list[tuple[RaftRequest, list[str | ReplicaKey]]]
) -> None:
    """Requests, fetches, flushes, answers of new voters and time, in any order, with Kafka's check of new voters."""
    config = QuorumConfig(new_voter_stabilization_ms=0)
    core = fenced_leader(voter_ids, FlushLog if is_slow else None, config=config)
    core.sleep(1)
    seen = Observed(core)
    for each in KEYS:
        if each.id not in voter_ids:
            seen.do(each)
    core.append(b"a")
    core.sleep(25)  # With a slow disk, what is written from now on collects until the first flush.
    for request, between in steps:
        seen.ask(request)
        for step in between:
            if not isinstance(core.raft.role, Leader):
                break
            seen.do(step)
        if not isinstance(core.raft.role, Leader):
            break
    if not isinstance(core.raft.role, Leader):
        assert seen.answered == seen.asked
        return
    core.let_go()
    core.sleep(2_000)
    seen.do("flush")
    assert seen.answered == seen.asked
