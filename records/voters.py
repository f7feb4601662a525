# SPDX-License-Identifier: Apache-2.0
"""Voter sets on the wire: VoterSet to VotersRecord and back.

Source: VoterSet#toVotersRecord, VoterSet#fromVotersRecord.
"""

from raftlog.errors import InvalidRecordError
from raftlog.records.control import VotersRecord, VotersRecordEndpoint, VotersRecordVoter
from raftlog.voter_set import Endpoints, ReplicaKey, SupportedVersionRange, VoterNode, VoterSet


def voters_record(voters: VoterSet) -> VotersRecord:
    """Give the record that makes a voter set known, its voters in the order of their ids."""
    return VotersRecord(tuple(_record_voter(node) for node in voters.voters.values()))


def voter_set(record: VotersRecord) -> VoterSet:
    """Give the voter set that a record makes known.

    Listener names are taken in upper case. Of voters with the same id, and of endpoints with the same name, the last
    wins. Unknown tagged fields are not part of a voter set.

    Raises:
        InvalidRecordError: a listener has no name, or a range of supported versions is none.
    """
    by_id = {voter.id: _node(voter) for voter in record.voters}
    return VoterSet.of(by_id.values())


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
