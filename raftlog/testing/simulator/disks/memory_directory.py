# SPDX-License-Identifier: Apache-2.0
"""The directory of a simulated replica in memory: a fast model of a log and of an election state."""

from collections.abc import Callable, Iterable
from typing import Any

from raftlog.disk_work import DiskResult, DiskStep, DiskWork
from raftlog.errors import LogDirectoryError
from raftlog.log.retention import Retention
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.testing.simulator.checks.disk_witness import DiskWitness
from raftlog.testing.simulator.checks.ledger import Ledger
from raftlog.testing.simulator.choices import Choices
from raftlog.testing.simulator.disks.directory import DiskJob, static_voters_of, write_bootstrap
from raftlog.testing.simulator.disks.simulated_log import SimulatedLog
from raftlog.voters.voter_set import VoterSet


class SimulatedElectionState:
    """An ``ElectionStateStore`` that tells a witness of each state as it becomes durable.

    Args:
        witness: to be told.
        ledger: of the directory, which has the state.
    """

    may_vote = True

    def __init__(self, witness: DiskWitness, ledger: Ledger) -> None:
        self._witness = witness
        self._ledger = ledger
        self._work: DiskWork[Any] | None = None

    @property
    def state(self) -> QuorumStateData | None:
        """The state that is durable; None before the first."""
        return self._ledger.state

    def prepare_write(self, state: QuorumStateData) -> DiskWork[DiskResult[QuorumStateData]]:
        """Prepare to make a state durable; it is as soon as the work is run."""
        step = DiskStep(lambda: self._witness.stored(self._ledger, state))
        self._work = work = DiskWork([step], lambda: DiskResult(state, state.leader_epoch))
        return work

    def end_work(self) -> None:
        """Forget the work that was not run, because the process has ended.

        Raises:
            ViolationError: what was made durable must not be.
        """
        if self._work is not None:
            self._work.end(LogDirectoryError("the process has ended"))
            self._work = None


class MemoryDirectory:
    """A ``Directory`` in memory, which is always open.

    Args:
        witness: to be told of all that is done to the directory.
        identity: of the replica.
        voters: the first ones.
        retention: what cleaning keeps.
        kraft_version: the first one. At 0 the voters are static: no snapshot names them.
    """

    disk = None
    has_failed = was_damaged = is_suspect = False

    def __init__(
        self,
        witness: DiskWitness,
        identity: ReplicaIdentity,
        voters: VoterSet,
        retention: Retention,
        kraft_version: int = 1,
    ) -> None:
        self.identity = identity
        self.witness = witness
        self.ledger: Ledger = witness.add(identity.key, voters.voter_keys, kraft_version)
        self.log = SimulatedLog(witness, self.ledger, retention)
        self.election_state = SimulatedElectionState(witness, self.ledger)
        self.static_voters = VoterSet() if kraft_version else static_voters_of(identity, voters)
        if kraft_version:
            write_bootstrap(self.log, voters)

    def open(self) -> str | None:
        """Do nothing: it is open."""

    def end_work(self) -> None:
        """Finish the work that was run, and forget the work that was not, because the process has ended."""
        self.election_state.end_work()
        self.log.end_work()

    def crash(self, choices: Choices, jobs: Iterable[DiskJob], may_damage: Callable[[], bool]) -> int:
        """Lose what is not durable, or only its last batches; return how many batches were lost."""
        replica_id = self.identity.key.id
        self._end(choices, jobs)
        unsynced = self.log.unsynced_batch_count
        is_some_kept = unsynced and choices.happens(0.2, "some-kept", replica_id)
        kept = choices.number(0, unsynced + 1, "kept-batches", replica_id) if is_some_kept else 0
        self.log.crash(kept)
        return unsynced - kept

    def exit(self, choices: Choices, jobs: Iterable[DiskJob]) -> None:
        """End the process; all that is in the log stays there."""
        self._end(choices, jobs)
        self.log.crash(self.log.unsynced_batch_count)

    def _end(self, choices: Choices, jobs: Iterable[DiskJob]) -> None:
        for job in jobs:
            if choices.happens(0.2, "work-done", self.identity.key.id):
                job()
        self.end_work()

    def damage(self, choices: Choices) -> str | None:
        """Lose the last batches, which were durable."""
        if not self.log.batch_count:
            return None
        count = min(self.log.batch_count, 1 + choices.time_ms(10, "rotten-batches", self.identity.key.id))
        self.log.rot(count)
        return f"loses {count} durable batches"
