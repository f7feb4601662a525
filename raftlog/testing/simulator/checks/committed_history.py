# SPDX-License-Identifier: Apache-2.0
"""What is committed, as it follows from what the disks have synced.

A record of an epoch is committed once a majority of voters has synced it, or a later record of that epoch, before any
of them was given a later epoch to store. A replica that was given one promises nothing to the old leader any more; its
vote may be on the way already. So two majorities meet in a voter that has the record before it votes, and refuses
candidates without it.

The voters are those in force at the end of what is committed, or any set that the log of that epoch names after that:
the leader counts by the last one in its log, committed or not.

A disk that loses what it had synced does not change what is committed: its replica does not vote before it has synced
up to there again, so that two majorities still meet in a voter that has the record. What it syncs until then does not
count.

Source: Raft (Ongaro) 5.4.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence

from raftlog.records.batches.batch import RecordBatch
from raftlog.testing.simulator.checks.ledger import Ledger, NamedVoters, StoredBatch
from raftlog.testing.simulator.violation import check
from raftlog.voters.voter_set import ReplicaKey

CommittedListener = Callable[[StoredBatch, RecordBatch], None]


class CommittedHistory:
    """The committed batches, which never change, and which leaders have lacked none of.

    Args:
        on_commit: called with each batch as it is committed, in the order of the offsets.
    """

    def __init__(self, on_commit: CommittedListener) -> None:
        self._on_commit = on_commit
        self._batches: dict[tuple[int, int], tuple[StoredBatch, StoredBatch | None, RecordBatch]] = {}
        self._synced: dict[int, dict[ReplicaKey, tuple[int, Ledger]]] = {}
        self._committed: list[StoredBatch] = []
        self._commits: list[StoredBatch] = []  # The last batch of each commit: of the epoch of the leader that commits.
        self._by_base_offset: dict[int, StoredBatch] = {}
        self.end_offset = 0
        self.leaders: dict[int, Ledger] = {}
        self._lost_sets: dict[int, list[NamedVoters]] = {}
        self.latest_epoch = 0

    @property
    def committed(self) -> Sequence[StoredBatch]:
        """The committed batches, in the order of their offsets."""
        return self._committed

    def note_batch(self, batch: StoredBatch, before: StoredBatch | None, content: RecordBatch) -> None:
        """Note that a batch was written to a log after another one.

        Args:
            batch: the batch.
            before: the batch before it in that log; None if the log begins with the batch.
            content: the batch with its records.
        """
        name = batch.epoch, batch.base_offset
        known = self._batches.get(name)
        if known is None:
            self._batches[name] = batch, before, content
            return
        check(known[0] == batch, "one-batch-per-offset-and-epoch", "{} and {}", known[0], batch)
        if before is None:
            return
        if known[1] is None:  # It was first seen where a log begins.
            self._batches[name] = batch, before, known[2]
        else:
            check(known[1] == before, "log-matching", "{} follows {}, and elsewhere {}", batch, before, known[1])

    def note_leader(self, leader: Ledger, epoch: int) -> None:
        """Note that a replica leads an epoch: no other replica does, and it has what earlier leaders have committed."""
        known = self.leaders.get(epoch)
        if known is not None:
            check(known is leader, "one-leader-per-epoch", "epoch {}: {} and {}", epoch, known.key, leader.key)
            return
        check(not leader.is_quarantined, "quarantine", "{} leads epoch {}", leader.key, epoch)
        self.leaders[epoch] = leader
        self.latest_epoch = max(self.latest_epoch, epoch)
        last = next((each for each in reversed(self._commits) if each.epoch < epoch), None)
        if last is not None and last.next_offset > leader.start_offset:
            found = leader.batch_before(last.next_offset)
            check(found == last, "leader-completeness", "leader {} of epoch {}: {}", leader.key, epoch, found)

    def note_synced(self, ledger: Ledger) -> None:
        """Note that a replica has synced its log. That counts for nothing in quarantine, or if a vote may be forgotten.

        What it had promised to a later epoch is forgotten, too.
        """
        if ledger.is_quarantined or ledger.is_vote_lost:
            return
        last = ledger.batch_before(ledger.durable_end)
        if last is None or ledger.requested_epoch > last.epoch or last.next_offset != ledger.durable_end:
            return
        self._synced.setdefault(last.epoch, {})[ledger.key] = ledger.durable_end, ledger
        if ledger.durable_end > self.end_offset:
            self.advance(last.epoch)

    def advance(self, epoch: int) -> None:
        """Find out what is committed by the leader of an epoch."""
        synced, leader = self._synced.get(epoch), self.leaders.get(epoch)
        if synced is None or leader is None:
            return
        for voters in self._sets_in_force(self._lost_sets.get(epoch, leader.voter_sets)):
            reached = _majority_end(synced, voters.keys)
            if reached > self.end_offset:
                self._commit(reached, _holder(synced, reached))

    def note_rotting(self, ledger: Ledger) -> None:
        """Note that a disk is about to lose records: the leader has counted by the voter sets that are among them."""
        for epoch, leader in self.leaders.items():
            if leader is ledger:
                self._lost_sets.setdefault(epoch, list(ledger.voter_sets))

    def _sets_in_force(self, sets: Sequence[NamedVoters]) -> Iterable[NamedVoters]:
        if len(sets) == 1:
            return sets
        first = sum(each.offset < self.end_offset for each in sets) - 1
        return sets[max(first, 0) :]

    def _commit(self, end_offset: int, log: Ledger) -> None:
        """Note that a log is committed up to an offset, exclusive."""
        if self.end_offset > log.start_offset:
            last, found = self._committed[-1], log.batch_before(self.end_offset)
            check(found == last, "committed-prefix", "{} is committed, and {} has {}", last, log.key, found)
        index = log.index_of(self.end_offset)
        while self.end_offset < end_offset:
            batch = log.batches[index]
            self._committed.append(batch)
            self._by_base_offset[batch.base_offset] = batch
            self.end_offset = batch.next_offset
            self._on_commit(batch, self.content_of(batch))
            index += 1
        last = self._committed[-1]
        self._commits.append(last)
        if self.latest_epoch > last.epoch:
            self._check_later_leaders(last)

    def _check_later_leaders(self, batch: StoredBatch) -> None:
        """Check that leaders of later epochs, elected before a batch was known to be committed, have no other."""
        for epoch, leader in self.leaders.items():
            if epoch > batch.epoch and leader.start_offset < batch.next_offset <= leader.end_offset:
                found = leader.batch_before(batch.next_offset)
                check(found == batch, "leader-completeness", "leader {} of epoch {}: {}", leader.key, epoch, found)

    def is_committed(self, batch: StoredBatch) -> bool:
        """Whether a batch is committed."""
        return self._by_base_offset.get(batch.base_offset) == batch

    def has_committed_records(self, batch: StoredBatch) -> bool:
        """Whether the records of a batch are committed there, if perhaps with another epoch in the batch's header."""
        found = self._by_base_offset.get(batch.base_offset)
        return found is not None and found == batch._replace(epoch=found.epoch)

    def committing_epoch(self, batch: StoredBatch) -> int | None:
        """Return the epoch in which a batch was committed; None if it is not committed.

        A replica that follows a leader of an earlier epoch, and has not learned of that one, may still truncate it.
        """
        if not self.is_committed(batch):
            return None
        return self._commits[bisect_right(self._commits, batch.base_offset, key=_next_offset)].epoch

    def has_committed_in(self, epoch: int) -> bool:
        """Whether the leader of an epoch has committed a record of it."""
        return any(each.epoch == epoch for each in reversed(self._commits))

    def content_of(self, batch: StoredBatch) -> RecordBatch:
        """Return a batch with its records."""
        return self._batches[batch.epoch, batch.base_offset][2]


def _next_offset(batch: StoredBatch) -> int:
    return batch.next_offset


def _holder(synced: dict[ReplicaKey, tuple[int, Ledger]], end_offset: int) -> Ledger:
    """Return a log that was synced up to an offset, exclusive, and has not lost that since."""
    return next(log for end, log in synced.values() if end >= end_offset and log.end_offset >= end_offset)


def _majority_end(synced: dict[ReplicaKey, tuple[int, Ledger]], voters: frozenset[ReplicaKey]) -> int:
    """Return up to where a majority of voters has synced, exclusive; 0 if fewer have synced anything."""
    ends = sorted((synced[each][0] for each in voters if each in synced), reverse=True)
    needed = len(voters) // 2 + 1
    return ends[needed - 1] if len(ends) >= needed else 0
