# SPDX-License-Identifier: Apache-2.0
"""A naive world for the autopilot: replicas that are up or down, a voter set that is what was asked for last."""

import attrs

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.autopilot.memory import AutopilotMemory, AutopilotStep, VoterStepKind
from raftlog.quorum.autopilot.planning import AutopilotPlan, plan
from raftlog.quorum.autopilot.spec import AutopilotReplica, AutopilotSpec, BaseRole, PromotionPolicy
from raftlog.quorum.describing.raft_status import FetcherStatus, RaftStatus, VotersStatus
from raftlog.quorum.roles.roles import Leader
from raftlog.voters.kraft_version import KRaftVersion
from tests.quorum.single_replica import replica_key, voter_set_of

START_MS = 1_000_000
LOOK_MS = 100
STABILIZE_MS, DEMOTE_MS, CONTACT_MS, AGE_MS, LAG = 1_000, 3_000, 500, 300, 10


def spec_of(
    voters: int = 3,
    observers: int = 2,
    policy: PromotionPolicy = PromotionPolicy.UNDER_REPLICATED,
    min_sync: int | None = None,
    *,
    dry_run: bool = False,
) -> AutopilotSpec:
    """Return a spec: voters from 1 on, then observers."""
    return AutopilotSpec(
        replicas=tuple(
            AutopilotReplica(id=each, role=BaseRole.VOTER if each <= voters else BaseRole.OBSERVER)
            for each in range(1, voters + observers + 1)
        ),
        policy=policy,
        min_sync=min_sync,
        max_lag=LAG,
        max_age_ms=AGE_MS,
        last_contact_ms=CONTACT_MS,
        stabilize_ms=STABILIZE_MS,
        demote_after_ms=DEMOTE_MS,
        dry_run=dry_run,
    )


def status_of(
    voters: frozenset[int], up: frozenset[int], all_ids: range, now_ms: int, leader: int = 1, offset: int = 50
) -> RaftStatus:
    """Return the status of a leader of epoch 3: replicas that are up have all, the others were never heard of."""
    others = [each for each in all_ids if each != leader]
    return RaftStatus(
        role=Leader(3, leader, (leader,), tuple(sorted(voters))),
        epoch=3,
        leader_id=leader,
        high_watermark=100,
        committed_offset=100,
        log_start_offset=0,
        log_end=OffsetAndEpoch(100, 3),
        flushed_offset=100,
        committed_voters=VotersStatus(voter_set_of(map(replica_key, sorted(voters))), offset),
        uncommitted_voters=None,
        kraft_version=KRaftVersion.KRAFT_VERSION_1,
        is_voter=leader in voters,
        has_been_voter=True,
        may_vote=True,
        is_quarantined=False,
        is_out_of_epochs=False,
        halt_reason=None,
        log_refusal=None,
        is_disk_full=False,
        snapshot_refusal=None,
        fetchers=tuple(fetcher(each, now_ms, is_voter=each in voters) for each in others if each in up),
        queues=(),
    )


def fetcher(replica_id: int, now_ms: int, *, is_voter: bool = False, lag: int = 0, age_ms: int = 0) -> FetcherStatus:
    """Return a replica that has just fetched."""
    return FetcherStatus(
        key=replica_key(replica_id),
        is_voter=is_voter,
        end_offset=100 - lag,
        lag=lag,
        fetched_wall_ms=now_ms,
        caught_up_wall_ms=now_ms - age_ms,
    )


@attrs.define
class World:
    """A quorum whose leader asks the autopilot at each look, and does what it says at once."""

    spec: AutopilotSpec
    voters: frozenset[int]
    up: frozenset[int]
    leader: int = 1
    epoch: int = 3
    offset: int = 50
    now_ms: int = START_MS
    memory: AutopilotMemory = attrs.field(factory=AutopilotMemory)
    steps: list[tuple[int, AutopilotStep, RaftStatus]] = attrs.field(factory=list)
    last: AutopilotPlan | None = None

    @property
    def ids(self) -> range:
        """All replicas."""
        return range(1, len(self.spec.replicas) + 1)

    def status(self) -> RaftStatus:
        """Return the leader's status."""
        status = status_of(self.voters, self.up, self.ids, self.now_ms, self.leader, self.offset)
        return attrs.evolve(status, epoch=self.epoch)

    def look(self, *, does: bool = True) -> AutopilotPlan:
        """Ask for a plan now, carry its step out, and let some time pass."""
        status = self.status()
        self.last = plan(self.spec, status, self.memory, self.now_ms)
        self.memory = self.last.memory
        if self.last.step is not None and does:
            self.steps.append((self.now_ms, self.last.step, status))
            change = frozenset({self.last.step.key.id})
            is_added = self.last.step.kind is VoterStepKind.ADD
            self.change_voters(self.voters | change if is_added else self.voters - change)
        self.now_ms += LOOK_MS
        return self.last

    def change_voters(self, voters: frozenset[int]) -> None:
        """Commit a voter set. A leader that is not in it resigns: another one leads."""
        self.voters, self.offset = voters, self.offset + 1
        if self.leader not in voters:
            self.lead(min(voters & self.up, default=min(voters)))

    def lead(self, leader: int) -> None:
        """Let another voter lead, on whose node no memory is."""
        self.leader, self.epoch, self.memory = leader, self.epoch + 1, AutopilotMemory()
        self.up |= {leader}

    def pass_ms(self, duration_ms: int) -> None:
        """Look again and again for some time."""
        for _ in range(duration_ms // LOOK_MS):
            self.look()
