# SPDX-License-Identifier: Apache-2.0
"""Parses static voters: the value of ``controller.quorum.voters``, such as ``1@host:9093,2@[fe80::1]:9093``.

Source: QuorumConfig#parseVoterConnections, Utils#getHost, Utils#getPort.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from raftlog.errors import QuorumVotersError
from raftlog.voters.voter_set import HostPort, VoterSet

UNKNOWN_HOST: Final = "0.0.0.0"  # noqa: S104 - nothing is bound to it
"""Means that the address is not known."""

_HOST: Final = re.compile(r"\[[0-9A-Za-z:.%_-]+\]|[0-9A-Za-z.%_-]+")
_MOST_ID: Final = 2**31 - 1
_MOST_PORT: Final = 65535


def parse_controller_quorum_voters(text: str) -> dict[int, HostPort | None]:
    """Read the value of ``controller.quorum.voters``.

    Blanks around an entry are ignored. Host names are not resolved.

    Args:
        text: entries ``ID@HOST:PORT``, separated by commas; an IPv6 host in brackets. A blank text means no voters.

    Returns:
        The address of each voter by its id, in the order of the text; None if the host is 0.0.0.0, which means that
        it is not known.

    Raises:
        QuorumVotersError: an entry is not of that form, a number is out of range, or an id occurs twice.

    Source: QuorumConfig#parseVoterConnections. Differs: Kafka resolves the host, takes the last of two entries of one
    id, and treats an empty host as its own.
    """
    addresses: dict[int, HostPort | None] = {}
    for position, entry in _entries(text):
        voter_id, address = _parse_entry(text, position, entry)
        if voter_id in addresses:
            raise QuorumVotersError(text, position, f"voter {voter_id} is there twice")
        addresses[voter_id] = address
    return addresses


def static_voter_set(text: str, listener: str) -> VoterSet:
    """Return the voter set of a value of ``controller.quorum.voters``; an empty one if it is blank.

    Args:
        text: as for ``parse_controller_quorum_voters``.
        listener: name of the controllers' listener, the first of ``controller.listener.names``.

    Raises:
        QuorumVotersError: as for ``parse_controller_quorum_voters``.
        ValueError: the listener name is blank.
    """
    addresses: Mapping[int, HostPort | None] = parse_controller_quorum_voters(text)
    return VoterSet.from_inet_addresses(listener, addresses)


def _entries(text: str) -> Iterator[tuple[int, str]]:
    """Yield the position of each entry's first nonblank character, and the entry."""
    if not text.strip():
        return
    start = 0
    for piece in text.split(","):
        entry = piece.strip()
        yield start + len(piece) - len(piece.lstrip()), entry
        start += len(piece) + 1


def _parse_entry(text: str, position: int, entry: str) -> tuple[int, HostPort | None]:
    id_text, mark, address = entry.partition("@")
    voter_id = _number(text, position, id_text, "a node id", _MOST_ID)
    if not mark:
        raise QuorumVotersError(text, position + len(id_text), "no @ after the node id")
    host, _, port_text = address.rpartition(":")
    host_position = position + len(id_text) + 1
    if not _HOST.fullmatch(host):
        raise QuorumVotersError(text, host_position, f"{host[:80]!r} is not a host, followed by a colon and a port")
    port = _number(text, host_position + len(host) + 1, port_text, "a port", _MOST_PORT)
    return voter_id, None if host == UNKNOWN_HOST else HostPort(host.strip("[]"), port)


def _number(text: str, position: int, digits: str, what: str, most: int) -> int:
    """Parse a number of ASCII digits, at most ``most``."""
    if re.fullmatch(r"[0-9]{1,10}", digits) is None or int(digits) > most:
        raise QuorumVotersError(text, position, f"{digits[:20]!r} is not {what} from 0 to {most}")
    return int(digits)
