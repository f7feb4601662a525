# SPDX-License-Identifier: Apache-2.0
"""Merging of copies: the base where it is sound, others in its holes, and what compaction does to that."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.batches.batch import RecordBatch
from raftlog.tools.salvage.partitions.partition_merging import Seen, TopicMerged, merge_copies
from tests.tools.made_logs import batch
from tests.tools.salvage.partitions.test_partition_runs import cleaned_batch

Copy = Sequence[tuple[int, bytes]]
"""Batches, and from where each covers."""


def merged(*copies: Copy, start: int = 0, is_compacted: bool = False, is_settled: bool = True) -> TopicMerged:
    """Copies that are merged, the base first."""

    def read(number: int) -> Iterator[Seen]:
        position = 0
        for covers_from, data in copies[number]:
            yield Seen("f", RecordBatch(data, position), covers_from)
            position += len(data)

    ranks = range(len(copies))
    return merge_copies(read, ranks, start, is_compacted=is_compacted, is_settled=is_settled)


def taken(found: TopicMerged) -> list[list[tuple[int, int, int]]]:
    """Source, start and end of each piece, by stretch."""
    return [[(each.source, each.start_offset, each.end_offset) for each in one.pieces] for one in found.stretches]


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
    assert bool(pieces) == any(made)


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
    assert taken(merged(ones(0, 1), wide, is_compacted=True)) == [[(0, 0, 2)], [(1, 4, 5)]]
    found = merged(ones(0, 1), wide)
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
