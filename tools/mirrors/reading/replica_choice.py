# SPDX-License-Identifier: Apache-2.0
"""Chooses the replica of a partition to compare: the one that reaches furthest, of those that the audit calls sound.

A partition that has one replica here is not surveyed. Of several, all files are read once more.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from uuid import UUID

import attrs

from raftlog.file_paths import directory_of
from raftlog.invariants import present
from raftlog.offsets import OffsetAndEpoch
from raftlog.tools.auditing.agreement.topic_id_rules import judge_topic_ids, topic_id_file
from raftlog.tools.auditing.batch_reader import read_batches
from raftlog.tools.auditing.evidence import PartitionEvidence, SurveyTask, group_by_place
from raftlog.tools.auditing.history.log_lineages import log_lineage
from raftlog.tools.auditing.history.replicas import log_end
from raftlog.tools.auditing.judgement.replica_rules import sound_lineage_faults
from raftlog.tools.auditing.run.engine import survey_all
from raftlog.tools.auditing.survey.tasks import find_tasks
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.spark.source.planning import Partition
from raftlog.uuid_text import uuid_to_text

_ALONE: Final = "it is the only replica here"


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
        findings: of the audit: which replicas are not of the sound lineage.
    """

    directory: str
    reason: str = _ALONE
    passed: tuple[PassedReplica, ...] = ()
    findings: tuple[Finding, ...] = ()


@attrs.frozen
class _Candidate:
    """A replica with what the audit says of it.

    Attributes:
        found: its files.
        directory: of its log.
        end: of what is sound of it, exclusive, with the last epoch before that.
        fault: why it is not of the sound lineage, or of the topic; empty if it is.
    """

    found: Partition
    directory: str
    end: OffsetAndEpoch
    fault: str

    @property
    def preference(self) -> tuple[bool, OffsetAndEpoch]:
        """Greater for the one to prefer."""
        return not self.fault, self.end


def choose_replica(replicas: Sequence[Partition], topic_id: UUID | None = None) -> tuple[Partition, ReplicaChoice]:
    """Return the replica to compare, and why; of equal ones, the first.

    A replica of another topic id, or that is not of the sound lineage, is chosen only if there is no other.

    Args:
        replicas: of one partition, each with segments; at least one.
        topic_id: of the topic, by the metadata of the cluster; None if they do not say. Then the id counts that most
            replicas have.

    Raises:
        MissingExtraError: a package of an extra is not installed.
    """
    if len(replicas) == 1:
        return replicas[0], ReplicaChoice(_directory(replicas[0]))
    candidates, findings = _candidates(replicas, topic_id)
    chosen = max(candidates, key=lambda each: each.preference)
    passed = [
        PassedReplica(each.directory, each.fault or f"it {_reach(each.end)}")
        for each in candidates
        if each is not chosen
    ]
    sound = sum(not each.fault for each in candidates)
    reason = f"of {len(candidates)} replicas, it reaches furthest: it {_reach(chosen.end)}"
    if sound == 1:
        reason = f"of {len(candidates)} replicas, it alone is sound: it {_reach(chosen.end)}"
    elif 0 < sound < len(candidates):
        reason = f"of {sound} sound replicas among {len(candidates)}, it reaches furthest: it {_reach(chosen.end)}"
    elif not sound:
        reason += f"; no replica is sound: {chosen.fault}"
    return chosen.found, ReplicaChoice(chosen.directory, reason, tuple(passed), findings)


def _reach(end: OffsetAndEpoch) -> str:
    return f"ends at offset {end.offset} of epoch {end.epoch}"


def _directory(replica: Partition) -> str:
    return directory_of(replica.segments[0].path) or "."


def _candidates(replicas: Sequence[Partition], topic_id: UUID | None) -> tuple[list[_Candidate], tuple[Finding, ...]]:
    by_directory = {_directory(each): each for each in replicas}
    tasks = (each for each in find_tasks(list(by_directory)) if isinstance(each, SurveyTask))
    found = [each for each in group_by_place(survey_all(tasks, 1)) if each.segments]
    evidence = {directory_of(each.segments[0].task.path) or ".": each for each in found}
    others = _other_topics(evidence, topic_id)
    faults = sound_lineage_faults([each for path, each in evidence.items() if path not in others], read_batches)
    candidates = []
    for directory, replica in sorted(by_directory.items()):
        seen = evidence.get(directory)
        end = OffsetAndEpoch(0, -1) if seen is None else _sound_end(seen)
        fault = faults.get(directory)
        why = others.get(directory) or (f"{fault.reason} [{fault.rule}]" if fault else "")
        candidates.append(_Candidate(replica, directory, end, why))
    return candidates, tuple(faults.values())


def _sound_end(seen: PartitionEvidence) -> OffsetAndEpoch:
    """Return the end of what is sound of a log, exclusive: before damage, and before offsets that are out of place."""
    misplaced = [each.misplaced_from for each in seen.segments if each.misplaced_from is not None]
    return min([log_end(seen), *(log_lineage(seen).cut(offset).end for offset in misplaced)])


def _other_topics(evidence: Mapping[str, PartitionEvidence], topic_id: UUID | None) -> dict[str, str]:
    """Return the replicas of another topic id, by directory, each with why."""
    if topic_id is not None:
        return dict(_against_metadata(evidence, uuid_to_text(topic_id)))
    return {directory_of(each.path): each.reason for each in judge_topic_ids(list(evidence.values()))}


def _against_metadata(evidence: Mapping[str, PartitionEvidence], topic_id: str) -> Iterator[tuple[str, str]]:
    for directory, each in evidence.items():
        file = topic_id_file(each)
        if file is not None and present(file.contents, "contents")["topic_id"] != topic_id:
            own = present(file.contents, "contents")["topic_id"]
            yield directory, f"its topic id is {own}, and that of the topic is {topic_id}"
