# SPDX-License-Identifier: Apache-2.0
"""Says why the choice of the copy that is right is not proven.

The metadata name brokers, and the directories in which these have the partition. A copy in another directory of such a
broker, or one that does not say in which it was, may be an old one.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

from raftlog.tools.salvage.partitions.partition_belief import Belief
from raftlog.tools.salvage.partitions.partition_copies import PartitionCopy
from raftlog.tools.salvage.partitions.partition_lineage import Base, CopyKnowledge
from raftlog.tools.salvage.partitions.partition_vouching import VouchedPartition
from raftlog.tools.terminal.value_text import ids_text
from raftlog.uuid_text import uuid_to_text


def is_of_broker(copy: PartitionCopy, belief: Belief | None) -> bool:
    """Whether a copy can be the one that its broker has: in the directory that the metadata have, if they have one."""
    if copy.node_id is None:
        return False
    assigned = None if belief is None else belief.directory_of(copy.node_id)
    return assigned is None or (copy.directory_id is not None and uuid_to_text(copy.directory_id) == assigned)


def find_problems(
    belief: Belief | None,
    base: Base,
    copies: Sequence[PartitionCopy],
    logs: Sequence[VouchedPartition],
    knowledge: Sequence[CopyKnowledge],
) -> Iterator[str]:
    """Yield why the choice of the base is not proven, each as a sentence without its end.

    Args:
        belief: what the metadata say; None without.
        base: that was chosen.
        copies: the replicas.
        logs: what of them can be vouched for, in the same order.
        knowledge: what is known of their logs, in the same order.
    """
    if belief is None:
        yield (
            "no metadata were given (--metadata), so that nobody says whose copy holds all that was committed: the"
            " most up-to-date one is taken"
        )
    else:
        yield from belief.problems
        yield from _of_holders(belief, base, copies)
        yield from _of_epochs(belief, copies, logs)
        yield from _of_tails(belief, base, copies, knowledge)
    yield from _of_contradictions(copies[base.index], logs[base.index])


def _of_holders(belief: Belief, base: Base, copies: Sequence[PartitionCopy]) -> Iterator[str]:
    if not base.is_holder:
        holders = ids_text(belief.holders) if belief.holders else "of nobody"
        yield (
            f"no copy of a broker that holds all that was committed (by the metadata: {holders}) is here with"
            " records that can be vouched for: the most up-to-date one of the others is taken"
        )
    held = [copy for copy in copies if copy.node_id in belief.holders]
    for copy in held:
        if not is_of_broker(copy, belief):
            found = (
                "no directory.id" if copy.directory_id is None else f"directory.id {uuid_to_text(copy.directory_id)}"
            )
            yield (
                f"{copy.name} has {found}, and the metadata have the broker's copy in"
                f" {belief.directory_of(copy.node_id)}: it may be an old one, and does not count as the broker's"
            )
    for one, other in combinations(held, 2):
        if one.node_id == other.node_id:
            yield f"{one.name} and {other.name} are of one broker: one of them is not the copy that it had in use"


def _of_epochs(belief: Belief, copies: Sequence[PartitionCopy], logs: Sequence[VouchedPartition]) -> Iterator[str]:
    for copy, log in zip(copies, logs, strict=True):
        epoch = max((run.epoch for run in log.runs), default=-1)
        if epoch > belief.leader_epoch:
            yield (
                f"{copy.name} has batches of leader epoch {epoch}, and the metadata know {belief.leader_epoch}:"
                " they are older than the log, or the batches are of another lineage; such batches are not used"
            )
        elif log.checkpoint and log.checkpoint[-1].epoch > belief.leader_epoch:
            yield (
                f"the leader-epoch-checkpoint of {copy.name} has leader epoch {log.checkpoint[-1].epoch}, and the"
                f" metadata know {belief.leader_epoch}: they may be older than the log"
            )


def _of_tails(
    belief: Belief, base: Base, copies: Sequence[PartitionCopy], knowledge: Sequence[CopyKnowledge]
) -> Iterator[str]:
    """Yield which copy of a broker that holds all goes on where the base ends, though nothing says who is right."""
    own = knowledge[base.index]
    epochs = {entry.epoch for entry in own.checkpoint}
    leaves = belief.leader_epoch in {*epochs, own.known.end.epoch}
    for index, each in enumerate(knowledge):
        end = base.winner.ends[index]
        beyond = each.known.end
        if index == base.index or each.node_id not in belief.holders or leaves or beyond.epoch > belief.leader_epoch:
            continue
        if beyond.offset > max(end, own.claim.end.offset):
            yield (
                f"{copies[index].name} has records up to offset {beyond.offset - 1}, after the end of the base:"
                " whether they were committed or replaced, nothing says; they are not used"
            )


def _of_contradictions(copy: PartitionCopy, log: VouchedPartition) -> Iterator[str]:
    removed, kept = (sum(run.batch_count for run in runs) for runs in (log.contradicted, log.runs))
    if removed > kept:
        yield (
            f"{removed:,} sound batches of {copy.name} contradict the {kept:,} that are kept, by offset or epoch: the"
            " greater part of the log may be the right one"
        )
