# SPDX-License-Identifier: Apache-2.0
"""What a quorum's disks still prove, worked out naively by somebody who knows which batches are as they were."""

from collections.abc import Mapping, Sequence

from tests.tools.salvage.made_quorums import Batch, Disk


def vouched(disk: Disk) -> set[int]:
    """Numbers of the batches whose place and epoch follow from what is beside them on the disk."""
    found = set()
    for number in disk.intact:
        batch = disk.log[number]
        beside = [each for each in (number - 1, number + 1) if each in disk.intact]
        in_file = [each for each in beside if disk.place(each)[0] == disk.place(number)[0]]
        is_first = disk.place(number)[1] == 0
        is_last_of_file = number + 1 in disk.intact and disk.place(number + 1)[1] == 0
        has_place = bool(in_file) or is_first or is_last_of_file
        same_epoch = any(disk.log[each].epoch == batch.epoch for each in beside)
        is_bounded = batch.is_leader_change or disk.log[-1].epoch > batch.epoch
        if has_place and (same_epoch or (is_bounded and disk.has_checkpoint)):
            found.add(number)
    return found


def in_lineage(disks: Sequence[Disk], tip: Batch) -> list[Batch]:
    """The batches that are known to be of the lineage of a tip: by a later one of the same epoch, on the same disk."""
    return with_what_was_before([{number: disk.log[number] for number in vouched(disk)} for disk in disks], [tip])


def with_what_was_before(own: Sequence[Mapping[int, Batch]], known: Sequence[Batch]) -> list[Batch]:
    """Batches of a lineage, and all of which a disk says that they are: a later one of its log is of one of the epochs.

    Args:
        own: what can be vouched for on each disk, by number.
        known: batches of the lineage.
    """
    found = list(known)
    while True:
        more = []
        for batches in own:
            of_it = [
                number
                for number, batch in batches.items()
                if any(each.epoch == batch.epoch and each.start >= batch.start for each in found)
            ]
            more += [batch for number, batch in batches.items() if number <= max(of_it, default=-1)]
        more = [each for each in more if each not in found]
        if not more:
            return found
        found += more


def least_end(disks: Sequence[Disk], snapshots: Sequence[int] = ()) -> int:
    """The end offset that a salvage of some disks with sound checkpoints must reach at least."""
    vouched_batches = [disk.log[number] for disk in disks for number in vouched(disk)]
    if not vouched_batches:
        return 0
    tip = max(vouched_batches, key=lambda batch: (batch.epoch, batch.end))
    lineage = in_lineage(disks, tip)
    known = {batch.start: batch.end for batch in lineage}
    best = 0
    for start in (0, *snapshots):
        end = start
        while end in known:
            end = known[end]
        best = max(best, end)
    later = [disk.log for disk in disks if any(entry.epoch > tip.epoch for entry in disk.checkpoint)]
    replaced = [batch.start for log in later for batch in lineage if batch not in log]
    return min([best, *replaced])
