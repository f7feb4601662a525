# SPDX-License-Identifier: Apache-2.0
"""What brokers' disks still prove of a partition, worked out naively by somebody who knows what is as it was."""

from collections.abc import Sequence

from tests.tools.salvage.made_quorums import Batch
from tests.tools.salvage.naive_salvage import with_what_was_before
from tests.tools.salvage.partitions.made_partitions import PartitionDisk


def vouched(disk: PartitionDisk) -> set[int]:
    """Numbers of the batches whose place and epoch follow from what is beside them on the disk."""
    found = set()
    for number in disk.intact:
        batch = disk.log[number]
        beside = [each for each in (number - 1, number + 1) if each in disk.intact]
        in_file = [each for each in beside if disk.place(each)[0] == disk.place(number)[0]]
        is_first = disk.place(number)[1] == 0
        has_place = bool(in_file) or is_first
        if has_place and (any(disk.log[each].epoch == batch.epoch for each in in_file) or disk.has_checkpoint):
            found.add(number)
    return found


def in_lineage(disks: Sequence[PartitionDisk], base: int, leader_epoch: int | None = None) -> list[Batch]:
    """The batches that are known to be of the lineage of a base: by a later one of the same epoch, on the same disk.

    Those of the leader's present epoch are, whoever has them: one leader writes all records of an epoch.
    """
    own = [{number: disk.log[number] for number in vouched(disk)} for disk in disks]
    found = list(own[base].values())
    found += [each for batches in own for each in batches.values() if each.epoch == leader_epoch and each not in found]
    return with_what_was_before(own, found)


def least_end(disks: Sequence[PartitionDisk], base: int, leader_epoch: int | None = None) -> int:
    """The end offset that a salvage from offset 0 on must reach at least, if a copy is its base."""
    lineage = in_lineage(disks, base, leader_epoch)
    known = {batch.start: batch.end for batch in lineage}
    end = 0
    while end in known:
        end = known[end]
    tip = max((batch.epoch for batch in lineage), default=-1)
    later = [disk.log for disk in disks if any(entry.epoch > tip for entry in disk.checkpoint)]
    replaced = [batch.start for log in later for batch in lineage if batch not in log]
    return min([end, *replaced])
