# SPDX-License-Identifier: Apache-2.0
"""What a log allows: appends, truncation, epochs, snapshots and retention."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import (
    FencedEpochError,
    InvalidSnapshotIdError,
    TruncationBelowHighWatermarkError,
    UnknownEpochError,
)
from raftlog.log.decisions import (
    check_leader_epoch,
    check_new_snapshot_id,
    check_truncation,
    clamped_high_watermark,
    end_offset_for_epoch,
    may_start_at_snapshot,
    snapshot_ahead_of_log,
    truncation_offset,
    validate_offset_and_epoch,
)
from raftlog.log.epochs import LeaderEpochs
from raftlog.log.state import LogState, snapshot_ids_of
from raftlog.offsets import EpochEntry, OffsetAndEpoch, ValidOffsetAndEpoch


def log_state(
    start: int,
    end: int,
    high_watermark: int | None = None,
    epochs: tuple[tuple[int, int], ...] = (),
    snapshots: tuple[tuple[int, int], ...] = (),
) -> LogState:
    """Return a log with epochs as (epoch, start offset) and snapshots as (offset, epoch)."""
    ids = snapshot_ids_of(OffsetAndEpoch(*each) for each in snapshots)
    cache = LeaderEpochs(EpochEntry(*each) for each in epochs)
    return LogState(start, end, end if high_watermark is None else high_watermark, cache, ids)


KAFKA = log_state(0, 50, epochs=((3, 0), (5, 48)))
"""The log of which Kafka's own answers are known."""
KAFKA_AFTER_SNAPSHOT = log_state(24, 50, epochs=((3, 24), (5, 48)), snapshots=((24, 3),))
"""The same after its first 24 records gave way to a snapshot."""

VALID, DIVERGING, SNAPSHOT = ValidOffsetAndEpoch.valid, ValidOffsetAndEpoch.diverging, ValidOffsetAndEpoch.snapshot


@pytest.mark.parametrize(
    ("epoch", "end"), [(2, (0, 2)), (3, (48, 3)), (4, (48, 3)), (5, (50, 5)), (6, (50, 5)), (-1, (50, 5))]
)
def test_an_epoch_ends_where_kafka_says(epoch: int, end: tuple[int, int]) -> None:
    """The end of each epoch is Kafka's own answer for the same log."""
    assert end_offset_for_epoch(KAFKA, epoch) == OffsetAndEpoch(*end)


def test_below_all_epochs_is_the_earliest_snapshot() -> None:
    """Where the log starts at a snapshot, an epoch below all of them ends with that snapshot."""
    assert end_offset_for_epoch(KAFKA_AFTER_SNAPSHOT, 2) == OffsetAndEpoch(24, 3)
    elsewhere = log_state(20, 50, epochs=((4, 20),), snapshots=((24, 4),))
    assert end_offset_for_epoch(elsewhere, 2) == OffsetAndEpoch(20, 2)


@pytest.mark.parametrize(
    ("offset", "epoch", "verdict"),
    [
        (0, 9, VALID(OffsetAndEpoch(0, 0))),
        (10, 3, VALID(OffsetAndEpoch(10, 3))),
        (48, 3, VALID(OffsetAndEpoch(48, 3))),
        (50, 3, DIVERGING(OffsetAndEpoch(48, 3))),
        (49, 5, VALID(OffsetAndEpoch(49, 5))),
        (50, 5, VALID(OffsetAndEpoch(50, 5))),
        (51, 5, DIVERGING(OffsetAndEpoch(50, 5))),
        (10, 2, DIVERGING(OffsetAndEpoch(0, 2))),
        (10, 4, DIVERGING(OffsetAndEpoch(48, 3))),
        (10, 6, DIVERGING(OffsetAndEpoch(50, 5))),
    ],
)
def test_a_fetch_position_is_judged_as_by_kafka(offset: int, epoch: int, verdict: ValidOffsetAndEpoch) -> None:
    """A log without snapshots judges each position as Kafka does."""
    assert validate_offset_and_epoch(KAFKA, offset, epoch) == verdict


@pytest.mark.parametrize(
    ("offset", "epoch", "verdict"),
    [
        (0, 0, SNAPSHOT(OffsetAndEpoch(24, 3))),
        (10, 3, SNAPSHOT(OffsetAndEpoch(24, 3))),
        (24, 3, VALID(OffsetAndEpoch(24, 3))),
        (24, 2, SNAPSHOT(OffsetAndEpoch(24, 3))),
        (24, 5, SNAPSHOT(OffsetAndEpoch(24, 3))),
        (25, 3, VALID(OffsetAndEpoch(25, 3))),
        (30, 2, SNAPSHOT(OffsetAndEpoch(24, 3))),
        (48, 3, VALID(OffsetAndEpoch(48, 3))),
    ],
)
def test_a_fetch_position_below_a_snapshot(offset: int, epoch: int, verdict: ValidOffsetAndEpoch) -> None:
    """A log that starts at a snapshot judges each position as Kafka does; at its start the epoch must be the same."""
    assert validate_offset_and_epoch(KAFKA_AFTER_SNAPSHOT, offset, epoch) == verdict


@pytest.mark.parametrize(
    ("leader_end", "cut"),
    [((48, 3), 48), ((30, 3), 30), ((60, 5), 50), ((49, 5), 49), ((40, 4), 48), ((70, 0), 50), ((7, 0), 7)],
)
def test_where_a_diverging_log_is_cut(leader_end: tuple[int, int], cut: int) -> None:
    """A follower keeps no more of the common epoch than the leader has, and nothing of epochs behind it."""
    assert truncation_offset(KAFKA, OffsetAndEpoch(*leader_end)) == cut


epoch_histories = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4)), min_size=1, max_size=5)


@given(epoch_histories, epoch_histories, st.integers(0, 3))
def test_logs_that_part_meet_again(
    leader_steps: list[tuple[int, int]], follower_steps: list[tuple[int, int]], common: int
) -> None:
    """By verdict and truncation, in at most one round an epoch, a follower comes to where its log is the leader's."""
    # One epoch for each offset; what follows the common part has epochs that only one of the two has.
    shared = [epoch for epoch in (1, 2, 3)[:common] for _ in range(2)]
    leader = shared + [4 + 2 * index for index, (_, count) in enumerate(leader_steps) for _ in range(count)]
    follower = shared + [5 + 2 * index for index, (_, count) in enumerate(follower_steps) for _ in range(count)]
    for _ in range(len(follower) + 2):
        verdict = validate_offset_and_epoch(_of_epochs(leader), len(follower), follower[-1] if follower else 0)
        if verdict.kind is not DIVERGING(OffsetAndEpoch(0, 0)).kind:
            break
        del follower[truncation_offset(_of_epochs(follower), verdict.offset_and_epoch) :]
    assert leader[: len(follower)] == follower
    assert len(follower) >= len(shared)


def _of_epochs(epochs: list[int]) -> LogState:
    starts: dict[int, int] = {}
    for offset, epoch in enumerate(epochs):
        starts.setdefault(epoch, offset)
    return log_state(0, len(epochs), epochs=tuple(starts.items()))


def test_committed_records_are_not_cut() -> None:
    """A truncation below the high watermark is refused, one to it is not."""
    log = log_state(0, 50, 20)
    check_truncation(log, 20)
    with pytest.raises(TruncationBelowHighWatermarkError):
        check_truncation(log, 19)


@given(st.integers(0, 60), st.integers(-10, 80))
def test_the_high_watermark_stays_inside(before: int, told: int) -> None:
    """A high watermark is never below what it was, below the log start, or above the log end."""
    log = log_state(10, 60, max(10, before))
    assert clamped_high_watermark(log, told) == max(log.high_watermark, min(told, 60))


def test_the_last_epoch_of_an_empty_log_is_its_snapshots() -> None:
    """Records say the last epoch; without records the snapshot where the log starts; without either it is 0."""
    assert KAFKA.last_fetched_epoch == 5
    assert log_state(24, 24, snapshots=((10, 2), (24, 3))).last_fetched_epoch == 3
    assert log_state(0, 0, snapshots=((0, 0),)).last_fetched_epoch == 0
    assert log_state(0, 0, snapshots=((50, 5),)).last_fetched_epoch == 0


def test_an_epoch_that_is_over_is_not_entered() -> None:
    """A leader enters the epoch of its log, or a higher one."""
    check_leader_epoch(KAFKA, 5)
    check_leader_epoch(KAFKA, 6)
    with pytest.raises(FencedEpochError):
        check_leader_epoch(KAFKA, 4)
    check_leader_epoch(KAFKA, 2**31 - 1)
    with pytest.raises(UnknownEpochError):
        check_leader_epoch(KAFKA, 2**31)
    with pytest.raises(FencedEpochError):
        check_leader_epoch(log_state(0, 0), -1)


def ends_at_even(offset: int) -> bool:
    """A log whose batches have two records."""
    return offset % 2 == 0


@pytest.mark.parametrize("snapshot_id", [(50, 5), (48, 3), (10, 3), (0, 0)])
def test_a_snapshot_ends_with_a_committed_batch(snapshot_id: tuple[int, int]) -> None:
    """The end of a committed batch, with the epoch of its last record, is a snapshot id; so is 0-0."""
    assert check_new_snapshot_id(KAFKA, OffsetAndEpoch(*snapshot_id), ends_at_even)


@pytest.mark.parametrize("snapshot_id", [(52, 5), (9, 3), (48, 5), (50, 3), (10, 5), (10, 2), (0, 3), (10, -1)])
def test_other_snapshot_ids_are_refused(snapshot_id: tuple[int, int]) -> None:
    """An end that is not committed, not that of a batch, or not of that epoch is no snapshot id."""
    with pytest.raises(InvalidSnapshotIdError):
        check_new_snapshot_id(KAFKA, OffsetAndEpoch(*snapshot_id), ends_at_even)


def test_snapshots_are_made_in_order() -> None:
    """A snapshot that is there, or below the log start, is not made; one behind the latest is refused."""
    ids = (OffsetAndEpoch(24, 3), OffsetAndEpoch(30, 3))
    log = attrs.evolve(KAFKA_AFTER_SNAPSHOT, high_watermark=40, snapshot_ids=ids)
    assert not check_new_snapshot_id(log, OffsetAndEpoch(30, 3), ends_at_even)
    assert not check_new_snapshot_id(log, OffsetAndEpoch(24, 3), ends_at_even)
    assert not check_new_snapshot_id(log, OffsetAndEpoch(22, 3), ends_at_even)
    assert check_new_snapshot_id(log, OffsetAndEpoch(32, 3), ends_at_even)
    for refused in (OffsetAndEpoch(28, 3), OffsetAndEpoch(24, 2), OffsetAndEpoch(42, 3)):
        with pytest.raises(InvalidSnapshotIdError):
            check_new_snapshot_id(log, refused, ends_at_even)


def test_the_log_start_moves_to_committed_snapshots() -> None:
    """A log may start at a snapshot that is listed, above its start, and not above its high watermark."""
    log = log_state(10, 50, 40, ((3, 10),), ((10, 3), (20, 3), (40, 3), (50, 3)))
    may = [offset for offset in range(60) if may_start_at_snapshot(log, OffsetAndEpoch(offset, 3))]
    assert may == [20, 40]


@pytest.mark.parametrize(
    ("snapshots", "ahead"),
    [((), None), (((50, 5),), None), (((24, 3), (51, 5)), (51, 5)), (((60, 4),), None), (((50, 6),), (50, 6))],
)
def test_a_snapshot_ahead_of_the_log_wins(
    snapshots: tuple[tuple[int, int], ...], ahead: tuple[int, int] | None
) -> None:
    """The latest snapshot is ahead by a higher epoch, or by a higher offset of the same epoch."""
    log = log_state(0, 50, 10, ((3, 0), (5, 48)), snapshots)
    assert snapshot_ahead_of_log(log) == (OffsetAndEpoch(*ahead) if ahead else None)


def test_a_snapshot_of_an_earlier_epoch_is_not_ahead() -> None:
    """A log of a later epoch is left as it is, even where it ends before the snapshot: epochs are compared first."""
    assert snapshot_ahead_of_log(log_state(0, 4, 2, ((1, 0), (2, 3)), ((6, 1),))) is None


def test_a_snapshot_never_takes_committed_records() -> None:
    """A snapshot of a higher epoch that ends below the high watermark is refused; a log at its snapshot is left."""
    with pytest.raises(TruncationBelowHighWatermarkError):
        snapshot_ahead_of_log(log_state(0, 50, 30, ((3, 0),), ((20, 9),)))
    assert snapshot_ahead_of_log(log_state(24, 24, snapshots=((24, 3),))) is None


ids = st.builds(OffsetAndEpoch, st.integers(0, 5), st.integers(0, 3))


@given(st.lists(ids))
def test_snapshot_ids_are_in_order(given_ids: list[OffsetAndEpoch]) -> None:
    """However often and in whatever order ids are given, each is there once, by epoch and then offset."""
    log = attrs.evolve(KAFKA, snapshot_ids=snapshot_ids_of(given_ids))
    model = set(given_ids)
    assert list(log.snapshot_ids) == sorted(model, key=lambda each: (each.epoch, each.offset))
    assert (log.earliest_snapshot_id, log.latest_snapshot_id) == (min(model, default=None), max(model, default=None))
