# SPDX-License-Identifier: Apache-2.0
"""Plans for damaged copies of a partition: nothing is invented, what was committed is there, and metadata decide."""

import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import DecodeError
from raftlog.tools.repair.sources import Source
from raftlog.tools.salvage.partitions.partition_plan import PartitionSalvage
from raftlog.tools.salvage.partitions.partition_planning import PartitionRequest, plan_partition
from tests.tools.salvage.made_quorums import DAMAGE, Batch
from tests.tools.salvage.partitions.made_partitions import NAME, PartitionDisk, PartitionPast, partition_pasts
from tests.tools.salvage.partitions.naive_partition import least_end, vouched

ROLLS = st.lists(st.integers(1, 30), max_size=3)
Damage = tuple[int, str, int, int]


def contents(salvage: PartitionSalvage, sources: Sequence[Source]) -> bytes:
    """The bytes of the log that is planned."""
    found = b""
    for piece in salvage.pieces:
        path = Path(sources[piece.source].path(f"{NAME}/{piece.file}"))
        found += path.read_bytes()[piece.position : piece.end_position]
    return found


def data_of(log: Sequence[Batch], start: int, end: int) -> bytes:
    """The bytes of the batches of a log from one offset to another (exclusive)."""
    return b"".join(batch.data for batch in log if start <= batch.start and batch.end <= end)


def damaged(
    past: PartitionPast, given: Sequence[int], damage: Sequence[Damage], rolls: Sequence[int], place: Path
) -> list[PartitionDisk]:
    """The disks of the brokers that are given, after damage to some."""
    disks = []
    epochs = [each for each in damage if each[1] == "epoch"]
    for broker in given:
        disk = PartitionDisk(place / str(broker), past.logs[broker], past.checkpoints[broker], rolls)
        is_stale = any(which % len(past.logs) == broker and kind == "stale" for which, kind, *_ in damage)
        for which, kind, number, amount in damage:
            if (which, kind, number, amount) in epochs[1:]:
                continue  # Two neighbours, or two copies, with the same false epoch would vouch for each other.
            if kind == "offset" and is_stale:
                continue  # An older batch with the offset of its place is what nothing can tell from the right one.
            if which % len(past.logs) == broker and disk.log and not _looks_right(disk.log, kind, number, amount):
                disk.damage(kind, number, amount)
        disks.append(disk)
    return disks


def _looks_right(log: Sequence[Batch], kind: str, number: int, amount: int) -> bool:
    """Whether damage gives a batch the epoch of its neighbour: nothing on that disk alone can show it."""
    number %= len(log)
    beside = {log[each].epoch for each in (number - 1, number + 1) if 0 <= each < len(log)}
    return kind == "epoch" and log[number].epoch ^ 1 << amount % 5 in beside


@settings(deadline=None, max_examples=50)
@given(partition_pasts(), st.sets(st.integers(0, 2), min_size=1), st.lists(DAMAGE, max_size=6), ROLLS)
def test_with_metadata_what_a_holder_had_whole_is_there(
    past: PartitionPast, some: set[int], damage: list[Damage], rolls: list[int]
) -> None:
    """The result is what its base had, or that and more of its epochs; all that was committed, if a holder is whole.

    It reaches at least as far as the naive model. The base is of the ISR, if anything of such a copy is left. All
    that is sound of the base is there, if holes are stepped over.
    """
    check(past, some, damage, rolls)


@pytest.mark.slow
@settings(deadline=None, max_examples=400)
@given(partition_pasts(), st.sets(st.integers(0, 2), min_size=1), st.lists(DAMAGE, max_size=8), ROLLS)
def test_with_metadata_what_a_holder_had_whole_is_there_many_times(
    past: PartitionPast, some: set[int], damage: list[Damage], rolls: list[int]
) -> None:
    """The same, many times."""
    check(past, some, damage, rolls)


def check(past: PartitionPast, some: set[int], damage: Sequence[Damage], rolls: Sequence[int]) -> None:
    """Damage disks, plan, and compare with what the brokers had."""
    given = sorted({each % len(past.logs) for each in some})
    with tempfile.TemporaryDirectory() as place:
        disks = damaged(past, given, damage, rolls, Path(place))
        left = [bool(vouched(disk)) for disk in disks]
        sources = [disk.source(broker) for broker, disk in zip(given, disks, strict=True)]
        try:
            salvage = plan_partition(sources, PartitionRequest(NAME, past.belief(), ("/m",)))
        except DecodeError:
            assert not any(left)
            return
        made = contents(salvage, sources)
        request = PartitionRequest(NAME, past.belief(), ("/m",), steps_over=True)
        over = contents(plan_partition(sources, request), sources)
    base, start, end = disks[salvage.base], salvage.start_offset, salvage.end_offset
    held = [index for index, broker in enumerate(given) if broker in past.isr]
    assert salvage.is_proven == (given[salvage.base] in past.isr)
    assert salvage.is_proven or not any(left[index] for index in held)
    if salvage.is_proven:
        longer = [disk.log for disk in disks if list(disk.log[: len(base.log)]) == list(base.log)]
        assert made in [data_of(log, start, end) for log in (base.log, *longer)]
    assert made in [data_of(disk.log, start, end) for disk in disks]
    assert end >= least_end(disks, salvage.base, past.epoch) or start > 0
    if salvage.is_proven:
        assert all(base.log[number].data in over for number in vouched(base))
    whole = [disks[index] for index in held if len(disks[index].intact) == len(disks[index].log) > 0]
    if whole and past.committed:
        assert (start, end >= past.committed[-1].end) == (0, True)
        assert made.startswith(b"".join(batch.data for batch in past.committed))


@settings(deadline=None, max_examples=25)
@given(partition_pasts(), st.lists(DAMAGE, max_size=4), ROLLS)
def test_without_metadata_the_choice_is_unproven(past: PartitionPast, damage: list[Damage], rolls: list[int]) -> None:
    """The result is a part of what one of the brokers had, and nothing else; it is never called proven."""
    with tempfile.TemporaryDirectory() as place:
        disks = damaged(past, range(len(past.logs)), damage, rolls, Path(place))
        sources = [disk.source(broker) for broker, disk in enumerate(disks)]
        try:
            salvage = plan_partition(sources, PartitionRequest(NAME))
        except DecodeError:
            assert not any(vouched(disk) for disk in disks)
            return
        made = contents(salvage, sources)
    assert (salvage.is_proven, len(salvage.unproven)) == (False, 1)
    assert made in [data_of(disk.log, salvage.start_offset, salvage.end_offset) for disk in disks]


@settings(deadline=None, max_examples=25)
@given(partition_pasts(), st.lists(DAMAGE, min_size=1, max_size=4), ROLLS)
def test_stepping_over_gives_all_that_is_sound_of_a_single_copy(
    past: PartitionPast, damage: list[Damage], rolls: list[int]
) -> None:
    """With one copy, stepping over holes keeps what is vouched for; losses and log together have each offset once."""
    with tempfile.TemporaryDirectory() as place:
        (disk,) = damaged(past, [past.leader], [(past.leader, *each[1:]) for each in damage], rolls, Path(place))
        if not disk.log:
            return
        least = vouched(disk)
        source = disk.source(past.leader, high_watermark=disk.log[-1].end)
        request = PartitionRequest(NAME, past.belief(), ("/m",))
        try:
            plans = [plan_partition([source], attrs.evolve(request, steps_over=each)) for each in (False, True)]
        except DecodeError:
            assert not least
            return
        made = contents(plans[1], [source])
    assert all(disk.log[number].data in made for number in least)
    for plan in plans:
        kept = [(piece.start_offset, piece.end_offset) for piece in plan.pieces]
        lost = [(loss.start_offset, loss.end_offset) for loss in plan.losses]
        spans = sorted([*kept, *lost])
        first = min(int(name[:20]) for name in disk.contents)
        assert spans[0][0] == first
        assert spans[-1][1] == disk.log[-1].end
        assert all(before[1] == after[0] for before, after in itertools.pairwise(spans))
    assert plans[0].losses or plans[0].pieces == plans[1].pieces
