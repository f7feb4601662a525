# SPDX-License-Identifier: Apache-2.0
"""Merging of copies: the base where it is sound, others in its holes, and what compaction does to that."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.checksum import crc32c
from raftlog.tools.salvage.partitions.partition_merging import TopicMerged, merge_copies
from raftlog.tools.salvage.partitions.partition_runs import Seen
from tests.tools.made_logs import batch
from tests.tools.salvage.partitions.test_partition_runs import cleaned_batch

Gaps = list[tuple[int, bytes, int]]
Copy = Sequence[tuple[int, bytes]] | Gaps
"""Batches, from where each covers, and from where perhaps."""
NEVER: Final = (1 << 63) - 1


def merged(*copies: Copy, start: int = 0, is_compacted: bool = False, is_settled: bool = True) -> TopicMerged:
    """Copies that are merged, the base first."""

    def read(number: int) -> Iterator[Seen]:
        position = 0
        for covers_from, data, *perhaps_from in copies[number]:
            yield Seen("f", RecordBatch(data, position), covers_from, *perhaps_from)
            position += len(data)

    ranks = range(len(copies))
    below = 1 << 62 if is_compacted else 0
    return merge_copies(read, ranks, start, compacted_below=below, is_settled=is_settled)


def taken(found: TopicMerged) -> list[list[tuple[int, int, int]]]:
    """Source, start and end of each piece, by stretch."""
    return [[(each.source, each.start_offset, each.end_offset) for each in one.pieces] for one in found.stretches]


def alone(*offsets: int) -> Gaps:
    """Batches of one record at some offsets, with no gap before any."""
    return [(offset, batch(offset), NEVER) for offset in offsets]


def ones(*offsets: int) -> Copy:
    """Batches of one record at some offsets."""
    return [(offset, batch(offset)) for offset in offsets]


@given(st.lists(st.sets(st.integers(0, 12)), min_size=1, max_size=3), st.integers(0, 12))
def test_each_batch_that_a_copy_has_is_there_once(copies: list[set[int]], start: int) -> None:
    """From the first copy that has it; a stretch ends where no copy has the next one."""
    found = merged(*(ones(*sorted(each)) for each in copies), start=start)
    had = sorted({offset for each in copies for offset in each if offset >= start})
    spans = [(piece[1], piece[2], piece[0]) for stretch in taken(found) for piece in stretch]
    assert [offset for first, end, _ in spans for offset in range(first, end)] == had
    for first, end, source in spans:
        for offset in range(first, end):
            assert source == min(number for number, each in enumerate(copies) if offset in each)
    assert len(found.stretches) == sum(offset - 1 not in had for offset in had)
    assert found.conflicts == ()


@given(st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4)), max_size=5), min_size=1, max_size=3))
def test_batches_of_any_extent_never_overlap_in_the_result(copies: list[list[tuple[int, int]]]) -> None:
    """Whatever the batches of copies are: each that is taken is a whole one of its copy, and begins after the last."""
    made: list[list[tuple[int, bytes]]] = []
    for steps in copies:
        end, found = 0, []
        for gap, count in steps:
            found.append((end + gap, batch(end + gap, [b"v"] * count)))
            end += gap + count
        made.append(found)
    pieces = [piece for stretch in taken(merged(*made, is_compacted=True)) for piece in stretch]
    assert all(before[2] <= after[1] for before, after in itertools.pairwise(pieces))
    for source, start, end in pieces:
        whole = [RecordBatch(data) for _, data in made[source]]
        assert {start} <= {each.base_offset for each in whole}
        assert {end} <= {each.next_offset for each in whole}
    assert bool(pieces) or not made[0]


def test_a_gap_of_compaction_in_the_base_is_not_filled() -> None:
    """What the base's cleaner has removed does not come back from a copy that was cleaned less."""
    base = [(0, batch(0)), (1, batch(5))]
    found = merged(base, ones(0, 1, 2, 5, 6), is_compacted=True)
    assert taken(found) == [[(0, 0, 6), (1, 6, 7)]]


def test_batches_that_were_cleaned_at_different_times_are_no_conflict() -> None:
    """The base's is taken, and it is said from where on they differ; otherwise it is a conflict."""
    base = [(0, batch(0)), (1, cleaned_batch(1, 3, (3,)))]
    other = [(0, batch(0)), (1, cleaned_batch(1, 3, (1, 2, 3)))]
    found = merged(base, other, is_compacted=True)
    assert (taken(found), found.conflicts, found.cleaned_apart) == ([[(0, 0, 4)]], (), 1)
    found = merged(base, other)
    assert (taken(found), found.cleaned_apart) == ([[(0, 0, 4)]], None)
    assert [(each.offset, each.kept, each.left_out) for each in found.conflicts] == [(1, (0,), (1,))]


def test_without_a_proof_no_side_of_a_conflict_is_taken() -> None:
    """The log has a hole there, and goes on with the preferred side; with a proof too, if the base has neither."""
    differing = [(0, batch(0)), (1, batch(1, [b"other"])), (2, batch(2))]
    found = merged(ones(0, 1, 2), differing, is_settled=False)
    assert taken(found) == [[(0, 0, 1)], [(0, 2, 3)]]
    assert [each.is_settled for each in found.conflicts] == [False]
    found = merged(ones(0, 2), differing, ones(0, 1, 2))
    assert taken(found) == [[(0, 0, 1)], [(0, 2, 3)]]


def test_a_batch_that_begins_in_the_middle_of_what_was_taken_is_not_used() -> None:
    """The log goes on after it; the first batch of all may begin before the start, as after records were deleted."""
    wide = [(0, batch(0, [b"v"] * 4)), (4, batch(4))]
    for is_compacted in (False, True):
        found = merged(ones(0, 1), wide, is_compacted=is_compacted)
        assert (taken(found), len(found.conflicts)) == ([[(0, 0, 2)]], 1)
    found = merged(wide, start=2)
    assert taken(found) == [[(0, 0, 5)]]
    assert found.stretches[0].start_offset == 0


def test_open_transactions_are_those_without_a_marker() -> None:
    """By producer: what has begun before a hole, and what is open at the end."""
    options: dict[str, Any] = {"is_transactional": True, "producer_epoch": 0}
    begun = [batch(0, producer_id=5, base_sequence=0, **options), batch(1, producer_id=6, base_sequence=0, **options)]
    ended = batch(3, [b"\0\0\0\0\0\0"], key=b"\0\0\0\1", producer_id=5, is_control=True, **options)
    found = merged([(0, begun[0]), (1, begun[1]), (3, ended)])
    assert [stretch.open_transactions for stretch in found.stretches] == [(5, 6), (6,)]


def after_file(end: int, first: int, *offsets: int) -> Gaps:
    """Batches of one record of a compacted log's file, by its base offset, after a file that ends at an offset."""
    return [
        (first if each == offsets[0] else each, batch(each), end if each == offsets[0] else NEVER) for each in offsets
    ]


@pytest.mark.parametrize("start", [0, 2])
def test_a_gap_between_files_is_filled_by_whoever_has_something_there(start: int) -> None:
    """It may be a file that is missing; if no copy fills it, it is named, and the log goes on."""
    base = [*alone(0, 1, 2), *after_file(3, 6, 6, 7)]
    found = merged(base, alone(0, 1, 2, 3, 4, 5, 6), is_compacted=True, start=start)
    assert taken(found) == [[(0, start, 3), (1, 3, 6), (0, 6, 8)]]
    assert (found.open_gaps, found.cleaned_apart) == ((), 3)
    found = merged(base, alone(0, 1, 2), is_compacted=True, start=start)
    assert (taken(found), found.open_gaps) == ([[(0, start, 8)]], ((3, 6),))
    found = merged(base, alone(4), is_compacted=True, start=start)
    assert (taken(found), found.open_gaps) == ([[(0, start, 3), (1, 4, 5), (0, 6, 8)]], ((3, 4), (5, 6)))


def test_a_gap_that_another_copy_has_inside_a_file_was_left_by_compaction() -> None:
    """Nothing is missing in the other's file; what the base has and the other's cleaner has removed stays."""
    base = [*alone(0, 1), *after_file(2, 5, 5, 6)]
    other = [*alone(0, 1), (2, batch(6), NEVER)]
    found = merged(base, other, is_compacted=True)
    assert (taken(found), found.open_gaps) == ([[(0, 0, 7)]], ())
    found = merged([*alone(0, 1), *after_file(2, 6, 6)], [*alone(0, 1), (2, batch(5), NEVER)], is_compacted=True)
    assert (taken(found), found.open_gaps) == ([[(0, 0, 2), (1, 5, 6), (0, 6, 7)]], ())


@given(st.integers(1, 8), *[st.sets(st.integers(0, 11))] * 2, st.booleans())
def test_a_copy_that_differs_gives_nothing_after_what_it_has_in_common(
    parting: int, own: set[int], others: set[int], is_settled: bool
) -> None:
    """All that the base has is there, if it is right; of the other what ends at the last common batch, or before it.

    The other copy has other records from an offset on, in the same epoch; both have holes anywhere.
    """
    other = [(each, batch(each, [b"other" if each >= parting else b"v"])) for each in sorted(others)]
    found = merged(ones(*sorted(own)), other, is_settled=is_settled)
    different = min((each for each in own & others if each >= parting), default=None)
    common = max((each + 1 for each in own & others if each < parting), default=0)
    filled = {each for each in others - own if different is None or each < common}
    kept = own if is_settled else own - {different}
    spans = [(piece[1], piece[2], piece[0]) for stretch in taken(found) for piece in stretch]
    assert {(each, number) for start, end, number in spans for each in range(start, end)} == {
        *((each, 0) for each in kept),
        *((each, 1) for each in filled),
    }
    assert [each.offset for each in found.conflicts] == [each for each in [different] if each is not None]


def test_of_two_fillers_that_differ_the_one_that_the_base_confirms_is_right() -> None:
    """By a later batch of the epoch; if it confirms neither, both give nothing after what they have in common."""
    right, wrong = ones(0, 1, 2, 3), [*ones(0), (1, batch(1, [b"other"])), (2, batch(2, [b"other"]))]
    found = merged(ones(0, 3), wrong, right)
    assert taken(found) == [[(0, 0, 1), (2, 1, 3), (0, 3, 4)]]
    assert [(each.offset, each.kept, each.left_out, each.is_settled) for each in found.conflicts] == [
        (1, (2,), (1,), True)
    ]
    found = merged(ones(0, 4), wrong, right)
    assert taken(found) == [[(0, 0, 1)], [(0, 4, 5)]]
    found = merged(ones(0, 4), wrong, right, right)
    assert taken(found) == [[(0, 0, 1)], [(0, 4, 5)]]
    assert [each.is_settled for each in found.conflicts] == [False, False]


@pytest.mark.parametrize(
    ("kept", "value", "is_conflict"),
    [((1, 2), b"v%d", False), ((2, 3), b"v%d", False), ((1, 2), b"w%d", True), ((3,), b"w%d", False)],
)
def test_compaction_removes_records_and_changes_none(kept: tuple[int, ...], value: bytes, is_conflict: bool) -> None:
    """Two records of one offset that differ are a conflict in a compacted log, too."""
    base = [(0, batch(0)), (1, cleaned_batch(1, 3, (1, 2)))]
    data = cleaned_batch(1, 3, kept)
    if value != b"v%d":
        rest = data[21:].replace(b"v", b"w")
        data = data[:17] + crc32c(rest).to_bytes(4, "big") + rest
    found = merged(base, [(0, batch(0)), (1, data), (4, batch(4))], is_compacted=True)
    assert bool(found.conflicts) == is_conflict
    assert taken(found) == ([[(0, 0, 4)]] if is_conflict else [[(0, 0, 4), (1, 4, 5)]])
