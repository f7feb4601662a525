# SPDX-License-Identifier: Apache-2.0
"""What a plan to salvage a log says: the content of its file, made of numbers and texts."""

import attrs

from raftlog.offsets import OffsetAndEpoch
from raftlog.tools.salvage.choosing import FoundSnapshot
from raftlog.tools.salvage.merging import Conflict, Piece


@attrs.frozen
class TakenFile:
    """A small file that is copied.

    Attributes:
        source: number of the source.
        name: path below the log directory, in the source and in the result.
    """

    source: int
    name: str


@attrs.frozen
class Loss:
    """Offsets of the lineage that the result does not have.

    Attributes:
        start_offset, end_offset: inclusive and exclusive.
        size_bytes: of the batches that are there and are not used; 0 if no source has any.
        reason: why, as the end of a sentence.
        words: what the records were, in sentences; empty if nobody knows.
    """

    start_offset: int
    end_offset: int
    size_bytes: int
    reason: str
    words: tuple[str, ...]


@attrs.frozen
class DamagedBytes:
    """Bytes of a source's log that are no sound batch, after the end of what is taken or of what that source has.

    Attributes:
        source: number of the source.
        file: name of the segment.
        position: of the first of them.
        size_bytes: how many there are.
        start_offset: the offset that a record there would have at least, inclusive.
        reason: what is wrong with them, without a full stop.
    """

    source: int
    file: str
    position: int
    size_bytes: int
    start_offset: int
    reason: str


@attrs.frozen
class Flaw:
    """A batch that is whole, and of which the audit finds something that is not harmless.

    Attributes:
        source: number of the source.
        offset: of the batch.
        rule: that it breaks.
        reason: how, without a full stop.
        is_taken: whether it is in the result, of which the audit will say the same; otherwise another source has a
            batch without a fault, which is taken.
    """

    source: int
    offset: int
    rule: str
    reason: str
    is_taken: bool


@attrs.frozen
class Replacement:
    """A batch in which records become no-ops.

    Attributes:
        start_offset: of the batch, which is a piece of the log by itself.
        offsets: of the records, ascending.
        holders: numbers of the sources whose logs have these records.
        words: what the records were, in sentences.
    """

    start_offset: int
    offsets: tuple[int, ...]
    holders: tuple[int, ...]
    words: tuple[str, ...]


@attrs.frozen
class Owner:
    """The node that the new directory is for.

    Attributes:
        node_id: its id.
        directory_id: of the new directory.
        state_source: number of the source whose directory id and quorum-state these are; None for a new directory id,
            that has not voted.
    """

    node_id: int
    directory_id: str
    state_source: int | None


@attrs.frozen
class Salvage:
    """A plan to salvage a log.

    Attributes:
        cluster_id: of the sources; None if no file has it.
        start_offset, end_offset: of the log of the result, inclusive and exclusive.
        epoch: of its last record.
        kraft_version: in force at its end.
        pieces: of the log, in order; none if it is empty after a snapshot.
        snapshots: by ascending end.
        files: small files that are copied.
        lineage_end: end of the lineage that won (exclusive), and its last epoch, as far as the sources show.
        verdict: whether committed records are missing from the sources as they are, in a sentence.
        proven_end: end of what is proven to be committed, exclusive; 0 if nothing is.
        proven: what proves it, in a sentence.
        losses: offsets of the lineage that the result does not have, ascending.
        conflicts: sound batches of one epoch and offset with different bytes.
        dropped: records of single sources that are not known to be of the lineage, and snapshots of wrong names,
            in sentences.
        doubted: batches for whose place or epoch nothing vouches, and snapshots whose names are doubted, in sentences.
        sets_version: whether a record sets metadata.version.
        replacements: batches with records that become no-ops, ascending.
        passed: offsets of records that were to be replaced, and are below the log's start, in its snapshots alone.
        owner: None if only the log is made.
        damaged_after: what may have been records after the end of the result, by source, file and position.
        flaws: batches that are whole and not as a leader writes them, by ascending offset.
        gives_up: whether records of a source, or of a node that was not given, may be at offsets that the result does
            not have.
    """

    cluster_id: str | None
    start_offset: int
    end_offset: int
    epoch: int
    kraft_version: int
    pieces: tuple[Piece, ...]
    snapshots: tuple[FoundSnapshot, ...]
    files: tuple[TakenFile, ...]
    lineage_end: tuple[int, int]
    verdict: str
    proven_end: int
    proven: str
    losses: tuple[Loss, ...]
    conflicts: tuple[Conflict, ...]
    dropped: tuple[str, ...]
    doubted: tuple[str, ...]
    sets_version: bool
    replacements: tuple[Replacement, ...]
    passed: tuple[int, ...]
    owner: Owner | None
    damaged_after: tuple[DamagedBytes, ...] = ()
    flaws: tuple[Flaw, ...] = ()
    gives_up: bool = False

    @property
    def end(self) -> OffsetAndEpoch:
        """End of the log, exclusive, with the epoch of its last record."""
        return OffsetAndEpoch(self.end_offset, self.epoch)

    def size_from(self, source: int) -> int:
        """Return how many bytes of batches are taken from a source."""
        return sum(piece.size_bytes for piece in self.pieces if piece.source == source)
