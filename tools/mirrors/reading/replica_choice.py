# SPDX-License-Identifier: Apache-2.0
"""Chooses the replica of a partition to compare: the one that reaches furthest, of those that the audit calls sound.

A partition that has one replica here is not surveyed. Of several, all files are read once more.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from uuid import UUID

import attrs

from raftlog.file_paths import directory_of
from raftlog.invariants import present
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.rules import Severity
from raftlog.tools.auditing.agreement.topic_id_rules import judge_topic_ids, topic_id_file
from raftlog.tools.auditing.batch_reader import read_batches
from raftlog.tools.auditing.evidence import PartitionEvidence, SurveyTask, group_by_place
from raftlog.tools.auditing.history.log_lineages import log_lineage
from raftlog.tools.auditing.history.quorum_statements import cut_offset
from raftlog.tools.auditing.judgement.replica_rules import LineageFault, sound_lineage_faults
from raftlog.tools.auditing.run.engine import survey_all
from raftlog.tools.auditing.survey.tasks import find_tasks
from raftlog.tools.catalogue.audit_rules import DISORDER_RULES
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.spark.source.planning import Partition
from raftlog.tools.terminal.value_text import counted
from raftlog.uuid_text import uuid_to_text

_ALONE: Final = "it is the only replica here"
_EMPTY: Final = OffsetAndEpoch(0, -1)
_DOUBT: Final = "; nothing shows which is right"


@attrs.frozen
class PassedReplica:
    """A replica that is not compared.

    Attributes:
        directory: of its log.
        reason: why not, in a clause.
    """

    directory: str
    reason: str


@attrs.frozen
class ReplicaChoice:
    """Which replica of a partition is compared.

    Attributes:
        directory: of its log.
        reason: why this one, in a clause.
        passed: the other replicas that are here, by path.
        findings: of the audit: which replicas are not of the sound lineage, or of the topic; and what is damaged of
            those that are not compared.
        is_doubtful: whether replicas contradict each other, and nothing shows which is right.
    """

    directory: str
    reason: str = _ALONE
    passed: tuple[PassedReplica, ...] = ()
    findings: tuple[Finding, ...] = ()
    is_doubtful: bool = False


@attrs.frozen
class _Candidate:
    """A replica with what the audit says of it.

    Attributes:
        found: its files.
        directory: of its log.
        end: of its log, exclusive, with the last epoch before that; before offsets that are out of place.
        stray_end: up to where its batches go on after offsets that are out of place, exclusive; None if none are.
        record_count: how many records its sound batches have, by their headers.
        damaged_from: the first offset that is damaged; None if none is.
        fault: why it is not of the sound lineage, or of the topic; None if it is.
        damage: the findings about its segments.
    """

    found: Partition
    directory: str
    end: OffsetAndEpoch = _EMPTY
    stray_end: int | None = None
    record_count: int = 0
    damaged_from: int | None = None
    fault: LineageFault | None = None
    damage: tuple[Finding, ...] = ()

    @property
    def is_out(self) -> bool:
        """Whether something shows that it is wrong."""
        return self.fault is not None and self.fault.is_shown

    @property
    def preference(self) -> tuple[bool, OffsetAndEpoch, int, bool]:
        """Greater for the one to prefer. Records count, so that damage, holes and a later log start do too."""
        return not self.is_out, self.end, self.record_count, self.fault is None

    @property
    def reach(self) -> str:
        """How far it reaches, in a clause."""
        damage = "" if self.damaged_from is None else f", and is damaged at offset {self.damaged_from}"
        if self.stray_end is not None:
            damage += f", where offsets are out of place: what follows, up to offset {self.stray_end}, does not count"
        return f"it ends at offset {self.end.offset} of epoch {self.end.epoch}{damage}"

    def why_not(self, chosen: "_Candidate") -> str:
        """Return in a clause why another one was chosen."""
        if self.fault is not None:
            doubt = "" if self.fault.is_shown else _DOUBT
            return f"{self.fault.finding.reason} [{self.fault.finding.rule}]{doubt}"
        fewer = chosen.record_count - self.record_count
        less = f", with {counted(fewer, 'record')} less" if self.end == chosen.end and fewer > 0 else ""
        return f"{self.reach}{less}"


def choose_replica(replicas: Sequence[Partition], topic_id: UUID | None = None) -> tuple[Partition, ReplicaChoice]:
    """Return the replica to compare, and why.

    A replica of another topic id, or that is not of the sound lineage, is chosen only if there is no other. Of the
    others, the one counts that reaches furthest, then the one that has most records, and then the first by path.

    Args:
        replicas: of one partition, each with segments; at least one.
        topic_id: of the topic, by the metadata of the cluster; None if they do not say. Then the id counts that most
            replicas have.

    Raises:
        MissingExtraError: a package of an extra is not installed.
    """
    if len(replicas) == 1:
        return replicas[0], ReplicaChoice(_directory(replicas[0]))
    candidates = _candidates(replicas, topic_id)
    chosen = max(candidates, key=lambda each: each.preference)
    others = [each for each in candidates if each is not chosen]
    sound = sum(not each.is_out for each in candidates)
    is_doubtful = not chosen.is_out and any(each.fault is not None and not each.is_out for each in candidates)
    among = f"of {len(candidates)} replicas, it reaches furthest"
    if sound == 1:
        among = f"of {len(candidates)} replicas, it alone is sound"
    elif 0 < sound < len(candidates):
        among = f"of {sound} sound replicas among {len(candidates)}, it reaches furthest"
    reason = f"{among}: {chosen.reach}"
    stray_end = max((each.stray_end or 0 for each in others), default=0)
    if stray_end > chosen.end.offset:
        reason += f"; another one goes on to offset {stray_end}, after offsets that are out of place"
    if is_doubtful:
        reason += f"; others contradict it{_DOUBT}"
    elif chosen.fault is not None:
        reason += f"; no replica is sound: {chosen.fault.finding.reason}"
    findings = [each.fault.finding for each in candidates if each.fault is not None]
    findings += [finding for each in others for finding in each.damage]
    if chosen.stray_end is not None:  # Whoever reads its records does not see which ones are left out.
        findings += [finding for finding in chosen.damage if finding.rule in DISORDER_RULES]
    passed = tuple(PassedReplica(each.directory, each.why_not(chosen)) for each in others)
    return chosen.found, ReplicaChoice(chosen.directory, reason, passed, tuple(findings), is_doubtful)


def _directory(replica: Partition) -> str:
    return directory_of(replica.segments[0].path) or "."


def _candidates(replicas: Sequence[Partition], topic_id: UUID | None) -> list[_Candidate]:
    by_directory = {_directory(each): each for each in replicas}
    tasks = (each for each in find_tasks(list(by_directory)) if isinstance(each, SurveyTask))
    found = [each for each in group_by_place(survey_all(tasks, 1)) if each.segments]
    evidence = {directory_of(each.segments[0].task.path) or ".": each for each in found}
    faults = _other_topics(evidence, topic_id)
    for is_of_others in (False, True):
        of_one = [each for path, each in evidence.items() if (path in faults) is is_of_others]
        faults = sound_lineage_faults(of_one, read_batches) | faults
    return [
        _candidate(_Candidate(replica, directory, fault=faults.get(directory)), evidence.get(directory))
        for directory, replica in sorted(by_directory.items())
    ]


def _candidate(replica: _Candidate, seen: PartitionEvidence | None) -> _Candidate:
    """Return a replica with what a survey has seen of it."""
    if seen is None:
        return replica
    misplaced = [each.misplaced_from for each in seen.segments if each.misplaced_from is not None]
    end = OffsetAndEpoch(seen.end_offset, seen.last_epoch)
    return attrs.evolve(
        replica,
        end=min([end, *(log_lineage(seen).cut(offset).end for offset in misplaced)]),
        stray_end=end.offset if misplaced else None,
        record_count=sum(each.extent.record_count for each in seen.segments if each.extent is not None),
        damaged_from=min([offset for offset in (cut_offset(seen), *misplaced) if offset is not None], default=None),
        damage=tuple(
            finding
            for each in seen.segments
            for finding in each.findings
            if finding.severity >= Severity.DAMAGED and finding.path == each.task.path
        ),
    )


def _other_topics(evidence: Mapping[str, PartitionEvidence], topic_id: UUID | None) -> dict[str, LineageFault]:
    """Return the replicas of another topic id, by directory, each with why."""
    if topic_id is not None:
        return dict(_against_metadata(evidence, uuid_to_text(topic_id)))
    ids = Counter(id_ for id_ in map(_topic_id, evidence.values()) if id_ is not None)
    is_shown = 2 * max(ids.values(), default=0) > ids.total()
    found = judge_topic_ids(list(evidence.values()))
    return {directory_of(each.path): LineageFault(each, is_shown) for each in found}


def _against_metadata(evidence: Mapping[str, PartitionEvidence], topic_id: str) -> Iterator[tuple[str, LineageFault]]:
    for directory, each in evidence.items():
        own = _topic_id(each)
        if own is not None and own != topic_id:
            path = present(topic_id_file(each), "a file with an id").task.path
            finding = Finding(path, "topic-id", f"its topic id is {own}, and that of the topic is {topic_id}")
            yield directory, LineageFault(finding, is_shown=True)


def _topic_id(replica: PartitionEvidence) -> str | None:
    """Return the topic id that a file of a replica says; None if none does."""
    file = topic_id_file(replica)
    return None if file is None else str(present(file.contents, "contents")["topic_id"])
