# SPDX-License-Identifier: Apache-2.0
"""What one directory holds, written down as its disk was told: batches, what is durable, and the election state."""

from bisect import bisect_right
from typing import NamedTuple, Self

import attrs

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.voters.voter_set import ReplicaKey


class StoredBatch(NamedTuple):
    """A batch in a log. Two batches with equal fields are the same one.

    Attributes:
        base_offset: of its first record.
        epoch: of the leader that wrote it.
        next_offset: the offset after its last record.
        crc: of its bytes.
    """

    base_offset: int
    epoch: int
    next_offset: int
    crc: int

    @classmethod
    def of(cls, batch: RecordBatch) -> Self:
        """Return a batch as a ledger has it."""
        return cls(batch.base_offset, batch.partition_leader_epoch, batch.next_offset, batch.crc)


class NamedVoters(NamedTuple):
    """A voter set that a record of a log has named.

    Attributes:
        offset: of the record; -1 if a snapshot has named the set before the first offset.
        keys: of the voters.
    """

    offset: int
    keys: frozenset[ReplicaKey]


@attrs.define(eq=False)
class Ledger:
    """One directory.

    Attributes:
        key: the node id and the directory id.
        batches: of the log, in order.
        voter_sets: the one in force at the log start, and those that the batches name.
        levels: offsets and levels of kraft.version, in the same way.
        start_offset: where the log starts, inclusive.
        before_start: the committed batch that ends where the log starts; None at offset 0.
        snapshots: the ids of those that the directory has, in order.
        epoch_start: the last epoch that this replica has begun as leader, and the log end at that time.
        durable_end: exclusive: the batches below survive a crash.
        furthest_end: the highest end, exclusive, that the log ever had.
        quarantine_end: the durable end, exclusive, when the disk lost batches below it; 0 if it has lost none, or the
            log was synced up to there again.
        healed_epoch: of the replica, when a sync ended its quarantine the last time; -1 if there was none.
        high_watermark: of the log in this run of the process, exclusive.
        requested_epoch: of the latest election state that the disk was given to store, in this run or before.
        truncating_epoch: of this replica when its core asked for the last truncation.
        restart_count: how often a snapshot has replaced the whole log.
        state: the election state that is durable.
        is_vote_lost: whether the replica may have forgotten a vote, and says so.
        fetched_snapshot: the one that is being written with what a leader has sent; None if none is.
        refusals: how often the disk had no room for an append, an epoch or a truncation, in this run of the process and
            since the log has last taken records.
        refused_in_epoch: how many of these were since this replica has begun its last epoch as leader.
        is_refused: whether the directory cannot be opened any more, and says so.
    """

    key: ReplicaKey
    batches: list[StoredBatch] = attrs.field(factory=list)
    voter_sets: list[NamedVoters] = attrs.field(factory=list)
    levels: list[tuple[int, int]] = attrs.field(factory=lambda: [(-1, 1)])
    start_offset: int = 0
    before_start: StoredBatch | None = None
    snapshots: tuple[OffsetAndEpoch, ...] = ()
    epoch_start: tuple[int, int] = (-1, 0)
    durable_end: int = 0
    furthest_end: int = 0
    quarantine_end: int = 0
    healed_epoch: int = -1
    high_watermark: int = 0
    requested_epoch: int = 0
    truncating_epoch: int = 0
    restart_count: int = 0
    state: QuorumStateData | None = None
    is_vote_lost: bool = False
    fetched_snapshot: OffsetAndEpoch | None = None
    refusals: int = 0
    refused_in_epoch: int = 0
    is_refused: bool = False

    @property
    def end_offset(self) -> int:
        """The end of the log, exclusive."""
        return self.batches[-1].next_offset if self.batches else self.start_offset

    @property
    def leader_id(self) -> int:
        """The leader that the durable election state names, or -1."""
        return -1 if self.state is None else self.state.leader_id

    def index_of(self, offset: int) -> int:
        """Return the index of the batch that holds an offset, or the number of batches."""
        if self.batches and self.batches[-1].base_offset <= offset < self.batches[-1].next_offset:
            return len(self.batches) - 1
        return bisect_right(self.batches, offset, key=_next_offset)

    def batch_before(self, end_offset: int) -> StoredBatch | None:
        """Return the batch that holds the record before an end offset; None if the log has no such record."""
        if self.batches and self.batches[-1].next_offset == end_offset:
            return self.batches[-1]
        if end_offset == self.start_offset:
            return self.before_start
        index = self.index_of(end_offset - 1)
        return self.batches[index] if index < len(self.batches) and end_offset > self.start_offset else None

    @property
    def is_quarantined(self) -> bool:
        """Whether the disk lost batches that were durable, and has not synced up to there again."""
        return self.quarantine_end > 0

    @property
    def needs_others(self) -> bool:
        """Whether the replica cannot vote or stand, because of its disk, so that the others must suffice."""
        return self.is_quarantined or self.is_vote_lost or self.is_refused or not self.voter_sets[-1].keys

    def names_as_voter(self, key: ReplicaKey) -> bool:
        """Whether the last voter set names a replica: at kraft.version 0 by its id, whatever its directory is."""
        keys = self.voter_sets[-1].keys
        return key in keys if self.levels[-1][1] else key.id in {each.id for each in keys}

    def synced_to(self, end_offset: int) -> None:
        """Note up to where the log is durable, exclusive."""
        self.durable_end = end_offset
        if end_offset >= self.quarantine_end:
            self.healed_epoch = self.requested_epoch if self.is_quarantined else self.healed_epoch
            self.quarantine_end = 0

    def cut(self, end_offset: int) -> None:
        """Drop all batches from an offset on."""
        del self.batches[self.index_of(end_offset) :]
        while len(self.voter_sets) > 1 and self.voter_sets[-1].offset >= end_offset:
            del self.voter_sets[-1]
        while len(self.levels) > 1 and self.levels[-1][0] >= end_offset:
            del self.levels[-1]
        self.durable_end = min(self.durable_end, end_offset)

    def start_at(self, offset: int, before: StoredBatch | None) -> None:
        """Drop all batches below an offset, after which the log starts with the batch there.

        Args:
            offset: where a batch begins, or the log ends.
            before: the committed batch that ends there.
        """
        del self.batches[: self.index_of(offset)]
        self.start_offset, self.before_start = offset, before
        while len(self.voter_sets) > 1 and self.voter_sets[1].offset < offset:
            del self.voter_sets[0]
        while len(self.levels) > 1 and self.levels[1][0] < offset:
            del self.levels[0]

    def voters_before(self, end_offset: int) -> NamedVoters:
        """Return the voter set in force at the last record below an offset."""
        return next(each for each in reversed(self.voter_sets) if each.offset < max(end_offset, 0))


def _next_offset(batch: StoredBatch) -> int:
    return batch.next_offset
