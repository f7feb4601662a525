# SPDX-License-Identifier: Apache-2.0
"""What ``raftlog verify-mirror`` reports."""

from collections.abc import Sequence

import attrs

from raftlog.tools.mirrors.comparing.lifetimes import Sync
from raftlog.tools.mirrors.comparing.pair import PairResult
from raftlog.tools.mirrors.following import GroupMove
from raftlog.tools.mirrors.naming import DefaultPolicy, IdentityPolicy
from raftlog.tools.mirrors.pair_findings import PairFinding
from raftlog.tools.mirrors.pairing import MirrorPair
from raftlog.tools.mirrors.reading.flow import FoundConfig, FoundSyncs
from raftlog.tools.mirrors.reading.replica_choice import ReplicaChoice


@attrs.frozen
class FlowReport:
    """The flow from one cluster to another, as it was taken to be.

    Attributes:
        aliases: of the source and of the target.
        policy: how mirrors are named.
        config: where most of this is from; None if the target has none.
        syncs: the offset syncs; None if mirrors have the offsets of their sources.
        reads_committed: whether records of aborted transactions are left out; None if that is not known.
    """

    aliases: tuple[str, str]
    policy: DefaultPolicy | IdentityPolicy
    config: FoundConfig | None
    syncs: FoundSyncs | None
    reads_committed: bool | None

    def syncs_of(self, topic: str, partition: int) -> Sequence[Sync]:
        """Return the offset syncs of a partition of the source, in the order of their topic."""
        return () if self.syncs is None else self.syncs.syncs.get((topic, partition), ())

    @property
    def synced_topics(self) -> Sequence[str]:
        """The topics of the source that have offset syncs."""
        return () if self.syncs is None else tuple(dict.fromkeys(topic for topic, _ in self.syncs.syncs))


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
