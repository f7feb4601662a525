# SPDX-License-Identifier: Apache-2.0
"""Watches what disks are given, and what they have synced."""

import itertools
from collections import Counter
from collections.abc import Callable, Sequence

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.files.quorum_state import UNKNOWN_ID, QuorumStateData
from raftlog.testing.simulator.checks.committed_history import CommittedHistory
from raftlog.testing.simulator.checks.decoded import put_in_force
from raftlog.testing.simulator.checks.ledger import Ledger, NamedVoters, StoredBatch
from raftlog.testing.simulator.checks.replay import Replay
from raftlog.testing.simulator.violation import check
from raftlog.voters.voter_set import ReplicaKey


class DiskWitness:
    """The ledgers of all directories. Simulated disks tell it what they do, as they do it.

    Args:
        history: gets what is written and synced.
        replay: of what is committed, with which snapshots are compared.

    Attributes:
        watch: is called with the ledger of a directory whose election state or truncation has just become durable,
            before its replica learns of it; a trace can be written from that.
        known_end: the highest high watermark that any replica has had, exclusive.
        invented_epoch: the latest epoch that damage has made of another one in an election state; no replica led it.
    """

    def __init__(self, history: CommittedHistory, replay: Replay) -> None:
        self.history = history
        self.watch: Callable[[Ledger], None] | None = None
        self.replay = replay
        self.ledgers: dict[ReplicaKey, Ledger] = {}
        self.known_end = self.invented_epoch = 0
        self.voter_changes = 0
        self.counts: Counter[str] = Counter()
        self._votes: dict[tuple[ReplicaKey, int], object] = {}

    def add(self, key: ReplicaKey, voters: frozenset[ReplicaKey], kraft_version: int = 1) -> Ledger:
        """Begin a ledger for an empty directory, whose log names no other voters than these."""
        first = NamedVoters(-1, voters)
        ledger = self.ledgers[key] = Ledger(key, voter_sets=[first], levels=[(-1, kraft_version)])
        return ledger

    # The log

    def entered_epoch(self, ledger: Ledger, epoch: int) -> None:
        """Note that a leader has begun its epoch in its log."""
        ledger.epoch_start = epoch, ledger.end_offset
        ledger.refused_in_epoch = 0
        self.history.note_leader(ledger, epoch)

    def appended(self, ledger: Ledger, batches: Sequence[RecordBatch], *, is_leader: bool) -> None:
        """Note batches that are at the end of a log now; they are not durable yet."""
        for content in batches:
            before = ledger.batches[-1] if ledger.batches else None
            batch = StoredBatch.of(content)
            assert batch.base_offset == ledger.end_offset
            self.history.note_batch(batch, before, content)
            ledger.batches.append(batch)
            ledger.furthest_end = max(ledger.furthest_end, batch.next_offset)
            ledger.refusals = ledger.refused_in_epoch = 0
            if content.is_control:
                self._note_voters(ledger, content, is_leader=is_leader)

    def refused(self, ledger: Ledger) -> None:
        """Note that a disk had no room for an append, an epoch or a truncation: the log is as it was."""
        ledger.refusals += 1
        ledger.refused_in_epoch += 1

    def _note_voters(self, ledger: Ledger, content: RecordBatch, *, is_leader: bool) -> None:
        for offset, value in put_in_force(content):
            if isinstance(value, int):
                ledger.levels.append((offset, value))
                continue
            named = NamedVoters(offset, value)
            if is_leader:
                self._check_change(ledger, named, content.partition_leader_epoch)
            ledger.voter_sets.append(named)
            if is_leader:
                self.history.advance(content.partition_leader_epoch)

    def _check_change(self, ledger: Ledger, named: NamedVoters, epoch: int) -> None:
        """Check that the voter set in force is committed when a leader names another, and that majorities overlap.

        A leader that changes voters has committed a record of its own epoch. Without one, a set that an earlier leader
        has named, and that is not in this log, could still become committed (Ongaro, raft-dev 2015).
        """
        before = ledger.voter_sets[-1]
        is_committed = before.offset < self.history.end_offset
        check(is_committed, "one-uncommitted-voter-set", "{} after {}, which is not committed", named, before)
        check(majorities_meet(before.keys, named.keys), "voter-sets-overlap", "{} after {}", named, before)
        if before.keys != named.keys:
            self.voter_changes += 1
            for added in (self.ledgers[key] for key in named.keys - before.keys if key in self.ledgers):
                knows = added.end_offset > before.offset or added.needs_others
                check(knows, "new-voters-know-the-last", "{} is added, and does not know {}", added, before)
            has_committed = self.history.has_committed_in(epoch)
            check(has_committed, "commit-before-voters", "{} after {}, epoch {}", named, before, epoch)

    def synced(self, ledger: Ledger, end_offset: int) -> None:
        """Note that a log is durable up to an offset, exclusive."""
        ledger.synced_to(end_offset)
        self.history.note_synced(ledger)

    def asked_to_truncate(self, ledger: Ledger) -> None:
        """Note that the core of a replica has asked for a truncation, which the disk does later."""
        ledger.truncating_epoch = ledger.requested_epoch

    def truncated(self, ledger: Ledger, end_offset: int) -> None:
        """Note that a log was truncated, at the wish of a leader.

        In the epoch that committed a batch, and in later ones, no replica may drop it. A replica of an earlier epoch,
        whose leader has lost its majority, may: no later leader has counted it.
        """
        check(end_offset >= ledger.high_watermark, "high-watermark-is-kept", "{} truncated to {}", ledger, end_offset)
        index = ledger.index_of(end_offset)
        if index < len(ledger.batches):
            dropped, epoch = ledger.batches[index], ledger.truncating_epoch
            committed_in = self.history.committing_epoch(dropped)
            is_lost = committed_in is not None and committed_in <= epoch
            check(not is_lost, "committed-prefix", "{} is committed, and {} drops it", dropped, ledger.key)
        ledger.cut(end_offset)
        if self.watch is not None:
            self.watch(ledger)

    def lost(self, ledger: Ledger, end_offset: int) -> None:
        """Note that a log has lost what was not durable, in a crash."""
        assert end_offset >= ledger.durable_end
        ledger.cut(end_offset)

    def rotted(self, ledger: Ledger, end_offset: int) -> None:
        """Note that a disk has lost batches that were durable. From now on the directory is in quarantine."""
        assert end_offset < ledger.durable_end
        self.counts["quarantines"] += 1
        self.history.note_rotting(ledger)
        ledger.quarantine_end = max(ledger.quarantine_end, ledger.durable_end)
        ledger.cut(end_offset)

    def raised_high_watermark(self, ledger: Ledger, offset: int) -> None:
        """Note that a replica believes that records below an offset are committed."""
        before, log_end = ledger.high_watermark, ledger.end_offset
        check(offset <= log_end, "high-watermark-in-log", "{}: {}, log end {}", ledger.key, offset, log_end)
        check(before <= offset, "high-watermark-rises", "{}: {} after {}", ledger.key, offset, before)
        ledger.high_watermark = offset
        self.known_end = max(self.known_end, offset)
        end = self.history.end_offset
        check(offset <= end, "high-watermark-is-committed", "{}: {}, committed {}", ledger.key, offset, end)
        found = ledger.batch_before(offset)
        if found is not None:
            is_right = self.history.is_committed(found)
            check(is_right, "committed-prefix", "{} takes {} for committed", ledger.key, found)

    def reopened(self, ledger: Ledger, end_offset: int, high_watermark: int) -> None:
        """Note that a directory was opened again: all that is in its log is durable."""
        ledger.high_watermark = high_watermark
        ledger.requested_epoch = 0 if ledger.state is None else ledger.state.leader_epoch
        assert end_offset == ledger.end_offset
        self.synced(ledger, end_offset)

    def proved(self, ledger: Ledger, high_watermark: int) -> None:
        """Note a high watermark that a log has by its snapshots: its own records below it must be committed.

        In quarantine, the epoch in a header may be another one, since no CRC covers it.
        """
        last, history = ledger.batch_before(high_watermark), self.history
        is_same = history.has_committed_records if ledger.is_quarantined else history.is_committed
        is_committed = last is None or is_same(last)
        check(is_committed, "high-watermark-is-committed", "{}: {} by a snapshot: {}", ledger.key, high_watermark, last)

    # Snapshots

    def fetching(self, ledger: Ledger, snapshot_id: OffsetAndEpoch) -> None:
        """Note that a snapshot that is fetched is begun: the one before it must be whole, or removed."""
        before = ledger.fetched_snapshot
        check(before is None, "partial-snapshots-go", "{}: {} is begun, and {} left", ledger.key, snapshot_id, before)
        ledger.fetched_snapshot = snapshot_id

    def fetched(self, ledger: Ledger) -> None:
        """Note that the snapshot that was fetched is whole, or removed."""
        ledger.fetched_snapshot = None

    def snapshot_taken(self, ledger: Ledger, snapshot_id: OffsetAndEpoch, content: bytes) -> None:
        """Note that a snapshot is durable: it must be what replaying the committed records gives."""
        self.replay.check_snapshot(snapshot_id, content)
        self.counts["snapshots"] += snapshot_id.offset > 0
        ledger.snapshots = tuple(sorted({*ledger.snapshots, snapshot_id}))

    def snapshots_kept(self, ledger: Ledger, snapshot_ids: Sequence[OffsetAndEpoch]) -> None:
        """Note that all other snapshots are deleted. One that reaches the log start must be kept."""
        ledger.snapshots = tuple(snapshot_ids)
        self._check_start(ledger)

    def started_at(self, ledger: Ledger, offset: int) -> None:
        """Note that the records below an offset are deleted: a snapshot has them."""
        self.counts["cleanings"] += 1
        ledger.start_at(offset, ledger.batch_before(offset))
        self._check_start(ledger)

    def restarted(self, ledger: Ledger, offset: int) -> None:
        """Note that a log is empty, and starts at the end of a snapshot, or at 0."""
        before = ledger.high_watermark
        check(offset >= before, "high-watermark-is-kept", "{}: {}, restarted at {}", ledger.key, before, offset)
        self.counts["restarts"] += offset > 0
        ledger.restart_count += 1
        if offset > ledger.end_offset:
            ledger.refusals = ledger.refused_in_epoch = 0
        self.emptied(ledger, offset)
        ledger.synced_to(offset)
        ledger.high_watermark = offset
        self._check_start(ledger)

    def emptied(self, ledger: Ledger, offset: int) -> None:
        """Note that a log has no batch, and that the next one begins at an offset; committed records are before it."""
        ledger.batches.clear()
        ledger.furthest_end = max(ledger.furthest_end, offset)
        ledger.start_at(offset, self.replay.batch_before(offset))
        in_force = self.replay.in_force_before(offset)
        named_at = offset - 1 if in_force.kraft_version else -1  # At 0 it names no voters.
        ledger.voter_sets = [NamedVoters(named_at, in_force.keys)]
        ledger.levels = [(named_at, in_force.kraft_version)]

    def _check_start(self, ledger: Ledger) -> None:
        start, ids = ledger.start_offset, ledger.snapshots
        is_covered = start == 0 or (any(each.offset >= start for each in ids) and start <= ledger.high_watermark)
        check(is_covered, "log-start-is-covered", "{} starts at {}, with snapshots {}", ledger.key, start, ids)

    # The election state

    def asked_to_store(self, ledger: Ledger, state: QuorumStateData) -> None:
        """Note that the disk was given an election state to store."""
        epoch, before = state.leader_epoch, ledger.requested_epoch
        check(epoch >= before, "epochs-rise", "{}: epoch {} after {}", ledger.key, epoch, before)
        ledger.requested_epoch = epoch

    def stored(self, ledger: Ledger, state: QuorumStateData) -> None:
        """Note that an election state is durable."""
        ledger.state = state
        if state.leader_id == ledger.key.id:
            self.history.note_leader(ledger, state.leader_epoch)
        voted = ledger.key.id if state.leader_id == ledger.key.id else state.voted_id
        if voted != UNKNOWN_ID:
            self.voted(ledger, state.leader_epoch, voted)
        if self.watch is not None:
            self.watch(ledger)

    def voted(self, ledger: Ledger, epoch: int, candidate_id: int) -> None:
        """Note a vote, stored or sent."""
        known = self._votes.setdefault((ledger.key, epoch), candidate_id)
        check(known == candidate_id, "one-vote-per-epoch", "{}, epoch {}: {}", ledger.key, epoch, (known, candidate_id))


def majorities_meet(one: frozenset[ReplicaKey], other: frozenset[ReplicaKey]) -> bool:
    """Whether no majority of one set is disjoint from a majority of the other, by trying them all."""
    return all(
        set(first) & set(second)
        for first in itertools.combinations(sorted(one), len(one) // 2 + 1)
        for second in itertools.combinations(sorted(other), len(other) // 2 + 1)
    )
