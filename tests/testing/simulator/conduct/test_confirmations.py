# SPDX-License-Identifier: Apache-2.0
"""Which messages confirm a read, compared with counting them all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.testing.simulator.checks.ledger import NamedVoters
from raftlog.testing.simulator.conduct.confirmations import Confirmations, Sending
from raftlog.testing.simulator.violation import ViolationError
from raftlog.voters.voter_set import ReplicaKey
from tests.quorum.single_replica import replica_key
from tests.testing.simulator.checks.quorum_disks import QuorumDisks

EPOCH, BEGAN = 3, 10


def confirms(heard: list[tuple[ReplicaKey, int, int]], *sets: set[ReplicaKey], level: int = 1) -> bool:
    """Return whether a read of replica 1 that began in event 10 of epoch 3 is confirmed by what it has heard."""
    ledger = QuorumDisks(1).ledgers[1]
    ledger.voter_sets = [NamedVoters(offset, frozenset(each)) for offset, each in enumerate(sets)]
    ledger.levels = [(-1, level)]
    found = Confirmations(ledger)
    for key, epoch, event in heard:
        found.heard(Sending(key, event), epoch)
    try:
        found.check_read(EPOCH, BEGAN)
    except ViolationError:
        return False
    return True


keys = st.builds(replica_key, st.integers(1, 5))
messages = st.tuples(keys, st.integers(EPOCH - 1, EPOCH), st.integers(BEGAN - 2, BEGAN + 2))


@given(st.lists(messages, max_size=8), st.sets(keys, min_size=1))
def test_a_majority_confirms(heard: list[tuple[ReplicaKey, int, int]], voters: set[ReplicaKey]) -> None:
    """Each voter once, by any message of the epoch that it has sent since; the leader too, if it is one."""
    said = {key for key, epoch, event in heard if epoch == EPOCH and event >= BEGAN} | {replica_key(1)}
    assert confirms(heard, voters) == (2 * len(said & voters) > len(voters))


@pytest.mark.parametrize(
    ("epoch", "event", "is_right"),
    [(EPOCH, BEGAN, True), (EPOCH, BEGAN - 1, False), (EPOCH - 1, BEGAN, False), (EPOCH + 1, BEGAN, False)],
)
def test_the_epoch_and_the_time_count(epoch: int, event: int, is_right: bool) -> None:
    """The event of the beginning is early enough, and a message of another epoch says nothing."""
    voters = set(map(replica_key, (1, 2, 3)))
    assert confirms([(replica_key(2), epoch, event)], voters) == is_right


def test_a_message_that_comes_late_takes_nothing_back() -> None:
    """What was sent last counts, in whatever order it comes."""
    two, voters = replica_key(2), set(map(replica_key, (1, 2, 3)))
    assert confirms([(two, EPOCH, BEGAN), (two, EPOCH, BEGAN - 5)], voters)


@pytest.mark.parametrize("level", [0, 1])
def test_directories_count_by_kraft_version(level: int) -> None:
    """Static voters are known by their ids, others with their directories."""
    voters = {replica_key(1), ReplicaKey(2, None), replica_key(3)}
    assert confirms([(replica_key(2), EPOCH, BEGAN)], voters, level=level) == (level == 0)


def test_a_set_that_was_just_written_may_be_unknown() -> None:
    """The set before it will do, and the one before that will not."""
    first, second, third = {replica_key(1)}, set(map(replica_key, (1, 2, 3))), set(map(replica_key, (1, 2, 3, 4)))
    heard = [(replica_key(2), EPOCH, BEGAN)]
    assert confirms(heard, first, second, third)
    assert not confirms([], first, second, third)
    assert confirms([], first, second)
