# SPDX-License-Identifier: Apache-2.0
"""What an operator asks for: new voters, as ``kafka-storage format`` takes them, and the voters that are given up."""

import re
from collections.abc import Iterable, Sequence
from typing import Final, Self

import attrs

from raftlog.errors import RepairRefusedError
from raftlog.records.messages.voters import voters_problem, voters_record
from raftlog.tools.repair.voter_rewrite import PlannedVoter
from raftlog.uuid_text import uuid_from_text, uuid_to_text
from raftlog.voters.controller_quorum_voters import parse_controller_quorum_voters
from raftlog.voters.voter_set import DynamicVoter, HostPort, ReplicaKey, VoterSet

_RESERVED_DIRECTORY_IDS: Final = 100
"""The first uuids stand for unknown, lost or unassigned directories."""
_HOST: Final = re.compile(r"[0-9A-Za-z.:%_-]+")
"""Of ``controller.quorum.bootstrap.servers``. Source: Utils#HOST_PORT_PATTERN."""
_LISTENER: Final = re.compile("[^,\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_WITH_DIRECTORY: Final = re.compile(r"[0-9]+@(?:\[[^\]]*\]|[^:\[\],]*):[0-9]*:.*", re.DOTALL)


@attrs.frozen
class LostVoter:
    """A voter that the operator gives up.

    Attributes:
        id: its node id.
        key: with the directory id, if that was given.
    """

    id: int
    key: ReplicaKey | None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``ID`` or ``ID:DIRECTORY_ID``.

        Raises:
            ValueError: it is of neither form.
        """
        id_text, colon, directory = text.strip().partition(":")
        if re.fullmatch(r"[0-9]{1,10}", id_text) is None or int(id_text) >= 1 << 31:
            raise ValueError(f"--lost: not a voter like 2 or 2:AQIDBAUGBwgJCgsMDQ4PEA: {text[:80]!r}")
        try:
            key = ReplicaKey(int(id_text), uuid_from_text(directory)) if colon else None
        except ValueError as error:
            raise ValueError(f"--lost {text[:80]!r}: {error}") from None
        return cls(int(id_text), key)

    def names(self, key: ReplicaKey) -> bool:
        """Whether it names a voter."""
        return self.id == key.id if self.key is None else self.key == key

    def __str__(self) -> str:
        return str(self.id) if self.key is None else str(self.key)


def parse_lost(texts: Iterable[str]) -> list[LostVoter]:
    """Read what follows each ``--lost``: a voter, or several with commas between them.

    Raises:
        ValueError: one is not well formed.
    """
    return [LostVoter.parse(part) for text in texts for part in text.split(",")]


def parse_new_voters(text: str, listener: str, *, is_static: bool) -> tuple[PlannedVoter, ...]:
    """Read the new voters.

    Args:
        text: ``ID@HOST:PORT:DIRECTORY-ID,…``; at kraft.version 0 ``ID@HOST:PORT,…``.
        listener: name of the controllers' listener.
        is_static: whether the quorum is of kraft.version 0.

    Raises:
        ValueError: one is not well formed, has no address, or a reserved directory id; or no configuration of Kafka
            can name the listener.
        VoterSetError: two have one id.

    Source: KIP-853; DynamicVoters#parse.
    """
    _check_listener(listener)
    if is_static:
        return _static_voters(text, listener)
    voters = [DynamicVoter.parse(part) for part in text.split(",")]
    for voter in voters:
        _check_address(voter.voter_key.id, voter.address)
        directory_id = voter.voter_key.directory_id
        if directory_id is None or directory_id.int < _RESERVED_DIRECTORY_IDS:
            raise ValueError(f"voter {voter.voter_key.id} has a reserved directory id: {voter}")
    problem = voters_problem(voters_record(VoterSet.of(voter.to_voter_node(listener) for voter in voters)))
    if problem is not None:
        raise ValueError(problem)
    return _in_order(
        PlannedVoter(
            voter.voter_key.id,
            None if voter.voter_key.directory_id is None else uuid_to_text(voter.voter_key.directory_id),
            listener,
            *voter.address,
        )
        for voter in voters
    )


def _static_voters(text: str, listener: str) -> tuple[PlannedVoter, ...]:
    for part in text.split(","):
        if _WITH_DIRECTORY.fullmatch(part.strip()):
            raise ValueError(
                "the log is of kraft.version 0, whose voters have no directory ids:"
                f" give ID@HOST:PORT, not {part[:80]!r}"
            )
    found = []
    for voter_id, address in parse_controller_quorum_voters(text).items():
        if address is None:
            raise ValueError(f"voter {voter_id} has no address")
        _check_address(voter_id, address)
        found.append(PlannedVoter(voter_id, None, listener, *address))
    if not found:
        raise ValueError("--initial-controllers names no voter")
    return _in_order(found)


def _check_listener(name: str) -> None:
    """Check that a configuration can name a listener.

    ``listeners`` and ``controller.listener.names`` are lists with commas, whose blanks around names do not count, and a
    name goes up to ``://``, without an end of a line. Other characters are allowed, such as a blank inside.

    Source: SocketServerConfigs#listenerListToEndPoints, ConfigDef#parseType, ListenerName#normalised.
    """
    if not name.strip():
        raise ValueError("--listener: the name is blank")
    if _LISTENER.fullmatch(name) is None or name != name.strip():
        raise ValueError(
            f"--listener: no configuration of Kafka can name a listener {name[:80]!r}: a name has no comma, no control"
            " character, and no blank at its ends"
        )


def _check_address(voter_id: int, address: HostPort) -> None:
    if not address.host.strip() or address.port == 0:
        raise ValueError(f"voter {voter_id} has no host or no port, and others must find it")
    if _HOST.fullmatch(address.host) is None:
        raise ValueError(f"voter {voter_id}: Kafka's configuration takes no host {address.host[:80]!r}")


def _in_order(voters: Iterable[PlannedVoter]) -> tuple[PlannedVoter, ...]:
    return tuple(sorted(voters, key=lambda voter: voter.id))


def check_given_up(before: Iterable[ReplicaKey], new: Iterable[ReplicaKey], lost: Sequence[LostVoter]) -> None:
    """Check that the operator names every voter that is given up, and nobody else.

    Args:
        before: the last voters; without directory ids at kraft.version 0.
        new: the new ones, likewise.
        lost: what the operator has named.

    Raises:
        RepairRefusedError: a voter is given up and not named.
        ValueError: one is named that is no voter, or stays one.
    """
    voters, kept = sorted(set(before)), set(new)
    for each in lost:
        named = [key for key in voters if each.names(key)]
        if not named:
            raise ValueError(f"--lost {each}: that is none of the last voters, {_names(voters)}")
        if named[0] in kept:
            raise ValueError(f"--lost {each}: that is one of the new voters too")
    missing = [key for key in voters if key not in kept and not any(each.names(key) for each in lost)]
    if missing:
        options = " ".join(f"--lost {key}" for key in missing)
        raise RepairRefusedError(
            f"this gives up {_voters_text(missing)} for good: records that no other node has are lost, and"
            f" {'its disk' if len(missing) == 1 else 'their disks'} must never start again. If that is what you want,"
            f" say {options}"
        )


def _voters_text(keys: Sequence[ReplicaKey]) -> str:
    return f"voter{'' if len(keys) == 1 else 's'} {_names(keys)}"


def _names(keys: Iterable[ReplicaKey]) -> str:
    return ", ".join(map(str, keys))
