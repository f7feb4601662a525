# SPDX-License-Identifier: Apache-2.0
"""The autopilot of each replica's process: it looks at the status again and again, and asks for what it plans."""

from typing import Final

from raftlog.quorum.autopilot.memory import AutopilotMemory, AutopilotStep, VoterStepKind
from raftlog.quorum.autopilot.planning import plan
from raftlog.quorum.autopilot.spec import AutopilotReplica, AutopilotSpec, BaseRole, PromotionPolicy
from raftlog.quorum.describing.raft_status import RaftStatus
from raftlog.quorum.roles.roles import Leader
from raftlog.testing.simulator.checks.autopilot_rules import AutopilotLook, AutopilotRules
from raftlog.testing.simulator.choices import Choices
from raftlog.testing.simulator.fault_plan import FaultPlan
from raftlog.testing.simulator.machine import Machine
from raftlog.testing.simulator.operating.membership import Membership, addition, removal
from raftlog.testing.simulator.replica_process import ReplicaProcess
from raftlog.testing.simulator.timeline import Timeline

_MAX_AGE_MS: Final = 500
"""An idle replica fetches about every 250 ms."""
_LEAST_FOR_PROMOTION: Final = 3
"""With fewer configured voters only a replica that leads can be the reason for a promotion."""
_LEAST_TO_BE_LED: Final = 2
"""So many configured voters and observers are needed for that: one observer leads, and another one is promoted."""


def spec_of(plan: FaultPlan) -> AutopilotSpec | None:
    """Return the spec of a schedule: the first voters are the configured ones. None if no policy can ever act."""
    policy, min_sync = PromotionPolicy.UNDER_REPLICATED, None
    can_be_led = min(plan.voters, plan.observers) >= _LEAST_TO_BE_LED
    if plan.voters < _LEAST_FOR_PROMOTION and not can_be_led:
        return None
    if plan.voters < _LEAST_FOR_PROMOTION or (plan.is_promotion_by_leader and can_be_led):
        policy, min_sync = PromotionPolicy.LEADER_IS_OBSERVER, plan.voters
    elif plan.is_promotion_by_min_sync:
        policy, min_sync = PromotionPolicy.UNDER_MIN_SYNC, plan.voters // 2 + 2
    if plan.observers == 0:
        return None
    stabilize_ms = max(1, plan.stabilize_ms)
    return AutopilotSpec(
        replicas=tuple(
            AutopilotReplica(id=each, role=BaseRole.VOTER if each <= plan.voters else BaseRole.OBSERVER)
            for each in range(1, plan.voters + plan.observers + 1)
        ),
        policy=policy,
        min_sync=min_sync,
        max_lag=plan.autopilot_max_lag,
        max_age_ms=_MAX_AGE_MS,
        last_contact_ms=max(_MAX_AGE_MS, 4 * plan.autopilot_look_ms),
        stabilize_ms=stabilize_ms,
        demote_after_ms=stabilize_ms + plan.demote_later_ms,
    )


class Autopilots:
    """The autopilots of all machines.

    The memory of one is lost with its process, or survives with the directory.

    Args:
        machines: all of them, by id.
        timeline: of the simulation.
        choices: make all choices.
        plan: of the schedule.
        membership: knows which replicas are being added.
        rules: check what is planned.
    """

    def __init__(
        self,
        machines: dict[int, Machine],
        timeline: Timeline,
        choices: Choices,
        plan: FaultPlan,
        membership: Membership,
        rules: AutopilotRules,
    ) -> None:
        self._machines = machines
        self._timeline = timeline
        self._choices = choices
        self._plan = plan
        self._membership = membership
        self._rules = rules
        self._spec = spec_of(plan)
        self._memories: dict[int, tuple[object, AutopilotMemory]] = {}
        self._reasons: dict[int, str] = {}

    def begin(self) -> None:
        """Let each process look for the first time soon, if there are autopilots."""
        if self._spec is None:
            return
        for machine in self._machines.values():
            first_ms = int(self._choices.fraction(0, "first-look", machine.id) * self._plan.autopilot_look_ms)
            self._timeline.after(first_ms, self._look, machine)

    def _look(self, machine: Machine) -> None:
        """Look, ask for a step a little later, and look again after that. A paused process does nothing."""
        process, delay_ms = machine.process, 0
        if process is not None and not machine.is_paused:
            status = process.raft.status
            step = self._planned(machine, process, status)
            if step is not None:
                delay_ms = self._choices.time_ms(self._plan.autopilot_look_ms, "step-delay", machine.id)
                machine.later(process, delay_ms, self._ask, machine, process, step)
        self._timeline.after(delay_ms + self._plan.autopilot_look_ms, self._look, machine)

    def _planned(self, machine: Machine, process: ReplicaProcess, status: RaftStatus) -> AutopilotStep | None:
        key = machine.directory.identity.key
        owner: object = key if self._plan.is_memory_durable else process
        known, memory = self._memories.get(machine.id, (None, AutopilotMemory()))
        now_ms = process.clock.wall_ms(self._timeline.now_ms)
        assert self._spec is not None
        planned = plan(self._spec, status, memory if known == owner else AutopilotMemory(), now_ms)
        self._memories[machine.id] = owner, planned.memory
        self._reasons[machine.id] = planned.reason
        added = None
        if planned.step is not None and planned.step.kind is VoterStepKind.ADD:
            directory = self._machines[planned.step.key.id].directory
            added = directory.ledger if directory.identity.key == planned.step.key else None
        self._rules.looked(AutopilotLook(machine.directory.ledger, owner, status, now_ms, planned.step), added)
        return planned.step

    def _ask(self, machine: Machine, process: ReplicaProcess, step: AutopilotStep) -> None:
        """Ask the node's own replica for a step.

        A replica whose disk was replaced since is not added under its old directory id: the operator does not replace
        the disk of a replica that is being added.
        """
        identity = self._machines[step.key.id].directory.identity
        if step.kind is VoterStepKind.ADD:
            if identity.key != step.key:
                return
            self._membership.note_addition(step.key.id, self._timeline.now_ms)
        if self._timeline.story is not None:
            words = f"its autopilot asks: {step.kind.value} {step.key.id}"
            self._timeline.story.client(self._timeline.now_ms, machine.id, words)
        request = addition(identity) if step.kind is VoterStepKind.ADD else removal(step.key)
        machine.ask(process, request, step.expected_voters_offset)

    def has_settled(self) -> bool:
        """Whether nothing is left to do: not while a replica is not in sync.

        One that cannot start, or cannot vote, never is.
        """
        ledgers = [each.directory.ledger for each in self._machines.values()]
        if self._spec is None or any(each.is_refused or each.is_vote_lost for each in ledgers):
            return True
        leaders = [
            (each.directory.ledger, each.process)
            for each in self._machines.values()
            if each.process is not None and isinstance(each.process.raft.role, Leader)
        ]
        if len(leaders) != 1:
            return False
        ledger, process = leaders[0]
        if not process.raft.status.kraft_version.is_reconfiguration_supported:
            return True
        others = frozenset(each.key for each in ledgers if each is not ledger)
        return self._rules.is_settled(ledger, others, process.clock.wall_ms(self._timeline.now_ms))

    def description(self) -> str:
        """Return what each autopilot has found last."""
        return "; ".join(f"{each}: {reason}, {self._memories[each][1]}" for each, reason in self._reasons.items())
