# SPDX-License-Identifier: Apache-2.0
"""Aimed faults strike where they are aimed, and only there."""

import random
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import OutOfSpaceError, StorageError
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.storage.recovery.recovery_point import FLUSH_MARK_NAME, RECOVERY_POINT_NAME
from raftlog.testing.contracts.made_batches import raft_batch
from raftlog.testing.file_system.crash_states import DiskState
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from raftlog.testing.simulator.checks.ledger import Ledger, NamedVoters
from raftlog.testing.simulator.choices import ReplayedChoices, SeededChoices, T
from raftlog.testing.simulator.disks.aiming import Aim
from raftlog.testing.simulator.disks.moving_opens import MovingOpen
from raftlog.testing.simulator.disks.simulated_disk import SimulatedDisk
from tests.quorum.single_replica import replica_key

SEGMENTS = ("log-0/00000000000000000000.log", "log-0/00000000000000000007.log")
SNAPSHOTS = ("log-0/00000000000000000005-0000000001.checkpoint", "log-0/00000000000000000006-0000000001.checkpoint")
POINT, MARK, STATE = (f"log-0/{each}" for each in (RECOVERY_POINT_NAME, FLUSH_MARK_NAME, "quorum-state"))


class Always(ReplayedChoices):
    """Everything happens that may, and of options the last one is taken whose text is wanted, or else the first."""

    def __init__(self, *wanted: str) -> None:
        super().__init__({})
        self._wanted = wanted

    def happens(self, probability: float, kind: str, *of: int) -> bool:
        """It does."""
        return True

    def pick(self, options: Sequence[T], kind: str, *of: int) -> T:
        """Return what is wanted."""
        return next((each for each in reversed(options) if str(each).endswith(self._wanted)), options[0])


def aim(
    choices: ReplayedChoices | SeededChoices, counts: Counter[str] | None = None, *, has_faults: bool = True
) -> Aim:
    """Return the aim at the disk of replica 1."""
    return Aim(choices, Counter() if counts is None else counts, 1, has_errors=has_faults, has_misreads=has_faults)


def disk_of(*, batches: int = 3) -> DiskState:
    """Return a directory with two segments of batches, two snapshots, and the small files."""
    segment = b"".join(bytes(raft_batch(offset, 1)) for offset in range(batches))
    files = dict.fromkeys(SEGMENTS, segment) | dict.fromkeys(SNAPSHOTS, b"state")
    files |= {POINT: b"end 470\n", MARK: bytes(40), STATE: b'{"leaderEpoch":12}'}
    return (("log-0", None, False), *((path, data, False) for path, data in sorted(files.items())))


def ledger_of(*, start_offset: int = 0, is_voter: bool = True, is_quarantined: bool = False) -> Ledger:
    """Return what is known of a directory."""
    voters = NamedVoters(-1, frozenset([replica_key(1 if is_voter else 2)]))
    return Ledger(replica_key(1), voter_sets=[voters], start_offset=start_offset, quarantine_end=int(is_quarantined))


def changed(before: DiskState, after: DiskState) -> dict[str, bytes | None]:
    """Return the files that differ, with their new bytes; None for one that is gone."""
    now = {path: data for path, data, _ in after}
    return {path: now.get(path) for path, data, _ in before if now.get(path) != data}


@given(st.integers(0, 500))
def test_a_number_becomes_another_number(seed: int) -> None:
    """One bit of one file is another one, and the text is of digits where it was."""
    state = disk_of()

    class Numbers(SeededChoices):
        def pick(self, options: Sequence[T], kind: str, *of: int) -> T:
            return options[0] if kind == "aimed-place" else super().pick(options, kind, *of)

        def happens(self, probability: float, kind: str, *of: int) -> bool:
            return True

    damaged = aim(Numbers(random.Random(seed))).damage(state, ledger_of())
    assert damaged is not None
    ((path, now),) = changed(state, damaged.state).items()
    before = dict(each[:2] for each in state)[path]
    assert path in {POINT, STATE}
    assert now is not None
    assert before is not None
    assert sum((one ^ other).bit_count() for one, other in zip(before, now, strict=True)) == 1
    assert [bytes([each]).isdigit() for each in now] == [bytes([each]).isdigit() for each in before]
    assert damaged.kind == "bit-rot"


def test_an_epoch_rots_and_its_batch_is_sound_by_its_crc() -> None:
    """No CRC covers the epoch: it is another one, and nothing else of the segment is."""
    state = disk_of()
    damaged = aim(Always("epoch")).damage(state, ledger_of())
    assert damaged is not None
    ((path, now),) = changed(state, damaged.state).items()
    assert path in SEGMENTS
    assert now is not None
    batch = RecordBatch(memoryview(now), 0, crc_is_checked=False)
    assert batch.partition_leader_epoch != 1
    assert batch.crc == RecordBatch(memoryview(bytes(raft_batch(0, 1))), 0, crc_is_checked=False).crc


def test_epochs_before_the_log_start_stay() -> None:
    """Nothing witnesses them: the first that may rot is that of the batch at the start."""
    state, starts = disk_of(batches=3), range(5)
    places: list[set[int]] = []
    for start_offset in starts:
        one = aim(Always("epoch"))
        damaged = one.damage(state, ledger_of(start_offset=start_offset))
        data = b"" if damaged is None else next(iter(changed(state, damaged.state).values())) or b""
        before = next(each[1] for each in state if each[0] == SEGMENTS[0]) or b""
        places.append({at for at, (old, new) in enumerate(zip(before, data, strict=False)) if old != new})
    size_bytes = len(raft_batch(0, 1))
    assert places == [{15}, {size_bytes + 15}, {2 * size_bytes + 15}, set(), set()]


def test_the_election_state_of_others_than_voters_stays() -> None:
    """Their recovery point is damaged instead."""
    state = disk_of()
    for is_voter, path in ((True, STATE), (False, POINT)):
        damaged = aim(Always("number", "quorum-state")).damage(state, ledger_of(is_voter=is_voter))
        assert damaged is not None
        assert list(changed(state, damaged.state)) == [path]


@pytest.mark.parametrize(
    ("place", "path", "kind"),
    [("last-segment", SEGMENTS[1], "lost-file"), ("first-snapshot", SNAPSHOTS[0], "lost-file")],
)
def test_what_is_lost_is_the_file_that_is_named(place: str, path: str, kind: str) -> None:
    """The last segment, or the first of two snapshots; it is counted."""
    state, counts = disk_of(), Counter[str]()
    damaged = aim(Always(place), counts).damage(state, ledger_of())
    assert damaged is not None
    assert (changed(state, damaged.state), damaged.kind) == ({path: None}, kind)
    assert counts == {"aimed-damage": 1}


def test_the_first_batch_follows_the_first_snapshot() -> None:
    """The first segment of a log whose first snapshot is gone is damaged, too, unless it is in quarantine; once."""
    state = disk_of()
    for is_quarantined in (False, True):
        one = aim(Always("first-snapshot"))
        assert one.damage(state, ledger_of()) is not None
        damaged = one.damage_again(state, ledger_of(is_quarantined=is_quarantined))
        assert (damaged is None) == is_quarantined
        if damaged is not None:
            assert (list(changed(state, damaged.state)), damaged.kind) == ([SEGMENTS[0]], "lost-sectors")
        assert one.damage_again(state, ledger_of(is_quarantined=is_quarantined)) is None


def test_a_single_snapshot_is_not_lost() -> None:
    """Without another one nothing could stand for what it has."""
    state = tuple(each for each in disk_of() if each[0] != SNAPSHOTS[0])
    assert aim(Always("first-snapshot")).damage(state, ledger_of()) is None


def test_in_quarantine_one_of_two_files_is_lost() -> None:
    """Once, and only after the last segment was lost: after other damage both files may be needed."""
    state = disk_of()
    for place, is_quarantined, is_hit in (
        ("last-segment", True, True),
        ("last-segment", False, False),
        ("epoch", True, False),
    ):
        one = aim(Always(place))
        assert one.damage(state, ledger_of()) is not None
        damaged = one.damage_again(state, ledger_of(is_quarantined=is_quarantined))
        assert (damaged is not None) == is_hit
        if damaged is not None:
            assert list(changed(state, damaged.state)) in ([POINT], [MARK])
            assert list(changed(state, damaged.state).values()) == [None]
        assert one.damage_again(state, ledger_of(is_quarantined=is_quarantined)) is None


def test_an_open_is_cut_at_one_of_its_changes() -> None:
    """It is counted; which one is chosen."""
    counts = Counter[str]()
    assert aim(Always("7"), counts).steps_of_open(MovingOpen([3, 7, 9], {})) == 7
    assert counts == {"aimed-crash": 1}
    assert aim(ReplayedChoices({}), counts).steps_of_open(MovingOpen([3, 7, 9], {})) is None


@pytest.mark.parametrize("begun", [None, OffsetAndEpoch(7, 3)])
def test_work_finds_no_room_once(begun: OffsetAndEpoch | None) -> None:
    """The next write to a segment fails, and the one after it does not; not on a healed disk, or one without errors."""
    disk, counts = SimulatedDisk(1, Counter()), Counter[str]()
    disk.files.make_directory("log-0")
    file = disk.files.open(SEGMENTS[0], create=True)
    aim(Always(".log"), counts, has_faults=False).begin_work(disk, begun=begun)
    file.append(b"1")
    aim(Always(".log"), counts).begin_work(disk, begun=begun)
    with pytest.raises(OutOfSpaceError):
        file.append(b"2")
    assert disk.has_failed
    assert not disk.has_erred
    file.append(b"3")
    disk.heal()
    aim(Always(".log"), counts).begin_work(disk, begun=begun)
    file.append(b"4")
    assert counts == {"aimed-full": 1}


def test_the_first_batch_of_an_epoch_is_written_to_a_segment() -> None:
    """A sync of the segment before, as it is rolled, finds room, and so does another file."""
    disk = SimulatedDisk(1, Counter())
    disk.files.make_directory("log-0")
    aim(Always()).begin_work(disk, begun=OffsetAndEpoch(7, 3))
    disk.files.open(POINT, create=True).append(b"end 7")
    file = disk.files.open(SEGMENTS[0], create=True)
    file.sync()
    with pytest.raises(OutOfSpaceError):
        file.append(b"1")


@pytest.mark.parametrize("has_rival", [False, True])
def test_a_leader_with_a_rival_ends_as_its_first_record_is_refused(*, has_rival: bool) -> None:
    """Not before, and not if its epoch has no rival; such a record is refused far more often."""
    asked, ended, shares = list[OffsetAndEpoch](), list[str](), list[float]()
    begun = OffsetAndEpoch(7, 3)

    class Shares(Always):
        def happens(self, probability: float, kind: str, *of: int) -> bool:
            shares.append(probability)
            return True

    def deposal(each: OffsetAndEpoch) -> Callable[[], object] | None:
        asked.append(each)
        return (lambda: ended.append("ended")) if has_rival else None

    disk = SimulatedDisk(1, Counter())
    disk.files.make_directory("log-0")
    file = disk.files.open(SEGMENTS[0], create=True)
    Aim(Shares(), Counter(), 1, has_errors=True, has_misreads=True, deposal=deposal).begin_work(disk, begun=begun)
    assert (asked, ended) == ([begun], [])
    assert (shares[0] > 0.5) == has_rival
    with pytest.raises(OutOfSpaceError):
        file.append(b"1")
    assert ended == ["ended"] * has_rival


def test_a_part_of_a_snapshot_has_another_bit() -> None:
    """One; a part without bytes has none, nor one where nothing is misread."""
    counts = Counter[str]()
    part = memoryview(b"state")
    (byte, *rest), other = aim(Always(), counts).spoil(part), aim(Always(), counts, has_faults=False).spoil(part)
    assert (bytes([byte]), bytes(rest), bytes(other)) == (b"r", b"tate", b"state")
    assert bytes(aim(Always(), counts).spoil(b"")) == b""
    assert counts == {"aimed-part": 1}


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        (SNAPSHOTS[1], ".checkpoint"),
        (SEGMENTS[1], ".log"),
        (POINT, "recovery-point"),
        (MARK, "flush-mark"),
        (STATE, "none of these"),
    ],
)
def test_a_read_fails_and_is_repeated_in_vain(path: str, wanted: str) -> None:
    """That of the last file of a kind that an open reads; the third one succeeds, and a healed disk fails no more."""

    class Wanting(Always):
        def pick(self, options: Sequence[T], kind: str, *of: int) -> T:
            if kind == "aimed-kind":
                return next((each for each in options if str(each).endswith(wanted)), options[-1])
            return options[0]

    disk, counts, reads = SimulatedDisk(1, Counter()), Counter[str](), [POINT, MARK, *SNAPSHOTS, *SEGMENTS, STATE]
    disk.files = MemoryFileSystem(disk_of())
    assert aim(Wanting(), counts).fail_open(disk, lambda: reads)
    for other in reads:
        file = disk.files.open_for_reads(other)
        for _ in range(2 * (other == path)):
            with pytest.raises(StorageError):
                file.read_at(0, 1)
        file.read_at(0, 1)
    disk.heal()
    assert not aim(Wanting(), counts).fail_open(disk, lambda: reads)
    assert not aim(Wanting(), counts, has_faults=False).fail_open(disk, lambda: reads)
    assert counts == {"aimed-read": 1}


@given(st.integers(0, 200))
def test_any_read_of_an_open_may_fail(seed: int) -> None:
    """A file that it reads thrice fails at one of these reads, and no later one is skipped."""
    disk, reads = SimulatedDisk(1, Counter()), [SEGMENTS[1]] * 3
    disk.files = MemoryFileSystem(disk_of())

    class Reading(SeededChoices):
        def happens(self, probability: float, kind: str, *of: int) -> bool:
            return True

    assert aim(Reading(random.Random(seed))).fail_open(disk, lambda: reads)
    file, failed = disk.files.open_for_reads(SEGMENTS[1]), list[int]()
    for number in range(5):
        try:
            file.read_at(0, 1)
        except StorageError:
            failed.append(number)
    assert failed in ([0, 1], [1, 2], [2, 3])
