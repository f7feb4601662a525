# SPDX-License-Identifier: Apache-2.0
"""A directory in files, crashed, ended and damaged: what was durable is there, or is said to be lost."""

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import attrs
import pytest

from raftlog.errors import DecodeError, OutOfSpaceError
from raftlog.log.retention import Retention
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.snapshot.paths import BOOTSTRAP_SNAPSHOT_ID
from raftlog.testing.contracts.made_batches import raft_batch
from raftlog.testing.file_system.faults import Fault, Operation, Step
from raftlog.testing.simulator.checks.committed_history import CommittedHistory
from raftlog.testing.simulator.checks.disk_witness import DiskWitness
from raftlog.testing.simulator.checks.replay import Replay, VotersAt
from raftlog.testing.simulator.choices import Choices, ReplayedChoices, SeededChoices, T
from raftlog.testing.simulator.disks.aiming import Aim
from raftlog.testing.simulator.disks.file_directory import CRASH_FAULTS, PATH, FileDirectory
from raftlog.testing.simulator.disks.moving_opens import MovingOpen
from raftlog.testing.simulator.simulation import LISTENER, replica_key, voter_node
from raftlog.testing.simulator.violation import ViolationError
from raftlog.voters.voter_set import VoterSet

CALM = ReplayedChoices({})
VOTED = QuorumStateData(1, leader_epoch=1, voted_id=2)


def yes() -> bool:
    """Damage is allowed."""
    return True


def no() -> bool:
    """No damage is allowed."""
    return False


class _LosingAll(ReplayedChoices):
    """Choices by which a crash loses all that it may."""

    def __init__(self) -> None:
        super().__init__({})

    def number(self, start: int, stop: int, kind: str, *of: int, calm: int | None = None) -> int:
        """Return the first, which is the oldest version of a file."""
        return start


class _Happening(ReplayedChoices):
    """Choices by which some kinds of faults always happen, up to so many times."""

    def __init__(self, *kinds: str, times: int = 3) -> None:
        super().__init__({})
        self._left = dict.fromkeys(kinds, times)

    def happens(self, probability: float, kind: str, *of: int) -> bool:
        """Whether it is one of them."""
        self._left[kind] = self._left.get(kind, 0) - 1
        return self._left[kind] >= 0

    def pick(self, options: Sequence[T], kind: str, *of: int) -> T:
        """Return what is aimed at: the last segment, any read, and of all else the last."""
        if kind == "aimed-place":
            return "last-segment"  # type: ignore[return-value]
        return options[0] if kind == "aimed-path" else options[-1]


def directory(
    kraft_version: int = 1, torn_crashes: float = 0.0, lies: float = 0.0, aim: Aim | None = None
) -> FileDirectory:
    """Return the empty directory of a quorum of one."""
    node = voter_node(replica_key(1))
    identity = ReplicaIdentity(key=node.voter_key, cluster_id="simulated", endpoints=node.listeners, listener=LISTENER)
    replay = Replay(VotersAt(-1, kraft_version, frozenset([node.voter_key])))
    witness = DiskWitness(CommittedHistory(replay.committed), replay)
    voters = VoterSet.of([node])
    counts: Counter[str] = Counter()
    return FileDirectory(witness, identity, voters, Retention(), kraft_version, counts, torn_crashes, lies, aim)


def filled(
    synced: int = 3, unsynced: int = 2, torn_crashes: float = 0.0, lies: float = 0.0, aim: Aim | None = None
) -> FileDirectory:
    """Return a directory with a vote and some batches of one record, the first of which are synced."""
    found = directory(torn_crashes=torn_crashes, lies=lies, aim=aim)
    found.election_state.prepare_write(VOTED).complete()
    for offset in range(synced + unsynced):
        found.log.append_as_follower(raft_batch(offset, 1), 1)
        if offset + 1 == synced:
            found.log.flush()
    return found


@pytest.mark.parametrize("kraft_version", [0, 1])
def test_a_new_directory_names_its_voters(kraft_version: int) -> None:
    """In a snapshot, or as static voters at kraft.version 0."""
    found = directory(kraft_version)
    assert found.log.latest_snapshot_id == (BOOTSTRAP_SNAPSHOT_ID if kraft_version else None)
    assert len(found.static_voters.voters) == 1 - kraft_version


def test_a_crash_loses_what_was_not_synced() -> None:
    """And neither the rest nor the vote."""
    found = filled()
    assert found.crash(_LosingAll(), (), no) == 2
    assert (found.log.end_offset.offset, found.ledger.end_offset, found.ledger.durable_end) == (3, 3, 3)
    assert found.election_state.state == VOTED
    assert not found.ledger.needs_others


def test_the_end_of_a_process_loses_nothing() -> None:
    """What is in the page cache is read by the next one, which makes it durable."""
    found = filled()
    found.exit(_LosingAll(), ())
    assert (found.log.end_offset.offset, found.ledger.durable_end) == (5, 5)
    assert found.crash(_LosingAll(), (), no) == 0


def test_work_under_way_is_not_done_done_or_cut() -> None:
    """Whatever it is, what was durable before is there; the kinds of faults of crashes are counted."""
    ends, counts = set(), Counter[str]()
    for seed in range(60):
        found = filled(torn_crashes=0.3, lies=0.3)
        job = found.log.prepare_flush()
        found.crash(SeededChoices(random.Random(seed)), [job.run], yes)
        assert found.ledger.end_offset == found.log.end_offset.offset
        assert found.log.end_offset.offset >= 3 or found.log.quarantine is not None
        ends.add(found.log.end_offset.offset)
        counts += found._counts
    assert ends >= {3, 4, 5}
    assert set(counts) == set(CRASH_FAULTS)


class _CutAt(ReplayedChoices):
    """Choices by which one crash of a kind comes after so many steps of the disk."""

    def __init__(self, kind: str, steps: int) -> None:
        super().__init__({})
        self._kind, self._steps = kind, steps

    def happens(self, probability: float, kind: str, *of: int) -> bool:
        """Happens once, if it is the crash."""
        is_it, self._kind = kind == self._kind, self._kind if kind != self._kind else ""
        return is_it

    def number(self, start: int, stop: int, kind: str, *of: int, calm: int | None = None) -> int:
        """Return the steps."""
        if kind not in ("work-steps", "recovery-steps"):
            return super().number(start, stop, kind, *of, calm=calm)
        assert start <= self._steps < stop
        return self._steps


def is_cut(kind: str, steps: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a flush, or an open after a crash, does not come to its end if the disk ends after so many steps."""
    right, struck = Fault.strikes, Counter[bool]()

    def strikes(self: Fault, step: Step) -> bool:
        is_struck = right(self, step)
        struck[is_struck] += 1
        return is_struck

    found = filled()
    with monkeypatch.context() as patched:
        patched.setattr(Fault, "strikes", strikes)
        found.crash(_CutAt(kind, steps), [found.log.prepare_flush().run], no)
    return struck[True] > 0


@pytest.mark.parametrize(("kind", "most"), [("work-cut", 11), ("recovery-crash", 99)])
def test_work_and_recovery_are_cut_at_every_step(kind: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first to the last one: the largest number of steps that may be drawn is more than there are."""
    cut = [is_cut(kind, steps, monkeypatch) for steps in range(1, most + 1)]
    assert cut[0]
    assert not cut[-1]
    assert cut == sorted(cut, reverse=True)
    with pytest.raises(AssertionError):
        is_cut(kind, most + 1, monkeypatch)


def test_a_share_of_the_opens_after_a_crash_is_cut() -> None:
    """15 in a hundred crash once more, and 15 in a hundred of these again: 0.15 / 0.85 of the crashes."""
    counts: Counter[str] = Counter()
    crashes = 150
    for seed in range(crashes):
        found = filled()
        found.crash(SeededChoices(random.Random(seed)), (), no)
        counts += found._counts
    assert 0.12 * crashes <= counts["recovery-crash"] <= 0.24 * crashes


@pytest.mark.parametrize("seed", range(5))
def test_a_lie_is_found_by_the_mark(seed: int) -> None:
    """The disk loses records that it had synced; the log is in quarantine, up to where they ended."""
    found = filled(synced=9, unsynced=0, lies=1.0)
    lost = found.crash(SeededChoices(random.Random(seed)), (), yes)
    assert 1 <= lost <= 9
    assert found.log.quarantine is not None
    assert (found.log.quarantine.first_bad_offset, found.ledger.quarantine_end) == (9 - lost, 9)
    assert found.was_damaged


def test_a_disk_that_may_not_be_damaged_is_not() -> None:
    """It neither lies nor tears."""
    found = filled(torn_crashes=1.0, lies=1.0)
    found.crash(SeededChoices(random.Random(0)), (), no)
    assert found.log.quarantine is None
    assert found._counts["torn-crash"] == found._counts["lying-sync"] == 0


def test_each_damage_is_found_or_changes_nothing() -> None:
    """In every file and of every kind: no open hides what is lost. The checks of the open are the test."""
    lost = 0
    for seed in range(150):
        found = filled(synced=5, unsynced=0)
        choices: Choices = SeededChoices(random.Random(seed))
        words = found.damage(choices)
        assert words is not None
        lost += found.ledger.needs_others
        assert not found.is_suspect
        assert found.log.end_offset.offset == 5 or found.log.quarantine is not None
        assert found.election_state.state == VOTED or not found.election_state.may_vote
    assert 30 <= lost <= 120


def test_a_full_disk_cannot_be_opened_for_a_while() -> None:
    """The reason is told, and nothing is damaged meanwhile; when there is room, all is there."""
    found = filled(unsynced=0)
    found.disk.plan_error("disk-full", CALM)
    with pytest.raises(OutOfSpaceError):
        found.log.append_as_follower(raft_batch(3, 1), 1)
    found.crash(CALM, (), no)
    reason = found.open()
    assert reason is not None
    assert reason.startswith(OutOfSpaceError.__name__)
    assert found.damage(CALM) is None
    assert found.is_suspect is False
    found.disk.free()
    assert found.open() is None
    assert (found.log.end_offset.offset, found.ledger.needs_others) == (3, False)


@pytest.mark.parametrize(
    ("change", "is_right"),
    [
        ({"start_offset": 0, "told": ()}, True),
        ({"start_offset": 2, "told": ()}, False),
        ({"start_offset": 2}, True),
        ({"start_offset": 2, "batches": ()}, False),
        ({"start_offset": 5, "batches": ()}, True),
    ],
)
def test_what_an_open_drops_of_a_damaged_disk(
    change: dict[str, Any], is_right: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later log start is told, and no snapshot replaces a log whose records after it are whole, and committed."""
    found = filled(synced=5, unsynced=0)
    monkeypatch.setattr(found.witness.history, "is_committed", lambda _: True)
    found.exit(CALM, ())
    state, batches = found.disk.files.state(), list(found.ledger.batches)
    found._found = attrs.evolve(found._found, **{"told": ("lost",), **change})
    if is_right:
        found._check_losses(state, 0, batches)
        return
    with pytest.raises(ViolationError, match="losses-are-told"):
        found._check_losses(state, 0, batches)


def test_a_restart_may_drop_records_without_a_beginning() -> None:
    """No leader could tell where the log agrees with its own."""
    found = filled(synced=5, unsynced=0)
    found.exit(CALM, ())
    batches = [found.ledger.batches[0]._replace(base_offset=7), *found.ledger.batches]
    found._found = attrs.evolve(found._found, start_offset=2, told=("lost",), batches=())
    found._check_losses(found.disk.files.state(), 0, batches)


def _aim(*kinds: str) -> tuple[Aim, Counter[str]]:
    counts: Counter[str] = Counter()
    return Aim(_Happening(*kinds), counts, 1, has_errors=True, has_misreads=True), counts


@pytest.mark.parametrize("skipped", range(9))
def test_what_a_failed_read_hides_is_there_again(skipped: int) -> None:
    """Whichever read of an open fails: the next open has all that was synced, and is in no quarantine."""
    aim, counts = _aim("aimed-read")
    aim._choices.number = lambda start, stop, *_, **__: min(skipped, stop - 1)  # type: ignore[method-assign]
    found = filled(aim=aim)
    found.crash(_LosingAll(), (), yes)
    assert found.open() is None
    assert (found.log.end_offset.offset, found.log.quarantine, found.ledger.needs_others) == (3, None, False)
    assert counts["aimed-read"] == 1


@pytest.mark.parametrize("is_lost", [False, True])
def test_what_a_failed_read_hides_for_good_is_a_violation(is_lost: bool) -> None:
    """A batch that was durable and is not found by the open after it, although its disk was not damaged."""
    found = filled(aim=_aim()[0])
    durable = found.ledger.batches[:3]
    found._reopen()
    if is_lost:
        found._found = attrs.evolve(found._found, batches=found._found.batches[1:])
        with pytest.raises(ViolationError, match="failed-reads-lose-nothing"):
            found._check_whole(durable)
    else:
        found._check_whole(durable)


def test_an_open_that_sets_files_aside_is_crashed_again_and_again() -> None:
    """After the loss of the last segment the log says what it lacks, wherever the opens were cut."""
    aim, counts = _aim("aimed-crash", "aimed-damage")
    found = filled(unsynced=0, aim=aim)
    assert found.damage(CALM) == "loses the name of 00000000000000000000.log"
    assert counts["aimed-damage"] == 1
    assert found.ledger.quarantine_end == 3
    assert found.log.quarantine is not None


def test_a_log_in_quarantine_loses_a_file_that_says_so() -> None:
    """It was opened before, and says it again by the other file."""
    aim, counts = _aim("aimed-damage", "aimed-again")
    found = filled(unsynced=0, aim=aim)
    words = "loses the name of 00000000000000000000.log, and loses the name of raftlog-recovery-point"
    assert found.damage(CALM) == words
    assert counts["aimed-damage"] == 2
    assert found.ledger.quarantine_end == 3
    assert found.log.quarantine is not None


@pytest.mark.parametrize("is_right", [True, False])
def test_an_open_that_is_cut_comes_to_the_same(is_right: bool) -> None:
    """What a crash may leave is opened on a copy; a state from which the log is another one is a violation."""
    found = filled(synced=5, unsynced=0)
    found.exit(CALM, ())
    state = found.disk.files.state()
    other = tuple(each for each in state if not each[0].endswith(".log"))
    step = Step(7, Operation.RENAME, PATH)
    moving = MovingOpen([7], {state if is_right else other: step})
    if is_right:
        found._check_cuts(state, moving)
        return
    with pytest.raises(ViolationError, match="cut-opens-end-alike"):
        found._check_cuts(state, moving)


def test_a_part_of_a_fetched_snapshot_is_spoiled() -> None:
    """The log does not take the snapshot; once the disk is healed, parts are what was sent."""
    aim, counts = _aim("aimed-part")
    found = directory(aim=aim)
    writer = found.log.create_snapshot_unchecked(OffsetAndEpoch(4, 1))
    assert writer is not None
    writer.append(b"no snapshot")
    assert counts["aimed-part"] == 1
    with pytest.raises(DecodeError):
        writer.prepare_freeze().complete()
    writer.close()
    found.disk.heal()
    writer = found.log.create_snapshot_unchecked(OffsetAndEpoch(4, 1))
    assert writer is not None
    writer.append(b"no snapshot")
    assert counts["aimed-part"] == 1
    writer.close()


def test_a_sound_directory_must_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """An open that fails although the disk has not is a violation."""
    found = filled()
    found.exit(CALM, ())

    def failing(*_: object) -> None:
        raise OutOfSpaceError(PATH, "open", "no space")

    monkeypatch.setattr("raftlog.testing.simulator.disks.file_directory.open_quorum_state", failing)
    with pytest.raises(ViolationError) as caught:
        found.exit(CALM, ())
    assert caught.value.invariant == "a-sound-directory-opens"
