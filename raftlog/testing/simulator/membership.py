# SPDX-License-Identifier: Apache-2.0
"""An operator that adds and removes voters, and replaces the disks of replicas that are no voters."""

from collections.abc import Callable
from typing import Final

from raftlog.quorum.seam.identity import ReceivedRequest
from raftlog.records.messages.raft.endpoints import Listener
from raftlog.records.messages.raft.voter_messages import AddRaftVoterRequest, RemoveRaftVoterRequest
from raftlog.testing.simulator.chance import Chance
from raftlog.testing.simulator.directory import Directory
from raftlog.testing.simulator.machine import ADMIN, Machine
from raftlog.testing.simulator.replica_process import ReplicaProcess
from raftlog.uuid_text import ZERO_UUID
from raftlog.voters.voter_set import ReplicaKey

_TIMEOUT_MS: Final = 1000
_ADDITION_MS: Final = 15_000
"""So long after a request to add a replica, its disk is not replaced: a leader may still write its old directory id."""
_LEAST_VOTERS: Final = 2
"""With so many voters, the operator removes none."""


class Membership:
    """The operator.

    Args:
        machines: all of them, by id.
        chance: chooses.
        make_directory: makes an empty directory with a new id, for a replica.
    """

    def __init__(
        self, machines: dict[int, Machine], chance: Chance, make_directory: Callable[[int], Directory]
    ) -> None:
        self._machines = machines
        self._chance = chance
        self._make_directory = make_directory
        self._added_ms: dict[int, int] = {}

    def change(self, leader: ReplicaProcess, now_ms: int) -> None:
        """Ask a replica that believes to lead to add a voter, or to remove one. Two voters remain at least.

        One of two must not be removed, because a crash may leave the record of that on one disk only: the disk of the
        replica that the record removes. That replica is no voter, and the other one needs its vote and cannot get it,
        because its log is shorter. Neither is elected any more. Kafka's rules allow that; the core does not (decision
        66), and the operator keeps to it.
        """
        identity = leader.directory.identity
        in_force = leader.directory.ledger.voter_sets[-1].keys
        others = [each for each in self._machines.values() if each.directory.identity.key not in in_force]
        request: AddRaftVoterRequest | RemoveRaftVoterRequest
        if len(in_force) > _LEAST_VOTERS and (not others or self._chance.random() < 0.5):
            request = _removal(self._chance.choice(sorted(in_force)))
        elif others:
            added = self._chance.choice(others)
            self._added_ms[added.id] = now_ms
            request = _addition(added)
        else:
            return
        leader.raft.receive_request(request, ReceivedRequest(ADMIN, 1, identity.listener))
        self._machines[identity.key.id].settle()

    def replace_disk(self, now_ms: int, recent_leaders: frozenset[int]) -> None:
        """Replace the disk of a replica that is a voter in no log, and is not being added, if there is one.

        Args:
            now_ms: the present time.
            recent_leaders: ids of replicas that peers may still take for the leader. With a new disk, such a replica
                would be told that it leads an epoch that it does not know, and halt (DECISIONS.md 54); so does Kafka's.
        """
        voters = {key for each in self._machines.values() for key in each.directory.ledger.voter_sets[-1].keys}
        told = recent_leaders | {each.directory.ledger.leader_id for each in self._machines.values()}
        others = [
            each
            for each in self._machines.values()
            if each.directory.identity.key not in voters
            and each.id not in told
            and now_ms - self._added_ms.get(each.id, -_ADDITION_MS) >= _ADDITION_MS
        ]
        if others:
            machine = self._chance.choice(others)
            machine.replace_disk(self._make_directory(machine.id))


def _removal(key: ReplicaKey) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(cluster_id=None, voter_id=key.id, voter_directory_id=key.directory_id or ZERO_UUID)


def _addition(machine: Machine) -> AddRaftVoterRequest:
    identity = machine.directory.identity
    return AddRaftVoterRequest(
        cluster_id=identity.cluster_id,
        timeout_ms=_TIMEOUT_MS,
        voter_id=identity.key.id,
        voter_directory_id=identity.key.directory_id or ZERO_UUID,
        listeners=tuple(
            Listener(name=name, host=address.host, port=address.port)
            for name, address in identity.endpoints.listeners.items()
        ),
    )
