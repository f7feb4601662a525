# SPDX-License-Identifier: Apache-2.0
"""Compares what a directory says when it is opened again with what its disk was given: nothing durable is lost unseen.

A log that was opened may lack what was not synced. It may lack durable batches only if the disk was damaged, and then
it is in quarantine, or a snapshot replaces them. It never has a batch that its disk was not given. Batches that no
append has reported are allowed at the end: a write that failed may have written them.
"""

from collections.abc import Mapping, Sequence

import attrs

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.files.quorum_state import UNKNOWN_ID, QuorumStateData
from raftlog.testing.simulator.checks.disk_witness import DiskWitness
from raftlog.testing.simulator.checks.ledger import Ledger, NamedVoters, StoredBatch
from raftlog.testing.simulator.violation import check
from raftlog.voters.voter_set import ReplicaKey


@attrs.frozen(kw_only=True)
class FoundLog:
    """What a log says after it was opened.

    Attributes:
        start_offset: the first offset, inclusive.
        batches: that can be read, from the start on.
        end_offset: where they end, exclusive.
        high_watermark: at the start.
        quarantine_end: up to where, exclusive, the log was durable, if it is in quarantine; 0 if it is not.
        snapshots: the content of those that it lists.
        told: what its report says was lost, set aside or left out, as lines of text.
    """

    start_offset: int
    batches: Sequence[RecordBatch]
    end_offset: int
    high_watermark: int
    quarantine_end: int
    snapshots: Mapping[OffsetAndEpoch, bytes]
    told: Sequence[str] = ()


def check_log(
    witness: DiskWitness, ledger: Ledger, found: FoundLog, truncating_to: int | None, *, is_damaged: bool
) -> int:
    """Check a log that was opened, and let the ledger have what it has; return how many batches were lost.

    Args:
        witness: of all disks.
        ledger: what the disk was given.
        found: what the log says.
        truncating_to: where a truncation that was under way would have cut it; None if none was.
        is_damaged: whether the disk was damaged, or has returned wrong bytes, since the log was opened before.
    """
    if not is_damaged:
        _check_sound(ledger, found)
    furthest = max((ledger.furthest_end, *(each.offset for each in (*ledger.snapshots, *found.snapshots))))
    ledger.high_watermark = found.high_watermark
    new = [each for each in found.snapshots if each not in ledger.snapshots]
    for snapshot_id in sorted(new):
        witness.snapshot_taken(ledger, snapshot_id, found.snapshots[snapshot_id])
    if found.start_offset > ledger.start_offset:
        _move_start(witness, ledger, found, is_damaged=is_damaged)
    known = ledger.batches[ledger.index_of(found.start_offset) :]
    names = [StoredBatch.of(each) for each in found.batches if each.base_offset >= ledger.start_offset]
    for one, other in zip(names, known, strict=False):
        check(one == other, "disk-damage-is-found", "{} has {}, and was given {}", ledger.key, one, other)
    lost = max(0, len(known) - len(names))
    if lost:
        _lose(witness, ledger, found, truncating_to, is_damaged=is_damaged)
    extra = found.batches[len(found.batches) - max(0, len(names) - len(known)) :]
    if found.start_offset < ledger.start_offset:  # The log start is lost: records below it, which it covered, are back.
        witness.emptied(ledger, found.start_offset)
        extra = found.batches
    if extra:
        witness.appended(ledger, extra, is_leader=False)
    _name_first_voters(witness, ledger, found, is_damaged=is_damaged)
    if is_damaged or ledger.is_refused:  # A replica whose log starts above all snapshots does not start.
        ledger.snapshots = tuple(sorted(found.snapshots))
    else:
        witness.snapshots_kept(ledger, sorted(found.snapshots))
    _check_empty(ledger, found)
    last = max(found.snapshots, default=None)
    is_finished = last is None or last.offset <= found.end_offset or found.quarantine_end > 0 or is_damaged
    check(is_finished, "starts-finish-restarts", "{} ends at {}, and has {}", ledger.key, found.end_offset, last)
    is_known = found.quarantine_end <= furthest
    check(
        is_known,
        "losses-are-true",
        "{} had {}, and misses records up to {}",
        ledger.key,
        furthest,
        found.quarantine_end,
    )
    if found.quarantine_end > ledger.end_offset:
        ledger.quarantine_end = max(ledger.quarantine_end, found.quarantine_end)
    _check_high_watermark(witness, ledger, found)
    witness.reopened(ledger, found.end_offset, found.high_watermark)
    return lost


def _check_sound(ledger: Ledger, found: FoundLog) -> None:
    """Check what an open says of a disk that was not damaged: it starts as late as before, and has the snapshots.

    Snapshots below the log start, or before the one that it is at, may be deleted if there is a later one. A report
    names no damage where there is none; in quarantine it may still tell what was lost before.
    """
    start = found.start_offset
    check(start >= ledger.start_offset, "log-start-is-kept", "{}: {} after {}", ledger.key, start, ledger.start_offset)
    for each in set(ledger.snapshots).difference(found.snapshots):
        is_old = any(each < other and min(each.offset + 1, other.offset) <= start for other in found.snapshots)
        check(is_old, "snapshots-are-kept", "{}: {} is gone, log start {}", ledger.key, each, start)
    is_true = not found.told or ledger.is_quarantined
    check(is_true, "reports-are-true", "{} was not damaged, and says {}", ledger.key, found.told)


def _check_empty(ledger: Ledger, found: FoundLog) -> None:
    """Check that an empty log that does not start at 0 has a snapshot there: else no leader could tell what it has."""
    start = found.start_offset
    is_known = bool(found.batches) or start in {0, *(each.offset for each in found.snapshots)}
    check(is_known, "log-start-is-covered", "{} is empty at {}, with {}", ledger.key, start, sorted(found.snapshots))


def _check_high_watermark(witness: DiskWitness, ledger: Ledger, found: FoundLog) -> None:
    """Check the high watermark of a log that was opened: it has committed records only, and all that snapshots prove.

    A snapshot proves what is before its end if the log has a record of its epoch there.
    """
    high_watermark = found.high_watermark
    witness.proved(ledger, high_watermark)
    for each in found.snapshots:
        is_ahead = found.start_offset < each.offset <= found.end_offset and each.offset > high_watermark
        proven = ledger.batch_before(each.offset) if is_ahead else None
        is_other = proven is None or proven.epoch != each.epoch
        check(is_other, "high-watermark-is-proven", "{}: {}, with snapshot {}", ledger.key, high_watermark, each)


def _move_start(witness: DiskWitness, ledger: Ledger, found: FoundLog, *, is_damaged: bool) -> None:
    """Note that the log starts later: a deletion, or a restart at a snapshot, was finished by the open."""
    offset = found.start_offset
    is_restart = offset == found.end_offset and offset != ledger.end_offset
    if not is_restart and offset <= ledger.end_offset:
        witness.started_at(ledger, offset)
        return
    durable = [each for each in ledger.batches if offset < each.next_offset <= ledger.durable_end]
    dropped = [each for each in durable if witness.history.is_committed(each)]
    if dropped:
        _check_loss(ledger, found, dropped[0].next_offset, is_damaged=is_damaged)
        witness.rotted(ledger, max(offset, ledger.start_offset))
    if offset < found.end_offset:  # A snapshot stands for what was lost at the start: the records after it are back.
        witness.emptied(ledger, offset)
    else:
        witness.restarted(ledger, offset)


def _name_first_voters(witness: DiskWitness, ledger: Ledger, found: FoundLog, *, is_damaged: bool) -> None:
    """Note that no snapshot names the first voters any more: the replica then knows none until a record names some."""
    first = witness.replay.in_force_before(0)
    if ledger.start_offset or not first.kraft_version:
        return
    keys = first.keys if found.snapshots else frozenset[ReplicaKey]()
    is_known = bool(keys) or not ledger.voter_sets[0].keys
    check(is_known or is_damaged, "voter-history", "{}: the first voters are lost", ledger.key)
    ledger.voter_sets[0], ledger.levels[0] = NamedVoters(-1, keys), (-1, first.kraft_version if keys else 0)


def _lose(
    witness: DiskWitness, ledger: Ledger, found: FoundLog, truncating_to: int | None, *, is_damaged: bool
) -> None:
    end_offset = found.end_offset
    if truncating_to is not None:
        ledger.durable_end = min(ledger.durable_end, truncating_to)
    if end_offset >= ledger.durable_end:
        witness.lost(ledger, end_offset)
        return
    _check_loss(ledger, found, ledger.durable_end, is_damaged=is_damaged)
    witness.rotted(ledger, end_offset)


def _check_loss(ledger: Ledger, found: FoundLog, durable_end: int, *, is_damaged: bool) -> None:
    """Check that durable batches are lost by damage only, and that the log says so."""
    values = ledger.key, found.end_offset, durable_end
    check(is_damaged, "durable-records-are-kept", "{} ends at {}, durable up to {}", *values)
    is_told = found.quarantine_end > found.end_offset
    check(is_told, "disk-damage-is-found", "{} ends at {}, durable up to {}", *values)


def check_state(
    witness: DiskWitness,
    ledger: Ledger,
    state: QuorumStateData | None,
    requested: QuorumStateData | None,
    *,
    may_vote: bool,
    is_damaged: bool,
) -> None:
    """Check an election state that was opened: it is the last one that was stored, or the one that was being stored.

    If it is another one, the replica must not vote any more. But a digit of the epoch in Kafka's file, which has no
    checksum, may be another one on a damaged disk: a later epoch keeps all promises, if it names no leader.
    """
    if state == ledger.state:
        return
    if state is not None and state == requested:
        witness.stored(ledger, state)
        return
    is_later = state is not None and ledger.state is not None and state.leader_epoch > ledger.state.leader_epoch
    is_kept = is_damaged and is_later and state is not None and state.leader_id == UNKNOWN_ID
    check(is_kept or not may_vote, "votes-are-kept", "{}: {} after {}", ledger.key, state, ledger.state)
    if is_kept and state is not None:
        witness.invented_epoch = max(witness.invented_epoch, state.leader_epoch)
    ledger.state = state
