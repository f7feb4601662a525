# SPDX-License-Identifier: Apache-2.0
"""A quorum of machines with faults and clients, for some time, and then without faults until all is well again."""

import traceback
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from raftlog.log.retention import Retention
from raftlog.quorum.roles.roles import Leader
from raftlog.quorum.seam.effects import EndAppend, EndRead
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.records.batches.batch import RecordBatch
from raftlog.testing.simulator.applications.checked_machine import MachineKind
from raftlog.testing.simulator.applications.registers import BUILT_IN
from raftlog.testing.simulator.checks.autopilot_rules import AutopilotRules
from raftlog.testing.simulator.checks.client_oracle import ClientAppend, ClientOracle, Told
from raftlog.testing.simulator.checks.committed_history import CommittedHistory
from raftlog.testing.simulator.checks.disk_witness import DiskWitness
from raftlog.testing.simulator.checks.ledger import StoredBatch
from raftlog.testing.simulator.checks.promises import PromiseCheck
from raftlog.testing.simulator.checks.replay import Replay, VotersAt
from raftlog.testing.simulator.checks.schedule_outcome import ScheduleOutcome
from raftlog.testing.simulator.choices import Choices
from raftlog.testing.simulator.disks.aiming import SNAPSHOT_END, Aim
from raftlog.testing.simulator.disks.directory import Directory
from raftlog.testing.simulator.disks.file_directory import FileDirectory
from raftlog.testing.simulator.disks.memory_directory import MemoryDirectory
from raftlog.testing.simulator.disks.simulated_disk import ERRORS, MISREADS
from raftlog.testing.simulator.fault_plan import FaultPlan
from raftlog.testing.simulator.machine import FIRST_PORT, Machine
from raftlog.testing.simulator.network import Network
from raftlog.testing.simulator.operating.autopilots import Autopilots, spec_of
from raftlog.testing.simulator.operating.deposals import Deposals
from raftlog.testing.simulator.operating.membership import Membership
from raftlog.testing.simulator.operating.settings import config_of
from raftlog.testing.simulator.replica_process import ReplicaProcess
from raftlog.testing.simulator.timeline import Timeline
from raftlog.testing.simulator.violation import ViolationError
from raftlog.testing.simulator.workload import Workload
from raftlog.voters.voter_set import (
    Endpoints,
    HostPort,
    ReplicaKey,
    SupportedVersionRange,
    VoterNode,
    VoterSet,
)

Fault = Callable[[], None]
LISTENER: Final = "CONTROLLER"
SCHEDULE_MS: Final = 60_000
"""How long faults last."""
HEALING_MS: Final = 20_000
"""How long a quorum without faults may take until it has one leader, equal logs and a fresh write."""
SETTLING_MS: Final = 30_000
"""How long autopilots may take after that until voters are the configured ones, and they have nothing more to do."""
LONG_DOWN_MS: Final = 8_000
"""With autopilots, a machine that has crashed may be down for so long, on average: an observer then is promoted."""
SOON_AGAIN_MS: Final = 300
"""In schedules with aimed faults, a machine whose disk was damaged crashes again so soon, on average."""
AT_ONCE_MS: Final = 20
"""There, a leader that is to be deposed crashes so soon, on average: before its first record is fetched again."""


def replica_key(replica_id: int, generation: int = 0) -> ReplicaKey:
    """Return a replica with its directory; another generation is another directory."""
    return ReplicaKey(replica_id, uuid.UUID(int=(replica_id << 64) | (generation + 1)))


def voter_node(key: ReplicaKey) -> VoterNode:
    """Return a replica as a voter."""
    endpoints = Endpoints.of({LISTENER: ("localhost", FIRST_PORT + key.id)})
    return VoterNode(key, endpoints, SupportedVersionRange(0, 1))


class Simulation:
    """A quorum, with its faults.

    Args:
        choices: all that may go in more than one way.
        plan: which faults there are.
        kind: of the state machines of replicas.

    Attributes:
        is_healing: whether faults have ended.

    Raises:
        ViolationError: there can be no state machine of the kind.
    """

    def __init__(self, choices: Choices, plan: FaultPlan, kind: MachineKind = BUILT_IN) -> None:
        self._choices = choices
        self.plan = plan
        self.timeline = Timeline()
        self.oracle = ClientOracle()
        self.history = CommittedHistory(self._committed)
        self.injected: Counter[str] = Counter()
        self.network = Network(self.timeline, choices, plan, self.injected)
        self.workload = Workload(self.oracle, choices, kind)
        self.machines: dict[int, Machine] = {}
        self.is_healing = self._is_settling = self._is_majority_lost = False
        self._lost_majorities = 0
        self._fresh: ClientAppend | None = None
        self._voters = VoterSet.of(voter_node(replica_key(each)) for each in range(1, self.plan.voters + 1))
        self.replay = Replay(VotersAt(-1, self.plan.kraft_version, self._voters.voter_keys), kind)
        self.witness = DiskWitness(self.history, self.replay)
        self._directories: Counter[int] = Counter()
        self._membership = Membership(self.machines, choices, self._new_directory)
        self._deposals = Deposals(self.machines, self.history, self._depose)
        self._rules = AutopilotRules(spec_of(plan), self.history, self._voters.voter_keys)
        self._autopilots = Autopilots(self.machines, self.timeline, choices, plan, self._membership, self._rules)
        promises = PromiseCheck(self.witness)
        for each in range(1, self.plan.voters + self.plan.observers + 1):
            directory = self._new_directory(each)
            self.machines[each] = Machine(
                directory,
                self.machines,
                self.timeline,
                self.network,
                choices,
                plan,
                config_of(plan),
                promises,
                self,
                self.injected,
            )

    def _new_directory(self, replica_id: int) -> Directory:
        """Return an empty directory for a replica, which names the first voters.

        After an upgrade no configuration names them any more. Else a replica that was once the only voter would lead
        alone with its new disk.
        """
        key = replica_key(replica_id, self._directories[replica_id])
        self.injected["replaced-disk"] += self._directories[replica_id] > 0
        self._directories[replica_id] += 1
        retention, plan = Retention(self.plan.retention_bytes, None), self.plan
        voters = self._voters if self._kraft_version == plan.kraft_version else VoterSet()
        first = self.witness, self._identity(key), voters, retention, plan.kraft_version
        if not plan.is_on_files:
            return MemoryDirectory(*first)
        aim = None
        if plan.is_aimed:
            has_errors, has_misreads = plan.disk_error_interval_ms > 0, plan.misread_interval_ms > 0
            aim = Aim(
                self._choices,
                self.injected,
                replica_id,
                has_errors=has_errors,
                has_misreads=has_misreads,
                deposal=self._deposals.of(replica_id),
            )
        return FileDirectory(*first, counts=self.injected, torn_crashes=plan.torn_crashes, lies=plan.lies, aim=aim)

    @property
    def _kraft_version(self) -> int:
        """The committed one."""
        return self.replay.in_force_before(self.history.end_offset).kraft_version

    def _identity(self, key: ReplicaKey) -> ReplicaIdentity:
        voters, asks, count = self.plan.voters, self.plan.do_voters_ask_bootstrap, self.plan.voters
        if self.plan.change_interval_ms or self.plan.autopilot_look_ms:
            asks, count = True, voters + self.plan.observers
        servers = tuple(HostPort("localhost", FIRST_PORT + each) for each in range(1, count + 1))
        return ReplicaIdentity(
            key=key,
            cluster_id="simulated",
            endpoints=voter_node(key).listeners,
            listener=LISTENER,
            bootstrap_servers=servers if asks or key.id > voters else (),
        )

    @property
    def running(self) -> Iterable[ReplicaProcess]:
        """The processes that run, and are not paused."""
        return (each.process for each in self.machines.values() if each.process is not None and not each.is_paused)

    def run(self, end_ms: int | None = None) -> ScheduleOutcome:
        """Run the schedule, and let the quorum recover.

        Args:
            end_ms: to end at this time, if that is earlier, and not to let the quorum recover; None for the whole.
        """
        violation, healed_ms, states = None, 0, 0
        try:
            for machine in self.machines.values():
                machine.start()
            self._begin_faults()
            self.timeline.run(SCHEDULE_MS if end_ms is None else min(end_ms, SCHEDULE_MS))
            if end_ms is None or end_ms > SCHEDULE_MS:
                healed_ms = self._heal()
            states = self.replay.states_crc()
        except ViolationError as error:
            violation = ViolationError(error.invariant, error.description)
        except Exception as error:  # Whatever comes out of the core is a violation.
            violation = ViolationError("no-error", "".join(traceback.format_exception(error)))
        if violation is not None and self.timeline.story is not None:
            self.timeline.story.violated(self.timeline.now_ms, str(violation))
        return ScheduleOutcome(
            violation,
            delivered=self.network.delivered,
            lost=self.network.lost,
            acknowledged=self.oracle.acknowledged,
            unknown=self.oracle.outcomes[Told.UNKNOWN],
            reads=self.oracle.confirmed_reads,
            leaders=len(self.history.leaders),
            voter_changes=self.witness.voter_changes,
            snapshots=self.witness.counts["snapshots"],
            cleanings=self.witness.counts["cleanings"],
            restarts=self.witness.counts["restarts"],
            upgrades=self._kraft_version - self.plan.kraft_version,
            crashes=sum(each.crash_count for each in self.machines.values()),
            lossy_crashes=sum(each.lossy_crash_count for each in self.machines.values()),
            quarantines=self.witness.counts["quarantines"],
            exits=sum(each.exit_count for each in self.machines.values()),
            plans=self._rules.counts["plans"],
            promotions=self._rules.counts["promotions"],
            demotions=self._rules.counts["demotions"],
            returns=self._rules.counts["returns"],
            beyond_atlas=int(self.plan.is_beyond_atlas),
            lost_majorities=self._lost_majorities,
            injected=dict(self.injected),
            is_on_files=self.plan.is_on_files,
            events=self.timeline.event_count,
            healed_ms=healed_ms,
            ended_ms=self.timeline.now_ms,
            trace=self.timeline.trace,
            states=states,
        )

    def _committed(self, batch: StoredBatch, content: RecordBatch) -> None:
        self.oracle.committed(batch, content)
        self.replay.committed(batch, content)
        self._rules.committed(batch, content)

    # Clients

    def _append(self) -> None:
        leader = None if self._is_settling else self.workload.leader_among(self.running)
        if leader is not None:
            for _ in range(self._choices.number(1, 5, "appends")):
                append = self.workload.append(leader)
                if self.is_healing and append is not None and self._fresh is None:
                    self._fresh = append
            if self._choices.happens(0.3, "read"):
                self.workload.read(leader, self.witness.known_end, self.timeline.event_count)
            self.machines[leader.directory.identity.key.id].settle()
        self.timeline.after(1 + self._choices.time_ms(self.plan.append_interval_ms, "append-interval"), self._append)

    def append_ended(self, process: ReplicaProcess, effect: EndAppend) -> None:
        """Tell the clients what became of an append."""
        if self.timeline.story is not None:
            words = f"append up to offset {effect.last_offset}: {effect.outcome.name.lower()}"
            self.timeline.story.client(self.timeline.now_ms, process.directory.identity.key.id, words)
        self.workload.append_ended(process, effect)

    def read_ended(self, process: ReplicaProcess, effect: EndRead) -> None:
        """Tell the clients what became of a read."""
        self.workload.read_ended(process, effect, self.history.end_offset)

    # Faults

    def _begin_faults(self) -> None:
        plan = self.plan
        self._append()
        for interval_ms, fault, kind in (
            (plan.crash_interval_ms, self._crash, "crash-interval"),
            (plan.cut_interval_ms, self._cut, "cut-interval"),
            (plan.pause_interval_ms, self._pause, "pause-interval"),
            (plan.change_interval_ms, self._change_voters, "change-interval"),
            (plan.replacement_interval_ms, self._replace_disks, "replacement-interval"),
            (plan.disk_loss_interval_ms, self._lose_disk, "disk-loss-interval"),
            (plan.disk_error_interval_ms if plan.is_on_files else 0, self._fail_disk, "disk-error-interval"),
            (plan.misread_interval_ms if plan.is_on_files else 0, self._misread, "misread-interval"),
        ):
            if interval_ms:
                self._after(interval_ms, fault, kind)
        if plan.autopilot_look_ms:
            self._autopilots.begin()
        if plan.upgrade_ms:
            self.timeline.after(plan.upgrade_ms, self._upgrade)

    def _after(self, mean_ms: int, fault: Fault, kind: str) -> None:
        self.timeline.after(1 + self._choices.time_ms(mean_ms, kind), self._unless_healing, fault)

    def _unless_healing(self, fault: Fault) -> None:
        if not self.is_healing:
            fault()

    def _victim(self) -> Machine:
        """Return a machine, the leader half of the time."""
        leader = self.history.leaders.get(self.history.latest_epoch)
        if leader is not None and self._choices.happens(0.5, "victim-leads"):
            return self.machines[leader.key.id]
        return self._choices.pick(list(self.machines.values()), "victim")

    def _crash(self) -> None:
        if self._choices.happens(1, "crash"):
            machine = self._victim()
            if self._choices.happens(self.plan.armed_crashes, "crash-armed"):
                self.injected["armed-crash"] += 1
                machine.is_crash_armed = True
            else:
                machine.crash()
        self._after(self.plan.crash_interval_ms, self._crash, "crash-interval")

    def crashed(self, machine: Machine, process: ReplicaProcess) -> None:
        """Have a machine that has crashed started again, soon or after a while."""
        self.workload.crashed(process)
        if self.plan.rot and not self.is_healing and self._choices.happens(self.plan.rot, "rot", machine.id):
            self._rot(machine)
        if self.plan.is_beyond_atlas:
            was_lost, self._is_majority_lost = self._is_majority_lost, self._membership.is_majority_lost
            self._lost_majorities += self._is_majority_lost and not was_lost
        means_ms = (50, 1000, LONG_DOWN_MS) if self.plan.autopilot_look_ms else (50, 1000)
        down_ms = self._choices.time_ms(self._choices.pick(means_ms, "down", machine.id), "down-time", machine.id)
        self.timeline.after(1 + down_ms, machine.start)

    def _rot(self, machine: Machine) -> None:
        """Let a disk lose or change what was durable, unless that may be one disk too many."""
        if self.may_damage(machine):
            words = machine.directory.damage(self._choices)
            if words is None:
                return
            if self.plan.is_aimed:
                self._after(SOON_AGAIN_MS, machine.crash, "second-crash")
            self.injected["lost-batches"] += not self.plan.is_on_files
            if self.timeline.story is not None:
                self.timeline.story.fault(self.timeline.now_ms, machine.id, f"its disk {words}")

    def _depose(self, machine: Machine) -> None:
        """Let a leader crash soon."""
        self._after(AT_ONCE_MS, machine.crash, "deposal")

    def may_damage(self, machine: Machine) -> bool:
        """Whether a disk may be damaged, so that the quorum recovers nevertheless; beyond the atlas, any may be."""
        if self.plan.is_beyond_atlas:
            return not self.is_healing
        now_ms = self.timeline.now_ms
        return not self.is_healing and self._membership.may_damage(machine, self.history.end_offset, now_ms)

    def _fail_disk(self) -> None:
        """Let an operation of a disk fail, or fill a disk for a while."""
        if self._choices.happens(1, "disk-error"):
            machine = self._victim()
            disk, kind = machine.directory.disk, self._choices.pick(ERRORS, "disk-error-kind")
            is_allowed = kind != "read-error" or self.may_damage(machine)  # An open takes what it cannot read for lost.
            if disk is not None and is_allowed:
                disk.plan_error(kind, self._choices)
                self._after(1500, disk.free, "disk-full-time")
        self._after(self.plan.disk_error_interval_ms, self._fail_disk, "disk-error-interval")

    def _misread(self) -> None:
        """Let a read of a disk return wrong bytes, unless its replica may be needed."""
        if self._choices.happens(1, "misread"):
            machine = self._victim()
            disk, kind = machine.directory.disk, self._choices.pick(MISREADS, "misread-kind")
            if disk is not None and self.may_damage(machine):
                is_snapshot = self.plan.is_aimed and self._choices.happens(0.5, "misread-snapshot")
                disk.plan_misread(kind, self._choices, SNAPSHOT_END if is_snapshot else "")
        self._after(self.plan.misread_interval_ms, self._misread, "misread-interval")

    def _cut(self) -> None:
        choices, ids = self._choices, list(self.machines)
        if choices.happens(1, "cut"):
            one_side = {each for each in ids if choices.happens(0.4, "cut-off", each)}
            one_side = one_side or {choices.pick(ids, "cut-off-alone")}
            is_one_way = self.plan.is_cut_one_way and choices.happens(0.7, "cut-one-way")
            self.network.cut(one_side, set(ids) - one_side, is_one_way=is_one_way)
            self._after(2000, self.network.heal, "cut-time")
        self._after(self.plan.cut_interval_ms, self._cut, "cut-interval")

    def _pause(self) -> None:
        if self._choices.happens(1, "pause"):
            machine = self._victim()
            self.injected["pause"] += 1
            machine.pause()
            self._after(1200, lambda: self._resume(machine), "pause-time")
        self._after(self.plan.pause_interval_ms, self._pause, "pause-interval")

    def _change_voters(self) -> None:
        leader = self.workload.leader_among(self.running)
        if leader is not None and self._choices.happens(1, "change"):
            epoch, request = leader.raft.role.epoch, self._membership.change(leader, self.timeline.now_ms)
            if request is not None:
                self._rules.asked_by_operator(epoch, request)
        if self._choices.happens(0.1, "replace-disk"):
            self._membership.replace_disk(self.timeline.now_ms)
        self._after(self.plan.change_interval_ms, self._change_voters, "change-interval")

    def _replace_disks(self) -> None:
        if self._choices.happens(1, "replacement"):
            self._membership.replace_disk(self.timeline.now_ms)
        self._after(self.plan.replacement_interval_ms, self._replace_disks, "replacement-interval")

    def _lose_disk(self) -> None:
        """Let the disk of a voter be lost, unless that is one disk too many."""
        if self._choices.happens(1, "disk-loss"):
            now_ms = self.timeline.now_ms
            machine = self._membership.lose_disk(self.history.end_offset, now_ms)
            self.injected["lost-disk"] += machine is not None
            if machine is not None and self.timeline.story is not None:
                self.timeline.story.fault(now_ms, machine.id, "has lost its disk, and starts on an empty one")
        self._after(self.plan.disk_loss_interval_ms, self._lose_disk, "disk-loss-interval")

    def _upgrade(self) -> None:
        """Upgrade kraft.version, and look again after a while whether it was."""
        if self._kraft_version == 0:
            leader = self.workload.leader_among(self.running)
            if leader is not None:
                self.workload.upgrade(leader)
                self.machines[leader.directory.identity.key.id].settle()
            self.timeline.after(1 + self._choices.time_ms(2000, "upgrade-interval"), self._upgrade)

    def _resume(self, machine: Machine) -> None:
        """End a pause. A client may read at once, before the replica learns what has happened meanwhile."""
        process = machine.process
        if process is not None and machine.is_paused and isinstance(process.raft.role, Leader):
            self.workload.read(process, self.witness.known_end, self.timeline.event_count)
        machine.resume()

    # Recovery

    def _heal(self) -> int:
        """End all faults, and return how long the quorum takes to recover."""
        self.is_healing = self.network.is_healed = True
        self.network.heal()
        for machine in self.machines.values():
            machine.is_crash_armed = False
            machine.resume()
            if machine.directory.disk is not None:
                machine.directory.disk.heal()
            machine.start()
        for process in self.running:
            process.application.is_hurried = True
        began_ms = self.timeline.now_ms
        self.timeline.run(began_ms + HEALING_MS, self._has_recovered)
        for process in self.running:
            self.workload.check_ended(process)
            process.dialogue.check_answered(self.timeline.now_ms)
        may_be_stuck = self.plan.is_beyond_atlas or self._is_led_in_former_epoch()
        if not self._has_recovered() and not may_be_stuck:
            raise ViolationError("recovery", f"after {HEALING_MS} ms without faults: {self._description()}")
        healed_ms = self.timeline.now_ms - began_ms
        if self.plan.autopilot_look_ms and not may_be_stuck:
            self._settle_voters()
        return healed_ms

    def _is_led_in_former_epoch(self) -> bool:
        """Whether a leader is in an earlier epoch than damage has invented: as in Kafka, observers cannot tell it."""
        roles = [each.raft.role for each in self.running]
        return any(isinstance(each, Leader) and each.epoch < self.witness.invented_epoch for each in roles)

    def _settle_voters(self) -> None:
        """Let autopilots do what is left to do, without clients."""
        self._is_settling = True
        self.timeline.run(self.timeline.now_ms + SETTLING_MS, self._autopilots.has_settled)
        if not self._autopilots.has_settled():
            raise ViolationError("autopilot-settles", f"after {SETTLING_MS} ms: {self._autopilots.description()}")

    def _has_recovered(self) -> bool:
        """Whether a fresh write is acknowledged, there is one leader, logs are equal, and listeners know all of it.

        An upgrade of kraft.version that the operator has asked for is done, too, unless a voter has lost something: it
        then tells the leader nothing of itself, which the upgrade needs.
        """
        if self._fresh is None or self._fresh.told is not Told.OK:
            if self._fresh is not None and self._fresh.told is not Told.NOTHING:
                self._fresh = None
            return False
        ledgers = [each.directory.ledger for each in self.machines.values() if not each.directory.ledger.is_refused]
        leaders = [each for each in self.running if isinstance(each.raft.role, Leader)]
        end_offset, start_offset = ledgers[0].end_offset, max(each.start_offset for each in ledgers)
        is_upgrade_left = self.plan.upgrade_ms > 0 and self._kraft_version == 0
        is_hindered = any(each.directory.ledger.needs_others for each in self.machines.values())
        if any(each.is_quarantined for each in ledgers) or (is_upgrade_left and not is_hindered):
            return False
        is_level = all(each.durable_end == end_offset == each.end_offset == each.high_watermark for each in ledgers)
        if len(leaders) != 1 or not is_level:
            return False
        known = ledgers[0].batches[ledgers[0].index_of(start_offset) :]
        if any(each.batches[each.index_of(start_offset) :] != known for each in ledgers):
            return False
        epoch, leader_id = leaders[0].raft.role.epoch, leaders[0].directory.identity.key.id
        applications, end_offset = [each.application for each in self.running], self._fresh.last_offset + 1
        return all(each.knows_leader(epoch, leader_id) and each.has_read(end_offset) for each in applications)

    def _description(self) -> str:
        return "; ".join(
            f"{each.id}: {each.process.raft.role if each.process else None}, log end {each.directory.ledger.end_offset}"
            for each in self.machines.values()
        )
