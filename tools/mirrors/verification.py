# SPDX-License-Identifier: Apache-2.0
"""Compares all that one cluster mirrors to another: records, checkpoints, heartbeats and names."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from raftlog.invariants import present
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.comparing.pair import MadeAnew
from raftlog.tools.mirrors.following import (
    FlowSpan,
    GroupCheckpoint,
    GroupEvidence,
    MirrorFinding,
    fail_back,
    fail_over,
)
from raftlog.tools.mirrors.offset_policies import AskedPair, offset_policy
from raftlog.tools.mirrors.pair_findings import PairFinding, findings_of
from raftlog.tools.mirrors.pair_report import FlowReport, PairReport
from raftlog.tools.mirrors.pairing import MirrorPair
from raftlog.tools.mirrors.reading.clusters import Cluster
from raftlog.tools.mirrors.reading.flow import find_progress
from raftlog.tools.mirrors.reading.groups import find_checkpoints, find_commits
from raftlog.tools.mirrors.reading.log_reading import LogReading, LogSummer, SumsRequest
from raftlog.tools.mirrors.reading.metadata import ClusterMetadata
from raftlog.tools.mirrors.reading.mirrored_places import MirroredPlaces
from raftlog.tools.mirrors.recreated_source import with_topic_ids
from raftlog.tools.spark.rows.options import TopicPartition


class MirrorVerification:
    """Compares two clusters. Their files are read when results are asked for.

    Args:
        source: the cluster that is mirrored.
        target: the cluster that has the mirror.
        flow: from one to the other.
        source_metadata: what the metadata of the source say; None if they are not here.
        target_metadata: likewise, of the target.
        summer: reads the logs of pairs.
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
        self._offsets = offset_policy(flow, (source, target), self._metadata, progress)
        self._problems: list[Finding] = [*problems, *more]

    @property
    def problems(self) -> Sequence[Finding]:
        """Findings about records and bytes that cannot be read, and about replicas, of all that was read so far."""
        of_clusters = *self._source.problems, *self._target.problems
        return tuple(dict.fromkeys([*of_clusters, *self._offsets.problems, *self._problems]))

    @property
    def spans(self) -> Sequence[FlowSpan]:
        """The times that heartbeats cover, once ``flow_findings`` has yielded all."""
        return self._offsets.spans

    @property
    def _checkpoints_topic(self) -> str:
        return self._flow.policy.checkpoints_topic(self._flow.aliases[0])

    def pairs(self) -> Iterator[PairReport]:
        """Yield what is found of each pair of partitions.

        Raises:
            StorageError: a segment cannot be read.
            SparkJobError: Spark failed.
        """
        asked: deque[AskedPair] = deque()
        readings = self._summer.summed(self._requests(self._offsets.pairs(), asked))
        for source, target in zip(readings, readings, strict=True):
            yield self._report(asked.popleft(), source, target).with_doubt()

    def flow_findings(self) -> Iterator[MirrorFinding]:
        """Yield the gaps of heartbeats, the cycles, and the topics and partitions without a mirror or a source.

        Raises:
            StorageError: a segment cannot be read.
        """
        return self._offsets.flow_findings()

    # One pair

    def _requests(self, pairs: Iterable[MirrorPair], asked: deque[AskedPair]) -> Iterator[SumsRequest]:
        """Yield what to read of each pair, the source and the target, and note the pair."""
        for pair in pairs:
            ours = present(self._source.log(pair.source, pair.partition), "a listed log")
            theirs = present(self._target.log(pair.target, pair.partition), "a listed log")
            if theirs.end.is_append_time and self._offsets.has_task:  # A broker stamped what a task wrote to it.
                ours = attrs.evolve(ours, rows=ours.rows.without_timestamps())
                theirs = attrs.evolve(theirs, rows=theirs.rows.without_timestamps())
            key = pair.source, pair.partition
            syncs, mirrored_end = self._flow.syncs_of(*key), self._progress.get(key, 0)
            made_anew, are_compacted = self._made_anew(pair), self._are_compacted(pair)
            each = AskedPair(pair, ours, theirs, syncs, mirrored_end, made_anew, are_compacted)
            asked.append(each)
            yield from self._offsets.requests(each)

    def _made_anew(self, pair: MirrorPair) -> MadeAnew:
        source, target = self._metadata
        return MadeAnew(
            None if source is None else source.since_ms(pair.source),
            None if target is None else target.since_ms(pair.target),
        )

    def _are_compacted(self, pair: MirrorPair) -> tuple[bool | None, bool | None]:
        """Return whether the topics of a pair are compacted; None if no metadata say."""
        source, target = self._metadata
        return (
            None if source is None else source.is_compacted(pair.source),
            None if target is None else target.is_compacted(pair.target),
        )

    def _report(self, asked: AskedPair, ours: LogReading, theirs: LogReading) -> PairReport:
        pair = asked.pair
        compared = self._offsets.compared(asked, ours, theirs)
        self._problems += [*ours.damage, *theirs.damage]
        findings = findings_of(
            pair,
            (asked.source, asked.target),
            compared.result,
            compared.holes,
            has_transforms=self._flow.config is not None and self._flow.config.has_transforms,
            is_source_compacted=compared.is_source_compacted,
            reads_committed=self._flow.reads_committed,
            is_target_known=asked.are_compacted[1] is not None,
            has_task=self._offsets.has_task,
            doubts=compared.doubts,
        )
        target = asked.target if compared.has_source_id else None
        told = with_topic_ids(list(findings), pair, asked.source, self._metadata[0], target)
        kept = attrs.evolve(compared.result, places=())  # Places hold on to logs, and only groups need them.
        report = PairReport(pair, kept, tuple(told), (asked.source.choice, asked.target.choice))
        evidence = self._evidence(asked, compared.own_start)
        if not evidence.groups:
            return report
        records = ours.summed.all, ours.summed.committed, compared.mirrored
        return self._with_groups(report, evidence, MirroredPlaces(*records, compared.result.places))

    def _with_groups(self, report: PairReport, evidence: GroupEvidence, places: MirroredPlaces) -> PairReport:
        """Add what is found of the groups that read a pair."""
        findings = tuple(
            PairFinding(
                each.rule, each.severity, f"group {each.subject}: {each.reason}", report.pair, each.source, each.target
            )
            for each in self._offsets.check_groups(evidence, places)
        )
        return attrs.evolve(
            report,
            findings=(*report.findings, *findings),
            moves=fail_over(evidence, places),
            moves_back=fail_back(evidence, places),
        )

    def _evidence(self, asked: AskedPair, own_start: int | None) -> GroupEvidence:
        pair, ours, theirs = asked.pair, asked.source, asked.target
        target = pair.target, pair.partition
        groups = self._commits.groups_with_gaps
        commits = self._commits.by_partition.get((pair.source, pair.partition), ())
        checkpoints = self._checkpoints.get(target, ())
        if not self._commits.is_there:
            groups = frozenset(each.group for each in checkpoints)
        return GroupEvidence(
            OffsetRange(ours.rows.start_offset, ours.rows.end_offset),
            OffsetRange(theirs.rows.start_offset, theirs.rows.end_offset),
            asked.syncs,
            tuple(self._offsets.checkpoints(commits, checkpoints)),
            tuple(commits),
            tuple(self._target_commits.by_partition.get(target, ())),
            self._offsets.has_all_syncs,
            self._checkpoints_topic in self._target.topics,
            groups,
            max((each for each in attrs.astuple(asked.made_anew) if each is not None), default=None),
            ours.end.newest_ms,
            theirs.end.newest_ms,
            own_start,
        )
