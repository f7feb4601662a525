# SPDX-License-Identifier: Apache-2.0
"""The decisions of a log: appends, truncation, epochs, snapshots and retention."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

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
from raftlog.offsets import EpochEntry, OffsetAndEpoch, ValidationKind, ValidOffsetAndEpoch
from tests.offset_notation import offset_and_epoch


def log_state(
    *,
    start: int,
    end: int,
    high_watermark: int | None = None,
    epoch_starts: Mapping[int, int] = MappingProxyType({}),
    snapshots: Sequence[str] = (),
) -> LogState:
    """Return the state of a log.

    Args:
        start: offset, inclusive.
        end: offset, exclusive.
        high_watermark: the log end, if it is left out.
        epoch_starts: the start offset of each epoch.
        snapshots: their ids, such as ``24@3``.
    """
    epochs = LeaderEpochs(EpochEntry(epoch, offset) for epoch, offset in epoch_starts.items())
    snapshot_ids = snapshot_ids_of(map(offset_and_epoch, snapshots))
    return LogState(start, end, end if high_watermark is None else high_watermark, epochs, snapshot_ids)


KAFKA = log_state(start=0, end=50, epoch_starts={3: 0, 5: 48})
"""The log of which Kafka's own answers are known."""
KAFKA_AFTER_SNAPSHOT = log_state(start=24, end=50, epoch_starts={3: 24, 5: 48}, snapshots=["24@3"])
"""The same after its first 24 records gave way to a snapshot."""


def judged(log: LogState, position: str) -> ValidOffsetAndEpoch:
    """Return what a leader says to a follower that fetches from an offset, and has a last record of an epoch."""
    follower = offset_and_epoch(position)
    return validate_offset_and_epoch(log, follower.offset, follower.epoch)


def verdict_of(text: str) -> ValidOffsetAndEpoch:
    """Read a verdict: ``valid 10@3``, ``diverging 48@3`` or ``snapshot 24@3``."""
    kind, _, position = text.partition(" ")
    return ValidOffsetAndEpoch(ValidationKind(kind), offset_and_epoch(position))


@pytest.mark.parametrize(
    ("epoch", "end"), [(2, "0@2"), (3, "48@3"), (4, "48@3"), (5, "50@5"), (6, "50@5"), (-1, "50@5")]
)
def test_an_epoch_ends_where_kafka_says(epoch: int, end: str) -> None:
    """The end of each epoch is Kafka's own answer for the same log."""
    assert end_offset_for_epoch(KAFKA, epoch) == offset_and_epoch(end)


def test_below_all_epochs_is_the_earliest_snapshot() -> None:
    """Where the log starts at a snapshot, an epoch below all of them ends with that snapshot."""
    assert end_offset_for_epoch(KAFKA_AFTER_SNAPSHOT, 2) == offset_and_epoch("24@3")
    elsewhere = log_state(start=20, end=50, epoch_starts={4: 20}, snapshots=["24@4"])
    assert end_offset_for_epoch(elsewhere, 2) == offset_and_epoch("20@2")


@pytest.mark.parametrize(
    ("position", "verdict"),
    [
        ("0@9", "valid 0@0"),
        ("10@3", "valid 10@3"),
        ("48@3", "valid 48@3"),
        ("50@3", "diverging 48@3"),
        ("49@5", "valid 49@5"),
        ("50@5", "valid 50@5"),
        ("51@5", "diverging 50@5"),
        ("10@2", "diverging 0@2"),
        ("10@4", "diverging 48@3"),
        ("10@6", "diverging 50@5"),
    ],
)
def test_a_fetch_position_is_judged_as_by_kafka(position: str, verdict: str) -> None:
    """A log without snapshots judges each position as Kafka does."""
    assert judged(KAFKA, position) == verdict_of(verdict)


@pytest.mark.parametrize(
    ("position", "verdict"),
    [
        ("0@0", "snapshot 24@3"),
        ("10@3", "snapshot 24@3"),
        ("24@3", "valid 24@3"),
        ("24@2", "snapshot 24@3"),
        ("24@5", "snapshot 24@3"),
        ("25@3", "valid 25@3"),
        ("30@2", "snapshot 24@3"),
        ("48@3", "valid 48@3"),
    ],
)
def test_a_fetch_position_below_a_snapshot(position: str, verdict: str) -> None:
    """A log that starts at a snapshot judges each position as Kafka does; at its start the epoch must be the same."""
    assert judged(KAFKA_AFTER_SNAPSHOT, position) == verdict_of(verdict)


@pytest.mark.parametrize(
    ("leader_end", "cut"),
    [
        pytest.param("48@3", 48, id="epoch 3 ends at the same offset"),
        pytest.param("30@3", 30, id="the leader has less of epoch 3"),
        pytest.param("60@5", 50, id="the leader has more of epoch 5"),
        pytest.param("49@5", 49, id="the leader has less of epoch 5"),
        pytest.param("40@4", 48, id="an epoch that the follower has nothing of"),
        pytest.param("70@0", 50, id="no common epoch, above the log end"),
        pytest.param("7@0", 7, id="no common epoch, below the log end"),
    ],
)
def test_where_a_diverging_log_is_cut(leader_end: str, cut: int) -> None:
    """A follower keeps no more of the common epoch than the leader has, and nothing of epochs after it."""
    assert truncation_offset(KAFKA, offset_and_epoch(leader_end)) == cut


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
        if verdict.kind is not ValidationKind.DIVERGING:
            break
        del follower[truncation_offset(_of_epochs(follower), verdict.offset_and_epoch) :]
    assert leader[: len(follower)] == follower
    assert len(follower) >= len(shared)


def _of_epochs(epochs: list[int]) -> LogState:
    starts: dict[int, int] = {}
    for offset, epoch in enumerate(epochs):
        starts.setdefault(epoch, offset)
    return log_state(start=0, end=len(epochs), epoch_starts=starts)


def test_committed_records_are_not_cut() -> None:
    """A truncation below the high watermark is refused, one to it is not."""
    log = log_state(start=0, end=50, high_watermark=20)
    check_truncation(log, 20)
    with pytest.raises(TruncationBelowHighWatermarkError):
        check_truncation(log, 19)


@given(st.integers(0, 60), st.integers(-10, 80))
def test_the_high_watermark_stays_inside(before: int, told: int) -> None:
    """A high watermark is never below what it was, below the log start, or above the log end."""
    log = log_state(start=10, end=60, high_watermark=max(10, before))
    assert clamped_high_watermark(log, told) == max(log.high_watermark, min(told, 60))


def test_the_last_epoch_of_an_empty_log_is_its_snapshots() -> None:
    """Records say the last epoch; without records the snapshot where the log starts; without either it is 0."""
    assert KAFKA.last_fetched_epoch == 5
    assert log_state(start=24, end=24, snapshots=["10@2", "24@3"]).last_fetched_epoch == 3
    assert log_state(start=0, end=0, snapshots=["0@0"]).last_fetched_epoch == 0
    assert log_state(start=0, end=0, snapshots=["50@5"]).last_fetched_epoch == 0


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
        check_leader_epoch(log_state(start=0, end=0), -1)


def ends_at_even(offset: int) -> bool:
    """A log whose batches have two records."""
    return offset % 2 == 0


@pytest.mark.parametrize("snapshot_id", ["50@5", "48@3", "10@3", "0@0"])
def test_a_snapshot_ends_with_a_committed_batch(snapshot_id: str) -> None:
    """The end of a committed batch, with the epoch of its last record, is a snapshot id; so is 0-0."""
    assert check_new_snapshot_id(KAFKA, offset_and_epoch(snapshot_id), ends_at_even)


@pytest.mark.parametrize(
    ("snapshot_id", "reason"),
    [
        ("52@5", "above the high watermark 50"),
        ("9@3", "no batch ends there"),
        ("48@5", "the record before it has epoch 3"),
        ("50@3", "the record before it has epoch 5"),
        ("10@5", "the record before it has epoch 3"),
        ("10@2", "the record before it has epoch 3"),
        ("0@3", "the record before it has epoch 0"),
        ("10@-1", "the record before it has epoch 3"),
    ],
)
def test_other_snapshot_ids_are_refused(snapshot_id: str, reason: str) -> None:
    """An end that is not committed, not that of a batch, or not of that epoch is not a snapshot id."""
    with pytest.raises(InvalidSnapshotIdError, match=reason):
        check_new_snapshot_id(KAFKA, offset_and_epoch(snapshot_id), ends_at_even)


def test_snapshots_are_made_in_order() -> None:
    """A snapshot that exists, or is below the log start, is not made; one older than the latest is refused."""
    ids = (offset_and_epoch("24@3"), offset_and_epoch("30@3"))
    log = attrs.evolve(KAFKA_AFTER_SNAPSHOT, high_watermark=40, snapshot_ids=ids)
    assert not check_new_snapshot_id(log, offset_and_epoch("30@3"), ends_at_even)
    assert not check_new_snapshot_id(log, offset_and_epoch("24@3"), ends_at_even)
    assert not check_new_snapshot_id(log, offset_and_epoch("22@3"), ends_at_even)
    assert check_new_snapshot_id(log, offset_and_epoch("32@3"), ends_at_even)
    for refused in (offset_and_epoch("28@3"), offset_and_epoch("24@2"), offset_and_epoch("42@3")):
        with pytest.raises(InvalidSnapshotIdError):
            check_new_snapshot_id(log, refused, ends_at_even)


def test_the_log_start_moves_to_committed_snapshots() -> None:
    """A log may start at a snapshot that is listed, above its start, and not above its high watermark."""
    log = log_state(
        start=10, end=50, high_watermark=40, epoch_starts={3: 10}, snapshots=["10@3", "20@3", "40@3", "50@3"]
    )
    may = [offset for offset in range(60) if may_start_at_snapshot(log, OffsetAndEpoch(offset, 3))]
    assert may == [20, 40]


@pytest.mark.parametrize(
    ("snapshots", "ahead"),
    [
        pytest.param([], None, id="none"),
        pytest.param(["50@5"], None, id="at the log end"),
        pytest.param(["24@3", "51@5"], "51@5", id="after the log end"),
        pytest.param(["60@4"], None, id="of an earlier epoch"),
        pytest.param(["50@6"], "50@6", id="of a later epoch"),
    ],
)
def test_a_snapshot_ahead_of_the_log_wins(snapshots: list[str], ahead: str | None) -> None:
    """The latest snapshot is ahead by a higher epoch, or by a higher offset of the same epoch."""
    log = log_state(start=0, end=50, high_watermark=10, epoch_starts={3: 0, 5: 48}, snapshots=snapshots)
    assert snapshot_ahead_of_log(log) == (offset_and_epoch(ahead) if ahead else None)


def test_a_snapshot_of_an_earlier_epoch_is_not_ahead() -> None:
    """A log of a later epoch is left as it is, even where it ends before the snapshot: epochs are compared first."""
    log = log_state(start=0, end=4, high_watermark=2, epoch_starts={1: 0, 2: 3}, snapshots=["6@1"])
    assert snapshot_ahead_of_log(log) is None


def test_a_snapshot_never_takes_committed_records() -> None:
    """A snapshot of a higher epoch that ends below the high watermark is refused; a log at its snapshot is left."""
    with pytest.raises(TruncationBelowHighWatermarkError):
        snapshot_ahead_of_log(log_state(start=0, end=50, high_watermark=30, epoch_starts={3: 0}, snapshots=["20@9"]))
    assert snapshot_ahead_of_log(log_state(start=24, end=24, snapshots=["24@3"])) is None


ids = st.builds(OffsetAndEpoch, st.integers(0, 5), st.integers(0, 3))


@given(st.lists(ids))
def test_snapshot_ids_are_in_order(given_ids: list[OffsetAndEpoch]) -> None:
    """Each id is listed once, by epoch and then offset, however often and in whatever order ids are given."""
    log = attrs.evolve(KAFKA, snapshot_ids=snapshot_ids_of(given_ids))
    model = set(given_ids)
    assert list(log.snapshot_ids) == sorted(model, key=lambda each: (each.epoch, each.offset))
    assert (log.earliest_snapshot_id, log.latest_snapshot_id) == (min(model, default=None), max(model, default=None))
