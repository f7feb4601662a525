# SPDX-License-Identifier: Apache-2.0
"""Says up to which offset a partition's log was compacted, and why it counts as that.

A gap of a log that was compacted is no hole. So it must not count as compacted without a reason: where the metadata
have the topic's ``cleanup.policy``, that decides. A single batch with missing records is no proof against it, and an
entry in ``cleaner-offset-checkpoint`` may be of a time before the policy was changed.
"""

from collections.abc import Sequence
from typing import Final

import attrs

from raftlog.tools.salvage.partitions.partition_copies import PartitionCopy
from raftlog.tools.salvage.partitions.partition_runs import RunReader, TopicRun
from raftlog.tools.salvage.partitions.partition_vouching import (
    Compare,
    VouchedPartition,
    vouch_partition,
    with_copies_elsewhere,
)

_WHOLE_LOG: Final = (1 << 63) - 1


@attrs.frozen
class Compaction:
    """Where a log was compacted.

    Attributes:
        below: gaps between batches that end below this offset, or at it, are no holes; 0 if no gap is of compaction.
        reason: why, or why not although a file says so; a sentence without its end. Empty if nothing speaks for it.
    """

    below: int = 0
    reason: str = ""

    @property
    def end_offset(self) -> int | None:
        """The offset up to which it was compacted, exclusive; None if there is no limit, or it never was."""
        return self.below if 0 < self.below < _WHOLE_LOG else None


def read_logs(
    copies: Sequence[PartitionCopy], is_compacted: bool | None, are_equal: Compare
) -> tuple[Compaction, tuple[VouchedPartition, ...]]:
    """Return where a log was compacted, and what of each copy can be vouched for.

    Args:
        copies: of one partition.
        is_compacted: by the metadata; None if they have no policy of the topic.
        are_equal: compares the bytes of two runs whose numbers are equal.

    Raises:
        RepairRefusedError: a batch is of message format 0 or 1.
        StorageError: a file cannot be read.
        MissingExtraError: a batch is compressed, and the codec's package is not installed.
    """
    compaction = _by_files(copies, is_compacted)
    runs, odd = _runs(copies, compaction.below)
    if odd is not None and is_compacted is None and odd[1] > compaction.below:
        compaction = Compaction(odd[1], f"a batch of {odd[0]} has fewer records than offsets")
        runs, _ = _runs(copies, compaction.below)
    elif odd is not None and is_compacted is False and not compaction.reason:
        reason = f"{_NO_POLICY}, although a batch of {odd[0]} has fewer records than offsets"
        compaction = attrs.evolve(compaction, reason=reason)
    logs = [vouch_partition(found, copy.checkpoint) for found, copy in zip(runs, copies, strict=True)]
    return compaction, with_copies_elsewhere(logs, [copy.node_id for copy in copies], are_equal)


_NO_POLICY: Final = "cleanup.policy of the topic has no compact, by the metadata"


def _by_files(copies: Sequence[PartitionCopy], is_compacted: bool | None) -> Compaction:
    if is_compacted:
        return Compaction(_WHOLE_LOG, "cleanup.policy says compact, by the metadata")
    cleaned = [(copy.cleaned_to, copy.name) for copy in copies if copy.cleaned_to]
    if not cleaned:
        return Compaction()
    end, name = max(cleaned, key=lambda each: each[0] or 0)
    says = f"the cleaner-offset-checkpoint of {name} names the partition"
    return Compaction(end or 0, says) if is_compacted is None else Compaction(0, f"{_NO_POLICY}, although {says}")


def _runs(copies: Sequence[PartitionCopy], compacted_below: int) -> tuple[list[list[TopicRun]], tuple[str, int] | None]:
    """Return the runs of each copy, and which has the last batch with fewer records than offsets, and its end."""
    found: list[list[TopicRun]] = []
    odd: tuple[str, int] | None = None
    for copy in copies:
        reader = RunReader(compacted_below, copy.cleaned_to, copy.known_end)
        found.append(list(reader.runs(copy.directory, copy.segments)))
        if reader.odd_end > (0 if odd is None else odd[1]):
            odd = copy.name, reader.odd_end
    return found, odd
