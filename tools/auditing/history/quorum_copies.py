# SPDX-License-Identifier: Apache-2.0
"""Turns replicas of a raft log into the small values that the proof (``raftlog.tools.auditing.proof``) is made of."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import attrs

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.quorum_state import UNKNOWN_ID
from raftlog.records.messages.control import LeaderChangeMessage
from raftlog.records.rules import Severity, Subject
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence
from raftlog.tools.auditing.history.durable_ends import durable_end_offset
from raftlog.tools.auditing.history.log_lineages import fault_offsets, log_lineage
from raftlog.tools.auditing.history.quorum_statements import (
    has_jump,
    log_statements,
    snapshot_statements,
    voters_of,
)
from raftlog.tools.auditing.history.replicas import Replica, static_voters, usable_snapshots
from raftlog.tools.auditing.proof.copies import ActedOn, Copy, DoubtedName, VotersFrom
from raftlog.tools.auditing.proof.lineage import Lineage, common_end
from raftlog.tools.auditing.proof.proofs import proofs
from raftlog.tools.catalogue.audit_rules import CATALOGUE
from raftlog.tools.catalogue.findings import Finding

Acts = Callable[[PartitionEvidence, int, int], ActedOn | None]
"""Returns the last record of a log, from an offset (inclusive) to another (exclusive), that a broker has acted on."""


def copies_of(found: Sequence[Replica], acts: Acts | None = None) -> list[Copy]:
    """Return the replicas of one quorum as copies, in their order.

    What brokers have acted on is looked for only where a log has more than is proven without it.

    Args:
        found: the replicas.
        acts: looks for it; by default in the replicas' log directories, unless only a part of one was named.
    """
    copies = [_copy_of(replica) for replica in found]
    readings = [copies]
    if any(copy.if_renamed for copy in copies):
        readings.append([copy.if_renamed or copy for copy in copies])
    proven = [next((proof.lineage for proof in proofs(each)), Lineage()) for each in readings]
    if all(_unproven_from(copy.lineage, proven) >= copy.lineage.end_offset for each in readings for copy in each):
        return copies
    acts = acts or _of_directories(each.path for each in found if not _was_named(each))
    return [_with_acts(copy, replica.evidence, proven, acts) for copy, replica in zip(copies, found, strict=True)]


def _with_acts(copy: Copy, log: PartitionEvidence, proven: Sequence[Lineage], acts: Acts) -> Copy:
    """Return a copy with what brokers have acted on, whichever of the names of its snapshots are right.

    A snapshot of a doubted name may stand for records of the log beside it on which they have acted.
    """
    acted_on = acts(log, _unproven_from(copy.lineage, proven), copy.lineage.end_offset)
    if copy.if_renamed is None:
        return attrs.evolve(copy, acted_on=acted_on)
    renamed = _with_acts(copy.if_renamed, log, proven, acts)
    both = [each for each in (acted_on, renamed.acted_on) if each is not None]
    latest = max(both, key=lambda each: each.point, default=None)
    return attrs.evolve(copy, acted_on=latest, if_renamed=attrs.evolve(renamed, acted_on=latest))


def _unproven_from(lineage: Lineage, proven: Sequence[Lineage]) -> int:
    """Return the first offset of a log that is not known to be proven, whichever names of snapshots are right."""
    ends = [common_end(lineage, each) if each.epochs else 0 for each in proven]
    return max(lineage.start_offset, min(ends))


def _of_directories(paths: Iterable[str]) -> Acts:
    from raftlog.tools.auditing.acts.acted_on import BrokerDirectories  # Not needed where everything is proven.

    return BrokerDirectories(paths).last_acted_on


def _was_named(replica: Replica) -> bool:
    tasks = (file.task for file in replica.evidence.files)
    return any(task.was_named or task.directory_was_named for task in tasks)


def _copy_of(replica: Replica) -> Copy:
    """Return a replica as a copy."""
    lineage, wrong, doubted = _lineage(replica), replica.misnamed, replica.doubted
    unproven = {*wrong, *(path for path, fault in doubted.items() if not fault.proves)}
    reach, is_known = _reach(replica, lineage)
    misled_by = replica.misled_by
    state = replica.state
    leader_id = None if state is None or state.leader_id == UNKNOWN_ID else state.leader_id
    return Copy(
        replica.path,
        replica.key,
        lineage,
        replica.end if replica.end.offset else OffsetAndEpoch(0, 0),
        reach,
        is_known,
        {each: file.task.path for each, file in _snapshots(replica) if file.task.path not in unproven},
        None if state is None else state.leader_epoch,
        leader_id,
        tuple(_voters(replica)),
        replica.has_state,
        replica.quarantined_from is None,
        replica.damaged_from is None and misled_by is None,
        any(_is_of_batches(finding) for file in replica.evidence.files for finding in file.findings),
        doubted=dict(_doubted_names(replica)),
        misled_by=None if misled_by is None else DoubtedName(misled_by, wrong[misled_by]),
        if_renamed=_copy_of(replica.as_if_renamed()) if _has_doubt(replica) else None,
    )


def _has_doubt(replica: Replica) -> bool:
    """Whether a snapshot of its own has a name that is doubted and proves nothing."""
    paths = {file.task.path for _, file in _snapshots(replica)}
    return any(path in paths and not fault.proves for path, fault in replica.doubted.items())


def _doubted_names(replica: Replica) -> Iterator[tuple[OffsetAndEpoch, DoubtedName]]:
    for snapshot_id, file in _snapshots(replica):
        path = file.task.path
        if path in replica.misnamed:
            yield snapshot_id, DoubtedName(path, replica.misnamed[path])
        elif path in replica.doubted:
            fault = replica.doubted[path]
            yield snapshot_id, DoubtedName(path, fault.reason, is_certain=False, proves=fault.proves)


def _is_of_batches(finding: Finding) -> bool:
    """Whether a finding is damage of batches: all that look at a quorum read them, and not all read indexes."""
    rule = CATALOGUE[finding.rule]
    return rule.severity >= Severity.DAMAGED and rule.subject in {Subject.BATCHES, Subject.LOGS, Subject.SNAPSHOTS}


def _lineage(replica: Replica) -> Lineage:
    """Return the records that a replica has without a gap, and those that a readable snapshot stands for."""
    evidence = replica.evidence
    log = log_lineage(evidence)
    is_broken = bool(fault_offsets(evidence)) or not replica.has_state or replica.starts_misnamed
    covered = max(usable_snapshots(evidence, replica.misnamed), default=None)
    if covered is not None and (is_broken or covered > log.end):
        log = log.after(covered)  # What was before the damage is not needed, or is dropped at startup.
    log = log.cut(replica.end.offset)
    return log if replica.damaged_from is None else log.cut(replica.damaged_from)


def _reach(replica: Replica, lineage: Lineage) -> tuple[OffsetAndEpoch, bool]:
    """Return how far a log is known to have reached, and whether it reached no further."""
    if replica.damaged_from is None:
        return lineage.end, True
    epoch = max(log_lineage(replica.evidence).end.epoch, lineage.end.epoch)
    durable = durable_end_offset(replica.evidence) or 0
    if has_jump(replica.evidence):  # Offsets after it may be rotten.
        return OffsetAndEpoch(max(durable, lineage.end_offset), lineage.end.epoch), False
    end_offset = max(replica.evidence.end_offset, durable, lineage.end_offset)
    return OffsetAndEpoch(end_offset, epoch), end_offset > replica.damaged_from


def _snapshots(replica: Replica) -> Iterator[tuple[OffsetAndEpoch, FileEvidence]]:
    """Yield the snapshots above 0, readable or not: the name is enough, unless something contradicts it."""
    found = replica.evidence.snapshots_by_id.items()
    return ((snapshot_id, file) for snapshot_id, file in found if snapshot_id.offset > 0)


def _voters(replica: Replica) -> Sequence[VotersFrom]:
    """Return the voter sets of a log, by ascending offset, with those of LeaderChanges before the first of them."""
    statements = [each for each in log_statements(replica.evidence) if each.seen.offset < replica.end.offset]
    changes = {each.seen.batch_offset for each in statements if isinstance(each.value, LeaderChangeMessage)}
    found = [
        VotersFrom(snapshot.offset, voters, snapshot.file.task.path, is_record=False)
        for snapshot in snapshot_statements(replica.evidence)
        if (voters := snapshot.voter_set) is not None and snapshot.file.task.path not in replica.misnamed
    ]
    for statement in statements:
        voters = voters_of(statement)
        if voters is not None:
            seen = statement.seen
            is_forced = seen.batch_offset in changes
            found.append(VotersFrom(seen.offset, voters, statement.file.task.path, may_be_forced=is_forced))
    first = min((each.offset for each in found), default=None)
    for statement in statements:
        if isinstance(statement.value, LeaderChangeMessage) and (first is None or statement.seen.offset < first):
            named = static_voters(voter.id for voter in statement.value.voters)
            found.append(VotersFrom(statement.seen.offset, named, statement.file.task.path, is_record=False))
    if not found and replica.state is not None and replica.state.current_voters:
        found.append(VotersFrom(-1, static_voters(replica.state.current_voters), is_record=False))
    return sorted(found, key=lambda each: (each.offset, not each.is_record))
