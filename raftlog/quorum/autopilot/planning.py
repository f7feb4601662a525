# SPDX-License-Identifier: Apache-2.0
"""Plans at most one change of the voters at a time: ``plan(spec, status, memory, now_ms)``.

A step never lowers the number of failures that the voters can tolerate beyond what has failed already: the voters in
sync that are more than a majority. Unlike an in-sync set of Kafka's brokers, voters cannot change without a majority,
so nothing is planned once it is lost.

Source: Confluent Platform's Automatic Observer Promotion, and hashicorp/raft-autopilot. Differs: DECISIONS.md 78.
"""

from collections import Counter
from typing import Final

import attrs

from raftlog.quorum.autopilot.memory import (
    AutopilotMemory,
    AutopilotStep,
    SyncWindow,
    VoterStepKind,
    expected_offset,
    look,
)
from raftlog.quorum.autopilot.spec import AutopilotReplica, AutopilotSpec, BaseRole, PromotionPolicy
from raftlog.quorum.describing.raft_status import RaftStatus
from raftlog.quorum.roles.roles import Leader
from raftlog.voters.voter_set import ReplicaKey

_TWO: Final = 2
"""A leader of so many voters does not remove itself (DECISIONS.md 66)."""


@attrs.frozen(kw_only=True)
class AutopilotCounters:
    """Counts of replicas, with the meaning of the counters of Confluent Platform with these names."""

    replicas_count: int
    observer_replicas_count: int
    in_sync_replicas_count: int
    caught_up_replicas_count: int
    is_not_caught_up: int
    observers_in_isr_count: int

    def named(self) -> dict[str, int]:
        """Return the counts by Confluent Platform's names, such as ``ReplicasCount``."""
        return {"".join(map(str.capitalize, name.split("_"))): count for name, count in attrs.asdict(self).items()}


@attrs.frozen(kw_only=True)
class AutopilotPlan:
    """What to do now.

    Attributes:
        memory: for the next plan.
        found: the step that the rules ask for, or None.
        is_dry_run: whether it is only described.
        reason: for the operator: why this step, or why none.
        counters: None unless this replica leads.
    """

    memory: AutopilotMemory
    found: AutopilotStep | None
    is_dry_run: bool
    reason: str
    counters: AutopilotCounters | None

    @property
    def step(self) -> AutopilotStep | None:
        """The step to carry out: none in a dry run."""
        return None if self.is_dry_run else self.found


def plan(spec: AutopilotSpec, status: RaftStatus, memory: AutopilotMemory, now_ms: int) -> AutopilotPlan:
    """Plan at most one change of the voters, and remember what that is based on.

    Args:
        spec: the same on all nodes.
        status: of this node's replica, as it is now.
        memory: of the plan before, or an empty one.
        now_ms: the time of day of this node, read after the status, in ms since the Unix epoch.
    """
    if not isinstance(status.role, Leader):
        after = attrs.evolve(memory, epoch=None, windows=(), steps=())
        return AutopilotPlan(
            memory=after, found=None, is_dry_run=spec.dry_run, reason="this replica does not lead", counters=None
        )
    reason, seen = _obstacle(status), look(spec, status, memory, now_ms)
    view = _View(spec, status, seen, now_ms)
    # Before a leader has committed in its epoch, an earlier leader's last change of the voters may not be known to be
    # committed; it would then look like an operator's.
    after = seen if status.high_watermark is not None else attrs.evolve(memory, epoch=None, windows=(), steps=())
    found = None
    if reason is None:
        found, reason = view.next_step()
    if found is not None and not spec.dry_run:
        after = attrs.evolve(after, steps=(*(each for each in after.steps if each != found), found))
    return AutopilotPlan(
        memory=after,
        found=found,
        is_dry_run=spec.dry_run,
        reason=f"dry run, nothing is done: {reason}" if spec.dry_run else reason,
        counters=view.counters(),
    )


def _obstacle(status: RaftStatus) -> str | None:
    """Return why no change of the voters can be asked for, whatever replicas do; None if one can."""
    if not status.kraft_version.is_reconfiguration_supported:
        return f"voters are fixed by kraft.version {status.kraft_version:d}"
    if status.high_watermark is None:
        return f"the leader has committed nothing in epoch {status.epoch} yet"
    if status.uncommitted_voters is not None:
        return f"the voters at offset {status.uncommitted_voters.offset} are not committed yet"
    if status.committed_voters.offset is None or not status.is_voter:
        return "the voters are static, or the leader is not one of them"
    return None


class _View:
    """What a leader sees at one look."""

    def __init__(self, spec: AutopilotSpec, status: RaftStatus, memory: AutopilotMemory, now_ms: int) -> None:
        self._spec = spec
        self._memory = memory
        self._now_ms = now_ms
        self._leader_id = status.leader_id
        self._offset = expected_offset(status)
        self._voters = status.committed_voters.voters.voter_keys
        self._windows = {each.key: each for each in memory.windows}
        voter_ids = {each.id for each in self._voters}
        self._wanted = spec.configured - memory.removed
        self._missing = self._wanted - voter_ids
        self._promoted = sorted(each for each in self._voters if self._role(each) is BaseRole.OBSERVER)
        self._present = sorted(each for each in self._voters if self._role(each) is BaseRole.VOTER)

    def next_step(self) -> tuple[AutopilotStep | None, str]:
        """Return the step to take now, if there is one, and why."""
        live, majority = len(self._live(self._voters)), _majority(self._voters)
        if live < majority:
            return None, (
                f"{live} of {len(self._voters)} voters are in sync, and {majority} are needed to commit a voter set: "
                "nothing can be done until more of them are back"
            )
        for choose in (self._removal_of_failed, self._return_of_configured, self._promotion, self._demotion):
            found = choose()
            if found is None or self._tolerates(found[0]) < self._tolerated(self._voters):
                continue
            step, why = found
            if step.key.id == self._leader_id and len(self._voters) == _TWO:
                return None, f"{why}, once the other one of the two voters leads: a leader cannot leave it alone"
            return found
        return None, f"{live} of {len(self._voters)} voters are in sync; no replica has to change its role"

    # The steps, in the order of preference

    def _removal_of_failed(self) -> tuple[AutopilotStep, str] | None:
        """Remove a voter that is down, if the others then tolerate more, and a promoted observer stands in for it."""
        for key in (*self._promoted, *self._present):
            step = self._step(VoterStepKind.REMOVE, key)
            is_better = self._tolerates(step) > self._tolerated(self._voters)
            if is_better and self._is_down(key) and self._is_replaced_without(key):
                return step, f"voter {key} is down, and the others tolerate more failures without it"
        return None

    def _return_of_configured(self) -> tuple[AutopilotStep, str] | None:
        """Add a configured voter. If too many observers were promoted, one that is about to be demoted goes first."""
        is_demotion_near = len(self._live(frozenset(self._present))) == len(self._present) and self._spared()
        if len(self._promoted) > len(self._missing) and is_demotion_near:
            return None
        for key in self._steady_others(BaseRole.VOTER):
            return self._step(VoterStepKind.ADD, key), f"{key}, whose base role is voter, is back and steady"
        return None

    def _promotion(self) -> tuple[AutopilotStep, str] | None:
        up, least = self._up(self._voters), self._least_in_sync()
        if up >= least:
            return None
        racks = Counter(self._rack(each) for each in self._voters if not self._is_down(each))
        others = sorted(self._steady_others(BaseRole.OBSERVER), key=lambda key: (racks[self._rack(key)], key))
        for key in others:
            return self._step(VoterStepKind.ADD, key), (
                f"{up} voters are up, fewer than {least} ({self._spec.policy.value}): observer {key} is steady"
            )
        return None

    def _demotion(self) -> tuple[AutopilotStep, str] | None:
        """Remove a promoted observer if the voters of the spec that are voters now have been in sync for long."""
        is_back = all(self._has_been(key, True, self._spec.demote_after_ms) for key in self._present)
        if not self._present or not is_back:
            return None
        for key in self._spared():
            return self._step(VoterStepKind.REMOVE, key), f"the configured voters are back: {key} is an observer again"
        return None

    # What the steps depend on

    def _least_in_sync(self) -> int:
        """Return below how many voters that are up an observer is promoted; 0 if never."""
        spec = self._spec
        if spec.policy is PromotionPolicy.LEADER_IS_OBSERVER:
            leader = [each for each in self._promoted if each.id == self._leader_id]
            return (spec.min_sync or 0) if leader else 0
        return min(spec.min_sync or len(self._wanted), len(self._wanted))

    def _is_replaced_without(self, key: ReplicaKey) -> bool:
        """Whether at least as many promoted observers as configured voters are missing remain after a removal."""
        is_configured = self._role(key) is BaseRole.VOTER
        return len(self._promoted) - (not is_configured) >= len(self._missing) + is_configured

    def _spared(self) -> list[ReplicaKey]:
        """Return the promoted observers that the voters can do without: those out of sync first, the leader last."""
        least, tolerated = self._least_in_sync(), self._tolerated(self._voters)
        live = set(self._live(self._voters))
        return [
            key
            for key in sorted(self._promoted, key=lambda key: (key in live, key.id == self._leader_id, key))
            if self._is_replaced_without(key)
            and self._up(self._voters - {key}) >= least
            and self._tolerates(self._step(VoterStepKind.REMOVE, key)) >= tolerated
        ]

    def _steady_others(self, role: BaseRole) -> list[ReplicaKey]:
        """Return the replicas that are no voters, have been in sync for the window, and may be added."""
        voter_ids = {each.id for each in self._voters}
        return [
            key
            for key in sorted(self._windows)
            if self._role(key) is role
            and key.directory_id is not None
            and key.id not in voter_ids | self._memory.removed
            and self._has_been(key, True, self._spec.stabilize_ms)
        ]

    def _is_down(self, key: ReplicaKey) -> bool:
        return self._has_been(key, False, self._spec.stabilize_ms)

    def _has_been(self, key: ReplicaKey, is_in_sync: bool, for_ms: int) -> bool:
        window = self._window(key)
        return window is not None and window.is_in_sync == is_in_sync and self._now_ms - window.since_ms >= for_ms

    def _window(self, key: ReplicaKey) -> SyncWindow | None:
        return self._windows.get(key)

    def _live(self, keys: frozenset[ReplicaKey]) -> list[ReplicaKey]:
        return [each for each in keys if (window := self._window(each)) is not None and window.is_in_sync]

    def _up(self, keys: frozenset[ReplicaKey]) -> int:
        return sum(not self._is_down(each) for each in keys)

    def _tolerated(self, keys: frozenset[ReplicaKey]) -> int:
        """Return how many more voters may fail before there is no majority in sync."""
        return len(self._live(keys)) - _majority(keys)

    def _tolerates(self, step: AutopilotStep) -> int:
        key = frozenset({step.key})
        return self._tolerated(self._voters | key if step.kind is VoterStepKind.ADD else self._voters - key)

    def _step(self, kind: VoterStepKind, key: ReplicaKey) -> AutopilotStep:
        return AutopilotStep(kind, key, self._offset)

    def _replica(self, key: ReplicaKey) -> AutopilotReplica | None:
        return self._spec.replica_of(key)

    def _role(self, key: ReplicaKey) -> BaseRole | None:
        replica = self._replica(key)
        return None if replica is None else replica.role

    def _rack(self, key: ReplicaKey) -> str | ReplicaKey:
        replica = self._replica(key)
        return key if replica is None or replica.rack is None else replica.rack

    def counters(self) -> AutopilotCounters:
        """Count replicas as they are now."""
        live = {key for key, each in self._windows.items() if each.is_in_sync}
        replicas = self._spec.replicas
        caught_up = len({each.id for each in live if self._replica(each) is not None})
        return AutopilotCounters(
            replicas_count=len(replicas),
            observer_replicas_count=len(replicas) - len(self._spec.configured),
            in_sync_replicas_count=len(live & self._voters),
            caught_up_replicas_count=caught_up,
            is_not_caught_up=int(caught_up < len(replicas)),
            observers_in_isr_count=len(live & set(self._promoted)),
        )


def _majority(keys: frozenset[ReplicaKey]) -> int:
    return len(keys) // 2 + 1
