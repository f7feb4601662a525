# SPDX-License-Identifier: Apache-2.0
"""Compares all that one cluster mirrors to another: records, checkpoints, heartbeats and names."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

from raftlog.invariants import present
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.image.tables import Tables
from raftlog.tools.image.topics import is_compacted
from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.comparing.pair import compare_pair
from raftlog.tools.mirrors.following import (
    ClusterTopics,
    GroupCheckpoint,
    GroupEvidence,
    MirrorFinding,
    MirrorFlow,
    check_checkpoints,
    fail_back,
    fail_over,
    find_cycles,
    find_unpaired,
    heartbeat_gaps,
)
from raftlog.tools.mirrors.holes import find_holes
from raftlog.tools.mirrors.naming import configured_policy
from raftlog.tools.mirrors.pair_findings import PairFinding, findings_of
from raftlog.tools.mirrors.pair_report import FlowReport, PairReport
from raftlog.tools.mirrors.pairing import MirrorPair, find_one_sided, find_pairs
from raftlog.tools.mirrors.reading.clusters import Cluster, PartitionLog
from raftlog.tools.mirrors.reading.flow import find_configs, find_progress
from raftlog.tools.mirrors.reading.groups import find_checkpoints, find_commits, find_heartbeats
from raftlog.tools.mirrors.reading.mirrored_places import MirroredPlaces
from raftlog.tools.spark.rows.options import TopicPartition

_HEARTBEATS: Final = "heartbeats"


class MirrorVerification:
    """Compares two clusters. Their files are read when results are asked for.

    Args:
        source: the cluster that is mirrored.
        target: the cluster that has the mirror.
        flow: from one to the other.
        source_tables: what the metadata of the source say; None if they are not here.
        target_tables: likewise, of the target.

    Attributes:
        problems: findings about records and bytes that cannot be read, of all that was read so far.
    """

    def __init__(
        self,
        source: Cluster,
        target: Cluster,
        flow: FlowReport,
        source_tables: Tables | None,
        target_tables: Tables | None,
    ) -> None:
        self._source, self._target, self._flow = source, target, flow
        self._tables = source_tables, target_tables
        progress, problems = find_progress(target, flow.aliases[0])
        checkpoints, more = find_checkpoints(target, self._checkpoints_topic)
        self._progress: Mapping[TopicPartition, int] = progress
        self._checkpoints: Mapping[TopicPartition, Sequence[GroupCheckpoint]] = checkpoints
        self._commits, self._target_commits = find_commits(source), find_commits(target)
        self.problems: list[Finding] = [*source.problems, *target.problems, *flow.syncs.findings, *problems, *more]

    @property
    def _checkpoints_topic(self) -> str:
        return self._flow.policy.checkpoints_topic(self._flow.aliases[0])

    def pairs(self) -> Iterator[PairReport]:
        """Yield what is found of each pair of partitions.

        Raises:
            StorageError: a segment cannot be read.
        """
        synced = [topic for topic, _ in self._flow.syncs.syncs]
        topics = self._source.topics, self._target.topics
        for pair in find_pairs(*topics, self._flow.policy, self._flow.aliases[0], synced):
            yield self._report(pair)

    def flow_findings(self) -> Iterator[MirrorFinding]:
        """Yield the gaps of heartbeats, the cycles, and the topics and partitions without a mirror or a source.

        Raises:
            StorageError: a segment cannot be read.
        """
        interval_ms = self._flow.config.heartbeat_interval_ms if self._flow.config else None
        for topic in (_HEARTBEATS, self._flow.policy.format_remote_topic(self._flow.aliases[0], _HEARTBEATS)):
            heartbeats, missing = find_heartbeats(self._target, topic)
            yield from heartbeat_gaps(heartbeats, interval_ms, missing)
        unpaired = list(self._topic_findings())
        yield from unpaired
        told = {each.subject for each in unpaired}
        topics = self._source.topics, self._target.topics
        for each in find_one_sided(*topics, self._flow.policy, self._flow.aliases[0], self._flow.syncs.syncs):
            mirror = self._flow.policy.format_remote_topic(self._flow.aliases[0], each.subject)
            if not told & {each.subject, mirror}:
                yield each

    def _topic_findings(self) -> Iterator[MirrorFinding]:
        """Yield what the metadata of both clusters say of their topics, if they are here."""
        topics = [
            ClusterTopics(
                alias, {name: len(tables.partitions[topic_id]) for name, topic_id in tables.topic_ids.items()}
            )
            for alias, tables in zip(self._flow.aliases, self._tables, strict=True)
            if tables is not None
        ]
        if len(topics) < len(self._tables):
            return
        topic_filter = self._flow.config.topic_filter if self._flow.config else None
        flow = MirrorFlow(*self._flow.aliases, self._flow.policy, topic_filter)
        source, target = topics
        yield from find_cycles(source, target, self._flow.policy, [flow, *self._flows_back()])
        mirrored = {topic for topic, _ in (*self._flow.syncs.syncs, *self._progress)}
        yield from find_unpaired(source, target, flow, mirrored)

    def _flows_back(self) -> Iterator[MirrorFlow]:
        """Yield the flow from the target to the source, if it is configured and enabled."""
        configs, problems = find_configs(self._source)
        self.problems += problems
        for each in configs:
            if (each.target_alias, each.source_alias) == self._flow.aliases and each.is_enabled:
                policy = configured_policy(each.properties, self._flow.policy.kafka_level, self._flow.aliases)
                yield MirrorFlow(each.source_alias, each.target_alias, policy, each.topic_filter)

    # One pair

    def _report(self, pair: MirrorPair) -> PairReport:
        ours = present(self._source.log(pair.source, pair.partition), "a listed log")
        theirs = present(self._target.log(pair.target, pair.partition), "a listed log")
        if theirs.end.is_append_time:  # The target's broker has stamped its records when they came.
            ours = attrs.evolve(ours, rows=ours.rows.without_timestamps())
            theirs = attrs.evolve(theirs, rows=theirs.rows.without_timestamps())
        key = pair.source, pair.partition
        syncs = self._flow.syncs.syncs.get(key, ())
        evidence = self._evidence(pair, ours, theirs)
        result = compare_pair(
            ours.rows,
            theirs.rows,
            syncs,
            self._progress.get(key, 0),
            reads_committed=self._flow.reads_committed,
            keeps_places=bool(evidence.groups),
        )
        self.problems += [*ours.rows.damage, *theirs.rows.damage]
        tables = self._tables[1]
        is_whole = tables is not None and not is_compacted(tables, pair.target) and not theirs.rows.damage
        holes = find_holes(ours.rows, theirs.rows, syncs) if is_whole else ()
        has_transforms = self._flow.config is not None and self._flow.config.has_transforms
        findings = findings_of(pair, (ours, theirs), result, holes, has_transforms=has_transforms)
        return self._with_groups(PairReport(pair, result, tuple(findings)), evidence, ours, theirs)

    def _with_groups(
        self, report: PairReport, evidence: GroupEvidence, ours: PartitionLog, theirs: PartitionLog
    ) -> PairReport:
        """Add what is found of the groups that read a pair."""
        if not evidence.groups:
            return report
        places = MirroredPlaces(ours.rows, theirs.rows, report.result.places)
        findings = tuple(
            PairFinding(
                each.rule, each.severity, f"group {each.subject}: {each.reason}", report.pair, each.source, each.target
            )
            for each in check_checkpoints(evidence, places)
        )
        return attrs.evolve(
            report,
            findings=(*report.findings, *findings),
            moves=fail_over(evidence, places),
            moves_back=fail_back(evidence, places),
        )

    def _evidence(self, pair: MirrorPair, ours: PartitionLog, theirs: PartitionLog) -> GroupEvidence:
        source, target = (pair.source, pair.partition), (pair.target, pair.partition)
        groups = self._commits.groups_with_gaps
        commits = self._commits.by_partition.get(source, ())
        checkpoints = self._checkpoints.get(target, ())
        if not self._commits.is_there:
            groups = frozenset(each.group for each in checkpoints)
        return GroupEvidence(
            OffsetRange(ours.rows.start_offset, ours.rows.end_offset),
            OffsetRange(theirs.rows.start_offset, theirs.rows.end_offset),
            tuple(self._flow.syncs.syncs.get(source, ())),
            tuple(checkpoints),
            tuple(commits),
            tuple(self._target_commits.by_partition.get(target, ())),
            self._flow.syncs.is_whole,
            self._checkpoints_topic in self._target.topics,
            groups,
            None,
            ours.end.newest_ms,
            theirs.end.newest_ms,
        )
