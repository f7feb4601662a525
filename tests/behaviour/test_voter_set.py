# SPDX-License-Identifier: Apache-2.0
"""The clauses of Kafka's VoterSetTest, VoterSetHistoryTest and TreeMapLogHistoryTest."""

import attrs
import pytest

from raftlog.errors import NonContiguousAppendError, VoterNotFoundError
from raftlog.records.messages.voters import voter_set, voters_record
from raftlog.uuid_text import ZERO_UUID
from raftlog.voters.history import HistoryEntry, TreeMapLogHistory
from raftlog.voters.voter_set import Endpoints, HostPort, ReplicaKey, VoterSet
from raftlog.voters.voter_set_history import VoterSetHistory
from tests.log.control_batches import voters
from tests.quorum.single_replica import replica_key, voter_node, voter_set_of
from tests.raises import raised

THREE = voter_set_of(map(replica_key, (1, 2, 3)))
OTHER_DIRECTORY = replica_key(3, 30)


def test_empty_voter_set() -> None:
    """The empty set equals a set of no nodes."""
    assert VoterSet() == VoterSet.of(())
    assert len(VoterSet()) == 0


def test_voter_node() -> None:
    """An unknown id, or a listener that a voter lacks, has no address."""
    assert THREE.listeners(1).address("controller") == HostPort("localhost", 9991)
    assert THREE.listeners(1).address("OTHER") is None
    assert THREE.listeners(4).address("CONTROLLER") is None


def test_voter_nodes() -> None:
    """The addresses of several voters: an unknown id, or an unknown listener, is an error."""
    assert THREE.voter_nodes((2, 1), "CONTROLLER") == {
        2: HostPort("localhost", 9992),
        1: HostPort("localhost", 9991),
    }
    assert raised(lambda: THREE.voter_nodes((1, 4), "CONTROLLER")) is VoterNotFoundError
    assert raised(lambda: THREE.voter_nodes((1,), "OTHER")) is VoterNotFoundError


def test_voter_ids() -> None:
    """A set knows the ids of its voters."""
    assert THREE.voter_ids == {1, 2, 3}


def test_add_voter() -> None:
    """An id that is present is refused, whatever its directory id; a new one returns another set."""
    assert THREE.add_voter(voter_node(replica_key(3))) is None
    assert THREE.add_voter(voter_node(OTHER_DIRECTORY)) is None
    assert THREE.add_voter(voter_node(replica_key(4))) == voter_set_of(map(replica_key, (1, 2, 3, 4)))
    assert len(THREE) == 3


def test_remove_voter() -> None:
    """A removal needs the exact key."""
    assert THREE.remove_voter(OTHER_DIRECTORY) is None
    assert THREE.remove_voter(replica_key(4)) is None
    assert THREE.remove_voter(replica_key(3)) == voter_set_of(map(replica_key, (1, 2)))


def test_update_voter() -> None:
    """Only an existing key is updated. An entry that differs needs an update, an equal one does not."""
    moved = attrs.evolve(voter_node(replica_key(3)), listeners=Endpoints.of({"CONTROLLER": ("other", 1)}))
    assert THREE.update_voter(attrs.evolve(moved, voter_key=OTHER_DIRECTORY)) is None
    assert THREE.voter_node_needs_update(moved)
    updated = THREE.update_voter(moved)
    assert updated is not None
    assert updated.listeners(3).address("CONTROLLER") == HostPort("other", 1)
    assert not updated.voter_node_needs_update(moved)


def test_cannot_remove_to_empty_voter_set() -> None:
    """The last voter stays."""
    assert voter_set_of([replica_key(1)]).remove_voter(replica_key(1)) is None


def test_is_voter_with_directory_id() -> None:
    """If an entry has a directory id, id and directory id must both match."""
    assert THREE.is_voter(replica_key(3))
    assert not THREE.is_voter(OTHER_DIRECTORY)
    assert not THREE.is_voter(ReplicaKey(3))
    assert not THREE.is_voter(replica_key(4))


def test_is_voter_without_directory_id() -> None:
    """If an entry has no directory id, the id alone must match."""
    static = voter_set_of(map(ReplicaKey, (1, 2, 3)))
    assert all(static.is_voter(key) for key in (replica_key(3), OTHER_DIRECTORY, ReplicaKey(3, ZERO_UUID)))
    assert not static.is_voter(replica_key(4))


def test_voter_node_is_voter_with_directory_id() -> None:
    """One entry with a directory id matches both or none."""
    node = voter_node(replica_key(3))
    assert node.is_voter(replica_key(3))
    assert not node.is_voter(OTHER_DIRECTORY)
    assert not node.is_voter(ReplicaKey(3))


def test_voter_node_is_voter_without_directory_id() -> None:
    """One entry without a directory id matches its id."""
    node = voter_node(ReplicaKey(3))
    assert node.is_voter(OTHER_DIRECTORY)
    assert node.is_voter(ReplicaKey(3))
    assert not node.is_voter(ReplicaKey(4))


def test_endpoints() -> None:
    """A voter that is not in the set listens nowhere."""
    assert THREE.listeners(2) == Endpoints.of({"CONTROLLER": ("localhost", 9992)})
    assert THREE.listeners(4) == Endpoints()


@pytest.mark.parametrize("key", [replica_key(1, 10), ReplicaKey(1), replica_key(2)], ids=str)
def test_is_only_voter_in_standalone(key: ReplicaKey) -> None:
    """In a set of one, exactly that key is the only voter."""
    alone = voter_set_of([replica_key(1)])
    assert alone.is_only_voter(replica_key(1))
    assert not alone.is_only_voter(key)


def test_is_only_voter_in_not_standalone() -> None:
    """In a larger set no voter is the only one."""
    assert not any(THREE.is_only_voter(replica_key(each)) for each in (1, 2, 3, 4))


def test_record_round_trip() -> None:
    """A set becomes a VotersRecord, and the same set again."""
    assert voter_set(voters_record(THREE)) == THREE


def _majorities_overlap(before: VoterSet, after: VoterSet) -> bool:
    return before.has_overlapping_majority(after)


def test_overlapping_majority() -> None:
    """One voter more, or one fewer, overlaps. Kafka's guard also lets one of three be replaced, which does not."""
    four = voter_set_of(map(replica_key, (1, 2, 3, 4)))
    replaced = voter_set_of([replica_key(1), replica_key(2), OTHER_DIRECTORY])
    assert _majorities_overlap(THREE, four)
    assert _majorities_overlap(four, THREE)
    assert THREE.passes_kafka_change_guard(replaced)
    assert not _majorities_overlap(THREE, replaced)


@pytest.mark.parametrize(("before", "after"), [((1, 2, 3), (1, 2, 3, 4, 5)), ((1, 2, 3, 4, 5), (1, 2, 3))])
def test_nonoverlapping_majority(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    """Two voters more, or two fewer, or two of five replaced, are refused by Kafka's guard."""
    old, new = (voter_set_of(map(replica_key, each)) for each in (before, after))
    assert not old.passes_kafka_change_guard(new)
    five = voter_set_of(map(replica_key, (1, 2, 3, 4, 5)))
    assert not five.passes_kafka_change_guard(voter_set_of(map(replica_key, (1, 2, 3, 6, 7))))


# VoterSetHistoryTest


STATIC, FIRST, SECOND = voters(1, 2, 3), voters(4, 5, 6), voters(4, 5, 6, 7)


def test_static_voter_set() -> None:
    """The static set has no offset, and no truncation takes it away."""
    history = VoterSetHistory(STATIC)
    history.truncate_new_entries(0)
    history.truncate_old_entries(100)
    assert history.last_value() == STATIC
    assert history.last_entry() is None
    assert history.value_at_or_before(100) is None


def test_no_static_voter_set() -> None:
    """Without a static set the empty one is in force."""
    assert VoterSetHistory(VoterSet()).last_value() == VoterSet()


def test_voter_set_history_add_at() -> None:
    """An offset below -1 is refused. A set is found from its offset on."""
    history = VoterSetHistory(STATIC)
    assert raised(lambda: history.add(-2, FIRST)) is NonContiguousAppendError
    history.add(100, FIRST)
    history.add(200, SECOND)
    found = [history.value_at_or_before(offset) for offset in (99, 100, 199, 200, 201)]
    assert found == [None, FIRST, FIRST, SECOND, SECOND]
    assert history.last_voter_set_offset() == 200


def test_bootstrap_add_at() -> None:
    """Offset -1 is that of the bootstrap snapshot."""
    history = VoterSetHistory(STATIC)
    history.add(-1, FIRST)
    assert history.value_at_or_before(-1) == FIRST
    assert history.last_voter_set_offset() == -1


def test_add_at_non_overlapping() -> None:
    """A set without an overlapping majority is taken, because its quorum may have committed it, and reported.

    Kafka refused it until 3.9, and logs it since (DECISIONS.md, 39).
    """
    history = VoterSetHistory(STATIC)
    history.add(100, FIRST)
    history.add(200, voters(4, 8, 9))
    assert history.last_value() == voters(4, 8, 9)
    assert [each.offset for each in history.violations()] == [200]


def test_nonoverlapping_from_static_voter_set() -> None:
    """The first set is not compared with the static one, which has no directory ids."""
    history = VoterSetHistory(STATIC)
    history.add(100, FIRST)
    assert not history.violations()


def test_voter_set_history_truncate_to() -> None:
    """Entries at the end offset and after it go."""
    history = VoterSetHistory(STATIC)
    history.add(100, FIRST)
    history.add(200, SECOND)
    history.truncate_new_entries(201)
    assert history.last_value() == SECOND
    history.truncate_new_entries(200)
    assert history.last_value() == FIRST
    history.truncate_new_entries(100)
    assert history.last_value() == STATIC


def test_voter_set_history_trim_prefix_to() -> None:
    """The entry in force at the cut stays."""
    history = VoterSetHistory(STATIC)
    history.add(100, FIRST)
    history.add(200, SECOND)
    history.truncate_old_entries(199)
    assert history.value_at_or_before(199) == FIRST
    history.truncate_old_entries(200)
    assert list(history.entries()) == [HistoryEntry(200, SECOND)]


def test_voter_set_history_clear() -> None:
    """A cleared history goes back to the static set."""
    history = VoterSetHistory(STATIC)
    history.add(100, FIRST)
    history.clear()
    assert history.last_value() == STATIC
    assert list(history.entries()) == []


# TreeMapLogHistoryTest


def _history(*offsets: int) -> TreeMapLogHistory[str]:
    history: TreeMapLogHistory[str] = TreeMapLogHistory()
    for offset in offsets:
        history.add(offset, str(offset))
    return history


def test_empty() -> None:
    """An empty history has no value anywhere."""
    assert _history().value_at_or_before(100) is None
    assert _history().last_entry() is None


def test_tree_map_log_history_add_at() -> None:
    """Offsets increase strictly from -1 on."""
    assert raised(lambda: _history(-2)) is NonContiguousAppendError
    assert raised(lambda: _history(-1, -1)) is NonContiguousAppendError
    assert raised(lambda: _history(100, 99)) is NonContiguousAppendError
    assert _history(-1, 100).last_entry() == HistoryEntry(100, "100")


def test_tree_map_log_history_truncate_to() -> None:
    """Entries at the end offset and after it go."""
    history = _history(100, 200)
    history.truncate_new_entries(201)
    assert history.last_entry() == HistoryEntry(200, "200")
    history.truncate_new_entries(101)
    assert history.last_entry() == HistoryEntry(100, "100")


def test_tree_map_log_history_trim_prefix_to() -> None:
    """The entry in force at the cut stays."""
    history = _history(100, 200, 300)
    history.truncate_old_entries(250)
    assert [each.offset for each in history.entries()] == [200, 300]
    assert history.value_at_or_before(250) == "200"


def test_tree_map_log_history_clear() -> None:
    """A cleared history is empty."""
    history = _history(100)
    history.clear()
    assert history.last_entry() is None
