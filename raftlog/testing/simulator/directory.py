# SPDX-License-Identifier: Apache-2.0
"""What survives a crash of a simulated replica: its log and its election state, with the ledger of the witness."""

from typing import Any

from raftlog.disk_work import DiskResult, DiskStep, DiskWork
from raftlog.errors import LogDirectoryError
from raftlog.invariants import present
from raftlog.log.retention import Retention
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.snapshot.paths import BOOTSTRAP_SNAPSHOT_ID
from raftlog.snapshot.writer import RecordsSnapshotWriter
from raftlog.testing.simulator.checks.disk_witness import DiskWitness
from raftlog.testing.simulator.checks.ledger import Ledger
from raftlog.testing.simulator.simulated_log import SimulatedLog
from raftlog.voters.kraft_version import KRaftVersion
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


class Directory:
    """What survives a crash of a replica.

    Args:
        witness: to be told of all that is done to the directory.
        identity: of the replica.
        voters: the first ones.
        retention: what cleaning keeps.
        kraft_version: the first one. At 0 the voters are static: no snapshot names them.

    Attributes:
        static_voters: without their directory ids; none at kraft.version 1.
        identity: of the replica.
        witness: watches the directory.
        ledger: what the witness knows of this directory, with the durable election state.
        log: the log.
        election_state: the election state.
    """

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
        self.static_voters = VoterSet()
        if kraft_version:
            self._write_bootstrap(voters)
        else:
            addresses = {
                each.voter_key.id: present(each.listeners.address(identity.listener), "an address")
                for each in voters.voters.values()
            }
            self.static_voters = VoterSet.from_inet_addresses(identity.listener, addresses)

    def _write_bootstrap(self, voters: VoterSet) -> None:
        """Write the snapshot that names the first voters."""
        raw = self.log.create_snapshot_unchecked(BOOTSTRAP_SNAPSHOT_ID)
        assert raw is not None
        level = KRaftVersion.KRAFT_VERSION_1
        with RecordsSnapshotWriter(
            raw, 0, last_contained_log_timestamp=0, kraft_version=level, voter_set=voters
        ) as writer:
            writer.freeze(0)

    def end_work(self) -> None:
        """Finish the work that was run, and forget the work that was not, because the process has ended."""
        self.election_state.end_work()
        self.log.end_work()
