# SPDX-License-Identifier: Apache-2.0
"""Chooses the copy that the result is based on, and says how far each other copy is of the same lineage.

All that was committed is in the copy of each member of the ISR, and in that of each eligible leader (KIP-966). No
other copy is known to have it: it may lack records, and may have others that were replaced since. So the metadata
choose the base, and where the copies go apart the base is right. Without metadata the most up-to-date copy is the base,
and that is no proof: the copy of a broker that was not in the ISR may be it. How up to date a copy is, its records say
and the epochs in its checkpoint, as in an election.

One leader writes all records of an epoch. Two copies have the same of an epoch, up to the first of both ends.
"""

from collections.abc import Sequence
from typing import Final

import attrs

from raftlog.offsets import EpochEntry
from raftlog.tools.auditing.proof.lineage import Lineage
from raftlog.tools.salvage.winning import Known, Winner, parting_offset, winner

_NO_EPOCH: Final = (1 << 31) - 1


@attrs.frozen
class CopyKnowledge:
    """What is known of a copy's log.

    Attributes:
        known: the extents of the epochs whose records can be vouched for.
        checkpoint: entries of its ``leader-epoch-checkpoint`` that nothing contradicts.
        node_id: of its broker, or None.
        has_lost_end: whether it may have had records after the last one that can be vouched for.
        is_end_known: whether its high watermark is known, and nothing is missing below it, nor damaged after it.
        empty_at: where it begins and ends, if it is known to be empty; None if it is not.
    """

    known: Known
    checkpoint: tuple[EpochEntry, ...] = ()
    node_id: int | None = None
    has_lost_end: bool = False
    is_end_known: bool = False
    empty_at: int | None = None

    def up_to_epoch(self, epoch: int) -> "CopyKnowledge":
        """Return what is known of it without the records of later epochs."""
        later = [each.start_offset for number, each in self.known.extents.items() if number > epoch]
        known = self.known.cut(min(later)) if later else self.known
        entries = tuple(each for each in self.checkpoint if each.epoch <= epoch)
        return attrs.evolve(self, known=known, checkpoint=entries)

    @property
    def claim(self) -> Known:
        """Its log by its checkpoint too, which has epochs without records: others' records there were replaced."""
        if not self.checkpoint:
            return self.known
        return self.known.joined(Known.of_lineage(Lineage(self.checkpoint, self.checkpoint[-1].start_offset)))


@attrs.frozen
class Base:
    """The copy that the result is based on.

    Attributes:
        index: of the copy.
        is_holder: whether the metadata say that it holds all that was committed.
        winner: the lineage, and up to which offset each copy is of it.
    """

    index: int
    is_holder: bool
    winner: Winner


def choose_base(
    copies: Sequence[CopyKnowledge], holders: Sequence[int], leader_epoch: int | None, leader: int | None = None
) -> Base | None:
    """Return the base; None if no copy has anything that can be vouched for, nor is known to be empty.

    Args:
        copies: of one partition, in an order that depends on their nodes and paths alone.
        holders: the brokers whose copies hold all that was committed, by the metadata.
        leader_epoch: of the metadata; records of later epochs are of a lineage that these do not know. None without.
        leader: by the metadata; None without. Its copy is preferred if its end is known: what others have after it was
            never committed.
    """
    limit = _NO_EPOCH if leader_epoch is None else leader_epoch
    copies = [each.up_to_epoch(limit) for each in copies]
    indexes = [index for index, each in enumerate(copies) if each.known.extents]
    held = [index for index in indexes if copies[index].node_id in holders]
    empty = [index for index, each in enumerate(copies) if each.empty_at is not None and each.node_id in holders]
    if empty and not held:
        return Base(
            max(empty, key=lambda index: copies[index].empty_at or 0), True, Winner(Known({}), (0,) * len(copies))
        )
    if not indexes:
        return None
    led = [index for index in held if copies[index].node_id == leader and copies[index].is_end_known]
    base = max(led or held or indexes, key=lambda index: copies[index].claim.end)
    usable = [_usable(copies, index, base, leader_epoch) for index in range(len(copies))]
    claims = [copies[index].claim for index in held or indexes]
    found = winner(usable, (), copies[base].claim, claims)
    end = copies[base].known.end.offset
    if found is not None and found.ends[base] < end:  # What comes after it has nothing in common with it.
        found = winner([each.cut(end) for each in usable], (), copies[base].claim, claims)
    return None if found is None else Base(base, bool(held), found)


def _usable(copies: Sequence[CopyKnowledge], index: int, base: int, leader_epoch: int | None) -> Known:
    """Return what of a copy may be taken: after the base's end only what nobody can have replaced.

    That is what was written in the leader's present epoch, and what a copy with such a record has before it; or what
    was written in the base's last epoch, if it has lost its end and its checkpoint says that it had no later one, or
    where the later one began.
    """
    known, own = copies[index].known, copies[base]
    if index == base or leader_epoch is None:
        return known
    present = known.extents.get(leader_epoch)
    if present is not None and parting_offset(known, own.claim) is None:
        return known.cut(present.end_offset)
    epoch = own.known.end.epoch
    has_lost_more = own.has_lost_end and own.checkpoint[-1:] != () and own.checkpoint[-1].epoch == epoch
    if (epoch == leader_epoch or has_lost_more) and parting_offset(known, own.claim) is None:
        later = [each.start_offset for number, each in known.extents.items() if number > epoch]
        return known.cut(min(later)) if later else known
    return known.cut(max(own.known.end.offset, own.claim.end.offset))
