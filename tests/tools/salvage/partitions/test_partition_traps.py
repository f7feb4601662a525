# SPDX-License-Identifier: Apache-2.0
"""Copies of which a plan could lose records, or mix lineages, and call it proven."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import attrs
import pytest

from raftlog.errors import RepairRefusedError
from raftlog.offsets import EpochEntry
from raftlog.records.checksum import crc32c
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.tools.repair.sources import Source
from raftlog.tools.salvage.partitions.partition_belief import Belief
from raftlog.tools.salvage.partitions.partition_building import build_partition
from raftlog.tools.salvage.partitions.partition_plan import PartitionSalvage
from raftlog.tools.salvage.partitions.partition_planning import PartitionRequest, plan_partition
from raftlog.tools.salvage.partitions.partition_words import plan_words
from raftlog.uuid_text import uuid_to_text
from tests.tools.salvage.made_quorums import Batch, data_batch
from tests.tools.salvage.partitions.made_partitions import NAME, ORDERS, PartitionDisk

BELIEF = Belief("c", "/m", 9, 9, uuid_to_text(ORDERS), 0, 0, (0, 1, 2), (0,), (), False)
COMPACTED = attrs.evolve(BELIEF, is_compacted=True)
HOME, AWAY = UUID(int=500), UUID(int=501)


def tens(*numbers: int, epoch: int = 0, text: bytes = b"a") -> list[Batch]:
    """Batches of ten records, by tens."""
    return [data_batch(each * 10, epoch, 10, text + b"%d " % each) for each in numbers]


LOG = tens(*range(6))


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory for disks."""
    with tempfile.TemporaryDirectory() as found:
        yield Path(found)


def disk(
    path: Path, log: Sequence[Batch], *bad: int, lost: Sequence[int] = (), rolls: Sequence[int] = (), **epochs: int
) -> PartitionDisk:
    """A disk with some batches that are bad, and some whose files are gone; where the epochs began, as e0=0."""
    made = PartitionDisk(path, log, {int(name[1:]): start for name, start in (epochs or {"e0": 0}).items()}, rolls)
    for number in bad:
        made.damage("byte", number, 5)
    for number in lost:
        made.damage("file", number, 0)
    return made


def plan(belief: Belief | None, *sources: Source, **options: Any) -> PartitionSalvage:
    """A plan."""
    return plan_partition(sources, PartitionRequest(NAME, belief, ("/m",), **options))


def spans(found: PartitionSalvage) -> list[tuple[int, int, int]]:
    """Source, start and end of each piece."""
    return [(piece.source, piece.start_offset, piece.end_offset) for piece in found.pieces]


def lost(found: PartitionSalvage) -> list[tuple[int, int]]:
    """What is named as lost."""
    return [(loss.start_offset, loss.end_offset) for loss in found.losses]


def test_a_missing_file_of_a_compacted_log_is_taken_from_another_copy(place: Path) -> None:
    """It is not taken for compaction; if nobody has it, it is named. Where the cleaner never was, it is a hole."""
    whole = disk(place / "whole", LOG, rolls=(2, 4)).source(1)
    base = disk(place / "base", LOG, lost=(2,), rolls=(2, 4))
    found = plan(attrs.evolve(COMPACTED, isr=(0, 1)), base.source(0, high_watermark=60), whole)
    assert (found.is_proven, found.end_offset, found.batch_count, found.losses) == (True, 60, 6, ())
    found = plan(COMPACTED, base.source(0))
    assert (found.open_gaps, lost(found), found.batch_count) == (((20, 40),), [], 4)
    text = "\n".join(plan_words(found, [base.source(0)], "p"))
    assert "Perhaps lost: offsets 20 to 39" in text
    assert "Lost: nothing else" in text
    for cleaned_to, gaps in ((40, ((20, 40),)), (39, ())):
        found = plan(COMPACTED, base.source(0, cleaned_to=cleaned_to))
        assert (found.open_gaps, bool(found.losses)) == (gaps, not gaps)


@pytest.mark.parametrize(
    ("policy", "cleaned_to", "below", "end"),
    [(False, None, None, 20), (False, 60, None, 20), (None, None, 10, 20), (None, 60, 60, 60), (True, None, None, 60)],
)
def test_one_odd_batch_does_not_make_a_log_compacted(
    policy: bool | None, cleaned_to: int | None, below: int | None, end: int, place: Path
) -> None:
    """A file is missing, and a batch before it has fewer records than offsets, or the cleaner has an old entry."""
    odd = bytearray(data_batch(0, 0, 9, b"odd").data)
    odd[23:27] = (9).to_bytes(4, "big")
    odd[17:21] = crc32c(odd[21:]).to_bytes(4, "big")
    log = [Batch(0, 10, 0, False, bytes(odd)), *LOG[1:]]
    made = disk(place / "0", log, lost=(2,), rolls=(2, 4))
    found = plan(attrs.evolve(BELIEF, is_compacted=policy), made.source(0, cleaned_to=cleaned_to))
    assert (found.end_offset, found.compacted_below, bool(found.compaction_reason)) == (end, below, True)
    assert bool(found.losses) == (end == 20)
    assert found.compaction_reason in "\n".join(plan_words(found, [made.source(0)], "p"))


def test_a_hole_is_not_filled_from_another_lineage_of_the_epoch(place: Path) -> None:
    """The other copy differs right after the hole: from where on it does, nobody knows."""
    base = disk(place / "0", LOG, 3).source(0)
    other = disk(place / "1", [*LOG[:3], *tens(3, 4, 5, text=b"X")]).source(1)
    for belief in (BELIEF, COMPACTED):
        found = plan(belief, base, other)
        assert (spans(found), found.is_proven) == ([(0, 0, 30)], True)
        assert lost(found) == [(30, 40), (40, 60)]
        assert [each.offset for each in found.conflicts] == [40]


def test_the_base_is_not_left_out_in_a_conflict(place: Path) -> None:
    """The other copy's batches overlap those of the base, and begin in a hole of it."""
    log = [data_batch(*each, b"a") for each in ((0, 0, 10), (10, 0, 5), (15, 0, 5), (20, 0, 10), (30, 0, 10))]
    base = disk(place / "0", log, 1).source(0)
    other = disk(place / "1", [log[0], *tens(1, 2, 3, text=b"X")]).source(1)
    found = plan(BELIEF, base, other, steps_over=True)
    assert (spans(found), lost(found)) == ([(0, 0, 10), (0, 15, 40)], [(10, 15)])


@pytest.mark.parametrize("steps_over", [False, True])
def test_what_others_have_before_the_base_begins_is_named(steps_over: bool, place: Path) -> None:
    """Its first file may be gone; if its log start says that it was deleted, it is not."""
    base = disk(place / "0", LOG, lost=(0,), rolls=(4,))
    other = disk(place / "1", LOG[:3]).source(1)
    found = plan(BELIEF, base.source(0), other, steps_over=steps_over)
    assert lost(found) == ([(30, 40)] if steps_over else [(0, 30), (30, 40)])
    assert found.start_offset == (0 if steps_over else 40)
    assert found.open_gaps == ()
    found = plan(BELIEF, base.source(0), steps_over=steps_over)
    assert (lost(found), found.open_gaps) == ([], ((0, 40),))
    found = plan(BELIEF, base.source(0, log_start=40), other, steps_over=steps_over)
    assert (lost(found), found.open_gaps, found.start_offset) == ([], (), 40)
    found = plan(BELIEF, base.source(0, log_start=39), other)
    assert (lost(found), found.open_gaps, found.start_offset) == ([], ((39, 40),), 40)


def test_what_an_unclean_election_has_replaced_is_named(place: Path) -> None:
    """It was committed by the high watermark of the copy that has it; at that itself it was not."""
    base = disk(place / "0", [*LOG[:2], *tens(2, epoch=1)], e0=0, e1=20)
    old = disk(place / "1", LOG)
    for high_watermark, named in ((20, 0), (21, 1), (60, 1)):
        found = plan(attrs.evolve(BELIEF, leader_epoch=1), base.source(0), old.source(1, high_watermark=high_watermark))
        assert (found.end_offset, len(found.elsewhere)) == (30, named)
    assert "offsets 20 to 59" in found.elsewhere[0]


def test_records_of_the_present_leader_are_of_its_lineage(place: Path) -> None:
    """The leader has lost all of its epoch, and a copy outside of the ISR has some."""
    log = [*LOG[:1], *tens(1, 2, 3, epoch=1)]
    base = disk(place / "0", log, 1, 2, 3, e0=0, e1=10).source(0, high_watermark=40)
    other = disk(place / "1", log[:3], e0=0, e1=10).source(1)
    found = plan(attrs.evolve(BELIEF, leader_epoch=1), base, other)
    assert (spans(found), lost(found)) == ([(0, 0, 10), (1, 10, 30)], [(30, 40)])


def test_one_foreign_file_does_not_outweigh_the_log_after_it(place: Path) -> None:
    """Runs of an epoch count together, and twice with the checkpoint; if they still do not, the plan is unproven."""
    foreign = [data_batch(each * 5, 7, 5, b"f") for each in range(4)]
    log = [*foreign, *(data_batch(20 + each * 5, 5, 5, b"g%d" % each) for each in range(6))]
    belief = attrs.evolve(BELIEF, leader_epoch=9)
    made = disk(place / "0", log, rolls=(4, 6, 8), e5=0)
    found = plan(belief, made.source(0))
    assert (found.start_offset, found.end_offset, found.is_proven) == (20, 50, True)
    assert "4 sound batches within offsets 0 to 19" in found.elsewhere[0]
    made = disk(place / "0", log, 5, 7, rolls=(4, 6, 8), e5=0)
    made.has_checkpoint = False
    found = plan(belief, made.source(0))
    assert (found.end_offset, found.is_proven) == (20, True)
    made = disk(place / "0", [*foreign[:3], *log[4:]], 4, 6, rolls=(3, 5, 7), e5=0)
    made.has_checkpoint = False
    found = plan(belief, made.source(0))
    assert (found.end_offset, found.is_proven, len(found.elsewhere)) == (15, False, 1)


@pytest.mark.parametrize(
    ("assigned", "found", "proven"),
    [
        (HOME, HOME, True),
        (HOME, AWAY, False),
        (HOME, None, False),
        (None, AWAY, True),
        (None, None, True),
    ],
)
def test_a_copy_in_another_directory_is_not_that_of_the_broker(
    assigned: UUID | None, found: UUID | None, proven: bool, place: Path
) -> None:
    """It may be an old one, which lacks what was committed since."""
    directories = (None if assigned is None else uuid_to_text(assigned), None, None)
    belief = attrs.evolve(BELIEF, directories=directories)
    made = plan(belief, disk(place / "0", LOG[:2]).source(0, directory_id=found))
    assert (made.is_proven, any("it may be an old one" in each for each in made.unproven)) == (proven, not proven)


def test_two_copies_of_one_broker_prove_nothing(place: Path) -> None:
    """One of them is old; of brokers that are not known to hold all, it does not matter."""
    for node, proven in ((0, False), (1, True)):
        whole = disk(place / "0", LOG).source(0)
        some = [disk(place / str(each), LOG[:2]).source(node) for each in (1, 2)]
        found = plan(BELIEF, whole, *some)
        assert (found.is_proven, found.end_offset) == (proven, 60)


def test_a_checkpoint_above_the_epoch_of_the_metadata_proves_nothing(place: Path) -> None:
    """They are older than the log; at the epoch itself they are not."""
    for epoch, proven in ((0, True), (1, False)):
        made = PartitionDisk(place / "0", LOG, {0: 0, epoch: 60 * epoch})
        found = plan(BELIEF, made.source(0))
        assert found.is_proven == proven


@pytest.mark.parametrize(("high_watermark", "is_empty"), [(None, False), (1, True), (100, True), (101, False)])
def test_a_log_of_which_all_was_deleted_is_a_log(high_watermark: int | None, is_empty: bool, place: Path) -> None:
    """It begins and ends where its only file does, if its high watermark is not after that."""
    made = disk(place / "0", [], e0=0, e3=40)
    made.contents = {f"{100:020}.log": bytearray()}
    source = made.source(0, high_watermark=high_watermark)
    stale = disk(place / "1", LOG[:2]).source(1)
    belief = attrs.evolve(BELIEF, leader_epoch=3)
    found = plan(belief, source, stale)
    assert (found.is_proven, found.start_offset == found.end_offset == 100) == (is_empty, is_empty)
    if not is_empty:
        return
    assert (found.pieces, found.losses, len(found.dropped)) == ((), (), 1)
    assert "The log is empty" in "\n".join(plan_words(found, [source, stale], "p"))
    (place / "new").mkdir()
    build_partition(LocalFileSystem(), [source, stale], found, str(place / "new"))
    log = place / "new" / str(NAME)
    assert {path.name: path.stat().st_size for path in log.glob("*.log")} == {f"{100:020}.log": 0}
    assert (log / "leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n3 40\n"


def test_a_tail_of_a_follower_that_nobody_vouches_for_is_unproven(place: Path) -> None:
    """The leader's log is whole, and says nothing of the present epoch: the tail was replaced, or is lost there."""
    follower = disk(place / "1", LOG[:4]).source(1)
    belief = attrs.evolve(BELIEF, leader_epoch=1, isr=(0, 1))
    made = disk(place / "0", LOG[:3])
    for checkpoint, proven in (({0: 0, 1: 30}, True), ({0: 0}, False)):
        made = PartitionDisk(place / "0", LOG[:3], checkpoint)
        found = plan(belief, made.source(0, high_watermark=30), follower)
        assert (found.base, found.end_offset, found.is_proven, len(found.dropped)) == (0, 30, proven, 1)


def test_tiered_storage_keeps_the_epochs_of_remote_segments(place: Path) -> None:
    """Those before the first batch are in the base's checkpoint alone; without, a tiered topic is refused."""
    log = tens(50, 51, epoch=2)
    made = disk(place / "0", log, e0=0, e1=100, e2=300)
    belief = attrs.evolve(BELIEF, leader_epoch=2, is_tiered=True)
    found = plan(belief, made.source(0))
    assert found.early_epochs == (EpochEntry(0, 0), EpochEntry(1, 100), EpochEntry(2, 300))
    assert (found.open_gaps, plan(attrs.evolve(belief, is_tiered=False), made.source(0)).open_gaps) == ((), ((0, 500),))
    made.has_checkpoint = False
    with pytest.raises(RepairRefusedError, match=r"remote\.storage\.enable"):
        plan(belief, made.source(0))
    assert plan(attrs.evolve(belief, is_tiered=False), made.source(0)).early_epochs == ()
