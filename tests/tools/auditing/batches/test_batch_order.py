# SPDX-License-Identifier: Apache-2.0
"""The order of batches: one fault is one finding, at its place, wherever chunks end."""

from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import batch_bytes, legacy_message
from tests.tools.auditing.made_segments import (
    TINY_CHUNK,
    data_batch,
    finding,
    leader_change,
    places,
    raft_log,
    survey,
    with_base_offset,
    with_epoch,
)

_counts = st.lists(st.integers(1, 9), min_size=3, max_size=14)
_chunk_sizes = st.sampled_from([TINY_CHUNK, 450, None])
_INNER: Final = 1
"""The first batch in the middle of a log."""


def _position(batches: list[bytes], index: int) -> int:
    return sum(map(len, batches[:index]))


def _offset(batch: bytes) -> int:
    return int.from_bytes(batch[:8], "big", signed=True)


@settings(max_examples=40, deadline=None)
@given(_counts, st.integers(0, 2**40), _chunk_sizes, st.booleans())
def test_a_log_in_order_is_silent(counts: list[int], base_offset: int, chunk_size: int | None, is_raft: bool) -> None:
    """A sound log gives no finding; its extent and epochs are those of its batches."""
    batches = raft_log(counts, base_offset)
    evidence = survey(b"".join(batches), base_offset, is_raft=is_raft, chunk_size=chunk_size)
    assert evidence.findings == ()
    assert evidence.extent is not None
    assert evidence.extent.start_offset == base_offset
    assert evidence.extent.end_offset == _offset(batches[-1]) + (counts[-1] if (len(counts) - 1) % 4 else 1)
    assert evidence.extent.batch_count == len(batches)
    starts = [(number + 1, _offset(batch)) for number, batch in enumerate(batches[::4])]
    assert [(seen.epoch, seen.start_offset) for seen in evidence.epochs] == starts
    assert [seen.opens_with_leader for seen in evidence.epochs] == [is_raft] * len(starts)
    ends = [start for _, start in starts[1:]] + [evidence.extent.end_offset]
    assert [seen.end_offset for seen in evidence.epochs] == ends


@settings(max_examples=80, deadline=None)
@given(_counts, st.data(), _chunk_sizes, st.booleans())
def test_a_wrong_base_offset_is_found_where_it_is(
    counts: list[int], data: st.DataObject, chunk_size: int | None, is_raft: bool
) -> None:
    """A base offset that is changed in the middle of a log gives one finding, at that batch."""
    batches = raft_log(counts, 100)
    index = data.draw(st.integers(_INNER, len(batches) - 2))
    bit = data.draw(st.integers(3, 63))
    wrong = _offset(batches[index]) ^ 1 << bit
    wrong = wrong - (1 << 64) if wrong >= 1 << 63 else wrong
    end_before = _offset(batches[index])
    next_start = _offset(batches[index + 1])
    if end_before <= wrong < next_start:  # To a log that is not of raft it may be compacted.
        return
    batches[index] = with_base_offset(batches[index], wrong)
    evidence = survey(b"".join(batches), 100, is_raft=is_raft, chunk_size=chunk_size)
    rule = "offset-negative" if bit == 63 else "offset-order"
    assert places(evidence) == [(rule, _position(batches, index), wrong)]


@settings(max_examples=80, deadline=None)
@given(_counts, st.data(), _chunk_sizes)
def test_a_wrong_epoch_is_found_where_it_is(counts: list[int], data: st.DataObject, chunk_size: int | None) -> None:
    """An epoch that is changed inside an epoch of three batches or more gives one finding; all else is as before."""
    batches = raft_log([*counts, 1, 1, 1, 1, 1], batches_per_epoch=6)
    sound = survey(b"".join(batches), chunk_size=chunk_size)
    index = data.draw(st.sampled_from([at for at in range(1, len(batches) - 2) if at % 6 in {2, 3}]))
    epoch = index // 6 + 1
    wrong = data.draw(st.integers(0, 20).filter(lambda number: number != epoch))
    batches[index] = with_epoch(batches[index], wrong)
    evidence = survey(b"".join(batches), chunk_size=chunk_size)
    assert places(evidence) == [("epoch-order", _position(batches, index), _offset(batches[index]))]
    assert evidence.epochs == sound.epochs
    assert evidence.extent == sound.extent


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 12), st.integers(0, 20), _chunk_sizes)
def test_a_run_of_batches_of_another_epoch_is_one_fault(length: int, wrong: int, chunk_size: int | None) -> None:
    """Batches in a row that claim another epoch are the outliers in a raft log, however few sound ones follow."""
    batches = raft_log([1] * 30, batches_per_epoch=15)
    sound = survey(b"".join(batches), chunk_size=chunk_size)
    first = 17
    epoch = wrong if wrong != 2 else 21
    batches[first : first + length] = [with_epoch(batch, epoch) for batch in batches[first : first + length]]
    evidence = survey(b"".join(batches), chunk_size=chunk_size)
    assert places(evidence) == [("epoch-order", _position(batches, first), first)]
    assert evidence.epochs == sound.epochs


@pytest.mark.parametrize("chunk_size", [TINY_CHUNK, None])
@pytest.mark.parametrize("length", [1, 5, 6, 7])
def test_without_leader_changes_the_fewer_batches_are_wrong(length: int, chunk_size: int | None) -> None:
    """In a topic's log, later batches decide whether those with the higher epoch are the outliers: as many are not."""
    batches = [data_batch(number, 4 if 10 <= number < 10 + length else 3) for number in range(10 + length + 6)]
    batches.append(data_batch(len(batches), 5))
    evidence = survey(b"".join(batches), is_raft=False, chunk_size=chunk_size)
    index = 10 if length < 6 else 10 + length
    assert places(evidence) == [("epoch-order", _position(batches, index), index)]


@pytest.mark.parametrize(("lost", "wrong"), [(True, 12), (False, 9)])
def test_damage_may_have_taken_a_leader_change(lost: bool, wrong: int) -> None:
    """An epoch whose first batch is damaged is not taken for a run of wrong batches."""
    batches = [leader_change(0, 1), *(data_batch(offset, 1) for offset in range(1, 8))]
    opening = leader_change(8, 2)
    batches += [bytes(len(opening)) if lost else opening, *(data_batch(offset, 2) for offset in range(9, 20))]
    batches[wrong] = with_epoch(batches[wrong], 1)
    found = [place for place in places(survey(b"".join(batches))) if place[0] == "epoch-order"]
    assert found == [("epoch-order", _position(batches, wrong), wrong)]


@pytest.mark.parametrize("chunk_size", [TINY_CHUNK, None])
@pytest.mark.parametrize("wrong", [1, 9])
def test_a_leader_change_of_a_wrong_epoch_opens_its_own(wrong: int, chunk_size: int | None) -> None:
    """For a LeaderChange whose epoch was changed, the finding names the epoch that it opens."""
    batches = raft_log([1] * 10, batches_per_epoch=5)
    sound = survey(b"".join(batches))
    batches[5] = with_epoch(batches[5], wrong)
    if wrong == 1:  # It is that of the batch before, which is no wonder, but another LeaderChange of it.
        assert places(survey(b"".join(batches), chunk_size=chunk_size)) == []
        return
    evidence = survey(b"".join(batches), chunk_size=chunk_size)
    assert places(evidence) == [("epoch-order", _position(batches, 5), 5)]
    assert (evidence.epochs, evidence.controls) == (sound.epochs, sound.controls)


def test_the_first_batch_after_a_leader_change_may_be_wrong() -> None:
    """A batch of the epoch before, directly after a LeaderChange, is the outlier, also at the end."""
    for behind in ([data_batch(4, 2)], []):
        batches = [leader_change(0, 1), data_batch(1, 1), leader_change(2, 2), data_batch(3, 1), *behind]
        assert places(survey(b"".join(batches))) == [("epoch-order", _position(batches, 3), 3)]


@settings(max_examples=40, deadline=None)
@given(_counts, st.data(), _chunk_sizes, st.sampled_from(["twice", "lost", "swapped"]))
def test_batches_that_are_twice_or_lost_or_swapped(
    counts: list[int], data: st.DataObject, chunk_size: int | None, fault: str
) -> None:
    """A batch that occurs twice, is missing, or has changed places with the next one, is one finding of a raft log."""
    batches = raft_log(counts, batches_per_epoch=100)
    index = data.draw(st.integers(_INNER, len(batches) - 2))
    if fault == "twice":
        batches.insert(index, batches[index])
        expected = ("offset-order", _position(batches, index + 1), _offset(batches[index]))
    elif fault == "lost":
        del batches[index]
        expected = ("offset-gap", _position(batches, index), _offset(batches[index]))
    else:
        batches[index], batches[index + 1] = batches[index + 1], batches[index]
        expected = ("offset-order", _position(batches, index + 1), _offset(batches[index + 1]))
    assert places(survey(b"".join(batches), chunk_size=chunk_size)) == [expected]


def test_many_batches_that_come_again_are_one_finding() -> None:
    """A part of a log that is there twice is reported once, with how many batches it is."""
    batches = raft_log([2] * 9, batches_per_epoch=100)
    evidence = survey(b"".join([*batches[:7], *batches[2:7], *batches[7:]]))
    assert places(evidence) == [("offset-order", _position(batches, 7), 3)]
    assert finding(evidence, "offset-order").reason == "offsets 3 to 12 in 5 batches where offset 13 is next"


def test_a_compacted_log_is_harmless() -> None:
    """Missing offsets of a log that is not of raft are one harmless finding, which counts them."""
    batches = [data_batch(offset) for offset in (3, 4, 9, 12, 13)]
    evidence = survey(b"".join(batches), is_raft=False)
    assert places(evidence) == []
    found = finding(evidence, "offset-compacted")
    assert (found.position, found.offset) == (0, 0)
    assert found.reason == "9 offsets are missing at 3 places, the first is 0"


@pytest.mark.parametrize("chunk_size", [TINY_CHUNK, None])
def test_a_name_above_the_offsets(chunk_size: int | None) -> None:
    """A segment with the name of a later one is reported once, at its start; so is a first batch that is too low."""
    log = raft_log([1, 2, 3, 4], 50)
    assert places(survey(b"".join(log), 100, chunk_size=chunk_size)) == [("segment-start", 0, 50)]
    assert places(survey(log[0], 100)) == [("segment-start", 0, 50)]
    log[0] = with_base_offset(log[0], 18)
    assert places(survey(b"".join(log), 50, chunk_size=chunk_size)) == [("segment-start", 0, 18)]


def test_a_log_of_raft_starts_where_its_name_says() -> None:
    """A first batch above the offset of the name is a gap in raft."""
    assert places(survey(data_batch(7), 5)) == [("offset-gap", 0, 7)]
    assert places(survey(data_batch(7), None)) == []


def test_offsets_too_far_from_the_start_are_reported_once() -> None:
    """Offsets that an index cannot hold are one finding, and no gap besides."""
    far = 2**31
    batches = [data_batch(0), data_batch(far), data_batch(far + 1)]
    assert places(survey(b"".join(batches))) == [("segment-reach", len(batches[0]), far)]
    assert places(survey(data_batch(far - 1), 0, is_raft=False)) == []


def test_a_last_offset_delta_that_is_too_large_is_one_fault() -> None:
    """A batch that claims the offsets of those after it is the outlier, and they are not."""
    area = data_batch(0, count=1)[61:]
    claims = batch_bytes(area, base_offset=1, epoch=1, last_offset_delta=5000, count=1)
    batches = [data_batch(0), claims, *(data_batch(offset) for offset in range(2, 30))]
    evidence = survey(b"".join(batches), is_raft=False)
    assert places(evidence) == [("offset-order", len(batches[0]), 1)]


def test_messages_of_old_magics_are_in_order_too() -> None:
    """Messages of magic 1 before batches of magic 2 have offsets, and no epochs."""
    log = legacy_message(1, 4, None, b"a") + legacy_message(1, 5, None, b"b") + data_batch(6)
    evidence = survey(log, 4, is_raft=False)
    assert evidence.findings == ()
    assert evidence.extent is not None
    assert (evidence.extent.start_offset, evidence.extent.end_offset) == (4, 7)
    assert [seen.epoch for seen in evidence.epochs] == [1]
    backwards = legacy_message(0, 4, None, b"a") + legacy_message(0, 3, None, b"b") + legacy_message(0, 5, None, b"b")
    assert places(survey(backwards, 4, is_raft=False)) == [("offset-order", len(backwards) // 3, 3)]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([-(2**63), -1, 0, 1, 2, 3, 2**62, 2**63 - 2, 2**63 - 1]),
            st.sampled_from([-(2**31), -1, 0, 1, 2**31 - 1]),
            st.sampled_from([-(2**31), -1, 0, 1, 2**31 - 1]),
            st.sampled_from([0, 1, 2, 3]),
        ),
        max_size=9,
    ),
    st.booleans(),
    _chunk_sizes,
)
def test_any_headers(rows: list[tuple[int, int, int, int]], is_raft: bool, chunk_size: int | None) -> None:
    """No header makes a survey raise or warn, and every byte is accounted for."""
    log = b"".join(
        batch_bytes(base_offset=offset, last_offset_delta=delta, epoch=epoch, count=0, attributes=flags << 4)
        for offset, delta, epoch, flags in rows
    )
    coverage = survey(log, is_raft=is_raft, chunk_size=chunk_size).coverage
    assert coverage is not None
    assert coverage.explained_bytes == len(log)
