# SPDX-License-Identifier: Apache-2.0
"""Compacted logs whose files are damaged or gone: what is missing is what compaction has removed, or it is named."""

import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from raftlog.errors import DecodeError
from raftlog.tools.salvage.partitions.partition_belief import Belief
from raftlog.tools.salvage.partitions.partition_plan import PartitionSalvage
from raftlog.tools.salvage.partitions.partition_planning import PartitionRequest, plan_partition
from raftlog.uuid_text import uuid_to_text
from tests.tools.salvage.made_quorums import Batch, data_batch
from tests.tools.salvage.partitions.made_partitions import NAME, ORDERS, PartitionDisk

COUNT = 12
TRUTH = [data_batch(each * 3, 0, 3, b"v%d " % each) for each in range(COUNT)]
END = TRUTH[-1].end
BELIEF = Belief("c", "/m", 9, 9, uuid_to_text(ORDERS), 0, 0, (0, 1, 2), (0, 1), (), True)

REMOVED = st.sets(st.integers(0, COUNT - 2), max_size=6)
ROLLS = st.sets(st.integers(1, COUNT - 1), min_size=1, max_size=4)
HARM = st.lists(
    st.tuples(st.sampled_from(["byte", "file", "file", "zeros", "tail"]), st.integers(0, 40), st.integers(0, 400)),
    min_size=1,
    max_size=3,
)
COPIES = st.lists(st.tuples(REMOVED, ROLLS, HARM), min_size=1, max_size=3)


class CleanedDisk(PartitionDisk):
    """A log of which a cleaner has removed batches. Its files have the names that they had before."""

    def __init__(self, path: Path, removed: set[int], rolls: set[int]) -> None:
        kept = [number for number in range(COUNT) if number not in removed]
        log = [TRUTH[number] for number in kept]
        first = {0: 0} | {min(each for each in range(len(kept)) if kept[each] >= roll): roll for roll in sorted(rolls)}
        super().__init__(path, log, {0: 0}, sorted(first))
        names = dict(zip(self.files, (f"{TRUTH[roll].start:020}.log" for roll in first.values()), strict=True))
        self.files = {names[name]: numbers for name, numbers in self.files.items()}
        self.contents = {names[name]: data for name, data in self.contents.items()}

    @property
    def whole_batches(self) -> list[Batch]:
        """Those whose bytes are as they were."""
        return [self.log[number] for number in sorted(self.intact)]


def named(found: PartitionSalvage) -> set[int]:
    """The offsets that a plan has as lost or perhaps lost."""
    ranges = [*((loss.start_offset, loss.end_offset) for loss in found.losses), *found.open_gaps]
    return {offset for start, end in ranges for offset in range(start, end)}


def check(copies: Sequence[tuple[set[int], set[int], list[tuple[str, int, int]]]], *, steps_over: bool) -> None:
    """What all copies had is in the result, or named; what is whole in the base is."""
    with tempfile.TemporaryDirectory() as place:
        disks = [CleanedDisk(Path(place) / str(n), removed, rolls) for n, (removed, rolls, _) in enumerate(copies)]
        for disk, (_, _, harm) in zip(disks, copies, strict=True):
            for each in harm:
                disk.damage(*each)
        sources = [disk.source(number, high_watermark=END) for number, disk in enumerate(disks)]
        request = PartitionRequest(NAME, BELIEF, ("/m",), steps_over)
        try:
            found = plan_partition(sources, request)
        except DecodeError:
            return
    kept = {offset for each in found.pieces for offset in range(each.start_offset, each.end_offset)}
    lost = named(found)
    common = [batch for batch in TRUTH if all(batch in disk.log for disk in disks)]
    missing = [batch.start for batch in common if not ({*range(batch.start, batch.end)} <= kept | lost)]
    assert missing == []
    assert not any(batch.start in lost - kept for batch in _taken(found))
    if steps_over and found.is_proven:
        beside = _with_neighbours(disks[found.base])
        assert [batch.start for batch in beside if batch not in _taken(found)] == []


def _taken(found: PartitionSalvage) -> list[Batch]:
    spans = [(each.start_offset, each.end_offset) for each in found.pieces]
    return [batch for batch in TRUTH if any(start <= batch.start < end for start, end in spans)]


def _with_neighbours(disk: CleanedDisk) -> list[Batch]:
    """The whole batches that have a whole one beside them in their file, which follows without a gap."""
    found = []
    for numbers in disk.files.values():
        for one, other in itertools.pairwise(numbers):
            if {one, other} <= disk.intact and disk.log[one].end == disk.log[other].start:
                found += [disk.log[one], disk.log[other]]
    return found


@settings(deadline=None, max_examples=40)
@given(COPIES, st.booleans())
@example([(set(), {4, 8}, [("file", 5, 0)])], False)
@example([(set(), {4, 8}, [("file", 5, 0)]), ({6}, {4, 8}, [("byte", 0, 0)])], True)
def test_what_all_copies_had_is_there_or_named(
    copies: list[tuple[set[int], set[int], list[tuple[str, int, int]]]], steps_over: bool
) -> None:
    """Copies that were cleaned at different times, with files that are damaged, cut or gone."""
    check(copies, steps_over=steps_over)


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(COPIES, st.booleans())
def test_what_all_copies_had_is_there_or_named_many_times(
    copies: list[tuple[set[int], set[int], list[tuple[str, int, int]]]], steps_over: bool
) -> None:
    """The same, many times."""
    check(copies, steps_over=steps_over)


def test_without_a_policy_a_log_that_was_cleaned_counts_as_compacted(tmp_path: Path) -> None:
    """Below the offset of the cleaner's checkpoint: there a gap inside a file is none, above it is a hole."""
    disk = CleanedDisk(tmp_path / "0", {3, 8}, set())
    belief = attrs.evolve(BELIEF, is_compacted=None)
    for cleaned_to, end in ((None, 9), (0, 9), (11, 9), (12, 24), (26, 24), (27, END)):
        request = PartitionRequest(NAME, belief, ("/m",))
        found = plan_partition([disk.source(0, cleaned_to=cleaned_to)], request)
        assert (found.end_offset, bool(found.losses), found.is_compacted) == (end, end < END, bool(cleaned_to))
