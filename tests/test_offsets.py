# SPDX-License-Identifier: Apache-2.0
"""Offsets with epochs are ordered as a raft log orders them."""

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.offsets import (
    EpochEntry,
    LogOffsetMetadata,
    OffsetAndEpoch,
    SegmentPosition,
    ValidationKind,
    ValidOffsetAndEpoch,
)

places = st.builds(OffsetAndEpoch, st.integers(-1, 2**63 - 1), st.integers(-1, 2**31 - 1)) | st.builds(
    OffsetAndEpoch, st.integers(0, 2), st.integers(0, 2)
)


@given(places, places)
@settings(deadline=None)
def test_the_epoch_decides_before_the_offset(one: OffsetAndEpoch, other: OffsetAndEpoch) -> None:
    """Comparing two places is comparing (epoch, offset), with every operator."""
    mine, theirs = (one.epoch, one.offset), (other.epoch, other.offset)
    assert (one < other, one <= other, one == other, one >= other, one > other) == (
        mine < theirs,
        mine <= theirs,
        mine == theirs,
        mine >= theirs,
        mine > theirs,
    )


@given(places)
@settings(deadline=None)
def test_places_are_values(place: OffsetAndEpoch) -> None:
    """Equal places hash alike, and survive a trip to another process."""
    copy = pickle.loads(pickle.dumps(place))
    assert copy == place
    assert hash(copy) == hash(place)


def test_the_longest_log_of_an_older_epoch_is_less() -> None:
    """A short log of a newer epoch is more up to date than a long one of an older epoch."""
    assert max(OffsetAndEpoch(1_000_000, 3), OffsetAndEpoch(1, 4)) == OffsetAndEpoch(1, 4)


def test_a_place_is_not_ordered_against_other_things() -> None:
    """Comparing with something else is an error, not an answer."""
    with pytest.raises(TypeError):
        OffsetAndEpoch(1, 1) < (1, 1)  # type: ignore[operator]  # noqa: B015


def test_the_three_verdicts_are_distinct() -> None:
    """Valid, diverging and snapshot at one place are three different values."""
    place = OffsetAndEpoch(24, 3)
    verdicts = [
        ValidOffsetAndEpoch.valid(place),
        ValidOffsetAndEpoch.diverging(place),
        ValidOffsetAndEpoch.snapshot(place),
    ]
    assert [verdict.kind for verdict in verdicts] == list(ValidationKind)
    assert len(set(verdicts)) == 3
    assert {verdict.offset_and_epoch for verdict in verdicts} == {place}


def test_offset_metadata_may_know_its_place_on_disk() -> None:
    """A place on disk is optional, and part of the value."""
    known = LogOffsetMetadata(42, SegmentPosition(40, 180))
    assert LogOffsetMetadata(42).segment_position is None
    assert known != LogOffsetMetadata(42)
    assert EpochEntry(3, 24) == EpochEntry(epoch=3, start_offset=24)
