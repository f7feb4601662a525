# SPDX-License-Identifier: Apache-2.0
"""The two kinds of mirrors: with offsets of their own, which offset syncs pair, and with the offsets of their sources.

All that a verification asks of the kind is answered here, one class for each.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

import attrs

from raftlog.invariants import present
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.mirrors.comparing.differences import MirrorFault, OffsetRange
from raftlog.tools.mirrors.comparing.lifetimes import Sync, edges_of
from raftlog.tools.mirrors.comparing.log_view import SummedView
from raftlog.tools.mirrors.comparing.pair import MadeAnew, PairResult, compare_pair
from raftlog.tools.mirrors.comparing.same_offsets import compare_same_offsets, window_edges
from raftlog.tools.mirrors.following import (
    ClusterTopics,
    FlowSpan,
    GroupCheckpoint,
    GroupCommit,
    GroupEvidence,
    MirrorFinding,
    MirrorFlow,
    check_checkpoints,
    check_positions,
    commits_in_force,
    find_cycles,
    find_unpaired,
    flow_spans,
    heartbeat_gaps,
)
from raftlog.tools.mirrors.holes import find_holes
from raftlog.tools.mirrors.naming import configured_policy
from raftlog.tools.mirrors.one_sided_offsets import without_explained
from raftlog.tools.mirrors.pair_report import FlowReport
from raftlog.tools.mirrors.pairing import MirrorPair, find_missing_names, find_one_sided, find_pairs, find_same_names
from raftlog.tools.mirrors.reading.clusters import Cluster, PartitionLog
from raftlog.tools.mirrors.reading.flow import FoundSyncs, find_configs
from raftlog.tools.mirrors.reading.groups import find_heartbeats
from raftlog.tools.mirrors.reading.log_reading import LogReading, SumsRequest
from raftlog.tools.mirrors.reading.metadata import ClusterMetadata
from raftlog.tools.mirrors.reading.mirrored_places import MirroredPlaces

_HEARTBEATS: Final = "heartbeats"
_NO_DOUBTS: Final[Mapping[MirrorFault, str]] = {}

Clusters = tuple[Cluster, Cluster]
"""The source and the target."""
BothMetadata = tuple[ClusterMetadata | None, ClusterMetadata | None]
"""What the metadata of the source and of the target say; None if they are not here."""


@attrs.frozen(eq=False)
class AskedPair:
    """A pair that is being read.

    Attributes:
        pair: the two partitions.
        source: the log of the source.
        target: that of the target.
        syncs: that pair their offsets.
        mirrored_end: the offset in the source below which all was mirrored; 0 if unknown.
        made_anew: when each topic was made anew.
        are_compacted: whether compaction may have removed records of the source, and of the target; None if no metadata
            say.
    """

    pair: MirrorPair
    source: PartitionLog
    target: PartitionLog
    syncs: Sequence[Sync]
    mirrored_end: int
    made_anew: MadeAnew
    are_compacted: tuple[bool | None, bool | None]

    @property
    def has_older(self) -> bool:
        """Whether the target begins with a record that is older than its source.

        Raises:
            StorageError: a segment cannot be read.
        """
        since_ms, start = self.made_anew.source_ms, self.target.rows.start_offset
        if since_ms is None:
            return False
        first = next(self.target.rows.records(start, self.target.rows.end_offset), None)
        return first is not None and 0 <= first.timestamp < since_ms


@attrs.frozen(eq=False)
class ComparedPair:
    """What the comparison of a pair has found.

    Attributes:
        result: which records differ.
        mirrored: the records of the target that may be copies.
        is_source_compacted: whether compaction explains records that were passed over; None if that is not known.
        holes: offsets of the target that no record has, each with where theirs are in the source; None if not known.
        doubts: what else may explain a kind of difference.
        has_source_id: whether the target must have the topic id of its source.
        own_start: the first offset of the target that others wrote to, if groups keep their offsets; else None.
    """

    result: PairResult
    mirrored: SummedView
    is_source_compacted: bool | None
    holes: Iterable[tuple[OffsetRange, OffsetRange | None]] = ()
    doubts: Mapping[MirrorFault, str] = _NO_DOUBTS
    has_source_id: bool = False
    own_start: int | None = None


class OffsetPolicy(Protocol):
    """A kind of mirrors.

    Attributes:
        has_task: whether a task mirrors records, and not brokers their batches.
        has_all_syncs: whether all offset syncs that were written are there.
        spans: the times that heartbeats cover, once ``flow_findings`` has yielded all.
        problems: findings about records that cannot be read, of all that was read so far.
    """

    has_task: bool
    has_all_syncs: bool
    spans: Sequence[FlowSpan]
    problems: Sequence[Finding]

    def pairs(self) -> Iterator[MirrorPair]:
        """Yield the pairs of partitions that are in both clusters."""
        ...

    def requests(self, asked: AskedPair) -> tuple[SumsRequest, SumsRequest]:
        """Return what to read of the source and of the target."""
        ...

    def compared(self, asked: AskedPair, ours: LogReading, theirs: LogReading) -> ComparedPair:
        """Compare what was read of the source with what was read of the target."""
        ...

    def checkpoints(
        self, commits: Sequence[GroupCommit], written: Sequence[GroupCheckpoint]
    ) -> Sequence[GroupCheckpoint]:
        """Return where groups go on in the target.

        Args:
            commits: of the groups on the source.
            written: the checkpoints of a task.
        """
        ...

    def check_groups(self, evidence: GroupEvidence, places: MirroredPlaces) -> Sequence[MirrorFinding]:
        """Return what is wrong with where groups go on."""
        ...

    def flow_findings(self) -> Iterator[MirrorFinding]:
        """Yield what is found of the flow, and of the topics and partitions without a mirror or a source.

        Raises:
            StorageError: a segment cannot be read.
        """
        ...


def offset_policy(
    flow: FlowReport, clusters: Clusters, metadata: BothMetadata, progress: Collection[tuple[str, int]]
) -> OffsetPolicy:
    """Return the kind of the mirrors of a flow.

    Args:
        flow: from the source to the target.
        clusters: the two.
        metadata: of both.
        progress: topic and partition of the source of which Connect has stored an offset.
    """
    if flow.syncs is None:
        return SameOffsets(clusters, metadata)
    return SyncedOffsets(flow, flow.syncs, clusters, metadata, progress)


class SameOffsets:
    """Mirrors with the offsets of their sources: brokers copy batches as they are."""

    def __init__(self, clusters: Clusters, metadata: BothMetadata) -> None:
        self._topics, self._metadata = (clusters[0].topics, clusters[1].topics), metadata
        self.has_task = self.has_all_syncs = False
        self.spans: Sequence[FlowSpan] = ()
        self.problems: Sequence[Finding] = ()

    def pairs(self) -> Iterator[MirrorPair]:
        """See ``OffsetPolicy``."""
        return find_same_names(*self._topics)

    def requests(self, asked: AskedPair) -> tuple[SumsRequest, SumsRequest]:
        """See ``OffsetPolicy``."""
        rows = asked.source.rows.placed(), asked.target.rows.placed()
        windows = window_edges(*rows)
        return SumsRequest(rows[0], windows), SumsRequest(rows[1], windows)

    def compared(self, asked: AskedPair, ours: LogReading, theirs: LogReading) -> ComparedPair:
        """See ``OffsetPolicy``."""
        found = compare_same_offsets(ours.summed, theirs.summed)
        result, doubts = without_explained(found, asked.are_compacted, (ours.damage, theirs.damage))
        written = (each.target.start for each in result.differences if each.kind is MirrorFault.WRITTEN_TO)
        return ComparedPair(
            result,
            theirs.summed.all,
            is_source_compacted=False,  # What is on neither side is told by where the logs start and end.
            doubts=doubts,
            has_source_id=True,
            own_start=min(written, default=None),
        )

    def checkpoints(
        self, commits: Sequence[GroupCommit], written: Sequence[GroupCheckpoint]
    ) -> Sequence[GroupCheckpoint]:
        """See ``OffsetPolicy``: what a group has committed is where it goes on."""
        return [
            GroupCheckpoint(each.group, at := present(each.committed, "a commit in force"), at, each.offset, -1)
            for each in commits_in_force(commits).values()
        ]

    def check_groups(self, evidence: GroupEvidence, places: MirroredPlaces) -> Sequence[MirrorFinding]:
        """See ``OffsetPolicy``."""
        return check_positions(evidence)

    def flow_findings(self) -> Iterator[MirrorFinding]:
        """See ``OffsetPolicy``. Nothing that is not MirrorMaker writes heartbeats, or has a filter."""
        named = [each.partitions for each in self._metadata if each is not None]
        are_here = len(named) == len(self._metadata)
        return find_missing_names(self._topics, named if are_here else ())


class SyncedOffsets:
    """Mirrors of MirrorMaker, with offsets of their own, which offset syncs pair with those of the source."""

    def __init__(
        self,
        flow: FlowReport,
        syncs: FoundSyncs,
        clusters: Clusters,
        metadata: BothMetadata,
        progress: Collection[tuple[str, int]],
    ) -> None:
        self._flow, self._syncs, self._metadata = flow, syncs, metadata
        self._source, self._target = clusters
        self._topics = self._source.topics, self._target.topics
        self._mirrored = {*flow.synced_topics, *(topic for topic, _ in progress)}
        self.has_task, self.has_all_syncs = True, syncs.is_whole
        self.spans: Sequence[FlowSpan] = ()
        self.problems: Sequence[Finding] = syncs.findings

    def pairs(self) -> Iterator[MirrorPair]:
        """See ``OffsetPolicy``."""
        return find_pairs(*self._topics, self._flow.policy, self._flow.aliases[0], self._flow.synced_topics)

    def requests(self, asked: AskedPair) -> tuple[SumsRequest, SumsRequest]:
        """See ``OffsetPolicy``."""
        edges = edges_of(asked.syncs, asked.mirrored_end)
        wants_holes = not asked.are_compacted[1]
        return SumsRequest(asked.source.rows, edges[0]), SumsRequest(asked.target.rows, edges[1], wants_holes)

    def compared(self, asked: AskedPair, ours: LogReading, theirs: LogReading) -> ComparedPair:
        """See ``OffsetPolicy``."""
        result = compare_pair(
            ours.summed,
            theirs.summed,
            asked.syncs,
            asked.mirrored_end,
            reads_committed=self._flow.reads_committed,
            made_anew=asked.made_anew,
            has_older=asked.has_older,
        )
        mirrored = theirs.summed.committed
        holes = () if theirs.damage else find_holes(theirs.holes, ours.summed.all, mirrored, asked.syncs)
        return ComparedPair(result, mirrored, asked.are_compacted[0], holes)

    def checkpoints(
        self, commits: Sequence[GroupCommit], written: Sequence[GroupCheckpoint]
    ) -> Sequence[GroupCheckpoint]:
        """See ``OffsetPolicy``."""
        return written

    def check_groups(self, evidence: GroupEvidence, places: MirroredPlaces) -> Sequence[MirrorFinding]:
        """See ``OffsetPolicy``."""
        return check_checkpoints(evidence, places)

    def flow_findings(self) -> Iterator[MirrorFinding]:
        """See ``OffsetPolicy``: gaps of heartbeats, cycles and names."""
        flow = self._flow
        interval_ms = flow.config.heartbeat_interval_ms if flow.config else None
        for topic in (_HEARTBEATS, flow.policy.format_remote_topic(flow.aliases[0], _HEARTBEATS)):
            heartbeats, missing = find_heartbeats(self._target, topic)
            self.spans = *self.spans, *flow_spans(heartbeats)
            yield from heartbeat_gaps(heartbeats, interval_ms, missing)
        unpaired = list(self._topic_findings())
        yield from unpaired
        told = {each.subject for each in unpaired}
        for each in find_one_sided(*self._topics, flow.policy, flow.aliases[0], self._syncs.syncs):
            mirror = flow.policy.format_remote_topic(flow.aliases[0], each.subject)
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
        yield from find_unpaired(source, target, flow, self._mirrored)

    def _flows_back(self) -> Iterator[MirrorFlow]:
        """Yield the flow from the target to the source, if it is configured and enabled."""
        configs, problems = find_configs(self._source)
        self.problems = *self.problems, *problems
        for each in configs:
            if (each.target_alias, each.source_alias) == self._flow.aliases and each.is_enabled:
                policy = configured_policy(each.properties, self._flow.policy.kafka_level, self._flow.aliases)
                yield MirrorFlow(each.source_alias, each.target_alias, policy, each.topic_filter(policy.kafka_level))
