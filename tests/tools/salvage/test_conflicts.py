# SPDX-License-Identifier: Apache-2.0
"""Sound batches of one epoch and offset with different bytes: which side the salvaged log goes on with."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.offsets import OffsetAndEpoch
from raftlog.tools.salvage.choosing import FoundSnapshot
from raftlog.tools.salvage.longest_log import LongestLog, find_longest_log
from raftlog.tools.salvage.winning import Known
from tests.tools.salvage.made_quorums import DAMAGE, Batch, Disk, Past, data_batch, pasts
from tests.tools.salvage.test_longest_log import NOTHING, bytes_of, draw_snapshots, made, plant, salvage


def sides(tmp_path: Path, others: int = 1) -> tuple[list[Batch], list[Batch], list[Disk]]:
    """Two logs that part at offset 7, and the disks of one node with the first, and of others with the second."""
    one, other = made((1, 6)), made((1, 3))
    other += [data_batch(7, 1, 2, b"other"), data_batch(9, 1, 2, b"other")]
    return one, other, [Disk(tmp_path / "a", one), *(Disk(tmp_path / f"b{n}", other) for n in range(others))]


def end_of(found: LongestLog | None) -> tuple[int, int]:
    """Start and end offset of a result; (0, 0) without one."""
    chosen = None if found is None else found.chosen
    return (0, 0) if chosen is None else (chosen.start_offset, chosen.end.offset)


@pytest.mark.parametrize(
    ("offset", "start", "end"),
    [
        (0, 0, 7),
        (7, 0, 7),  # Below the conflict, a snapshot passes nothing.
        (8, 8, 8),
        (9, 9, 13),
        (11, 9, 13),
        (13, 9, 13),
    ],
)
@pytest.mark.parametrize("others", [1, 2, 3])
def test_a_side_with_what_is_committed_beats_more_nodes(
    offset: int, start: int, end: int, others: int, tmp_path: Path
) -> None:
    """What a snapshot covers is committed, on whichever side it is, and however many nodes are on the other."""
    one, _, disks = sides(tmp_path, others)
    found = salvage(disks, [FoundSnapshot(0, "s", offset, 1)] if offset else [])
    assert end_of(found) == (start, end)
    assert found is not None
    assert found.chosen is not None
    if start > 8:  # At 8 there is an empty log after the snapshot.
        assert {piece.source for piece in found.chosen.pieces} <= {0}
        assert bytes_of(disks, found.chosen.pieces) == b"".join(each.data for each in one if each.start >= start)


def test_of_two_sides_with_what_is_committed_more_nodes_decide(tmp_path: Path) -> None:
    """Both have a snapshot of the last committed record."""
    _, other, disks = sides(tmp_path, 2)
    found = salvage(disks, [FoundSnapshot(0, "s", 9, 1), FoundSnapshot(1, "s", 9, 1)])
    assert found is not None
    assert found.chosen is not None
    assert bytes_of(disks, found.chosen.pieces) == other[-1].data


def test_what_is_proven_beyond_a_conflict_decides(tmp_path: Path) -> None:
    """Each side has a snapshot, and only one of them reaches the record that is proven to be committed."""
    _, _, disks = sides(tmp_path, 2)
    snapshots = [FoundSnapshot(0, "s", 9, 1), FoundSnapshot(1, "s", 9, 1)]
    assert end_of(salvage(disks, snapshots, Known.of_point(OffsetAndEpoch(11, 1)))) == (9, 11)
    assert end_of(salvage(disks, snapshots, Known.of_point(OffsetAndEpoch(12, 1)))) == (9, 13)


@pytest.mark.parametrize(("offset", "expected"), [(9, (0, 11)), (11, (0, 11)), (12, (12, 12)), (13, (13, 13))])
def test_beyond_a_settled_conflict_a_snapshot_of_the_other_side_is_all_there_is(
    offset: int, expected: tuple[int, int], tmp_path: Path
) -> None:
    """The majority's batch is taken, and no batch of the other side; its snapshot counts if nothing reaches as far."""
    _, other, disks = sides(tmp_path, 2)
    found = salvage(disks, [FoundSnapshot(0, "s", offset, 1)], is_majority=lambda numbers, _: len(numbers) > 1)
    assert end_of(found) == expected
    assert found is not None
    assert found.chosen is not None
    assert bytes_of(disks, found.chosen.pieces) == (b"".join(each.data for each in other) if expected[0] == 0 else b"")


def test_each_conflict_has_its_sides(tmp_path: Path) -> None:
    """Three logs of three nodes: of each way through two conflicts, the last side is another one."""
    first, second = made((1, 6)), made((1, 6), text=b"s")
    third = [*second[:4], *(data_batch(each.start, 1, 2, b"t") for each in second[4:])]
    disks = [Disk(tmp_path / str(number), log) for number, log in enumerate([first, second, third])]
    for number, log in enumerate([first, second, third]):
        found = salvage(disks, [FoundSnapshot(number, "s", 11, 1)])
        assert found is not None
        assert found.chosen is not None
        start = 3 if number == 0 else 9  # After its last conflict.
        assert bytes_of(disks, found.chosen.pieces) == b"".join(each.data for each in log if each.start >= start)
        assert all(number in conflict.kept for conflict in found.merged.conflicts)


REWRITTEN = st.tuples(st.integers(0, 4), st.just("rewritten"), st.integers(0, 12), st.integers(0, 4))


@settings(deadline=None, max_examples=40)
@given(pasts(), st.data())
def test_no_source_takes_away_what_is_committed(past: Past, data: st.DataObject) -> None:
    """A further source never costs a record that a snapshot proves; and no two sides are merged."""
    check(past, data)


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(pasts(), st.data())
def test_no_source_takes_away_what_is_committed_many_times(past: Past, data: st.DataObject) -> None:
    """The same, many times."""
    check(past, data)


def check(past: Past, data: st.DataObject) -> None:
    """Draw disks of which some have sound batches that nobody else has; salvage some of them, and one more."""
    with tempfile.TemporaryDirectory() as directory:
        disks = [Disk(Path(directory, f"n{number}"), log) for number, log in enumerate(past.logs)]
        plant(disks, data.draw(st.lists(REWRITTEN | DAMAGE, min_size=1, max_size=4), "damage"))
        snapshots = draw_snapshots(past, data)
        files = [disk.written(number) for number, disk in enumerate(disks)]
        all_ends = []
        for count in range(1, len(files) + 1):
            own = [each for each in snapshots if each.source < count]
            found = find_longest_log(files[:count], own, NOTHING, lambda numbers, _: 2 * len(numbers) > len(files))
            all_ends.append(end_of(found)[1])
            if found is None:
                continue
            committed = max((each.offset for each in found.snapshots), default=0)
            assert all_ends[-1] >= min(committed, max(all_ends))
            assert all_ends[-1] >= committed
            assert_of_one_side(found)


def assert_of_one_side(found: LongestLog) -> None:
    """Check that nothing is of two sides, and nothing of a batch that may be wrong."""
    pieces = () if found.chosen is None else found.chosen.pieces
    for conflict in found.merged.conflicts:
        later = {piece.source for piece in pieces if piece.end_offset > conflict.offset}
        assert not later & set(conflict.left_out)
        if not conflict.is_settled:
            assert all(not piece.start_offset <= conflict.offset < piece.end_offset for piece in pieces)
