# SPDX-License-Identifier: Apache-2.0
"""Collects what a report needs while an audit runs: the worst findings, files and logs, and counts of the rest.

Its memory is bounded, however much is audited. The page shows how much was left out.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import attrs

from raftlog.file_paths import directory_of
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.file_names import FileKind
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.records.rules import Severity
from raftlog.tools.auditing.contents.records_at_risk import RecordsAtRisk, records_at_risk
from raftlog.tools.auditing.crash_isolation import attempted
from raftlog.tools.auditing.evidence import FileEvidence, LogExtent, PartitionEvidence, Place
from raftlog.tools.auditing.history.histories import by_history
from raftlog.tools.auditing.history.log_directories import log_directories
from raftlog.tools.auditing.history.quorum_view import QuorumView, quorum_view
from raftlog.tools.auditing.history.replicas import log_end, quorum_state_of
from raftlog.tools.auditing.history.timelines import EpochLead, VoterChange, epoch_timeline, voter_timeline
from raftlog.tools.auditing.judgement.judgement import Judged
from raftlog.tools.auditing.run.rule_status import Checks
from raftlog.tools.auditing.run.run import Account
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.input.coverage import Coverage
from raftlog.tools.report.worst import Worst, rank_of
from raftlog.uuid_text import uuid_to_text

MOST_FINDINGS: Final = 2000
MOST_FILES: Final = 100
MOST_LOGS: Final = 8
MOST_PLACES: Final = 50
MOST_VOLUMES: Final = 20
MOST_MARKS: Final = 20
"""The most findings in the map of a file, or of damage on a replica."""
MOST_EPOCHS: Final = 300
MOST_CHANGES: Final = 200
MOST_SNAPSHOTS: Final = 50
_MOST_NAMED: Final = 12
"""How many partitions with the same damage are named."""
_MOST_NODES: Final = 12
"""How many nodes the label of a log names."""
_FORK_RULES: Final = frozenset({"replica-forked", "replica-lost", "replica-batch", "replica-leader"})

Counts = Counter[Severity]
_ByPath = defaultdict[str, list[Finding]]
_ByPlace = defaultdict[Place, list[Finding]]


@attrs.frozen
class MappedFile:
    """What the map of a file of batches shows.

    Attributes:
        path: of the file.
        coverage: its bytes by class.
        extent: of its batches; None if none is sound.
        epochs: position, number and start offset of each epoch.
        marks: the worst findings with a position.
        counts: of all its findings.
    """

    path: str
    coverage: Coverage
    extent: LogExtent | None
    epochs: tuple[tuple[int, int, int], ...]
    marks: tuple[Finding, ...]
    counts: Counts

    @property
    def size_bytes(self) -> int:
        """Of the whole file."""
        return self.coverage.explained_bytes + self.coverage.damaged_bytes + self.coverage.padding_bytes


@attrs.frozen
class ReplicaFacts:
    """One replica of a log, and what was found in its directory.

    Attributes:
        log_directory: the directory that contains it.
        node_id, directory_id, cluster_id: from its meta.properties, or None.
        start_offset, end_offset: of its segments, inclusive and exclusive.
        reach: where the log ends after the next startup recovery, which may truncate it, or discard it if a snapshot is
            more up to date.
        snapshot_ends: end offset and epoch of its newest snapshots.
        state: of its elections, or None.
        counts: of the findings in it.
        damage: the worst findings of damage inside it, out of ``damage_count``.
        is_forked: whether it contradicts the most up-to-date replica.
    """

    log_directory: str
    node_id: int | None
    directory_id: str | None
    cluster_id: str | None
    start_offset: int
    end_offset: int
    reach: OffsetAndEpoch
    snapshot_ends: tuple[tuple[int, int], ...]
    state: QuorumStateData | None
    counts: Counts
    damage: tuple[Finding, ...]
    damage_count: int
    is_forked: bool

    @property
    def is_damaged(self) -> bool:
        """Whether anything in it is damaged or lost, whatever other replicas say."""
        return self.damage_count > 0


@attrs.frozen
class LogFacts:
    """A log that was audited in one or more replicas.

    Attributes:
        name: topic and partition.
        is_raft: whether it is a raft log.
        replicas: in the order of their directories.
        changes: of voters, the newest out of ``change_count``.
        leads: the newest epochs out of ``lead_count``.
        view: of the quorum, or None if it is not a raft log.
        at_risk: what may be lost or dropped there.
    """

    name: str
    is_raft: bool
    replicas: tuple[ReplicaFacts, ...]
    changes: tuple[VoterChange, ...]
    change_count: int
    leads: tuple[EpochLead, ...]
    lead_count: int
    view: QuorumView | None
    at_risk: tuple[RecordsAtRisk, ...] = ()

    @property
    def label(self) -> str:
        """The name of the log, with its cluster and the nodes whose replicas are here, as far as they are known."""
        clusters = sorted({replica.cluster_id for replica in self.replicas if replica.cluster_id is not None})
        nodes = sorted({replica.node_id for replica in self.replicas if replica.node_id is not None})
        more = f" and {len(nodes) - _MOST_NODES:,} more" if len(nodes) > _MOST_NODES else ""
        node, named = "node" if len(nodes) == 1 else "nodes", ", ".join(map(str, nodes[:_MOST_NODES]))
        cluster = f" of cluster {' and '.join(clusters)}" if clusters else ""
        return f"{self.name}{cluster}" + (f", {node} {named}{more}" if nodes else "")

    @property
    def worst(self) -> Severity | None:
        """The worst severity found in any replica."""
        return worst_of(sum((replica.counts for replica in self.replicas), Counts()))


@attrs.define
class DamagedReplicas:
    """Replicas of partitions that have the same damage, other than those of raft logs.

    Attributes:
        count: of the replicas.
        names: of the first of them, with their nodes.
    """

    count: int = 0
    names: list[str] = attrs.field(factory=list)

    def add(self, name: str) -> None:
        """Count a replica."""
        self.count += 1
        if len(self.names) < _MOST_NAMED:
            self.names.append(name)

    def merge(self, other: "DamagedReplicas") -> None:
        """Add others, after those that are here."""
        self.count += other.count
        self.names = (self.names + other.names)[:_MOST_NAMED]


@attrs.frozen
class PlaceFacts:
    """A directory, and how many findings are in its files."""

    path: str
    name: str
    file_count: int
    size_bytes: int
    counts: Counts


@attrs.frozen
class VolumeFacts:
    """How much the segments of a partition have, in sound batches and by their headers; its name and log directory."""

    path: str
    name: str
    batch_count: int
    record_count: int
    size_bytes: int


@attrs.define
class Gathering:
    """The facts that a report shows.

    Attributes:
        account: of all files and findings.
        checks: which rules had something to check.
        findings: the worst.
        first_of_rule: the first finding of each rule.
        files: the worst files of batches.
        sound_file_count: number of files of batches without a finding above harmless.
        logs: raft logs first, then the worst.
        damaged: replicas of partitions by a rule that they break, and by whether an undamaged replica is here.
        places: the directories with the worst findings.
        clean_places: some of the partition directories without findings above harmless, out of ``clean_place_count``.
            What the comparison of log directories finds in one of those that are not named here is not taken off.
        file_sizes, batch_sizes: number of files of batches by the binary digits of their size, and by those of the mean
            size of their batches.
        volumes: the largest partitions.
    """

    account: Account = attrs.field(factory=Account)
    checks: Checks = attrs.field(factory=Checks)
    findings: Worst[Finding] = attrs.field(factory=lambda: Worst(MOST_FINDINGS))
    first_of_rule: dict[str, Finding] = attrs.field(factory=dict)
    files: Worst[MappedFile] = attrs.field(factory=lambda: Worst(MOST_FILES))
    sound_file_count: int = 0
    logs: Worst[LogFacts] = attrs.field(factory=lambda: Worst(MOST_LOGS))
    damaged: dict[tuple[str, bool], DamagedReplicas] = attrs.field(factory=dict)
    places: Worst[PlaceFacts] = attrs.field(factory=lambda: Worst(MOST_PLACES))
    clean_places: list[str] = attrs.field(factory=list)
    clean_place_count: int = 0
    file_sizes: Counter[int] = attrs.field(factory=Counter)
    batch_sizes: Counter[int] = attrs.field(factory=Counter)
    volumes: Worst[VolumeFacts] = attrs.field(factory=lambda: Worst(MOST_VOLUMES))

    @property
    def damaged_directories(self) -> set[str]:
        """Log directories with damaged files, of whichever partition, out of ``places``."""
        found = self.places.values()
        return {place.path for place in found if any(map(is_damage, +place.counts))}

    def add(self, judged: Judged) -> Judged:
        """Add a judgement. Returns it with added findings for the parts of it that made raftlog fail here."""
        by_path: _ByPath = defaultdict(list)
        for finding in judged.of_each_file:
            by_path[finding.path].append(finding)
        by_place = _by_place(judged.places, by_path)
        for partition in judged.places:
            self._add_place(partition, by_path, by_place[partition.place])
        groups = attempted(judged.path, lambda: list(_groups(judged)))
        add = partial(self._add_log, by_place=by_place, directories=judged.directories)
        outcomes = [groups] if isinstance(groups, Finding) else [add(each) for each in groups]
        judged = judged.with_findings(fault for fault in outcomes if fault is not None)
        for finding in judged.findings:
            self.findings.offer((rank_of(finding.severity),), finding)
            self.first_of_rule.setdefault(finding.rule, finding)
            if not judged.places and is_serious(finding.severity):
                self._blame(directory_of(finding.path))
        self.account.add(judged)
        self.checks.add(judged)
        return judged

    def merge(self, other: "Gathering") -> None:
        """Add what another one gathered of the same audit, as if each part had been added here, in the same order."""
        self.account.merge(other.account)
        self.checks.merge(other.checks)
        self.findings.merge(other.findings)
        for rule, finding in other.first_of_rule.items():
            self.first_of_rule.setdefault(rule, finding)
        self.files.merge(other.files)
        self.sound_file_count += other.sound_file_count
        self.logs.merge(other.logs)
        for key, damaged in other.damaged.items():
            self.damaged.setdefault(key, DamagedReplicas()).merge(damaged)
        self.places.merge(other.places)
        self.clean_places = (self.clean_places + other.clean_places)[:MOST_PLACES]
        self.clean_place_count += other.clean_place_count
        self.file_sizes += other.file_sizes
        self.batch_sizes += other.batch_sizes
        self.volumes.merge(other.volumes)

    def _blame(self, directory: str) -> None:
        """Note that the comparison of log directories has found something in a partition that is clean by itself."""
        if directory in self.clean_places:
            self.clean_places.remove(directory)
            self.clean_place_count -= 1

    def _add_place(self, partition: PartitionEvidence, by_path: _ByPath, findings: Sequence[Finding]) -> None:
        place = partition.place
        for file in partition.files:
            if file.coverage is not None:
                self._add_file(_mapped(file, file.coverage, by_path.get(file.task.path, [])))
        self._add_volume(partition)
        facts = PlaceFacts(
            place.log_directory,
            name_of(place),
            sum(1 + len(file.task.indexes) for file in partition.files),
            sum(file.task.size_bytes + file.task.indexes_size_bytes for file in partition.files),
            _counts(findings),
        )
        if is_serious(worst := worst_of(facts.counts)):
            self.places.offer((rank_of(worst), facts.counts[worst] if worst else 0), facts)
            return
        if place.topic:  # A log directory itself is not listed as clean: the partitions in it may not be.
            self.clean_place_count += 1
            if len(self.clean_places) < MOST_PLACES:
                self.clean_places.append(f"{facts.path}/{facts.name}")

    def _add_volume(self, partition: PartitionEvidence) -> None:
        seen = [(file.extent, file.coverage) for file in partition.segments]
        found = [(extent, coverage) for extent, coverage in seen if extent is not None and coverage is not None]
        if not found:
            return
        place, size = partition.place, sum(coverage.explained_bytes for _, coverage in found)
        batches = sum(extent.batch_count for extent, _ in found)
        records = sum(extent.record_count for extent, _ in found)
        self.volumes.offer((size,), VolumeFacts(place.log_directory, name_of(place), batches, records, size))

    def _add_file(self, file: MappedFile) -> None:
        self.file_sizes[file.size_bytes.bit_length()] += 1
        if file.extent is not None and file.extent.batch_count:
            self.batch_sizes[(file.coverage.explained_bytes // file.extent.batch_count).bit_length()] += 1
        self.sound_file_count += not is_serious(worst_of(file.counts))
        worst = worst_of(file.counts)
        self.files.offer((rank_of(worst), file.counts[worst] if worst else 0), file)

    def _add_damaged(
        self, replicas: Sequence[PartitionEvidence], by_place: _ByPlace, directories: Mapping[str, PartitionEvidence]
    ) -> None:
        """Count the damaged replicas of a partition, by the rules that they break."""
        rules = [{each.rule for each in _damage(by_place[replica.place])} for replica in replicas]
        if not any(rules):
            return
        has_sound = not all(rules)
        for replica, broken in zip(replicas, rules, strict=True):
            directory = log_directories([*_metas([replica], directories), replica])[replica.place.log_directory]
            where = directory.path if directory.node_id is None else f"node {directory.node_id}"
            for rule in sorted(broken):
                self.damaged.setdefault((rule, has_sound), DamagedReplicas()).add(
                    f"{name_of(replica.place)} on {where}"
                )

    def _add_log(
        self, replicas: Sequence[PartitionEvidence], by_place: _ByPlace, directories: Mapping[str, PartitionEvidence]
    ) -> Finding | None:
        """Add a log. Returns a finding if that makes raftlog fail, or None."""
        if not any(replica.is_raft for replica in replicas):
            self._add_damaged(replicas, by_place, directories)
        worst = worst_of(_counts(finding for replica in replicas for finding in by_place[replica.place]))
        rank = (any(replica.is_raft for replica in replicas), rank_of(worst))
        if not self.logs.wants(rank):
            self.logs.offered += 1
            return None
        path = _directory(replicas[0].files[0].task.path)
        facts = attempted(path, _log_facts, replicas, by_place, directories)
        if isinstance(facts, Finding):
            return facts
        self.logs.offer(rank, facts)
        return None


def is_serious(severity: Severity | None) -> bool:
    """Whether a severity is above harmless."""
    return rank_of(severity) > rank_of(Severity.HARMLESS)


def is_damage(severity: Severity | None) -> bool:
    """Whether a severity means that bytes are damaged or records are lost."""
    return rank_of(severity) >= rank_of(Severity.DAMAGED)


def worst_of(counts: Counts) -> Severity | None:
    """Return the worst severity with a count above 0, or None."""
    return max((severity for severity, count in counts.items() if count), key=rank_of, default=None)


def name_of(place: Place) -> str:
    """Return the name of a partition; empty for a log directory itself."""
    return place.topic if place.partition < 0 else f"{place.topic}-{place.partition}"


def _groups(judged: Judged) -> Iterator[Sequence[PartitionEvidence]]:
    """Yield the replicas of each log. A partition whose files were named one by one is a log of its own."""
    grouped = {replica.place for replicas in judged.replicas.values() for replica in replicas}
    for of_one_id in judged.replicas.values():
        yield from by_history(of_one_id, lambda replica: replica)
    yield from ([place] for place in judged.places if place.place.topic and place.place not in grouped)


def _counts(findings: Iterable[Finding]) -> Counts:
    return Counter(finding.severity for finding in findings)


def _by_place(places: Iterable[PartitionEvidence], by_path: _ByPath) -> _ByPlace:
    """Group findings by the directory of their file, which may be a missing file."""
    place_of: dict[str, Place] = {}
    for partition in places:
        for file in partition.files:
            for path in (file.task.path, *file.task.indexes.values()):
                place_of[path] = place_of[_directory(path)] = partition.place
    by_place: _ByPlace = defaultdict(list)
    for path, findings in by_path.items():
        place = place_of.get(path) or place_of.get(_directory(path))
        if place is not None:
            by_place[place] += findings
    return by_place


def _directory(path: str) -> str:
    return path.rpartition("/")[0]


def _most(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    worst: Worst[Finding] = Worst(MOST_MARKS)
    for finding in findings:
        worst.offer((rank_of(finding.severity),), finding)
    return tuple(worst.values())


def _mapped(file: FileEvidence, coverage: Coverage, findings: Sequence[Finding]) -> MappedFile:
    epochs = tuple((seen.position, seen.epoch, seen.start_offset) for seen in file.epochs[:MOST_EPOCHS])
    marks = _most(finding for finding in findings if finding.position is not None)
    return MappedFile(file.task.path, coverage, file.extent, epochs, marks, _counts(findings))


def _log_facts(
    replicas: Sequence[PartitionEvidence],
    by_place: _ByPlace,
    directories: Mapping[str, PartitionEvidence],
) -> LogFacts:
    is_raft = any(replica.is_raft for replica in replicas)
    beside = _metas(replicas, directories)
    changes = voter_timeline(replicas) if is_raft else []
    leads = epoch_timeline(replicas)
    view = quorum_view([*beside, *replicas]) if is_raft else None
    return LogFacts(
        name_of(replicas[0].place),
        is_raft,
        tuple(_replica_facts(replica, beside, by_place[replica.place]) for replica in replicas),
        tuple(changes[-MOST_CHANGES:]),
        len(changes),
        tuple(leads[-MOST_EPOCHS:]),
        len(leads),
        view,
        () if view is None else records_at_risk(view, replicas),
    )


def _metas(
    replicas: Iterable[PartitionEvidence], directories: Mapping[str, PartitionEvidence]
) -> list[PartitionEvidence]:
    """Return the log directories of some replicas, with their meta.properties alone."""
    paths = sorted({each.place.log_directory for each in replicas} & directories.keys())
    return [_only_meta(directories[path]) for path in paths]


def _damage(findings: Iterable[Finding]) -> list[Finding]:
    """Return what is damaged or lost inside a replica, whatever other replicas say."""
    return [each for each in findings if is_damage(each.severity) and each.rule not in _FORK_RULES]


def _only_meta(directory: PartitionEvidence) -> PartitionEvidence:
    metas = (file for file in directory.files if file.task.kind is FileKind.META_PROPERTIES)
    return PartitionEvidence(directory.place, tuple(metas))


def _replica_facts(
    replica: PartitionEvidence, directories: Sequence[PartitionEvidence], findings: Sequence[Finding]
) -> ReplicaFacts:
    directory = log_directories([*directories, replica])[replica.place.log_directory]
    ids = list(replica.snapshots_by_id)
    damage = _damage(findings)
    return ReplicaFacts(
        replica.place.log_directory,
        directory.node_id,
        None if directory.directory_id is None else uuid_to_text(directory.directory_id),
        directory.cluster_id,
        replica.start_offset,
        replica.end_offset,
        log_end(replica),
        tuple((each.offset, each.epoch) for each in ids[-MOST_SNAPSHOTS:]),
        quorum_state_of(replica.small_file(FileKind.QUORUM_STATE)),
        _counts(findings),
        _most(damage),
        len(damage),
        any(finding.rule in _FORK_RULES for finding in findings),
    )
