# SPDX-License-Identifier: Apache-2.0
"""What ``raftlog verify-mirror`` reports."""

import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from raftlog.records.rules import Severity
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.mirrors.comparing.lifetimes import Sync
from raftlog.tools.mirrors.comparing.pair import PairCounts, PairResult
from raftlog.tools.mirrors.following import FlowSpan, GroupMove, MirrorFinding
from raftlog.tools.mirrors.naming import DefaultPolicy, IdentityPolicy
from raftlog.tools.mirrors.pair_findings import PairFinding
from raftlog.tools.mirrors.pairing import MirrorPair
from raftlog.tools.mirrors.reading.flow import FoundConfig, FoundSyncs
from raftlog.tools.mirrors.reading.metadata import MetadataState
from raftlog.tools.mirrors.reading.replica_choice import ReplicaChoice

_NO_LIVES: Final = "topics that were made anew show only by their syncs"
_NO_TABLES: Final = {
    "source": "what was passed over may be compacted, and cycles and topics without a mirror are not looked for",
    "target": "holes are only suspicious, and cycles and topics without a mirror are not looked for",
}


_NO_TABLES_OF_SAME: Final = {
    "source": "what only the target has may be compacted there, and partitions without a log here are not looked for",
    "target": "holes are only suspicious, and partitions without a log here are not looked for",
}


@attrs.frozen
class FlowReport:
    """The flow from one cluster to another, as it was taken to be.

    Attributes:
        aliases: of the source and of the target.
        policy: how mirrors are named.
        config: where most of this is from; None if the target has none.
        syncs: the offset syncs; None if mirrors have the offsets of their sources.
        reads_committed: whether records of aborted transactions are left out; None if that is not known.
        metadata: what could be read of the metadata of the source, and of the target.
        left_out: topics that each cluster has for itself, which are not compared if offsets are those of the source.
    """

    aliases: tuple[str, str]
    policy: DefaultPolicy | IdentityPolicy
    config: FoundConfig | None
    syncs: FoundSyncs | None
    reads_committed: bool | None
    metadata: tuple[MetadataState, MetadataState] = (MetadataState.WHOLE, MetadataState.WHOLE)
    left_out: tuple[str, ...] = ()

    def syncs_of(self, topic: str, partition: int) -> Sequence[Sync]:
        """Return the offset syncs of a partition of the source, in the order of their topic."""
        return () if self.syncs is None else self.syncs.syncs.get((topic, partition), ())

    @property
    def policy_name(self) -> str:
        """The policy as ``--policy`` names it."""
        if self.syncs is None:
            return "same-offsets"
        return "identity" if isinstance(self.policy, IdentityPolicy) else "default"

    @property
    def isolation(self) -> str | None:
        """The isolation level as ``--isolation`` names it; None if it is not known."""
        return {True: "read_committed", False: "read_uncommitted", None: None}[self.reads_committed]

    @property
    def left_undone(self) -> Iterator[str]:
        """In a sentence for each cluster whose metadata could not be read as a whole: what was not looked for."""
        for side, state in zip(("source", "target"), self.metadata, strict=True):
            what = "are not here" if state is MetadataState.NOT_THERE else "are damaged"
            if state is MetadataState.NEWEST and self.syncs is not None:
                yield f"The metadata of the {side} have no first state that can be read: {_NO_LIVES}."
            elif state not in {MetadataState.WHOLE, MetadataState.NEWEST}:
                undone = _NO_TABLES_OF_SAME[side] if self.syncs is None else f"{_NO_LIVES}, {_NO_TABLES[side]}"
                yield f"The metadata of the {side} {what}: {undone}."

    @property
    def synced_topics(self) -> Sequence[str]:
        """The topics of the source that have offset syncs."""
        return () if self.syncs is None else tuple(dict.fromkeys(topic for topic, _ in self.syncs.syncs))


@attrs.frozen
class MirrorOutcome:
    """What was found of two clusters.

    Attributes:
        sources: the paths of the cluster that is mirrored, as the user named them.
        targets: those of the cluster that has the mirror.
        flow: from one to the other.
        pairs: what was found of each pair.
        flow_findings: about heartbeats and names.
        spans: the times that heartbeats cover.
        problems: findings about files.
    """

    sources: Sequence[str]
    targets: Sequence[str]
    flow: FlowReport
    pairs: "Sequence[PairReport]"
    flow_findings: Sequence[MirrorFinding]
    spans: Sequence[FlowSpan]
    problems: Sequence[Finding]

    @functools.cached_property
    def severities(self) -> Counter[Severity]:
        """How many findings there are, by severity."""
        found = Counter(each.severity for pair in self.pairs for each in pair.findings)
        found.update(each.severity for each in self.flow_findings)
        found.update(each.severity for each in self.problems)
        return found

    @property
    def worst(self) -> Severity:
        """The worst severity of all findings; harmless if there is none."""
        return max(self.severities, default=Severity.HARMLESS)

    @property
    def verdict(self) -> str:
        """In a word: clean, suspicious, damaged or data-loss."""
        return "clean" if self.worst is Severity.HARMLESS else self.worst.value

    @property
    def counts(self) -> PairCounts:
        """What became of the records of all sources."""
        return sum((each.result.counts for each in self.pairs), PairCounts())


@attrs.frozen
class PairReport:
    """What was found of a partition and its mirror.

    Attributes:
        pair: the two.
        result: of their comparison.
        findings: in the order of the target; then those about groups.
        replicas: which one was compared, of the source and of the target.
        moves: what becomes of each group that moves to the target now.
        moves_back: what becomes of it when it comes back.
    """

    pair: MirrorPair
    result: PairResult
    findings: tuple[PairFinding, ...]
    replicas: tuple[ReplicaChoice, ReplicaChoice]
    moves: tuple[GroupMove, ...] = ()
    moves_back: tuple[GroupMove, ...] = ()

    def with_doubt(self) -> "PairReport":
        """Return it with findings that are only suspicious, if replicas contradict each other, and any may be right."""
        sides = zip(("source", "target"), self.replicas, strict=True)
        doubted = " and of the ".join(side for side, choice in sides if choice.is_doubtful)
        if not doubted:
            return self
        doubt = f"; or another replica of the {doubted} is right, and this one is not"
        findings = tuple(
            attrs.evolve(each, severity=Severity.SUSPICIOUS, reason=each.reason + doubt)
            if each.severity > Severity.HARMLESS
            else each
            for each in self.findings
        )
        return attrs.evolve(self, findings=findings)

    @property
    def worst(self) -> Severity:
        """The worst severity of its findings; harmless if there is none."""
        return max((each.severity for each in self.findings), default=Severity.HARMLESS)
