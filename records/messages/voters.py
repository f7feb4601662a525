# SPDX-License-Identifier: Apache-2.0
"""Converts voter sets between VoterSet and VotersRecord.

Source: VoterSet#toVotersRecord, VoterSet#fromVotersRecord.
"""

from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

from raftlog.errors import InvalidRecordError
from raftlog.records.messages.control import VotersRecord, VotersRecordEndpoint, VotersRecordVoter
from raftlog.uuid_text import uuid_to_text
from raftlog.voters.voter_set import Endpoints, ReplicaKey, SupportedVersionRange, VoterNode, VoterSet

T = TypeVar("T")


def voters_record(voters: VoterSet) -> VotersRecord:
    """Return the record for a voter set, with its voters in the order of their ids."""
    return VotersRecord(tuple(_record_voter(node) for node in voters.voters.values()))


def voter_set(record: VotersRecord) -> VoterSet:
    """Return the voter set that a record names.

    Listener names are converted to upper case. If several voters have the same id, or several endpoints the same name,
    the last one wins. Unknown tagged fields are not part of a voter set.

    Raises:
        InvalidRecordError: a listener has no name, or a range of supported versions is invalid.
    """
    by_id = {voter.id: _node(voter) for voter in record.voters}
    return VoterSet.of(by_id.values())


def voters_problem(record: VotersRecord) -> str | None:
    """Describe why a record's voter set should not be written; None if it may. ``voter_set`` accepts more."""
    if not record.voters:
        return "a voter set without voters"
    for negative in (voter.id for voter in record.voters if voter.id < 0):
        return f"voter {negative} has a negative id"
    for twice in _repeated(voter.id for voter in record.voters):
        return f"voter {twice} is there twice"
    for directory_id in _repeated(voter.directory_id for voter in record.voters if voter.directory_id):
        return f"two voters have directory {uuid_to_text(directory_id)}"
    for voter in record.voters:
        for name in _repeated(endpoint.name.upper() for endpoint in voter.endpoints):
            return f"voter {voter.id} has listener {name} twice"
    try:
        voter_set(record)
    except InvalidRecordError as error:
        return error.reason
    return None


def _repeated(values: Iterable[T]) -> list[T]:
    return [value for value, count in Counter(values).items() if count > 1]


def _record_voter(node: VoterNode) -> VotersRecordVoter:
    endpoints = node.listeners.listeners.items()
    return VotersRecordVoter(
        node.voter_key.id,
        node.voter_key.directory_id,
        tuple(VotersRecordEndpoint(name, address.host, address.port) for name, address in endpoints),
        node.supported_kraft_versions.minimum,
        node.supported_kraft_versions.maximum,
    )


def _node(voter: VotersRecordVoter) -> VoterNode:
    listeners = {endpoint.name.upper(): (endpoint.host, endpoint.port) for endpoint in voter.endpoints}
    try:
        return VoterNode(
            ReplicaKey(voter.id, voter.directory_id),
            Endpoints.of(listeners),
            SupportedVersionRange(voter.min_supported_version, voter.max_supported_version),
        )
    except ValueError as error:
        raise InvalidRecordError(f"voter {voter.id} of a VotersRecord: {error}", "control-value") from error
