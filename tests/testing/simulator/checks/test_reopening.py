# SPDX-License-Identifier: Apache-2.0
"""What an open says is compared with what the disk was given: each loss that is not told is a violation."""

from collections.abc import Sequence

import attrs
import pytest

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.testing.simulator.checks.ledger import NamedVoters, StoredBatch
from raftlog.testing.simulator.checks.reopening import FoundLog, check_log, check_state
from raftlog.testing.simulator.violation import ViolationError
from tests.quorum.messages import records_at
from tests.testing.simulator.checks.quorum_disks import QuorumDisks

VOTED = QuorumStateData(1, leader_epoch=3, voted_id=2)
LATER = QuorumStateData(1, leader_epoch=4, voted_id=3)


def disks(count: int = 6, durable: int = 4) -> QuorumDisks:
    """Return the disk of one replica with some batches, the first of which are durable."""
    found = QuorumDisks(1)
    found.append([1], 1, durable)
    found.sync(1)
    found.append([1], 1, count - durable)
    return found


def batches(count: int, first: int = 0, epoch: int = 1) -> list[RecordBatch]:
    """Return batches of one record."""
    return [RecordBatch(records_at(offset, epoch, 1)) for offset in range(first, first + count)]


def log_with(found: Sequence[RecordBatch], start: int = 0, quarantine_end: int = 0) -> FoundLog:
    """Return a log that was opened."""
    end = found[-1].next_offset if found else start
    return FoundLog(
        start_offset=start,
        batches=found,
        end_offset=end,
        high_watermark=start,
        quarantine_end=quarantine_end,
        snapshots={},
    )


def open_with(found: FoundLog, truncating_to: int | None = None, *, is_damaged: bool = True) -> tuple[int, QuorumDisks]:
    """Open a log of six batches, four of them durable; return how many it has lost, and the disks then."""
    known = disks()
    ledger = known.ledgers[1]
    ledger.voter_sets[0] = NamedVoters(-1, frozenset())  # No snapshot names any.
    return check_log(known.witness, ledger, found, truncating_to, is_damaged=is_damaged), known


@pytest.mark.parametrize("count", [4, 5, 6])
def test_what_was_not_synced_may_be_lost(count: int) -> None:
    """The rest is the log then, and all of it is durable."""
    lost, known = open_with(log_with(batches(count)), is_damaged=False)
    ledger = known.ledgers[1]
    assert (lost, ledger.end_offset, ledger.durable_end, ledger.is_quarantined) == (6 - count, count, count, False)


def test_what_an_append_has_not_reported_may_be_there() -> None:
    """A write that failed may have written whole batches."""
    lost, known = open_with(log_with(batches(8)), is_damaged=False)
    assert (lost, known.ledgers[1].end_offset) == (0, 8)
    assert known.ledgers[1].batches == [StoredBatch.of(each) for each in batches(8)]


@pytest.mark.parametrize(
    ("count", "is_damaged", "quarantine_end", "invariant"),
    [
        (3, False, 0, "durable-records-are-kept"),
        (3, False, 4, "durable-records-are-kept"),
        (3, True, 0, "disk-damage-is-found"),
        (3, True, 3, "disk-damage-is-found"),
        (3, True, 4, None),
        (0, True, 4, None),
    ],
)
def test_what_was_durable(count: int, is_damaged: bool, quarantine_end: int, invariant: str | None) -> None:
    """It is lost by damage only, and the log must say so."""
    found = log_with(batches(count), quarantine_end=quarantine_end)
    if invariant is None:
        lost, known = open_with(found, is_damaged=is_damaged)
        ledger = known.ledgers[1]
        assert (lost, ledger.end_offset, ledger.quarantine_end, ledger.needs_others) == (6 - count, count, 4, True)
        assert known.witness.counts["quarantines"] == 1
        return
    with pytest.raises(ViolationError) as caught:
        open_with(found, is_damaged=is_damaged)
    assert caught.value.invariant == invariant


@pytest.mark.parametrize(
    ("quarantine_end", "snapshot_end", "is_true"),
    [(5, 0, True), (6, 0, True), (7, 0, False), (8, 8, True), (9, 8, False)],
)
def test_a_quarantine_is_for_records_that_there_were(quarantine_end: int, snapshot_end: int, is_true: bool) -> None:
    """A number that rotted must not make the log wait for records that it never had: it had six, or a snapshot.

    An open that was cut short may have put the snapshot in the place of the log, and the next one cannot read it.
    """
    found = log_with(batches(3), quarantine_end=quarantine_end)
    known = disks()
    known.ledgers[1].snapshots = (OffsetAndEpoch(snapshot_end, 1),)
    if is_true:
        check_log(known.witness, known.ledgers[1], found, None, is_damaged=True)
        assert known.ledgers[1].quarantine_end == quarantine_end
        return
    with pytest.raises(ViolationError, match="losses-are-true"):
        check_log(known.witness, known.ledgers[1], found, None, is_damaged=True)


@pytest.mark.parametrize(("truncating_to", "is_right"), [(2, True), (3, True), (4, False), (None, False)])
def test_a_truncation_under_way_may_be_done(truncating_to: int | None, is_right: bool) -> None:
    """Down to where it would have cut the log, and no further."""
    found = log_with(batches(3))
    if is_right:
        assert open_with(found, truncating_to, is_damaged=False)[0] == 3
    else:
        with pytest.raises(ViolationError):
            open_with(found, truncating_to, is_damaged=False)


def test_damage_while_a_truncation_is_under_way() -> None:
    """Up to where it would have cut the log, the log must be whole again, and no further."""
    lost, known = open_with(log_with(batches(1), quarantine_end=3), 3)
    assert (lost, known.ledgers[1].quarantine_end) == (5, 3)


@pytest.mark.parametrize("is_damaged", [True, False])
def test_other_records_than_were_written(is_damaged: bool) -> None:
    """No damage excuses a batch that the disk was not given: its CRC cannot match."""
    found = [*batches(2), *batches(2, 2, epoch=2)]
    with pytest.raises(ViolationError) as caught:
        open_with(log_with(found), is_damaged=is_damaged)
    assert caught.value.invariant == "disk-damage-is-found"


@pytest.mark.parametrize("is_damaged", [True, False])
def test_the_first_voters_are_named_by_a_snapshot(is_damaged: bool) -> None:
    """Only damage takes it away; the replica knows no voters then, and needs the others."""
    known = disks()
    ledger = known.ledgers[1]
    if not is_damaged:
        with pytest.raises(ViolationError) as caught:
            check_log(known.witness, ledger, log_with(batches(6)), None, is_damaged=False)
        assert caught.value.invariant == "voter-history"
        return
    check_log(known.witness, ledger, log_with(batches(6)), None, is_damaged=True)
    assert ledger.voter_sets == [NamedVoters(-1, frozenset())]
    assert ledger.needs_others


@pytest.mark.parametrize("is_damaged", [True, False])
def test_a_snapshot_that_covers_the_log_start_is_lost(is_damaged: bool) -> None:
    """That is a violation without damage; with it, the replica is not started."""
    known = disks()
    ledger = known.ledgers[1]
    known.sync(1)
    known.lead(1, 1)
    known.sync(1)
    ledger.snapshots, ledger.high_watermark = (OffsetAndEpoch(2, 1),), 2
    known.witness.started_at(ledger, 2)
    found = attrs.evolve(log_with(batches(4, 2), start=2), high_watermark=2)
    if is_damaged:
        check_log(known.witness, ledger, found, None, is_damaged=True)
        assert not ledger.snapshots
        return
    with pytest.raises(ViolationError) as caught:
        check_log(known.witness, ledger, found, None, is_damaged=False)
    assert caught.value.invariant == "snapshots-are-kept"


@pytest.mark.parametrize("is_damaged", [False, True])
@pytest.mark.parametrize(
    ("state", "requested", "may_vote", "is_right"),
    [
        (VOTED, None, True, True),
        (VOTED, LATER, True, True),
        (LATER, LATER, True, True),
        (LATER, None, True, None),
        (attrs.evolve(LATER, leader_id=2), None, True, False),
        (None, None, True, False),
        (None, LATER, False, True),
        (QuorumStateData(1, leader_epoch=2), None, True, False),
        (QuorumStateData(1, leader_epoch=2), None, False, True),
    ],
)
def test_an_election_state(
    state: QuorumStateData | None,
    requested: QuorumStateData | None,
    may_vote: bool,
    is_right: bool | None,
    is_damaged: bool,
) -> None:
    """It is the last one, or the one that was being written; with another one, the replica must not vote.

    But damage of Kafka's file may have made an epoch a later one, of which no leader is named.
    """
    known = disks()
    ledger = known.ledgers[1]
    ledger.state = VOTED
    if is_damaged if is_right is None else is_right:
        check_state(known.witness, ledger, state, requested, may_vote=may_vote, is_damaged=is_damaged)
        assert ledger.state == state
        is_invented = state not in (VOTED, requested) and state is not None and may_vote
        assert known.witness.invented_epoch == (state.leader_epoch if is_invented and state else 0)
        return
    with pytest.raises(ViolationError) as caught:
        check_state(known.witness, ledger, state, requested, may_vote=may_vote, is_damaged=is_damaged)
    assert caught.value.invariant == "votes-are-kept"


def test_records_after_a_lost_start_are_back() -> None:
    """A snapshot that was fetched stands for the lost ones: the log starts where the sound ones do."""
    known = disks()
    ledger = known.ledgers[1]
    known.lead(1, 1)
    known.sync(1)
    snapshots = {OffsetAndEpoch(4, 1): b""}
    ledger.cut(0)
    ledger.snapshots = tuple(snapshots)
    found = attrs.evolve(log_with(batches(3, 3), start=3), high_watermark=4, snapshots=snapshots)
    assert check_log(known.witness, ledger, found, None, is_damaged=False) == 0
    assert (ledger.start_offset, ledger.end_offset, len(ledger.batches)) == (3, 6, 3)


@pytest.mark.parametrize(
    ("end_offset", "quarantine_end", "is_damaged", "is_right"),
    [(6, 0, False, True), (5, 0, False, False), (5, 8, False, True), (5, 0, True, True)],
)
def test_no_snapshot_is_ahead_of_the_log(
    end_offset: int, quarantine_end: int, *, is_damaged: bool, is_right: bool
) -> None:
    """An open restarts the log there, unless it is damaged."""
    known = disks()
    ledger = known.ledgers[1]
    known.lead(1, 1)
    known.sync(1)
    ledger.cut(end_offset)
    ledger.furthest_end = 8
    snapshots = {OffsetAndEpoch(6, 1): b""}
    ledger.snapshots = tuple(snapshots)
    found = attrs.evolve(log_with(batches(end_offset), quarantine_end=quarantine_end), snapshots=snapshots)
    found = attrs.evolve(found, high_watermark=end_offset)
    if is_right:
        assert check_log(known.witness, ledger, found, None, is_damaged=is_damaged) == 0
    else:
        with pytest.raises(ViolationError, match="starts-finish-restarts"):
            check_log(known.witness, ledger, found, None, is_damaged=is_damaged)


def with_snapshot(offset: int, high_watermark: int, start: int = 0) -> tuple[QuorumDisks, FoundLog]:
    """Return six committed batches, a snapshot at an offset, and the log as an open finds it."""
    known = disks()
    known.lead(1, 1)
    known.sync(1)
    snapshots = {OffsetAndEpoch(offset, 1): b""}
    known.ledgers[1].snapshots = tuple(snapshots)
    found = attrs.evolve(log_with(batches(6 - start, start), start=start), snapshots=snapshots)
    return known, attrs.evolve(found, high_watermark=high_watermark)


@pytest.mark.parametrize(("high_watermark", "is_right"), [(0, False), (3, False), (4, True), (5, True), (6, True)])
def test_a_snapshot_proves_what_is_committed(high_watermark: int, is_right: bool) -> None:
    """The high watermark of a log that was opened is not below the end of a snapshot of this log."""
    known, found = with_snapshot(4, high_watermark)
    if is_right:
        assert check_log(known.witness, known.ledgers[1], found, None, is_damaged=False) == 0
    else:
        with pytest.raises(ViolationError, match="high-watermark-is-proven"):
            check_log(known.witness, known.ledgers[1], found, None, is_damaged=False)


def test_a_snapshot_of_another_epoch_proves_nothing() -> None:
    """The log may have parted from it before."""
    known, found = with_snapshot(4, 0)
    snapshots = {OffsetAndEpoch(4, 2): b""}
    known.ledgers[1].snapshots = tuple(snapshots)
    found = attrs.evolve(found, snapshots=snapshots)
    assert check_log(known.witness, known.ledgers[1], found, None, is_damaged=False) == 0


def test_what_a_snapshot_proves_must_be_committed() -> None:
    """A high watermark above records that are not committed is a violation."""
    known = disks()
    found = attrs.evolve(log_with(batches(6)), high_watermark=2)
    with pytest.raises(ViolationError, match="high-watermark-is-committed"):
        check_log(known.witness, known.ledgers[1], found, None, is_damaged=True)


@pytest.mark.parametrize("is_damaged", [True, False])
def test_a_log_start_is_kept(is_damaged: bool) -> None:
    """Only damage brings back records below it."""
    known, found = with_snapshot(4, 6)
    known.ledgers[1].high_watermark = 6
    known.witness.started_at(known.ledgers[1], 4)
    if is_damaged:
        check_log(known.witness, known.ledgers[1], found, None, is_damaged=True)
        assert known.ledgers[1].start_offset == 0
    else:
        with pytest.raises(ViolationError, match="log-start-is-kept"):
            check_log(known.witness, known.ledgers[1], found, None, is_damaged=False)


@pytest.mark.parametrize(
    ("left", "start", "is_damaged", "is_right"),
    [
        ((), 0, False, False),
        ((), 0, True, True),
        ((5,), 0, False, False),
        ((5,), 3, False, False),
        ((5,), 4, False, False),
        ((5,), 5, False, True),
        ((4,), 4, False, True),
    ],
)
def test_a_snapshot_is_kept(left: Sequence[int], start: int, *, is_damaged: bool, is_right: bool) -> None:
    """It may be deleted if it ends below the log start, and there is a later one."""
    known, found = with_snapshot(4, 6, start)
    ledger = known.ledgers[1]
    ledger.voter_sets[0] = NamedVoters(-1, frozenset())
    ledger.snapshots, ledger.high_watermark = (*ledger.snapshots, *(OffsetAndEpoch(each, 1) for each in left)), 6
    found = attrs.evolve(found, snapshots={OffsetAndEpoch(each, 1): b"" for each in left})
    if is_right:
        check_log(known.witness, ledger, found, None, is_damaged=is_damaged)
        assert ledger.snapshots == tuple(found.snapshots)
    else:
        with pytest.raises(ViolationError, match="snapshots-are-kept"):
            check_log(known.witness, ledger, found, None, is_damaged=is_damaged)


@pytest.mark.parametrize(
    ("quarantine_end", "is_damaged", "is_right"), [(0, False, False), (0, True, True), (6, False, True)]
)
def test_a_report_is_true(quarantine_end: int, *, is_damaged: bool, is_right: bool) -> None:
    """It names no damage of a disk that has none; in quarantine it may tell of the damage before."""
    known, found = with_snapshot(4, 6)
    known.ledgers[1].quarantine_end = quarantine_end
    found = attrs.evolve(found, told=["lost"], quarantine_end=quarantine_end)
    if is_right:
        check_log(known.witness, known.ledgers[1], found, None, is_damaged=is_damaged)
    else:
        with pytest.raises(ViolationError, match="reports-are-true"):
            check_log(known.witness, known.ledgers[1], found, None, is_damaged=is_damaged)


@pytest.mark.parametrize(
    ("start", "count", "snapshot", "is_right"),
    [(0, 0, None, True), (4, 0, 4, True), (4, 0, 6, False), (4, 2, 6, True), (4, 0, None, False)],
)
def test_an_empty_log_has_a_snapshot_where_it_starts(
    start: int, count: int, snapshot: int | None, *, is_right: bool
) -> None:
    """Or else no leader could tell from where it agrees with its own; a log with a batch needs none there."""
    known = disks()
    ledger = known.ledgers[1]
    known.lead(1, 1)
    known.sync(1)
    ledger.cut(start + count)
    ledger.start_at(start, None)
    snapshots = {} if snapshot is None else {OffsetAndEpoch(snapshot, 1): b""}
    ledger.snapshots = tuple(snapshots)
    found = log_with(batches(count, start), start=start, quarantine_end=6 if start + count < 6 else 0)
    found = attrs.evolve(found, high_watermark=start + count, snapshots=snapshots)
    ledger.furthest_end = 6
    if is_right:
        check_log(known.witness, ledger, found, None, is_damaged=True)
    else:
        with pytest.raises(ViolationError, match="log-start-is-covered"):
            check_log(known.witness, ledger, found, None, is_damaged=True)
