# SPDX-License-Identifier: Apache-2.0
"""The lineage of a log by its batches, and what contradicts it beside them."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from raftlog.offsets import EpochEntry
from raftlog.records.messages.control import VotersRecord
from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.history.epoch_runs import LogEpochs
from raftlog.tools.auditing.history.quorum_statements import (
    cut_offset,
    hole_offset,
    log_statements,
    snapshot_statements,
    voters_of,
)
from raftlog.tools.auditing.proof.lineage import Lineage, parting
from raftlog.tools.auditing.proof.snapshot_names import NamedSnapshot, NameFault, TimeSeen, name_faults_of
from raftlog.voters.voter_set import VoterSet

_ANY_EPOCH: Final = -1
"""Of the batch after a snapshot's end, which may be of the next epoch."""
_OF_WHOM_TWO_ARE_A_MAJORITY: Final = 3


def log_lineage(evidence: PartitionEvidence) -> Lineage:
    """Return the epochs of a log's batches, except those that break the order."""
    spans = LogEpochs(evidence).spans
    return Lineage(tuple(EpochEntry(span.epoch, span.start_offset) for span in spans), evidence.end_offset)


def wrong_epoch_offset(evidence: PartitionEvidence) -> int | None:
    """Return the first offset of a raft log whose batch has an impossible epoch; None if there is none.

    No CRC covers a batch's epoch. It is wrong if it breaks the order, or begins without a LeaderChange: if the last
    batch claims a later epoch, Kafka's rule would elect the log for that.
    """
    epochs = LogEpochs(evidence)
    found = [run.seen.start_offset for run in epochs.doubted]
    found += [span.start_offset for span in epochs.spans[1:] if not span.first.seen.opens_with_leader]
    return min(found, default=None)


def contradicted_names(logs: Sequence[PartitionEvidence]) -> dict[str, str]:
    """Return the snapshots whose names are wrong for certain, by path, with what says so: they stand for nothing.

    Args:
        logs: replicas of one log, or one of them.
    """
    return {path: fault.reason for path, fault in name_faults(logs).items() if fault.is_certain}


def name_faults(logs: Sequence[PartitionEvidence]) -> dict[str, NameFault]:
    """Return the snapshots whose names are contradicted or doubted, by path, with what does.

    That is their content; the log beside them, as far as it is sound; or what their headers say, compared with the logs
    and snapshots that are given (``raftlog.tools.auditing.proof.snapshot_names``). All that uses the end in a name asks
    this function. What is only doubted may be used; by itself, it does not prove that something is missing.

    Args:
        logs: replicas of one log, or one of them.
    """
    found: dict[str, NameFault] = {}
    for log in logs:
        found |= _of_other_epochs(log)
    return names_against_times(logs) | found


def names_against_times(logs: Sequence[PartitionEvidence]) -> dict[str, NameFault]:
    """Return the part of ``name_faults`` that the headers of snapshots say.

    Times are compared within one directory, and between logs that have the same batch at the start of an epoch, up to
    the first Voters record that a tool may have written and that not both have: such a tool writes it in the last epoch
    of the log that it has, at any later time, where other logs have other records. Where two logs have other batches at
    the start, the epoch was used twice, and its times say nothing.
    """
    statements = [list(_named_snapshots(log)) for log in logs]
    if not any(statements):
        return {}
    branches = [_branches(log) for log in logs]
    openings = {(epoch, branch.opening) for mine in branches for epoch, branch in mine.items()}
    count = Counter(epoch for epoch, opening in openings if opening)
    numbers: dict[tuple[int, _Branch, str], int] = {}
    snapshots = []
    for log, mine, found in zip(logs, branches, statements, strict=True):
        for each in found:
            epoch = each.id.epoch
            branch = mine.get(epoch, _Branch())
            directory = "" if branch.opening else log.place.log_directory
            lineage = numbers.setdefault((epoch, branch, directory), len(numbers))
            snapshots.append(attrs.evolve(each, lineage=each.path if count[epoch] > 1 else str(lineage)))
    times = []
    for log, mine in zip(logs, branches, strict=True):
        seen = [each for each in _times_seen(log) if count[each.epoch] <= 1]
        times += seen
        for (epoch, branch, directory), lineage in numbers.items():
            end_offset = mine.get(epoch, _Branch()).end_with(branch, is_same_log=directory == log.place.log_directory)
            times += [
                TimeSeen(epoch, each.offset, each.timestamp, str(lineage))
                for each in seen
                if each.epoch == epoch and each.offset < end_offset
            ]
    return name_faults_of(snapshots, times)


@attrs.frozen
class _Branch:
    """What tells the records of an epoch in one log from those in others, as far as the log is sound.

    Attributes:
        opening: offset and timestamp of its first batch, if the log has that with its LeaderChange; else empty.
        changes: offset and value of each Voters record after it that a tool may have written.
    """

    opening: tuple[int, ...] = ()
    changes: tuple[tuple[int, bytes], ...] = ()

    def end_with(self, other: "_Branch", *, is_same_log: bool) -> float:
        """Return up to which offset (exclusive) the records are the other one's; 0 if that is not known."""
        if is_same_log:
            return math.inf
        if not self.opening or self.opening != other.opening:
            return 0
        for mine, theirs in itertools.zip_longest(self.changes, other.changes):
            if mine != theirs:
                return min(change[0] for change in (mine, theirs) if change)
        return math.inf


def _branches(log: PartitionEvidence) -> dict[int, _Branch]:
    """Return the epochs of whose start a log has the batch."""
    end_offset = _sound_end(log)
    openings = {
        seen.epoch: (seen.start_offset, seen.timestamp)
        for segment in log.segments
        for seen in segment.epochs
        if seen.opens_with_leader and seen.start_offset < end_offset
    }
    changes: dict[int, list[tuple[int, bytes]]] = {}
    before: VoterSet | None = None
    for statement in log_statements(log):
        seen = statement.seen
        if not isinstance(statement.value, VotersRecord) or seen.offset >= end_offset:
            continue
        voters = voters_of(statement)
        is_later = seen.epoch in openings and seen.batch_offset > openings[seen.epoch][0]
        if is_later and _may_be_forced(before, voters):
            changes.setdefault(seen.epoch, []).append((seen.offset, seen.value))
        before = voters
    return {epoch: _Branch(opening, tuple(changes.get(epoch, ()))) for epoch, opening in openings.items()}


def _may_be_forced(before: VoterSet | None, after: VoterSet | None) -> bool:
    """Whether a tool may have named voters after others, of whom a majority was lost: two, if there were three.

    A leader adds or removes one, or updates one.
    """
    if before is None or after is None:
        return True
    return len(before) < _OF_WHOM_TWO_ARE_A_MAJORITY or len(before.voter_keys ^ after.voter_keys) > 1


def _of_other_epochs(log: PartitionEvidence) -> dict[str, NameFault]:
    """Return the snapshots whose batches, or the log beside them, have another epoch than their names."""
    above = {snapshot_id: file for snapshot_id, file in log.snapshots_by_id.items() if snapshot_id.offset > 0}
    found: dict[str, NameFault] = {}
    sound = _sound_part(log) if above else Lineage()
    for snapshot_id, file in above.items():
        of_content = next((finding for finding in file.findings if finding.rule == "snapshot-epoch"), None)
        apart = parting(sound, Lineage.of_point(snapshot_id))
        if of_content is not None:
            found[file.task.path] = NameFault(f"a batch of it has another epoch: {of_content.reason}")
        elif apart is not None:
            found[file.task.path] = NameFault(f"the log beside it has an epoch that does not fit, at offset {apart}")
    return found


def _sound_part(log: PartitionEvidence) -> Lineage:
    return log_lineage(log).cut(_sound_end(log))


def _sound_end(log: PartitionEvidence) -> int:
    """Return the offset up to which (exclusive) a log is sound."""
    return min(fault_offsets(log), default=log.end_offset)


def _named_snapshots(log: PartitionEvidence) -> Iterator[NamedSnapshot]:
    """Yield the snapshots above 0 with a sound header, whose batches have the epoch of their name."""
    for each in snapshot_statements(log):
        if each.offset < 0 or any(finding.rule == "snapshot-epoch" for finding in each.file.findings):
            continue
        content = each.file.batches_digest if each.file.blocks else None
        yield NamedSnapshot(each.file.task.path, each.snapshot_id, each.timestamp, content)


def _times_seen(log: PartitionEvidence) -> Iterator[TimeSeen]:
    """Yield the known timestamps of a log, as far as that is sound."""
    end_offset = _sound_end(log)
    found = []
    for segment in log.segments:
        for seen in segment.epochs:
            found.append(TimeSeen(seen.epoch, seen.start_offset, seen.timestamp))
            found.append(TimeSeen(seen.epoch, seen.end_offset - 1, seen.last_timestamp))
        batches = [batch for batch in segment.snapshot_batches if batch.last_offset < batch.snapshot_offset]
        found += [TimeSeen(batch.epoch, batch.snapshot_offset - 1, batch.max_timestamp) for batch in batches]
        found += [TimeSeen(_ANY_EPOCH, batch.snapshot_offset, batch.next_timestamp) for batch in batches]
    return (each for each in found if each.offset < end_offset)


def fault_offsets(evidence: PartitionEvidence) -> list[int]:
    """Return the first offset of each kind of fault: damaged, missing or misplaced, or of a wrong epoch."""
    found = (cut_offset(evidence), hole_offset(evidence), wrong_epoch_offset(evidence))
    return [offset for offset in found if offset is not None]
