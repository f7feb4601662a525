# SPDX-License-Identifier: Apache-2.0
"""Immutable voter sets, and the two predicates about replacing one by another.

Nothing here knows a wire format; ``raftlog.records.messages.voters`` turns a :class:`VoterSet` into a VotersRecord and
back.
"""

import functools
import itertools
import re
import types
import uuid
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Self

import attrs

from raftlog.errors import DuplicateVoterError, VoterNotFoundError
from raftlog.uuid_text import ZERO_UUID, uuid_from_text, uuid_to_text


def _none_if_zero(directory_id: uuid.UUID | None) -> uuid.UUID | None:
    return None if directory_id == ZERO_UUID else directory_id


def _signed_halves(value: uuid.UUID) -> tuple[int, int]:
    return (
        int.from_bytes(value.bytes[:8], "big", signed=True),
        int.from_bytes(value.bytes[8:], "big", signed=True),
    )


@functools.total_ordering
@attrs.frozen(cache_hash=True)
class ReplicaKey:
    """A replica: its node id and, unless it is unknown, the id of the directory that holds its log.

    The zero uuid is the same as no directory id. Ordered by id, then by directory id as two signed 64-bit halves, with
    an absent one as zero.

    Source: KIP-853; ReplicaKey.
    """

    id: int
    directory_id: uuid.UUID | None = attrs.field(default=None, converter=_none_if_zero)

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, ReplicaKey):
            return NotImplemented
        return self.order < other.order

    @functools.cached_property
    def order(self) -> tuple[int, tuple[int, int]]:
        """By which keys are compared: the id, and the two halves of the directory id."""
        return self.id, _signed_halves(self.directory_id or ZERO_UUID)

    def __str__(self) -> str:
        return str(self.id) if self.directory_id is None else f"{self.id}:{uuid_to_text(self.directory_id)}"


class HostPort(NamedTuple):
    """An address that has not been resolved."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def _check_port(port: int) -> int:
    if not 0 <= port <= 65535:
        raise ValueError(f"not a port: {port}")
    return port


@attrs.frozen(repr=False)
class Endpoints:
    """The addresses of a voter, by listener name in upper case. Equal when the mappings are equal.

    Make it with :meth:`of`. Iteration keeps the order in which the listeners were given, which encoders need.

    Source: Endpoints.
    """

    _items: tuple[tuple[str, HostPort], ...] = attrs.field(default=(), eq=frozenset)

    @classmethod
    def of(cls, listeners: Mapping[str, tuple[str, int]]) -> Self:
        """Make endpoints of listener names, in any case, and (host, port) pairs.

        Raises:
            ValueError: a name is blank, two names differ only in case, or a port is not in 0..65535.
        """
        by_name: dict[str, HostPort] = {}
        for given, (host, port) in listeners.items():
            name = given.upper()
            if not name.strip():
                raise ValueError("a listener name is blank")
            if name in by_name:
                raise ValueError(f"listener {name} is there twice")
            by_name[name] = HostPort(host, _check_port(port))
        return cls(tuple(by_name.items()))

    @functools.cached_property
    def listeners(self) -> Mapping[str, HostPort]:
        """The addresses by listener name, read-only."""
        return types.MappingProxyType(dict(self._items))

    def address(self, listener: str) -> HostPort | None:
        """Return the address of a listener, named in any case, or None."""
        return self.listeners.get(listener.upper())

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"Endpoints.of({ ({name: tuple(address) for name, address in self._items})!r})"


@attrs.frozen
class SupportedVersionRange:
    """The versions of a feature that a node supports, both ends inclusive.

    Raises:
        ValueError: not 0 <= minimum <= maximum.
    """

    minimum: int
    maximum: int

    def __attrs_post_init__(self) -> None:
        if not 0 <= self.minimum <= self.maximum:
            raise ValueError(f"not a version range: {self.minimum}..{self.maximum}")

    def contains(self, version: int) -> bool:
        """Return whether a version is supported."""
        return self.minimum <= version <= self.maximum


@attrs.frozen
class VoterNode:
    """One voter: its key, its addresses, and the levels of ``kraft.version`` that it supports."""

    voter_key: ReplicaKey
    listeners: Endpoints
    supported_kraft_versions: SupportedVersionRange

    def is_voter(self, key: ReplicaKey) -> bool:
        """Return whether a replica is this voter: the same id, and the same directory id unless this voter has none."""
        mine = self.voter_key
        if mine is key:
            return True
        return mine.id == key.id and (mine.directory_id is None or mine.directory_id == key.directory_id)


@attrs.frozen(repr=False)
class VoterSet:
    """The voters of a quorum by id: immutable, hashable, equal by value. An empty set means that no voters are known.

    Make it with :meth:`of`. Methods that change a set return a new one, or None if the change does not apply.

    Source: KIP-853; VoterSet.
    """

    _nodes: tuple[VoterNode, ...] = ()

    @classmethod
    def of(cls, nodes: Iterable[VoterNode]) -> Self:
        """Make a set of voters, given in any order.

        Raises:
            DuplicateVoterError: two of them have one id.
        """
        in_order = sorted(nodes, key=lambda node: node.voter_key.order)
        for one, other in itertools.pairwise(in_order):
            if one.voter_key.id == other.voter_key.id:
                raise DuplicateVoterError(f"voter {one.voter_key.id} is there twice")
        return cls(tuple(in_order))

    @classmethod
    def from_inet_addresses(cls, listener: str, addresses: Mapping[int, HostPort | None]) -> Self:
        """Make the set of static voters: without directory ids, supporting only kraft.version 0.

        Args:
            listener: name of the listener that has these addresses, in any case.
            addresses: by voter id; None if the address is not known, which leaves the voter without endpoints.

        Raises:
            ValueError: the listener name is blank, or a port is not in 0..65535.

        Source: VoterSet#fromInetSocketAddresses.
        """
        Endpoints.of({listener: (listener, 0)})  # Refuses a blank name, even if no voter has an address.
        return cls.of(
            VoterNode(
                ReplicaKey(voter_id),
                Endpoints() if address is None else Endpoints.of({listener: address}),
                SupportedVersionRange(0, 0),
            )
            for voter_id, address in addresses.items()
        )

    @functools.cached_property
    def voters(self) -> Mapping[int, VoterNode]:
        """The voters by id, in the order of their ids, read-only."""
        return types.MappingProxyType({node.voter_key.id: node for node in self._nodes})

    @functools.cached_property
    def voter_ids(self) -> frozenset[int]:
        """The ids of the voters."""
        return frozenset(self.voters)

    @functools.cached_property
    def voter_keys(self) -> frozenset[ReplicaKey]:
        """The keys of the voters, with their directory ids if these are known."""
        return frozenset(node.voter_key for node in self._nodes)

    @property
    def majority_size(self) -> int:
        """How many voters are a majority; 1 for the empty set, which therefore has no majority."""
        return len(self._nodes) // 2 + 1

    def listeners(self, voter_id: int) -> Endpoints:
        """Return the addresses of a voter: none if there is no such voter."""
        node = self.voters.get(voter_id)
        return node.listeners if node else Endpoints()

    def voter_nodes(self, voter_ids: Iterable[int], listener: str) -> dict[int, HostPort]:
        """Return the addresses of some voters at a listener, by id, in the given order.

        Args:
            voter_ids: of voters.
            listener: name of the listener, in any case.

        Raises:
            VoterNotFoundError: no voter has an id, or it has no address of that listener.

        Source: VoterSet#voterNodes.
        """
        found: dict[int, HostPort] = {}
        for voter_id in voter_ids:
            address = self.listeners(voter_id).address(listener)
            if address is None:
                raise VoterNotFoundError(f"no address of voter {voter_id} at listener {listener} in {self}")
            found[voter_id] = address
        return found

    def is_voter(self, key: ReplicaKey) -> bool:
        """Return whether a replica is a voter.

        A voter without a directory id is matched by its node id only. A voter with a directory id is not matched by a
        replica without one.

        Source: VoterSet#isVoter.
        """
        node = self.voters.get(key.id)
        return node is not None and node.is_voter(key)

    def is_only_voter(self, key: ReplicaKey) -> bool:
        """Return whether a replica is the only voter."""
        return len(self) == 1 and self.is_voter(key)

    def voter_node_needs_update(self, node: VoterNode) -> bool:
        """Return whether a node is a voter, but its entry here differs from the given one.

        Source: VoterSet#voterNodeNeedsUpdate.
        """
        return self.is_voter(node.voter_key) and self.voters[node.voter_key.id] != node

    def supports_version(self, level: int) -> bool:
        """Return whether every voter supports a level of ``kraft.version``."""
        return all(node.supported_kraft_versions.contains(level) for node in self._nodes)

    def add_voter(self, node: VoterNode) -> Self | None:
        """Return the set with one more voter, or None if its node id is in the set, with any directory id.

        Source: VoterSet#addVoter.
        """
        return None if node.voter_key.id in self.voters else self.of((*self._nodes, node))

    def remove_voter(self, key: ReplicaKey) -> Self | None:
        """Return the set without a voter; None if no voter has exactly this key, or it is the only one.

        Source: VoterSet#removeVoter.
        """
        if key not in self.voter_keys or len(self) == 1:
            return None
        return self.of(node for node in self._nodes if node.voter_key != key)

    def update_voter(self, node: VoterNode) -> Self | None:
        """Return the set with a voter's entry replaced, or None if :meth:`is_voter` does not hold for its key.

        Source: VoterSet#updateVoter.
        """
        return self._replace(node) if self.is_voter(node.voter_key) else None

    def update_voter_ignoring_directory_id(self, node: VoterNode) -> Self | None:
        """Return the set with a voter's entry replaced, or None if its node id is not in the set.

        Source: VoterSet#updateVoterIgnoringDirectoryId.
        """
        return self._replace(node) if node.voter_key.id in self.voters else None

    def _replace(self, node: VoterNode) -> Self:
        return self.of({**self.voters, node.voter_key.id: node}.values())

    def has_overlapping_majority(self, other: "VoterSet") -> bool:
        """Return whether every majority of this set shares a voter with every majority of the other.

        If so, it is safe to replace one set by the other: they cannot make conflicting decisions. Voters are compared
        with their directory ids, so a replaced disk counts as one voter removed and another one added.

        The formula: disjoint majorities first use the voters that only their own set has. Let a set have n voters, c of
        them common to both sets. Its smallest majority, n // 2 + 1 voters, then still needs ``n // 2 + 1 - (n - c)``
        common ones, or none if that is negative. Disjoint majorities exist exactly if the c common voters suffice for
        both needs, so the sets overlap exactly if the two needs together exceed c.

        The empty set has no majority, so the result is True with any other set. That is sound, because nothing can be
        elected or committed under the empty set.

        Differs: Kafka's method of this name is :meth:`passes_kafka_change_guard`.
        """
        common = len(self.voter_keys & other.voter_keys)
        return self._common_voters_needed(common) + other._common_voters_needed(common) > common  # noqa: SLF001

    def _common_voters_needed(self, common: int) -> int:
        return max(0, self.majority_size - (len(self) - common))

    def passes_kafka_change_guard(self, other: "VoterSet") -> bool:
        """Return whether Kafka would let the other set follow: at most one voter is removed, and at most one added.

        This does not guarantee safety: {1} may become {2}, and {1, 2, 3} may become {1, 2, 4}, with {1, 3} and {2, 4}
        as disjoint majorities. See :meth:`has_overlapping_majority`.

        Source: VoterSet#hasOverlappingMajority.
        """
        mine, theirs = self.voter_keys, other.voter_keys
        return len(mine - theirs) <= 1 and len(theirs - mine) <= 1

    def __len__(self) -> int:
        return len(self._nodes)

    def __str__(self) -> str:
        return "{" + ", ".join(str(node.voter_key) for node in self._nodes) + "}"

    def __repr__(self) -> str:
        return f"VoterSet.of({list(self._nodes)!r})"


_DYNAMIC_VOTER = re.compile(
    r"""(?P<id>[0-9]{1,10}) @ (?: \[(?P<bracketed>[^\]]*)\] | (?P<host>[^:\[][^:]*|) )
        : (?P<port>[0-9]{1,5}) : (?P<directory_id>.*)""",
    re.VERBOSE | re.DOTALL,
)


@attrs.frozen
class DynamicVoter:
    """A voter as Kafka's tools and configuration write it: ``<id>@<host>:<port>:<directory id>``.

    Source: KIP-853; DynamicVoter.
    """

    voter_key: ReplicaKey
    address: HostPort

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a voter. An IPv6 host must be in brackets; blanks around the text are ignored.

        Raises:
            ValueError: the text is not of that form, or a number is out of range.
        """
        match = _DYNAMIC_VOTER.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"not a voter like 1@host:9093:AQIDBAUGBwgJCgsMDQ4PEA: {text[:80]!r}")
        voter_id = int(match["id"])
        if voter_id > 2**31 - 1:
            raise ValueError(f"not a node id: {voter_id}")
        host = match["host"] if match["bracketed"] is None else match["bracketed"]
        address = HostPort(host, _check_port(int(match["port"])))
        return cls(ReplicaKey(voter_id, uuid_from_text(match["directory_id"])), address)

    def to_voter_node(self, listener: str) -> VoterNode:
        """Return the voter that Kafka would make of it: with one listener, and kraft.version 0 to 1.

        Raises:
            ValueError: the listener name is blank.
        """
        return VoterNode(self.voter_key, Endpoints.of({listener: self.address}), SupportedVersionRange(0, 1))

    def __str__(self) -> str:
        return f"{self.voter_key.id}@{self.address}:{uuid_to_text(self.voter_key.directory_id or ZERO_UUID)}"
