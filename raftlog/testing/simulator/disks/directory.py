# SPDX-License-Identifier: Apache-2.0
"""What survives a crash of a simulated replica, as its machine sees it."""

from collections.abc import Callable, Iterable
from typing import Protocol

from raftlog.invariants import present
from raftlog.log.replicated_log import ReplicatedLog
from raftlog.quorum.driving.ports import ElectionStateStore
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.snapshot.paths import BOOTSTRAP_SNAPSHOT_ID
from raftlog.snapshot.writer import RecordsSnapshotWriter
from raftlog.testing.simulator.checks.disk_witness import DiskWitness
from raftlog.testing.simulator.checks.ledger import Ledger
from raftlog.testing.simulator.choices import Choices
from raftlog.testing.simulator.disks.simulated_disk import SimulatedDisk
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import VoterSet

DiskJob = Callable[[], object]
"""A piece of work for the disk, which makes something durable when it is called."""


class Directory(Protocol):
    """A log with its election state, and the ledger of the witness.

    Attributes:
        identity: of the replica.
        witness: watches the directory.
        ledger: what the witness knows of this directory.
        static_voters: without their directory ids; none at kraft.version 1.
        log: the log, as the last open found it.
        election_state: the election state.
    """

    identity: ReplicaIdentity
    witness: DiskWitness
    ledger: Ledger
    static_voters: VoterSet

    @property
    def log(self) -> ReplicatedLog:
        """The log, as the last open found it."""
        ...

    @property
    def election_state(self) -> ElectionStateStore:
        """The election state, as the last open found it."""
        ...

    @property
    def disk(self) -> SimulatedDisk | None:
        """The disk, whose operations can be made to fail; None if the directory is a model, without operations."""
        ...

    @property
    def has_failed(self) -> bool:
        """Whether an injected fault has made the disk fail since the last open, so that a process may stop for it."""
        ...

    @property
    def was_damaged(self) -> bool:
        """Whether what is durable ever was damaged, so that the directory may be refused."""
        ...

    @property
    def is_suspect(self) -> bool:
        """Whether what the disk has, or will return once, may be wrong, and no open has found out yet."""
        ...

    def open(self) -> str | None:
        """Open the log for a process, unless it is open; return why it cannot be, or None."""
        ...

    def crash(self, choices: Choices, jobs: Iterable[DiskJob], may_damage: Callable[[], bool]) -> int:
        """Crash the machine: lose what is not durable, and return how many batches were lost.

        Args:
            choices: decide what is lost.
            jobs: under way; the disk may have done them, without the process being told.
            may_damage: whether this disk may be damaged so that its replica needs the others' help.
        """
        ...

    def exit(self, choices: Choices, jobs: Iterable[DiskJob]) -> None:
        """End the process, not the machine: what is written, though not durable, is still there."""
        ...

    def damage(self, choices: Choices) -> str | None:
        """Damage what is durable, and open the log again; return what was done, None if there is nothing to damage."""
        ...


def write_bootstrap(log: ReplicatedLog, voters: VoterSet) -> None:
    """Write the snapshot that names the first voters."""
    raw = present(log.create_snapshot_unchecked(BOOTSTRAP_SNAPSHOT_ID), "a new snapshot")
    level = KRaftVersion.KRAFT_VERSION_1
    with RecordsSnapshotWriter(raw, 0, last_contained_log_timestamp=0, kraft_version=level, voter_set=voters) as writer:
        writer.freeze(0)


def static_voters_of(identity: ReplicaIdentity, voters: VoterSet) -> VoterSet:
    """Return voters as a configuration names them at kraft.version 0: without their directory ids."""
    addresses = {
        each.voter_key.id: present(each.listeners.address(identity.listener), "an address")
        for each in voters.voters.values()
    }
    return VoterSet.from_inet_addresses(identity.listener, addresses)
