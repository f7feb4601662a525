# SPDX-License-Identifier: Apache-2.0
"""A simulation whose faults happen when they are asked for, step by step: by a test, or by rules of Hypothesis."""

from raftlog.testing.simulator.applications.checked_machine import MachineKind
from raftlog.testing.simulator.choices import Choices
from raftlog.testing.simulator.fault_plan import FaultPlan
from raftlog.testing.simulator.machine import Machine
from raftlog.testing.simulator.replica_process import ReplicaProcess
from raftlog.testing.simulator.simulation import Simulation


def calm_plan(voters: int, observers: int, *, is_on_files: bool = False) -> FaultPlan:
    """Return a plan without faults of its own, whose logs are cleaned as soon as snapshots are written."""
    return FaultPlan(
        voters=voters,
        observers=observers,
        delay_ms=3.0,
        is_delay_even=True,
        loss=0.0,
        duplication=0.0,
        cut_interval_ms=0,
        is_cut_one_way=False,
        crash_interval_ms=0,
        armed_crashes=0.0,
        rot=0.0,
        pause_interval_ms=0,
        change_interval_ms=1,  # Observers know the voters, so that they can be added.
        kraft_version=1,
        upgrade_ms=0,
        clock_error_ppm=0,
        sync_ms=1.0,
        slow_sync=0.0,
        append_interval_ms=100,
        listeners=1,
        listener_delay_ms=5.0,
        snapshot_interval=0,
        retention_bytes=0,
        do_voters_ask_bootstrap=False,
        is_on_files=is_on_files,
    )


class SteppedSimulation(Simulation):
    """A simulation whose processes run at once, and in which nothing happens between the steps.

    Args:
        choices: all that may go in more than one way.
        plan: should have no faults.
        kind: of the state machines.

    Raises:
        ViolationError: from every method: an invariant does not hold.
    """

    def __init__(self, choices: Choices, plan: FaultPlan, kind: MachineKind) -> None:
        super().__init__(choices, plan, kind)
        for machine in self.machines.values():
            machine.start()

    def crashed(self, machine: Machine, process: ReplicaProcess) -> None:
        """Leave the clients without an answer. The machine is started when that is asked for."""
        self.workload.crashed(process)

    def pass_time(self, time_ms: int) -> None:
        """Let virtual time pass, and all happen that is due."""
        self.timeline.run(self.timeline.now_ms + time_ms)

    def append(self) -> None:
        """Append some commands at a replica that believes to lead, if there is one."""
        leader = self.workload.leader_among(self.running)
        if leader is not None:
            self.workload.append(leader)
            self._settle(leader)

    def read(self) -> None:
        """Begin a read at a replica that believes to lead, if there is one."""
        leader = self.workload.leader_among(self.running)
        if leader is not None:
            self.workload.read(leader, self.witness.known_end, self.timeline.event_count)
            self._settle(leader)

    def change_voters(self) -> None:
        """Ask a replica that believes to lead to add a voter, or to remove one."""
        leader = self.workload.leader_among(self.running)
        if leader is not None:
            self._membership.change(leader, self.timeline.now_ms)

    def snapshot(self, replica_id: int) -> None:
        """Have the state machine of a replica write a snapshot, if it runs and has read anything since the last one."""
        machine = self.machines[replica_id]
        if machine.process is not None:
            machine.process.application.begin_snapshot()
            machine.settle()

    def recover(self) -> int:
        """End all faults, and return how long the quorum took to recover, in ms. No step comes after this one."""
        self._append()
        return self._heal()

    def _settle(self, leader: ReplicaProcess) -> None:
        self.machines[leader.directory.identity.key.id].settle()
