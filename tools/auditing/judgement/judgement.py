# SPDX-License-Identifier: Apache-2.0
"""Runs all judgements over the evidence of files as it arrives.

Files arrive ordered by topic and partition, as ``find_tasks`` lists them. Memory holds the evidence of all replicas of
one partition. Of other partitions it holds only what log directories are compared by: raft logs, and where a log ends.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import attrs

from raftlog.file_paths import directory_of, name_of
from raftlog.records.files.file_names import FileKind
from raftlog.records.rules import Severity
from raftlog.tools.auditing.crash_isolation import attempted, guarded
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence
from raftlog.tools.auditing.history.log_directories import DirectoryIdentity, by_cluster, log_directories
from raftlog.tools.catalogue.audit_rules import UNREADABLE_RULES
from raftlog.tools.catalogue.findings import Finding

# Judges are imported on first use: a segment that was named alone needs no judge of replicas or log directories.


def _judge_partition(partition: PartitionEvidence) -> Iterator[Finding]:
    from raftlog.tools.auditing.judgement.partition_rules import judge_partition

    return judge_partition(partition)


def _judge_holes(partition: PartitionEvidence, directory: PartitionEvidence | None) -> Iterator[Finding]:
    if partition.is_raft:
        from raftlog.tools.auditing.survey.version_rules import judge_version

        return judge_version(partition, directory)
    from raftlog.tools.auditing.judgement.missing_ranges import judge_holes

    return judge_holes(partition, directory)


def _explained_elsewhere(replica: PartitionEvidence, said: Sequence[Finding]) -> Iterator[Finding]:
    from raftlog.tools.auditing.judgement.segment_rules import explained_elsewhere

    return explained_elsewhere(replica, said)


def _judge_twins(replicas: Sequence[PartitionEvidence]) -> Iterator[Finding]:
    if len(replicas) == 1 or not any(replica.is_raft for replica in replicas):
        return iter(())
    from raftlog.tools.auditing.agreement.twin_rules import judge_twins

    return judge_twins(replicas)


def _told_once(findings: Sequence[Finding], replicas: Iterable[Sequence[PartitionEvidence]]) -> Sequence[Finding]:
    if len(findings) <= 1:
        return findings
    from raftlog.tools.auditing.agreement.told_once import told_once

    return told_once(findings, replicas)


def _judge_replicas(replicas: Sequence[PartitionEvidence]) -> Iterator[Finding]:
    if len(replicas) == 1:
        return iter(())
    from raftlog.tools.auditing.batch_reader import Rereading
    from raftlog.tools.auditing.judgement.replica_rules import judge_replicas

    return _with_failures(judge_replicas(replicas, read := Rereading()), read.failures)


def _with_failures(findings: Iterable[Finding], failures: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings, and then what could not be read meanwhile."""
    yield from findings
    yield from failures


def _judge_directories(evidence: Sequence[PartitionEvidence]) -> Iterator[Finding]:
    if len(evidence) > 1:
        from raftlog.tools.auditing.agreement.topic_id_rules import judge_topic_ids

        yield from judge_topic_ids(evidence)
    if all(each.place.topic for each in evidence):
        return  # No log directory was surveyed, so nothing shows which node has which replica.
    from raftlog.tools.auditing.judgement.directory_rules import judge_directories

    yield from judge_directories(evidence)


@attrs.frozen
class Judges:
    """The functions that judge each kind of evidence."""

    partition: Callable[[PartitionEvidence], Iterable[Finding]] = _judge_partition
    replicas: Callable[[Sequence[PartitionEvidence]], Iterable[Finding]] = _judge_replicas
    directories: Callable[[Sequence[PartitionEvidence]], Iterable[Finding]] = _judge_directories
    holes: Callable[[PartitionEvidence, PartitionEvidence | None], Iterable[Finding]] = _judge_holes
    twins: Callable[[Sequence[PartitionEvidence]], Iterable[Finding]] = _judge_twins


@attrs.frozen
class Judged:
    """Places that were judged together, with their findings.

    Attributes:
        places: all partitions of one name, or all log directories, in order; empty for the comparison of log
            directories with each other.
        findings: findings in and about their files, by path, position and rule.
        replicas: the partitions that were surveyed as a whole, by cluster id; those of one cluster are replicas of one
            log. The id is empty if no meta.properties names it.
        directories: the log directories of the places, by path; only those with evidence of their own files.
        of_each_file: the findings as they are of each file, in any order; in ``findings``, one may stand for several.
    """

    places: tuple[PartitionEvidence, ...]
    findings: tuple[Finding, ...]
    replicas: Mapping[str, Sequence[PartitionEvidence]] = attrs.field(factory=dict)
    directories: Mapping[str, PartitionEvidence] = attrs.field(factory=dict)
    of_each_file: tuple[Finding, ...] = ()

    @property
    def path(self) -> str:
        """The directory of the first place; empty if there are no places."""
        return _directory(self.places[0]) if self.places else ""

    def with_findings(self, more: Iterable[Finding]) -> "Judged":
        """Return a copy with more findings."""
        added = tuple(more)
        findings, of_each_file = in_order([*self.findings, *added]), (*self.of_each_file, *added)
        return attrs.evolve(self, findings=findings, of_each_file=of_each_file)


def judge(partitions: Iterable[PartitionEvidence], judges: Judges | None = None) -> Iterator[Finding]:
    """Yield the findings of all surveys and judgements, in an order that depends on the evidence alone.

    Args:
        partitions: ordered by topic and partition, so that log directories come first.
        judges: the judgements to run; None for all.
    """
    for judged in judge_in_groups(partitions, judges or Judges()):
        yield from judged.findings


def judge_in_groups(partitions: Iterable[PartitionEvidence], judges: Judges | None = None) -> Iterator[Judged]:
    """Yield the results of ``judge`` per partition, with the evidence; the comparison of log directories comes last."""
    judges = judges or Judges()
    kept: list[PartitionEvidence] = []
    directories: Mapping[str, PartitionEvidence] = {}
    for places in in_groups(partitions):
        directories = by_path(places) or directories
        yield judge_group(places, directories, judges)
        kept += map(kept_of, places)
    yield judge_together(kept, judges)


def in_groups(partitions: Iterable[PartitionEvidence]) -> Iterator[tuple[PartitionEvidence, ...]]:
    """Group consecutive places of one topic and partition, which are judged together."""
    for _, group in itertools.groupby(partitions, key=lambda partition: partition.place.topic_partition):
        yield tuple(group)


def by_path(places: Iterable[PartitionEvidence]) -> dict[str, PartitionEvidence]:
    """Return the log directories among some places, by path."""
    return {place.place.log_directory: place for place in places if not place.place.topic}


def judge_group(
    places: tuple[PartitionEvidence, ...], directories: Mapping[str, PartitionEvidence], judges: Judges | None = None
) -> Judged:
    """Judge a partition with all its replicas, or each log directory separately.

    Args:
        places: all places of one topic and partition, in order.
        directories: log directories by path, at least those of the places.
        judges: the judgements to run; None for all.
    """
    paths = sorted({place.place.log_directory for place in places} & directories.keys())
    beside = {path: directories[path] for path in paths}
    listed = {path: each for path, each in beside.items() if not _was_named(each)}
    faults: list[Finding] = []
    known = _log_directories(beside.values(), faults)
    if places[0].place.topic:
        faults = []  # They are reported with the log directories themselves.
    replicas = attempted(_directory(places[0]), _replicas, places, known)
    if isinstance(replicas, Finding):
        faults.append(replicas)
        replicas = {}
    findings = list(_findings(places, replicas, listed, judges or Judges()))
    if any(finding.rule == "snapshot-records" for finding in findings):
        findings = list(_without_consequences(findings, replicas))
    findings += faults
    told = _told_once(findings, replicas.values())
    return Judged(places, in_order(told), replicas, beside, tuple(findings))


def judge_together(kept: Sequence[PartitionEvidence], judges: Judges | None = None) -> Judged:
    """Compare log directories with each other.

    Args:
        kept: the results of ``kept_of`` for all places, in order.
        judges: the judgements to run; None for all.
    """
    path = kept[0].place.log_directory if kept else ""
    return Judged((), in_order(guarded(path, (judges or Judges()).directories, kept)))


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort findings by path, position and rule; findings about a whole file precede those with a position."""
    return tuple(sorted(findings, key=_order))


def _order(finding: Finding) -> tuple[str, int, str, int, int, str]:
    position = -1 if finding.position is None else finding.position
    offset = -1 if finding.offset is None else finding.offset
    epoch = -1 if finding.epoch is None else finding.epoch
    return finding.path, position, finding.rule, offset, epoch, finding.reason


def _without_consequences(
    findings: Sequence[Finding], replicas: Mapping[str, Sequence[PartitionEvidence]]
) -> Iterator[Finding]:
    """Leave out that a snapshot's records differ from the log, if something else may be the cause.

    That is a fault of the log, a contradiction between replicas, or between twins of the snapshot it is compared by:
    of the same cluster.
    """
    clusters = {_directory(place): cluster for cluster, places in replicas.items() for place in places}
    causes = [
        finding
        for finding in findings
        if finding.severity is not Severity.HARMLESS and finding.path.endswith(FileKind.LOG.value)
    ]
    doubted = {directory_of(finding.path) for finding in causes}
    apart = {clusters.get(directory_of(finding.path)) for finding in causes if finding.rule.startswith("replica-")}
    twins = [
        (clusters.get(directory_of(finding.path)), name_of(finding.path))
        for finding in findings
        if finding.rule == "snapshot-twins"
    ]
    for finding in findings:
        is_of_records = finding.rule == "snapshot-records"
        directory = directory_of(finding.path)
        cluster = clusters.get(directory)
        is_doubted = cluster in apart or directory in doubted
        is_doubted = is_doubted or any(cluster == of and name in finding.reason for of, name in twins)
        if not (is_of_records and is_doubted):
            yield finding


def _findings(
    places: Iterable[PartitionEvidence],
    replicas: Mapping[str, Sequence[PartitionEvidence]],
    directories: Mapping[str, PartitionEvidence],
    judges: Judges,
) -> Iterator[Finding]:
    reported_elsewhere: set[Finding] = set()
    for of_one_log in replicas.values():
        alone = [_alone(replica, directories, judges) for replica in of_one_log]
        judged = [_with_findings(replica, said) for replica, said in zip(of_one_log, alone, strict=True)]
        twins = list(guarded(_directory(of_one_log[0]), judges.twins, judged))
        if twins:  # What a snapshot that differs from its twins says is not held against the log beside it.
            marked = [_with_findings(replica, twins) for replica in of_one_log]
            alone = [
                said if now is before else _alone(now, directories, judges)
                for said, before, now in zip(alone, of_one_log, marked, strict=True)
            ]
            judged = [_with_findings(replica, said) for replica, said in zip(marked, alone, strict=True)]
        for replica, said in zip(of_one_log, alone, strict=True):
            reported_elsewhere.update(_explained_elsewhere(replica, said))
            yield from said
        yield from twins
        yield from guarded(_directory(of_one_log[0]), judges.replicas, judged)
    for place in places:
        for file in place.files:
            yield from (finding for finding in file.findings if finding not in reported_elsewhere)


def _alone(
    replica: PartitionEvidence, directories: Mapping[str, PartitionEvidence], judges: Judges
) -> Sequence[Finding]:
    """Return the findings about a replica by itself."""
    path = _directory(replica)
    found = guarded(path, judges.partition, replica)
    return [*found, *guarded(path, judges.holes, replica, directories.get(replica.place.log_directory))]


def _log_directories(places: Iterable[PartitionEvidence], faults: list[Finding]) -> dict[str, DirectoryIdentity]:
    """Return log directories by path; if raftlog itself fails on one, only its path is known."""
    found: dict[str, DirectoryIdentity] = {}
    for place in places:
        path = place.place.log_directory
        directory = attempted(path, log_directories, [place])
        if isinstance(directory, Finding):
            faults.append(directory)
            directory = {path: DirectoryIdentity(path)}
        found |= directory
    return found


def _directory(partition: PartitionEvidence) -> str:
    """Return the path of the directory that contains a partition's files."""
    return directory_of(partition.files[0].task.path)


def _with_findings(partition: PartitionEvidence, said: Sequence[Finding]) -> PartitionEvidence:
    """Add findings about a partition to the evidence of its files, so that comparing replicas does not repeat them."""
    by_path: dict[str, list[Finding]] = {}
    for finding in said:
        by_path.setdefault(finding.path, []).append(finding)
    files = (
        attrs.evolve(file, findings=(*file.findings, *by_path[path])) if (path := file.task.path) in by_path else file
        for file in partition.files
    )
    return attrs.evolve(partition, files=tuple(files)) if by_path else partition


def _replicas(
    places: Iterable[PartitionEvidence], directories: Mapping[str, DirectoryIdentity]
) -> dict[str, Sequence[PartitionEvidence]]:
    """Group partitions of one name by cluster.

    Log directories are left out, and so are partitions whose files were named one by one: they may be incomplete.
    """

    def cluster_id(partition: PartitionEvidence) -> str | None:
        directory = directories.get(partition.place.log_directory)
        return None if directory is None else directory.cluster_id

    whole = [place for place in places if place.place.topic and not _was_named(place)]
    return dict(by_cluster(whole, cluster_id))


def _was_named(place: PartitionEvidence) -> bool:
    """Whether files of a place were named one by one, so that its evidence may be incomplete."""
    return any(file.task.was_named for file in place.files)


def kept_of(partition: PartitionEvidence) -> PartitionEvidence:
    """Return the evidence needed to compare log directories: for other logs than raft's, their ends and topic ids."""
    if partition.is_raft or not partition.place.topic:
        return partition
    segments = partition.segments
    topic_id = partition.small_file(FileKind.PARTITION_METADATA)
    epochs = partition.small_file(FileKind.LEADER_EPOCH_CHECKPOINT)
    files = {file.task.path: _without_lists(file) for file in (*segments[:1], *segments[-1:])}
    first_epoch = None if epochs is None else FileEvidence(epochs.task, epochs=epochs.epochs[:1])
    small = [file for file in (topic_id, first_epoch) if file is not None]
    return PartitionEvidence(partition.place, (*files.values(), *small))


def _without_lists(file: FileEvidence) -> FileEvidence:
    beyond = tuple(finding for finding in file.findings if finding.rule == "index-beyond")
    unread = tuple(finding for finding in file.findings if finding.rule in UNREADABLE_RULES)
    return FileEvidence(
        file.task, (*beyond[:1], *unread), coverage=file.coverage, extent=file.extent, stray_offsets=file.stray_offsets
    )
