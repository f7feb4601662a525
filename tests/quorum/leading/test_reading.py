# SPDX-License-Identifier: Apache-2.0
"""Linearizable reads: when a leader may answer them, and what becomes of those that it may not answer."""

from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import NotLeaderError, QueueFullError, RaftLogError, UnsafeReadError
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.leading.reading import MAX_PENDING_READS
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.seam.effects import AppendAsLeader, ReadOutcome, ReadPolicy, SendRequest
from raftlog.records.messages.raft.election_messages import BeginQuorumEpochRequest
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.voters import voters_record
from raftlog.voters.voter_set import ReplicaKey
from tests.quorum.leading.leaders import ENDS, LOG_END, SlowDisk, fetch, leader_of
from tests.quorum.messages import begin_quorum_epoch_request, begin_quorum_epoch_response
from tests.quorum.single_replica import SingleReplica, replica_key, voter_set_of
from tests.quorum.three_replicas import ThreeReplicas

LINGER_MS = QuorumConfig().append_linger_ms
CONFIRMED = (ReadOutcome.CONFIRMED, LOG_END)
FAILED = (ReadOutcome.FAILED, 0)
TIMED_OUT = (ReadOutcome.TIMED_OUT, 0)


def announced(core: SingleReplica) -> dict[int, SendRequest]:
    """Return the announcements that were sent and not taken, by voter."""
    sent = [each for each in core.take_requests() if isinstance(each.message, BeginQuorumEpochRequest)]
    assert len({each.destination.id for each in sent}) == len(sent)
    return {each.destination.id: each for each in sent}


def committed_leader(voters: tuple[int, ...] = (1, 2, 3)) -> SlowDisk:
    """Return the leader of epoch 3, which has committed all of its log; no request is in flight."""
    core = leader_of(voters)
    for each in announced(core).values():
        core.respond(each.number, begin_quorum_epoch_response(3, 1))
    for voter in voters[1:]:
        fetch(core, replica_key(voter), ENDS[3])
    assert core.raft.high_watermark == LOG_END
    return core


def read(core: SingleReplica, timeout_ms: int | None = None) -> int:
    """Begin a read."""
    number = core.raft.read_barrier(timeout_ms=timeout_ms)
    core.settle()
    return number


def outcomes(core: SingleReplica) -> dict[int, tuple[ReadOutcome, int]]:
    """Return what became of the reads that have ended; each has ended once."""
    assert max(Counter(each.number for each in core.reads).values(), default=1) == 1
    return {each.number: (each.outcome, each.offset) for each in core.reads}


def confirm(core: SingleReplica, sent: SendRequest) -> None:
    """Let a voter answer an announcement."""
    core.respond(sent.number, begin_quorum_epoch_response(3, 1))


def change_voters(core: SingleReplica, keys: Iterable[ReplicaKey]) -> None:
    """Let the leader write another voter set, which is in force then, but not committed."""
    leadership = core.raft._replica.leadership
    assert leadership is not None
    assert leadership.batches is not None
    leadership.batches.append_control_records([voters_record(voter_set_of(keys))], 0)
    core.tick()


# Confirmation


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_a_read_is_confirmed_by_a_majority(size: int) -> None:
    """The leader is one of them, and each of the others is asked."""
    core = committed_leader(tuple(range(1, size + 1)))
    number = read(core)
    asked = announced(core)
    assert set(asked) == set(range(2, size + 1))
    for answered, voter in enumerate(range(2, size + 1), start=2):
        assert outcomes(core) == {}
        confirm(core, asked[voter])
        if answered > size // 2:
            break
    assert outcomes(core) == {number: CONFIRMED}


def test_the_only_voter_needs_no_answer() -> None:
    """It is a majority by itself."""
    core = committed_leader((1,))
    number = read(core)
    assert outcomes(core) == {number: CONFIRMED}


def test_an_announcement_that_was_sent_before_the_read_proves_nothing() -> None:
    """Its answer may be older than the read, so the voter is asked again."""
    core = leader_of((1, 2, 3))
    before = announced(core)
    fetch(core, replica_key(2), ENDS[3])
    number = read(core)
    assert announced(core) == {}
    confirm(core, before[2])
    assert outcomes(core) == {}
    confirm(core, announced(core)[2])
    assert outcomes(core) == {number: CONFIRMED}


def test_a_fetch_that_arrives_after_the_read_proves_nothing() -> None:
    """It may have been sent before, and have been under way for any time."""
    core = committed_leader()
    read(core)
    for voter in (2, 3, 2):
        fetch(core, replica_key(voter), ENDS[3])
        fetch(core, replica_key(voter), ENDS[1])
    assert outcomes(core) == {}


def test_a_fetch_past_a_record_that_was_appended_after_the_read_confirms_it() -> None:
    """The voter can have that record only from this leader, after the read. One before it does not."""
    core = committed_leader()
    core.append(b"before")
    core.sleep(LINGER_MS)
    number = read(core)
    core.append(b"after")
    core.sleep(LINGER_MS)
    fetch(core, replica_key(2), OffsetAndEpoch(LOG_END + 1, 3))
    assert outcomes(core) == {}
    fetch(core, replica_key(3), OffsetAndEpoch(LOG_END + 2, 3))
    assert outcomes(core) == {number: CONFIRMED}


def test_records_that_are_being_written_when_the_read_arrives_prove_nothing() -> None:
    """A driver may serve them before it has reported that they are in the log."""
    core = committed_leader()
    core.slow = AppendAsLeader
    core.append(b"handed to the log")
    core.sleep(LINGER_MS)
    number = read(core)
    core.let_go()
    fetch(core, replica_key(2), OffsetAndEpoch(LOG_END + 1, 3))
    assert outcomes(core) == {}
    confirm(core, announced(core)[2])
    assert outcomes(core) == {number: CONFIRMED}


def test_a_read_waits_until_a_record_of_the_epoch_is_committed() -> None:
    """Before, the leader may not know all that earlier ones have committed. Answers from before do not count."""
    core = leader_of((1, 2, 3))
    number = read(core)
    asked = announced(core)
    confirm(core, asked[2])
    confirm(core, asked[3])
    assert announced(core) == {}
    fetch(core, replica_key(2), ENDS[3])
    assert outcomes(core) == {}
    confirm(core, announced(core)[3])
    assert outcomes(core) == {number: CONFIRMED}


def test_reads_share_a_round() -> None:
    """Those that arrive while voters are being asked wait for the next one."""
    core = committed_leader()
    first = read(core)
    asked = announced(core)
    second, third = read(core), read(core)
    assert announced(core) == {}
    confirm(core, asked[2])
    assert outcomes(core) == {first: CONFIRMED}
    asked |= announced(core)
    assert set(asked) == {2, 3}
    confirm(core, asked[3])
    assert outcomes(core) == {first: CONFIRMED}
    confirm(core, asked[2])
    assert outcomes(core) == dict.fromkeys((first, second, third), CONFIRMED)


def test_a_lost_announcement_is_sent_again() -> None:
    """After the pause that follows a failed request."""
    core = committed_leader()
    number = read(core)
    lost = announced(core)[2]
    core.raft.request_failed(lost.number)
    core.settle()
    assert announced(core) == {}
    core.sleep(20)
    confirm(core, announced(core)[2])
    assert outcomes(core) == {number: CONFIRMED}


@pytest.mark.parametrize(
    ("epoch", "leader", "error"),
    [(3, 1, ErrorCode.INVALID_VOTER_KEY), (3, -1, 0), (3, 2, 0), (2, 1, 0), (2, 2, ErrorCode.FENCED_LEADER_EPOCH)],
)
def test_an_answer_that_is_no_confirmation(epoch: int, leader: int, error: int) -> None:
    """From another directory, of another leader, or of an old epoch."""
    core = committed_leader()
    read(core)
    core.respond(announced(core)[2].number, begin_quorum_epoch_response(epoch, leader, error))
    assert outcomes(core) == {}


def test_replicas_that_are_no_voters_confirm_nothing() -> None:
    """Neither an observer nor one with a voter's id and another directory."""
    core = committed_leader()
    read(core)
    core.append(b"after")
    core.sleep(LINGER_MS)
    for key in (replica_key(4), replica_key(2, 9), replica_key(3, 9)):
        fetch(core, key, OffsetAndEpoch(LOG_END + 1, 3))
    assert outcomes(core) == {}


@pytest.mark.parametrize(
    ("voters", "changed", "needed"),
    [((1, 2, 3), (1, 2, 3, 4), 2), ((1, 2, 3, 4), (1, 2, 3), 1), ((1, 2, 3), (2, 3), 2), ((1, 2), (1,), 0)],
)
def test_the_voters_in_force_confirm(voters: tuple[int, ...], changed: tuple[int, ...], needed: int) -> None:
    """A set counts from its record on, committed or not; a leader that is not in it does not count itself."""
    core = committed_leader(voters)
    number = read(core)
    asked = announced(core)
    change_voters(core, map(replica_key, changed))
    for voter in range(2, 2 + needed):
        assert outcomes(core) == {}
        confirm(core, asked[voter])
    assert outcomes(core) == {number: CONFIRMED}


def test_what_a_voter_confirmed_with_another_directory_does_not_count() -> None:
    """A voter that was replaced by one with the same id is another voter."""
    core = committed_leader((1, 2))
    read(core)
    asked = announced(core)
    core.append(b"after")
    core.sleep(LINGER_MS)
    change_voters(core, (replica_key(1), replica_key(2, 9)))
    confirm(core, asked[2])
    fetch(core, replica_key(2), OffsetAndEpoch(LOG_END + 1, 3))
    assert outcomes(core) == {}
    fetch(core, replica_key(2, 9), OffsetAndEpoch(LOG_END + 1, 3))
    assert list(outcomes(core).values()) == [CONFIRMED]


# Other ends


@pytest.mark.parametrize("timeout_ms", [None, 0, 700])
def test_a_read_ends_when_its_time_is_over(timeout_ms: int | None) -> None:
    """An answer after that changes nothing."""
    core = committed_leader()
    number = read(core, timeout_ms)
    limit = QuorumConfig().request_timeout_ms if timeout_ms is None else timeout_ms
    late = announced(core)
    if limit:
        core.sleep(limit - 1)
        assert outcomes(core) == {}
        assert core.raft.deadline_ms == core.now_ms + 1
        core.sleep(1)
    assert outcomes(core) == {number: TIMED_OUT}
    for sent in late.values():
        confirm(core, sent)
    assert outcomes(core) == {number: TIMED_OUT}


def test_a_read_fails_with_the_leadership() -> None:
    """The next leader can answer it."""
    core = committed_leader()
    number = read(core)
    core.request("", begin_quorum_epoch_request(2, 4), version=1)
    assert outcomes(core) == {number: FAILED}
    with pytest.raises(NotLeaderError, match="Follower in epoch 4"):
        core.raft.read_barrier()


def test_a_read_fails_when_the_replica_halts() -> None:
    """It must not wait for ever."""
    core = committed_leader()
    number = read(core)
    core.raft.effect_failed(1, "input/output error")
    core.settle()
    assert outcomes(core) == {number: FAILED}
    with pytest.raises(NotLeaderError):
        core.raft.read_barrier()


def test_the_number_of_reads_is_bounded() -> None:
    """The last that fits waits; one more is refused, until one has ended."""
    core = committed_leader()
    first = core.raft.read_barrier(timeout_ms=10)
    for _ in range(MAX_PENDING_READS - 1):
        core.raft.read_barrier()
    with pytest.raises(QueueFullError, match="1000 reads"):
        core.raft.read_barrier()
    core.sleep(10)
    assert outcomes(core) == {first: TIMED_OUT}
    core.raft.read_barrier()
    with pytest.raises(QueueFullError):
        core.raft.read_barrier()
    confirm(core, announced(core)[2])
    confirm(core, announced(core)[2])
    assert Counter(outcomes(core).values()) == {TIMED_OUT: 1, CONFIRMED: MAX_PENDING_READS}


@pytest.mark.parametrize(
    ("policy", "timeout_ms", "error"), [(ReadPolicy.LEASE, 1, UnsafeReadError), (ReadPolicy.MAJORITY, -1, ValueError)]
)
def test_a_read_that_is_refused_changes_nothing(
    policy: ReadPolicy, timeout_ms: int, error: type[RaftLogError | ValueError]
) -> None:
    """No message of Kafka's tells whether a voter waits for the end of a lease."""
    core = committed_leader((1,))
    with pytest.raises(error):
        core.raft.read_barrier(policy, timeout_ms=timeout_ms)
    core.settle()
    assert core.reads == []


# Against a model


@given(st.lists(st.tuples(st.sampled_from(("read", "answer", "append", "fetch")), st.integers(2, 4)), max_size=30))
def test_a_read_ends_exactly_when_a_majority_has_confirmed_it(steps: list[tuple[str, int]]) -> None:
    """The model numbers the events, and knows for each voter when what it proves was sent."""
    voters = (1, 2, 3, 4)
    core = committed_leader(voters)
    asked: dict[int, tuple[SendRequest, int]] = {}
    begun: dict[int, int] = {}
    proven = dict.fromkeys(voters[1:], -1)
    appended: list[int] = []
    for now, (step, voter) in enumerate(steps):
        match step:
            case "read":
                begun[read(core)] = now
            case "answer" if voter in asked:
                sent, at = asked.pop(voter)
                proven[voter] = max(proven[voter], at)
                confirm(core, sent)
            case "append":
                core.append(b"a")
                core.sleep(LINGER_MS)
                appended.append(now)
            case "fetch" if appended:
                proven[voter] = max(proven[voter], appended[-1])
                fetch(core, replica_key(voter), OffsetAndEpoch(LOG_END + len(appended), 3))
        asked |= {each: (sent, now) for each, sent in announced(core).items()}
        for number, at in begun.items():
            is_confirmed = sum(each >= at for each in proven.values()) >= len(voters) // 2
            assert (number in outcomes(core)) == is_confirmed


def test_no_read_misses_what_was_acknowledged_before_it() -> None:
    """Three replicas over a hostile network, whose voters change: deposed leaders confirm no outdated read."""
    counts = Counter[str]()
    for seed in range(160):
        replicas = ThreeReplicas(seed)
        replicas.run(1000)
        counts += replicas.counts
    assert counts["confirmed"] > 3000
    assert counts["acknowledged"] > 1000
    assert counts["deposed"] > 100
    assert counts["changes"] > 150
