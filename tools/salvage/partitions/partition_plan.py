# SPDX-License-Identifier: Apache-2.0
"""What a plan to salvage a topic's partition says: the content of its file, made of numbers and texts."""

import attrs

from raftlog.offsets import EpochEntry, OffsetAndEpoch
from raftlog.tools.salvage.merging import Conflict, Piece
from raftlog.tools.salvage.partitions.partition_belief import Belief
from raftlog.tools.salvage.salvage_plan import Loss


@attrs.frozen
class LeftOut:
    """A source of which nothing is used.

    Attributes:
        source: its number.
        reason: why, as the end of a sentence.
    """

    source: int
    reason: str


@attrs.frozen(kw_only=True)
class PartitionSalvage:
    """A plan to salvage a partition's log.

    Attributes:
        partition: name of the directory, such as ``orders-3``.
        cluster_id: of the sources; None if no file has it.
        topic_id: as text; None if no file has it.
        base: number of the source whose records are right where copies differ.
        is_proven: whether the metadata say that the base holds all that was committed.
        unproven: why not, each as a sentence without its end; empty if it is proven.
        belief: what the metadata say; None without.
        metadata: paths of the metadata, as they were given.
        start_offset, end_offset: of the log of the result, inclusive and exclusive.
        log_start: what is below it was deleted, by the base: a batch of the result may begin below it. 0 if no file
            says it.
        epoch: of its last batch.
        pieces: of the log, in order.
        batch_count: of the log.
        topic_id_source: number of the source whose ``partition.metadata`` is copied; None if there is none.
        known_end: end of what is known to have been there, exclusive.
        has_lost_end: whether no copy shows where the log ended: bytes at the end of the base are damaged.
        steps_over: whether the log goes on after holes.
        losses: offsets that the result does not have, ascending.
        conflicts: sound batches of one epoch and offset with different bytes.
        left_out: sources of which nothing is used.
        dropped: records of single sources that are not of the lineage, or not known to be, in sentences.
        doubted: batches for whose place or epoch nothing vouches, in sentences.
        is_compacted: whether offsets may be missing because of compaction.
        compacted_below: the offset below which they may, exclusive; None if there is no limit, or it never was.
        compaction_reason: why it counts as compacted, or why not although something says so; empty if nothing does.
        elsewhere: sound records of single sources that the result does not have, and that were or may have been
            committed, in sentences.
        early_epochs: of the base's leader-epoch-checkpoint, the epochs that began before the first batch.
        open_gaps: offsets (inclusive, exclusive) at which no source has anything whole, and files end and begin:
            compaction or retention has left them, or files are missing or damaged. Ascending.
        cleaned_apart: the first offset at which copies were cleaned at different times, if batches of both are taken.
        open_transactions: ids of producers whose transactions have begun in the log and not ended.
        unsure_transactions: ids of those whose transactions were open where a hole begins that is stepped over.
    """

    partition: str
    cluster_id: str | None
    topic_id: str | None
    base: int
    is_proven: bool
    unproven: tuple[str, ...]
    belief: Belief | None
    metadata: tuple[str, ...]
    start_offset: int
    end_offset: int
    log_start: int
    epoch: int
    pieces: tuple[Piece, ...]
    batch_count: int
    topic_id_source: int | None
    known_end: int
    has_lost_end: bool
    steps_over: bool
    losses: tuple[Loss, ...]
    conflicts: tuple[Conflict, ...]
    left_out: tuple[LeftOut, ...]
    dropped: tuple[str, ...]
    doubted: tuple[str, ...]
    is_compacted: bool
    compacted_below: int | None
    compaction_reason: str
    open_gaps: tuple[tuple[int, int], ...]
    elsewhere: tuple[str, ...]
    early_epochs: tuple[EpochEntry, ...]
    cleaned_apart: int | None
    open_transactions: tuple[int, ...]
    unsure_transactions: tuple[int, ...]

    @property
    def end(self) -> OffsetAndEpoch:
        """End of the log, exclusive, with the epoch of its last batch."""
        return OffsetAndEpoch(self.end_offset, self.epoch)

    def size_from(self, source: int) -> int:
        """Return how many bytes of batches are taken from a source."""
        return sum(piece.size_bytes for piece in self.pieces if piece.source == source)
