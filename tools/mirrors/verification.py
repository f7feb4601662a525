# SPDX-License-Identifier: Apache-2.0
"""Compares all that one cluster mirrors to another: records, checkpoints, heartbeats and names."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs

from raftlog.invariants import present
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.mirrors.comparing.differences import MirrorFault, OffsetRange
from raftlog.tools.mirrors.comparing.lifetimes import Sync, edges_of
from raftlog.tools.mirrors.comparing.pair import MadeAnew, PairResult, compare_pair
from raftlog.tools.mirrors.comparing.same_offsets import compare_same_offsets, window_edges
from raftlog.tools.mirrors.following import (
    ClusterTopics,
    FlowSpan,
    GroupCheckpoint,
    GroupEvidence,
    MirrorFinding,
    MirrorFlow,
    check_checkpoints,
    check_positions,
    commits_in_force,
    fail_back,
    fail_over,
    find_cycles,
    find_unpaired,
    flow_spans,
    heartbeat_gaps,
)
from raftlog.tools.mirrors.holes import find_holes
from raftlog.tools.mirrors.naming import configured_policy
from raftlog.tools.mirrors.one_sided_offsets import without_explained
from raftlog.tools.mirrors.pair_findings import PairFinding, findings_of
from raftlog.tools.mirrors.pair_report import FlowReport, PairReport
from raftlog.tools.mirrors.pairing import MirrorPair, find_missing_names, find_one_sided, find_pairs, find_same_names
from raftlog.tools.mirrors.reading.clusters import Cluster, PartitionLog
from raftlog.tools.mirrors.reading.flow import find_configs, find_progress
from raftlog.tools.mirrors.reading.groups import find_checkpoints, find_commits, find_heartbeats
from raftlog.tools.mirrors.reading.log_reading import LogReading, LogSummer, SumsRequest
from raftlog.tools.mirrors.reading.metadata import ClusterMetadata
from raftlog.tools.mirrors.reading.mirrored_places import MirroredPlaces
from raftlog.tools.mirrors.recreated_source import with_topic_ids
from raftlog.tools.spark.rows.options import TopicPartition

_HEARTBEATS: Final = "heartbeats"


@attrs.frozen(eq=False)
class _AskedPair:
    """A pair that is being read.

    Attributes:
        pair: the two partitions.
        source: the log of the source.
        target: that of the target.
        syncs: that pair their offsets.
        mirrored_end: the offset in the source below which all was mirrored; 0 if unknown.
    """

    pair: MirrorPair
    source: PartitionLog
    target: PartitionLog
    syncs: Sequence[Sync]
    mirrored_end: int

    def has_older(self, made_anew: MadeAnew) -> bool:
        """Whether the target begins with a record that is older than its source.

        Raises:
            StorageError: a segment cannot be read.
        """
        since_ms, start = made_anew.source_ms, self.target.rows.start_offset
        if since_ms is None:
            return False
        first = next(self.target.records(start, self.target.rows.end_offset), None)
        return first is not None and 0 <= first.timestamp < since_ms


class MirrorVerification:
    """Compares two clusters. Their files are read when results are asked for.

    Args:
        source: the cluster that is mirrored.
        target: the cluster that has the mirror.
        flow: from one to the other.
        source_metadata: what the metadata of the source say; None if they are not here.
        target_metadata: likewise, of the target.
        summer: reads the logs of pairs.

    Attributes:
        spans: the times that heartbeats cover, once ``flow_findings`` has yielded all.
    """

    def __init__(
        self,
        source: Cluster,
        target: Cluster,
        flow: FlowReport,
        source_metadata: ClusterMetadata | None,
        target_metadata: ClusterMetadata | None,
        summer: LogSummer,
    ) -> None:
        self._source, self._target, self._flow, self._summer = source, target, flow, summer
        self._metadata = source_metadata, target_metadata
        progress, problems = find_progress(target, flow.aliases[0])
        checkpoints, more = find_checkpoints(target, self._checkpoints_topic)
        self._progress: Mapping[TopicPartition, int] = progress
        self._checkpoints: Mapping[TopicPartition, Sequence[GroupCheckpoint]] = checkpoints
        self._commits, self._target_commits = find_commits(source), find_commits(target)
        self.spans: list[FlowSpan] = []
        self._problems: list[Finding] = [*(flow.syncs.findings if flow.syncs else ()), *problems, *more]

    @property
    def problems(self) -> Sequence[Finding]:
        """Findings about records and bytes that cannot be read, and about replicas, of all that was read so far."""
        return tuple(dict.fromkeys([*self._source.problems, *self._target.problems, *self._problems]))

    @property
    def _checkpoints_topic(self) -> str:
        return self._flow.policy.checkpoints_topic(self._flow.aliases[0])

    def pairs(self) -> Iterator[PairReport]:
        """Yield what is found of each pair of partitions.

        Raises:
            StorageError: a segment cannot be read.
            SparkJobError: Spark failed.
        """
        topics, flow = (self._source.topics, self._target.topics), self._flow
        if flow.syncs is None:
            pairs = find_same_names(*topics)
        else:
            pairs = find_pairs(*topics, flow.policy, flow.aliases[0], flow.synced_topics)
        asked: deque[_AskedPair] = deque()
        readings = self._summer.summed(self._requests(pairs, asked))
        for source, target in zip(readings, readings, strict=True):
            yield self._report(asked.popleft(), source, target).with_doubt()

    def flow_findings(self) -> Iterator[MirrorFinding]:
        """Yield the gaps of heartbeats, the cycles, and the topics and partitions without a mirror or a source.

        Raises:
            StorageError: a segment cannot be read.
        """
        if self._flow.syncs is None:  # Nothing that is not MirrorMaker writes heartbeats, or has a filter.
            named = [each.partitions for each in self._metadata if each is not None]
            are_here = len(named) == len(self._metadata)
            yield from find_missing_names((self._source.topics, self._target.topics), named if are_here else ())
            return
        interval_ms = self._flow.config.heartbeat_interval_ms if self._flow.config else None
        for topic in (_HEARTBEATS, self._flow.policy.format_remote_topic(self._flow.aliases[0], _HEARTBEATS)):
            heartbeats, missing = find_heartbeats(self._target, topic)
            self.spans += flow_spans(heartbeats)
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
            ClusterTopics(alias, {name: len(numbers) for name, numbers in each.partitions.items()})
            for alias, each in zip(self._flow.aliases, self._metadata, strict=True)
            if each is not None
        ]
        if len(topics) < len(self._metadata):
            return
        config, policy = self._flow.config, self._flow.policy
        flow = MirrorFlow(*self._flow.aliases, policy, config.topic_filter(policy.kafka_level) if config else None)
        source, target = topics
        yield from find_cycles(source, target, self._flow.policy, [flow, *self._flows_back()])
        mirrored = {*self._flow.synced_topics, *(topic for topic, _ in self._progress)}
        yield from find_unpaired(source, target, flow, mirrored)

    def _flows_back(self) -> Iterator[MirrorFlow]:
        """Yield the flow from the target to the source, if it is configured and enabled."""
        configs, problems = find_configs(self._source)
        self._problems += problems
        for each in configs:
            if (each.target_alias, each.source_alias) == self._flow.aliases and each.is_enabled:
                policy = configured_policy(each.properties, self._flow.policy.kafka_level, self._flow.aliases)
                yield MirrorFlow(each.source_alias, each.target_alias, policy, each.topic_filter(policy.kafka_level))

    # One pair

    def _requests(self, pairs: Iterable[MirrorPair], asked: "deque[_AskedPair]") -> Iterator[SumsRequest]:
        """Yield what to read of each pair, the source and the target, and note the pair."""
        metadata = self._metadata[1]
        for pair in pairs:
            ours = present(self._source.log(pair.source, pair.partition), "a listed log")
            theirs = present(self._target.log(pair.target, pair.partition), "a listed log")
            if theirs.end.is_append_time:  # The target's broker has stamped its records when they came.
                ours = attrs.evolve(ours, rows=ours.rows.without_timestamps())
                theirs = attrs.evolve(theirs, rows=theirs.rows.without_timestamps())
            key = pair.source, pair.partition
            each = _AskedPair(pair, ours, theirs, self._flow.syncs_of(*key), self._progress.get(key, 0))
            asked.append(each)
            if self._flow.syncs is None:
                rows = ours.rows.placed(), theirs.rows.placed()
                windows = window_edges(*rows)
                yield from (SumsRequest(log, windows) for log in rows)
                continue
            edges = edges_of(each.syncs, each.mirrored_end)
            yield SumsRequest(ours.rows, edges[0])
            wants_holes = metadata is None or not metadata.is_compacted(pair.target)
            yield SumsRequest(theirs.rows, edges[1], wants_holes)

    def _made_anew(self, pair: MirrorPair) -> MadeAnew:
        topics = pair.source, pair.target
        return MadeAnew(
            *(
                None if each is None else each.since_ms(topic)
                for each, topic in zip(self._metadata, topics, strict=True)
            )
        )

    def _report(self, asked: "_AskedPair", ours: LogReading, theirs: LogReading) -> PairReport:
        pair, logs = asked.pair, (asked.source, asked.target)
        result = self._compared(asked, ours, theirs)
        self._problems += [*ours.damage, *theirs.damage]
        holes: Iterable[tuple[OffsetRange, OffsetRange | None]] = ()
        doubts: Mapping[MirrorFault, str] = {}
        is_source_compacted, is_target_compacted = (
            None if each is None else each.is_compacted(topic)
            for each, topic in zip(self._metadata, (pair.source, pair.target), strict=True)
        )
        if self._flow.syncs is None:
            are_compacted = is_source_compacted, is_target_compacted
            result, doubts = without_explained(result, are_compacted, (ours.damage, theirs.damage))
            is_source_compacted = False  # What is on neither side is told by where the logs start and end.
        elif not theirs.damage:
            holes = find_holes(theirs.holes, ours.summed.all, theirs.summed.committed, asked.syncs)
        source_metadata = self._metadata[0]
        findings = findings_of(
            pair,
            logs,
            result,
            holes,
            has_transforms=self._flow.config is not None and self._flow.config.has_transforms,
            is_source_compacted=is_source_compacted,
            reads_committed=self._flow.reads_committed,
            is_target_known=is_target_compacted is not None,
            doubts=doubts,
        )
        target = asked.target if self._flow.syncs is None else None
        told = with_topic_ids(list(findings), pair, asked.source, source_metadata, target)
        kept = attrs.evolve(result, places=())  # Places hold on to logs, and only groups need them.
        report = PairReport(pair, kept, tuple(told), (asked.source.choice, asked.target.choice))
        written = (each.target.start for each in result.differences if each.kind is MirrorFault.WRITTEN_TO)
        own_start = min(written, default=None) if self._flow.syncs is None else None
        evidence = self._evidence(pair, *logs, own_start)
        if not evidence.groups:
            return report
        mirrored = theirs.summed.all if self._flow.syncs is None else theirs.summed.committed
        places = MirroredPlaces(ours.summed.all, ours.summed.committed, mirrored, result.places)
        return self._with_groups(report, evidence, places)

    def _compared(self, asked: "_AskedPair", ours: LogReading, theirs: LogReading) -> PairResult:
        if self._flow.syncs is None:
            return compare_same_offsets(ours.summed, theirs.summed)
        made_anew = self._made_anew(asked.pair)
        return compare_pair(
            ours.summed,
            theirs.summed,
            asked.syncs,
            asked.mirrored_end,
            reads_committed=self._flow.reads_committed,
            made_anew=made_anew,
            has_older=asked.has_older(made_anew),
        )

    def _with_groups(self, report: PairReport, evidence: GroupEvidence, places: MirroredPlaces) -> PairReport:
        """Add what is found of the groups that read a pair."""
        findings = tuple(
            PairFinding(
                each.rule, each.severity, f"group {each.subject}: {each.reason}", report.pair, each.source, each.target
            )
            for each in (check_checkpoints(evidence, places) if self._flow.syncs else check_positions(evidence))
        )
        return attrs.evolve(
            report,
            findings=(*report.findings, *findings),
            moves=fail_over(evidence, places),
            moves_back=fail_back(evidence, places),
        )

    def _evidence(
        self, pair: MirrorPair, ours: PartitionLog, theirs: PartitionLog, own_start: int | None
    ) -> GroupEvidence:
        source, target = (pair.source, pair.partition), (pair.target, pair.partition)
        groups = self._commits.groups_with_gaps
        commits = self._commits.by_partition.get(source, ())
        checkpoints = self._checkpoints.get(target, ())
        if not self._commits.is_there:
            groups = frozenset(each.group for each in checkpoints)
        if self._flow.syncs is None:  # What a group has committed is where it goes on.
            checkpoints = [
                GroupCheckpoint(
                    each.group, present(each.committed, "a commit in force"), each.committed or 0, each.offset, -1
                )
                for each in commits_in_force(commits).values()
            ]
        return GroupEvidence(
            OffsetRange(ours.rows.start_offset, ours.rows.end_offset),
            OffsetRange(theirs.rows.start_offset, theirs.rows.end_offset),
            tuple(self._flow.syncs_of(*source)),
            tuple(checkpoints),
            tuple(commits),
            tuple(self._target_commits.by_partition.get(target, ())),
            self._flow.syncs is not None and self._flow.syncs.is_whole,
            self._checkpoints_topic in self._target.topics,
            groups,
            max((each for each in attrs.astuple(self._made_anew(pair)) if each is not None), default=None),
            ours.end.newest_ms,
            theirs.end.newest_ms,
            own_start,
        )
