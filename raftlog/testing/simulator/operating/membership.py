# SPDX-License-Identifier: Apache-2.0
"""An operator that adds and removes voters, and replaces disks, also that of a voter that has lost its own."""

from collections.abc import Callable, Sequence
from typing import Final

from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.records.messages.raft.endpoints import Listener
from raftlog.records.messages.raft.voter_messages import AddRaftVoterRequest, RemoveRaftVoterRequest
from raftlog.testing.simulator.checks.ledger import Ledger
from raftlog.testing.simulator.choices import Choices
from raftlog.testing.simulator.disks.directory import Directory
from raftlog.testing.simulator.machine import Machine
from raftlog.testing.simulator.replica_process import ReplicaProcess
from raftlog.uuid_text import ZERO_UUID
from raftlog.voters.voter_set import ReplicaKey

_TIMEOUT_MS: Final = 1000
_ADDITION_MS: Final = 15_000
"""So long after a request to add a replica, its disk is not replaced: a leader may still write its old directory id."""
_LEAST_VOTERS: Final = 1
"""With so many voters, the operator removes none."""


class Membership:
    """The operator.

    Args:
        machines: all of them, by id.
        choices: makes all choices.
        make_directory: makes an empty directory with a new id, for a replica.
    """

    def __init__(
        self, machines: dict[int, Machine], choices: Choices, make_directory: Callable[[int], Directory]
    ) -> None:
        self._machines = machines
        self._choices = choices
        self._make_directory = make_directory
        self._added_ms: dict[int, int] = {}

    def change(self, leader: ReplicaProcess, now_ms: int) -> AddRaftVoterRequest | RemoveRaftVoterRequest | None:
        """Ask a replica that believes to lead to add a voter, or to remove one, and return what was asked, if anything.

        The last voter remains.

        While a disk has lost records, none is removed: the others must suffice for an election. Only a voter that votes
        no more may be, because its disk is gone or has lost the election state: its replica can be added again, with
        another directory.

        With Kafka's rules, the removal of one of two may leave its record on one disk only, that of the removed
        replica. It is no voter, and the other one needs its vote and cannot get it, because its log is shorter. Neither
        is elected any more. The core does not let it come to that (decision 66), so the operator may ask for it.
        """
        in_force = leader.directory.ledger.voter_sets[-1].keys
        others = [each for each in self._machines.values() if _may_be_added(each, in_force)]
        request: AddRaftVoterRequest | RemoveRaftVoterRequest
        able = {each.key for each in self._ledgers if not each.is_vote_lost}
        dead = sorted(in_force - able)
        may_remove = len(in_force) > _LEAST_VOTERS and not self._has_damage
        if dead and self._choices.happens(0.7, "removal-of-dead"):
            request = removal(self._choices.pick(dead, "removed"))
        elif may_remove and (not others or self._choices.happens(0.5, "removal")):
            request = removal(self._choices.pick(sorted(in_force), "removed"))
        elif others:
            added = self._choices.pick(others, "added")
            self.note_addition(added.id, now_ms)
            request = addition(added.directory.identity)
        else:
            return None
        machine = self._machines[leader.directory.identity.key.id]
        machine.ask(leader, request)
        machine.settle()
        return request

    def note_addition(self, replica_id: int, now_ms: int) -> None:
        """Note that a leader is asked to add a replica."""
        self._added_ms[replica_id] = now_ms

    def may_damage(self, machine: Machine, committed_end: int, now_ms: int) -> bool:
        """Whether a disk may be damaged, so that the other voters suffice for all that is to come: the atlas of faults.

        No disk is damaged, and no change of the voters is under way: its record may be on that disk and on one
        of a replica that it removes. And the replica is a voter only where two others are, or is no voter, and is not
        being added. A replica in quarantine does not vote; with fewer than two others no leader could be elected from
        which it could fetch what it has lost.

        Args:
            machine: of the disk.
            committed_end: of what is committed, exclusive.
            now_ms: the present time.
        """
        key, ledgers = machine.directory.identity.key, self._ledgers
        last_sets = [each.voter_sets[-1] for each in ledgers]
        is_settled = all(each.offset < committed_end for each in last_sets)
        is_needed = any(key in each.keys and len(each.keys) < 3 for each in last_sets)
        is_voter = all(key in each.keys for each in last_sets)
        is_safe = is_settled and not is_needed and not self._has_damage
        return is_safe and (is_voter or not self._is_being_added(machine, now_ms))

    @property
    def is_majority_lost(self) -> bool:
        """Whether the disks of so many voters of a last voter set are damaged that the others are no majority."""
        sound = {each.key for each in self._ledgers if not each.needs_others}
        voter_sets = [each.voter_sets[-1].keys for each in self._ledgers]
        return any(keys and 2 * len(keys & sound) <= len(keys) for keys in voter_sets)

    @property
    def _ledgers(self) -> list[Ledger]:
        return [each.directory.ledger for each in self._machines.values()]

    @property
    def _has_damage(self) -> bool:
        """Whether the disk of any replica is damaged, or may soon seem to be, or that of a voter is gone."""
        directories = [each.directory for each in self._machines.values()]
        there = {each.identity.key for each in directories}
        return any(
            each.ledger.needs_others or each.is_suspect or not each.ledger.voter_sets[-1].keys <= there
            for each in directories
        )

    def _is_being_added(self, machine: Machine, now_ms: int) -> bool:
        return now_ms - self._added_ms.get(machine.id, -_ADDITION_MS) < _ADDITION_MS

    def replace_disk(self, now_ms: int) -> None:
        """Replace the disk of a replica that is a voter in no log, and is not being added, if there is one.

        Its peers may still take it for their leader (DECISIONS.md 67).
        """
        voters = {key for each in self._ledgers for key in each.voter_sets[-1].keys}
        others = [
            each
            for each in self._machines.values()
            if each.directory.identity.key not in voters and not self._is_being_added(each, now_ms)
        ]
        self._replace_one(others, "replaced")

    def lose_disk(self, committed_end: int, now_ms: int) -> Machine | None:
        """Replace the disk of a voter, and return its machine, if there is one that the others can do without.

        Its replica has another directory then, and is no voter any more. The voter that it was is in force until the
        operator removes it, and answers nobody.

        Args:
            committed_end: of what is committed, exclusive.
            now_ms: the present time.
        """
        in_force = [each.voter_sets[-1].keys for each in self._ledgers]
        spare = [
            each
            for each in self._machines.values()
            if all(each.directory.identity.key in keys for keys in in_force)
            and self.may_damage(each, committed_end, now_ms)
        ]
        return self._replace_one(spare, "disk-lost")

    def _replace_one(self, machines: Sequence[Machine], kind: str) -> Machine | None:
        """Give one of some machines an empty disk, and return it; None if there are none."""
        if not machines:
            return None
        machine = self._choices.pick(machines, kind)
        machine.replace_disk(self._make_directory(machine.id))
        return machine


def _may_be_added(machine: Machine, voters: frozenset[ReplicaKey]) -> bool:
    ledger = machine.directory.ledger
    return ledger.key not in voters and not ledger.needs_others


def removal(key: ReplicaKey) -> RemoveRaftVoterRequest:
    """Return the request to remove a voter."""
    return RemoveRaftVoterRequest(cluster_id=None, voter_id=key.id, voter_directory_id=key.directory_id or ZERO_UUID)


def addition(identity: ReplicaIdentity) -> AddRaftVoterRequest:
    """Return the request to add a replica as a voter."""
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
