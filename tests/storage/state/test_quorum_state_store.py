# SPDX-License-Identifier: Apache-2.0
"""A replica does not forget its vote."""

import itertools
import uuid
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import FencedEpochError, IllegalTransitionError, OutOfSpaceError, StorageError
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.files.quorum_state import UNKNOWN_ID, QuorumStateData, write_quorum_state
from raftlog.snapshot.paths import parse_snapshot_name
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.storage.state.quorum_state_store import (
    COPY_NAMES,
    RESERVE_NAME,
    QuorumStateOrigin,
    QuorumStateStore,
    load_quorum_state,
)
from raftlog.testing.crash_points import Promise, enumerate_crashes
from raftlog.testing.file_system.faults import Fault, Operation
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.golden_files import GOLDEN, golden_id
from tests.storage.state.stored_states import DIRECTORY_ID, FILES, LED, NEXT_EPOCH, UNDECIDED, VOTED, put, stored

states = st.one_of(
    st.builds(
        QuorumStateData,
        st.just(1),
        leader_id=st.integers(-1, 9),
        leader_epoch=st.integers(0, 2**31 - 1),
        voted_id=st.integers(-1, 9),
        voted_directory_id=st.none() | st.just(DIRECTORY_ID),
    ),
    st.builds(
        QuorumStateData,
        st.just(0),
        leader_id=st.integers(-1, 9),
        leader_epoch=st.integers(0, 2**31 - 1),
        voted_id=st.integers(-1, 9),
        current_voters=st.none() | st.lists(st.integers(0, 9), max_size=3).map(tuple),
    ),
)


@given(states)
def test_what_is_written_is_read(state: QuorumStateData) -> None:
    """Any state comes back as it was written, and Kafka's file is what Kafka would have written."""
    file_system = stored(state)
    found = load_quorum_state(file_system, ".", has_log=True)
    assert (found.origin, found.state, found.is_settled, found.problems) == (
        QuorumStateOrigin.COPIES,
        state,
        True,
        (),
    )
    assert file_system.contents()["quorum-state"] == write_quorum_state(state)
    assert sorted(file_system.contents()) == sorted((*FILES, RESERVE_NAME))


def test_a_new_replica_may_vote() -> None:
    """Without files and without a log there is nothing to remember, and no state is written."""
    file_system = MemoryFileSystem()
    store = QuorumStateStore.open(file_system, ".", has_log=False)
    assert (store.recovered.origin, store.state, store.recovered.may_vote) == (QuorumStateOrigin.FRESH, None, True)
    assert list(file_system.contents()) == [RESERVE_NAME]


def test_a_log_without_a_state_does_not_vote() -> None:
    """A log had a leader: a replica with a log but no election state does not vote."""
    store = QuorumStateStore.open(MemoryFileSystem(), ".", has_log=True)
    assert (store.recovered.origin, store.recovered.may_vote) == (QuorumStateOrigin.LOST, False)


def test_bad_files_alone_mean_a_lost_state() -> None:
    """Unreadable files show that there was a state, with a log or without; they are left as they are."""
    file_system = stored(VOTED)
    for name in FILES:
        put(file_system, name, b"{")
    before = file_system.contents()
    store = QuorumStateStore.open(file_system, ".", has_log=False)
    assert (store.recovered.origin, len(store.recovered.problems)) == (QuorumStateOrigin.LOST, 3)
    assert file_system.contents() == before


@pytest.mark.parametrize("spared", FILES)
@pytest.mark.parametrize("damage", [None, b"", b"no state"])
def test_one_sound_file_is_enough(spared: str, damage: bytes | None) -> None:
    """Whichever file is left has the vote; opening the store writes it to the others again."""
    file_system = stored(UNDECIDED, VOTED)
    whole = file_system.contents()
    for name in set(FILES) - {spared}:
        if damage is None:
            file_system.remove(name)
        else:
            put(file_system, name, damage)
    store = QuorumStateStore.open(file_system, ".", has_log=True)
    assert (store.state, store.recovered.is_settled) == (VOTED, False)
    assert len(store.recovered.problems) == (0 if damage is None else 2)
    assert load_quorum_state(file_system, ".", has_log=True).is_settled
    assert file_system.contents()["quorum-state"] == whole["quorum-state"]


@given(st.sampled_from(COPY_NAMES), st.data())
def test_a_flipped_bit_in_a_copy_is_found(name: str, data: st.DataObject) -> None:
    """No changed bit of a copy changes what is remembered."""
    file_system = stored(UNDECIDED, VOTED)
    changed = bytearray(file_system.contents()[name])
    changed[data.draw(st.integers(0, len(changed) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    put(file_system, name, bytes(changed))
    found = load_quorum_state(file_system, ".", has_log=True)
    assert (found.state, len(found.problems)) == (VOTED, 1)


@pytest.mark.parametrize("state", [VOTED, LED], ids=["voted", "led"])
def test_no_flipped_bit_in_kafkas_file_breaks_a_promise(state: QuorumStateData) -> None:
    """Beside sound copies, no changed bit of Kafka's file leads to another vote or leader of the epoch, or a lower one.

    A digit of the epoch may become a greater one. Whoever led before does not lead then.
    """
    file_system, later = stored(UNDECIDED, state), set[int]()
    whole = file_system.contents()["quorum-state"]
    for position, bit in itertools.product(range(len(whole)), range(8)):
        changed = bytearray(whole)
        changed[position] ^= 1 << bit
        put(file_system, "quorum-state", bytes(changed))
        found = load_quorum_state(file_system, ".", has_log=True, last_epoch=state.leader_epoch).state
        assert found is not None
        assert found == state or (found.leader_epoch > state.leader_epoch and found.leader_id == UNKNOWN_ID)
        later |= {found.leader_epoch} - {state.leader_epoch}
    assert later == ({7} if state is VOTED else {8})  # With one other bit, 5 is 1, 4 or 7.


@pytest.mark.parametrize("last_epoch", [7, 8, 9, 10])
def test_a_leader_is_believed_with_a_record_of_its_epoch(last_epoch: int) -> None:
    """Kafka's file names a leader of epoch 9; if the log ends before, the replica begins in epoch 10, undecided."""
    file_system = stored(attrs.evolve(VOTED, leader_epoch=7))
    kafkas = attrs.evolve(LED, leader_epoch=9, voted_id=2)
    put(file_system, "quorum-state", write_quorum_state(kafkas))
    found = load_quorum_state(file_system, ".", has_log=True, last_epoch=last_epoch)
    believed = kafkas if last_epoch >= 9 else attrs.evolve(UNDECIDED, leader_epoch=10)
    assert (found.state, found.may_vote) == (believed, last_epoch <= 9)


def test_a_leader_of_the_last_epoch_there_is() -> None:
    """No epoch is after it, so that the leader stays."""
    file_system = stored(VOTED)
    last = attrs.evolve(LED, leader_epoch=2**31 - 1)
    put(file_system, "quorum-state", write_quorum_state(last))
    assert load_quorum_state(file_system, ".", has_log=True).state == last
    put(file_system, "quorum-state", write_quorum_state(attrs.evolve(last, leader_epoch=2**31 - 2)))
    assert load_quorum_state(file_system, ".", has_log=True).state == attrs.evolve(UNDECIDED, leader_epoch=2**31 - 1)


@pytest.mark.parametrize(
    ("ours", "kafkas", "expected"),
    [
        (VOTED, NEXT_EPOCH, NEXT_EPOCH),
        (NEXT_EPOCH, VOTED, NEXT_EPOCH),
        (VOTED, UNDECIDED, VOTED),
        (VOTED, attrs.evolve(VOTED, voted_id=3), VOTED),
        (UNDECIDED, VOTED, VOTED),
        (UNDECIDED, LED, LED),
    ],
    ids=["later", "earlier", "less", "other", "vote", "leader"],
)
def test_kafka_in_our_directory(ours: QuorumStateData, kafkas: QuorumStateData, expected: QuorumStateData) -> None:
    """Later states by Kafka are accepted and reported; at one epoch our copies win, unless only Kafka has decided."""
    file_system = stored(ours)
    put(file_system, "quorum-state", write_quorum_state(kafkas))
    store = QuorumStateStore.open(file_system, ".", has_log=True)
    assert store.state == expected
    assert (store.recovered.origin is QuorumStateOrigin.KAFKA) == (expected == kafkas)
    settled = load_quorum_state(file_system, ".", has_log=True)
    assert (settled.state, settled.origin, settled.is_settled) == (expected, QuorumStateOrigin.COPIES, True)


def test_a_directory_of_kafkas() -> None:
    """The file of a real Kafka is taken without copies; with them beside it, it is written back byte for byte."""
    path = GOLDEN / "dynamic-quorum/data/n1/__cluster_metadata-0"
    found = load_quorum_state(LocalFileSystem(), str(path), has_log=True)
    assert (found.origin, found.may_vote, found.problems) == (QuorumStateOrigin.KAFKA, True, ())
    assert found.state is not None
    assert (found.state.leader_id, found.state.leader_epoch, found.state.voted_id) == (3, 4, 3)
    assert stored(found.state).contents()["quorum-state"] == (path / "quorum-state").read_bytes()


def test_a_negative_epoch_is_no_state() -> None:
    """No program writes an epoch below 0."""
    file_system = MemoryFileSystem()
    put(file_system, "quorum-state", write_quorum_state(QuorumStateData(1, leader_epoch=-1)))
    assert load_quorum_state(file_system, ".", has_log=False).origin is QuorumStateOrigin.LOST


@pytest.mark.parametrize("field", [b'"leaderId":', b'"votedId":'])
@pytest.mark.parametrize("rotten", [b"-0", b"-3", b"-9"])
def test_what_one_bit_makes_of_nobody_is_no_state(rotten: bytes, field: bytes) -> None:
    """A flipped bit makes another number of -1: no vote of the epoch that the copies are of, and no leader."""
    file_system = MemoryFileSystem()
    QuorumStateStore.open(file_system, ".", has_log=False).write(UNDECIDED)
    put(file_system, "quorum-state", write_quorum_state(UNDECIDED).replace(field + b"-1", field + rotten))
    found = load_quorum_state(file_system, ".", has_log=True)
    assert (found.origin, found.state, len(found.problems)) == (QuorumStateOrigin.COPIES, UNDECIDED, 1)


def test_epochs_do_not_fall() -> None:
    """A state of a lower epoch than the last is refused, whether that was read or written."""
    store = QuorumStateStore.open(stored(VOTED), ".", has_log=True)
    for state, refused in ((VOTED, attrs.evolve(VOTED, leader_epoch=4)), (NEXT_EPOCH, VOTED)):
        store.write(state)
        with pytest.raises(FencedEpochError):
            store.write(refused)
        assert store.state == state


@pytest.mark.parametrize("name", COPY_NAMES)
@pytest.mark.parametrize(("before", "after"), [(UNDECIDED, VOTED), (VOTED, LED)])
def test_a_write_that_the_disk_lost_is_found(before: QuorumStateData, after: QuorumStateData, name: str) -> None:
    """Of two sound copies of one epoch the later one counts, whichever it is."""
    file_system = stored(before)
    stale = file_system.contents()[name]
    QuorumStateStore.open(file_system, ".", has_log=True).write(after)
    put(file_system, name, stale)
    found = load_quorum_state(file_system, ".", has_log=True)
    assert (found.state, found.is_settled, found.problems) == (after, False, ())


@pytest.mark.parametrize("skip", range(3))
@pytest.mark.parametrize("operation", [Operation.WRITE, Operation.SYNC, Operation.RENAME, Operation.SYNC_DIRECTORY])
def test_a_failed_store_is_not_trusted(operation: Operation, skip: int) -> None:
    """After a failure the state is the old one, no later write is tried, and reopening finds the old or the new."""
    file_system = stored(UNDECIDED)
    store = QuorumStateStore.open(file_system, ".", has_log=True)
    file_system.faults.append(Fault(operation, skip=skip))
    for state in (VOTED, NEXT_EPOCH):
        with pytest.raises(StorageError):
            store.write(state)
    assert store.state == UNDECIDED
    assert QuorumStateStore.open(file_system, ".", has_log=True).state in (UNDECIDED, VOTED)


@pytest.mark.parametrize("skip", range(3))
def test_a_full_disk_can_get_room_again(skip: int) -> None:
    """Where only room was missing, the next write may go well, and its state counts."""
    file_system = stored(UNDECIDED)
    store = QuorumStateStore.open(file_system, ".", has_log=True)
    file_system.faults.append(Fault(Operation.WRITE, skip=skip, is_full=True, written_bytes=7, is_lasting=True))
    with pytest.raises(OutOfSpaceError):
        store.write(VOTED)
    file_system.faults.clear()
    store.write(LED)
    found = load_quorum_state(file_system, ".", has_log=True)
    assert (found.state, found.is_settled) == (LED, True)


@pytest.mark.parametrize("skip", range(3))
def test_a_full_disk_has_room_for_a_vote(skip: int) -> None:
    """A state that does not fit gets the room of the reserve, which is made again once there is room."""
    file_system = stored(UNDECIDED)
    store = QuorumStateStore.open(file_system, ".", has_log=True)
    assert file_system.exists(RESERVE_NAME)
    file_system.faults.append(Fault(Operation.WRITE, skip=skip, is_full=True, written_bytes=7))
    store.write(VOTED)
    found = load_quorum_state(file_system, ".", has_log=True)
    assert (found.state, found.is_settled) == (VOTED, True)
    assert file_system.exists(RESERVE_NAME)


@pytest.mark.parametrize("operation", [Operation.WRITE, Operation.CREATE, Operation.RENAME])
def test_without_room_for_a_reserve_there_is_none(operation: Operation) -> None:
    """A store opens and writes without one, and its errors are then those of the write."""
    file_system = stored(UNDECIDED)
    file_system.remove(RESERVE_NAME)
    file_system.faults.append(Fault(operation, path_end=f"{RESERVE_NAME}.tmp", is_full=True))
    store = QuorumStateStore.open(file_system, ".", has_log=True)
    assert not file_system.exists(RESERVE_NAME)
    file_system.faults.append(Fault(Operation.WRITE, is_full=True))
    with pytest.raises(OutOfSpaceError):
        store.write(VOTED)
    store.write(VOTED)
    assert store.state == VOTED


def test_startup_trusts_no_file_of_another_process() -> None:
    """Even if all three agree, they are written before the vote is reported; on a full disk it is not."""
    file_system = stored(VOTED)
    file_system = file_system.settled()
    QuorumStateStore.open(file_system, ".", has_log=True)
    renamed = [step.detail for step in file_system.steps if step.operation is Operation.RENAME]
    assert renamed == ["to ./raftlog-quorum-state-1", "to ./raftlog-quorum-state-2", "to ./quorum-state"]
    file_system.faults.append(Fault(Operation.WRITE, skip=1, is_full=True))
    assert QuorumStateStore.open(file_system, ".", has_log=True).state == VOTED  # With the reserve's room.
    file_system.faults.append(Fault(Operation.WRITE, is_full=True, is_lasting=True))
    with pytest.raises(OutOfSpaceError):
        QuorumStateStore.open(file_system, ".", has_log=True)
    file_system.faults.clear()
    assert QuorumStateStore.open(file_system, ".", has_log=True).state == VOTED


def test_every_crash_keeps_the_vote() -> None:
    """Through any power losses, the reported state is remembered, and the remembered state was written."""

    def scenario(file_system: MemoryFileSystem, promise: Promise) -> None:
        store = QuorumStateStore.open(file_system, ".", has_log=False)
        for state in (VOTED, NEXT_EPOCH):
            store.write(state)
            promise(state)

    def check(file_system: MemoryFileSystem, promised: QuorumStateData | None) -> None:
        store = QuorumStateStore.open(file_system, ".", has_log=False)
        assert store.recovered.may_vote
        assert store.recovered.problems == ()
        later = {None: (None, VOTED), VOTED: (VOTED, NEXT_EPOCH), NEXT_EPOCH: (NEXT_EPOCH,)}
        assert store.state in later[promised]
        if store.state is not None:
            assert load_quorum_state(file_system, ".", has_log=True).is_settled

    assert enumerate_crashes(scenario, check).is_complete


def test_recovered_records_stay() -> None:
    """Once a state was recovered, no second crash brings back another one."""
    start = stored(UNDECIDED)
    found: list[QuorumStateData | None] = []

    def scenario(file_system: MemoryFileSystem, promise: Promise) -> None:
        QuorumStateStore.open(file_system, ".", has_log=True).write(VOTED)

    def check(file_system: MemoryFileSystem, promised: object) -> None:
        state = QuorumStateStore.open(file_system, ".", has_log=True).state
        for after in file_system.crash_states():
            assert QuorumStateStore.open(after, ".", has_log=True).state == state
        found.append(state)

    enumerate_crashes(scenario, check, start=start)
    assert {UNDECIDED, VOTED} == set(found)


@pytest.mark.parametrize("path", sorted(GOLDEN.rglob("quorum-state")), ids=golden_id)
def test_kafkas_states_are_not_older_than_their_logs(path: Path) -> None:
    """A real Kafka has noted each epoch that its log or a snapshot is of: such a replica may vote."""
    pieces = [piece for file in path.parent.glob("*.log") for piece in split(BufferSource(file.read_bytes()))]
    epochs = [piece.partition_leader_epoch for piece in pieces if isinstance(piece, RecordBatch)]
    names = [parse_snapshot_name(file.name) for file in path.parent.glob("*.checkpoint")]
    last_epoch = max([0, *epochs, *(name.snapshot_id.epoch for name in names if name is not None)])
    found = load_quorum_state(LocalFileSystem(), str(path.parent), has_log=True, last_epoch=last_epoch)
    assert (found.origin, found.may_vote) == (QuorumStateOrigin.KAFKA, True)


VOTED_AND_LED = attrs.evolve(VOTED, leader_id=3)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (VOTED, attrs.evolve(VOTED, voted_id=3)),
        (VOTED, attrs.evolve(VOTED, voted_directory_id=uuid.UUID(int=1000))),
        (VOTED, UNDECIDED),
        (VOTED_AND_LED, attrs.evolve(VOTED_AND_LED, voted_id=3)),
        (LED, UNDECIDED),
        (LED, VOTED),
        (LED, attrs.evolve(LED, leader_id=4)),
    ],
    ids=["other", "other directory", "none", "other, led", "no leader", "vote for leader", "other leader"],
)
def test_decisions_of_an_epoch_are_kept(before: QuorumStateData, after: QuorumStateData) -> None:
    """Within an epoch there is one vote and one leader: another one, or none any more, is refused."""
    file_system = stored(before)
    store = QuorumStateStore.open(file_system, ".", has_log=True)
    whole = file_system.contents()
    with pytest.raises(IllegalTransitionError):
        store.write(after)
    assert (store.state, file_system.contents()) == (before, whole)
    store.write(attrs.evolve(after, leader_epoch=6))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (UNDECIDED, VOTED),
        (UNDECIDED, LED),
        (VOTED, VOTED),
        (VOTED, VOTED_AND_LED),
        (VOTED, LED),
        (LED, VOTED_AND_LED),
        (attrs.evolve(VOTED, voted_directory_id=None), VOTED),
        (VOTED, QuorumStateData(0, leader_epoch=5, voted_id=2)),
    ],
)
def test_an_epoch_continues(before: QuorumStateData, after: QuorumStateData) -> None:
    """A vote, a leader, and the directory id of the candidate may become known; a leader replaces a vote."""
    store = QuorumStateStore.open(stored(before), ".", has_log=True)
    store.write(after)
    assert store.state == after
