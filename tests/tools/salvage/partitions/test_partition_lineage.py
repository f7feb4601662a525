# SPDX-License-Identifier: Apache-2.0
"""Which copy is the base, and how far the others are of its lineage: by the metadata, and without."""

import attrs
import pytest

from raftlog.offsets import EpochEntry
from raftlog.tools.salvage.partitions.partition_lineage import CopyKnowledge, choose_base
from raftlog.tools.salvage.winning import Extent, Known


def copy(
    node_id: int | None, *ends: int, checkpoint: tuple[tuple[int, int], ...] = (), lost: bool = False
) -> CopyKnowledge:
    """A copy whose epoch 0 ends at the first of some offsets, epoch 1 at the second, and so on."""
    starts = (0, *ends)
    known = Known({epoch: Extent(starts[epoch], end) for epoch, end in enumerate(ends) if end > starts[epoch]})
    return CopyKnowledge(known, tuple(EpochEntry(*each) for each in checkpoint), node_id, lost)


def test_a_member_of_the_isr_beats_a_longer_copy() -> None:
    """A copy that is not in the ISR may go on with records that were never committed: they are not taken."""
    base = choose_base([copy(1, 10), copy(2, 15)], [1], 1)
    assert base is not None
    assert (base.index, base.is_holder, base.winner.ends) == (0, True, (10, 10))


def test_without_metadata_the_most_up_to_date_copy_is_the_base() -> None:
    """The later epoch first, then the greater offset, as in an election; and it is no holder."""
    for copies, expected in (
        ([copy(1, 10), copy(2, 15)], 1),
        ([copy(1, 10, 12), copy(2, 15)], 0),
        ([copy(None, 10), copy(2)], 0),
    ):
        base = choose_base(copies, [], None)
        assert base is not None
        assert (base.index, base.is_holder) == (expected, False)


@pytest.mark.parametrize(
    ("leader_epoch", "lost", "checkpoint", "expected"),
    [
        (0, False, (), 15),  # The present leader wrote them, and nobody has replaced them since.
        (1, False, (), 10),
        (1, True, (), 10),
        (1, True, ((0, 0),), 15),  # The base had no record of a later epoch, and its end is lost.
        (1, True, ((0, 0), (1, 12)), 12),  # Its own records went as far.
        (1, False, ((0, 0),), 10),
        (0, True, ((0, 0),), 15),
    ],
)
def test_after_the_end_of_the_base_only_what_was_not_replaced_counts(
    leader_epoch: int, lost: bool, checkpoint: tuple[tuple[int, int], ...], expected: int
) -> None:
    """Records of another copy after the base's end: of the present epoch, or of the last that the base has had."""
    copies = [copy(1, 10, checkpoint=checkpoint, lost=lost), copy(2, 15)]
    base = choose_base(copies, [1], leader_epoch)
    assert base is not None
    assert base.winner.ends == (10, expected)


@pytest.mark.parametrize(
    ("leader", "is_end_known", "expected"), [(1, True, 0), (1, False, 1), (2, True, 1), (None, True, 1)]
)
def test_the_leader_s_copy_is_preferred_if_its_end_is_known(
    leader: int | None, is_end_known: bool, expected: int
) -> None:
    """What another member of the ISR has after it was never committed; if the end is lost, it may have been."""
    first = attrs.evolve(copy(1, 10), is_end_known=is_end_known)
    base = choose_base([first, copy(2, 15)], [1, 2], 1, leader)
    assert base is not None
    assert (base.index, base.winner.ends) == (expected, (10, 10) if expected == 0 else (10, 15))


def test_an_empty_copy_is_the_base_if_no_holder_has_records() -> None:
    """It must be of a broker that holds all; records of others were deleted, or never committed."""
    empty = attrs.evolve(copy(1), empty_at=100)
    base = choose_base([empty, copy(2, 15)], [1], 1)
    assert base is not None
    assert (base.index, base.is_holder, base.winner.ends) == (0, True, (0, 0))
    for holders, is_holder in (([1, 2], True), ([], False)):
        base = choose_base([empty, copy(2, 15)], holders, 1)
        assert base is not None
        assert (base.index, base.is_holder) == (1, is_holder)


def test_a_holder_that_knows_a_later_epoch_is_the_base() -> None:
    """A leader that has written nothing yet in its epoch: what another member of the ISR has there is replaced."""
    copies = [copy(1, 15), copy(2, 10, checkpoint=((0, 0), (1, 10)))]
    base = choose_base(copies, [1, 2], 1)
    assert base is not None
    assert (base.index, base.winner.ends) == (1, (10, 10))


def test_a_later_epoch_than_that_of_the_metadata_does_not_count() -> None:
    """Its batches are of a lineage that the metadata do not know, at the epoch itself they are not."""
    for leader_epoch, end in ((0, 10), (1, 20), (2, 20)):
        base = choose_base([copy(1, 10, 20)], [1], leader_epoch)
        assert base is not None
        assert base.winner.ends == (end,)
    assert choose_base([copy(1, 0, 20)], [1], 0) is None


def test_a_copy_without_a_common_epoch_does_not_replace_the_base() -> None:
    """After a lost end, records of another copy that share no epoch with the base say nothing of its lineage."""
    far = CopyKnowledge(Known({3: Extent(50, 60)}), (), 2)
    base = choose_base([copy(1, 10, checkpoint=((0, 0),), lost=True), far], [1], 3)
    assert base is not None
    assert base.winner.ends == (10, 0)


def test_nothing_that_can_be_vouched_for_is_no_base() -> None:
    """Neither with metadata nor without."""
    assert choose_base([copy(1), copy(2)], [1], 5) is None
    assert choose_base([], [], None) is None
