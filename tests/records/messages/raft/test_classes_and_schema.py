# SPDX-License-Identifier: Apache-2.0
"""The classes of typed messages are those of the schema, field by field, and a difference is found."""

import pkgutil
from typing import Any

import attrs
import pytest

from raftlog.errors import InvariantViolation
from raftlog.records.messages.raft.election_messages import VoteRequest
from raftlog.records.messages.raft.raft_messages import RAFT_MESSAGES
from raftlog.records.messages.raft.typed_structs import struct_conversion
from raftlog.records.messages.schema import message_type, message_types
from raftlog.records.messages.schema_text import parse_schemas
from tests.records.class_mismatches import CLASSES, mismatches


def schema_text() -> str:
    """Return the schemas of the RPCs as they ship."""
    text = pkgutil.get_data("raftlog.records.messages.schemas", "raft-rpcs.txt")
    assert text is not None
    return text.decode()


@pytest.mark.parametrize("name", RAFT_MESSAGES)
def test_every_class_is_as_its_schema_says(name: str) -> None:
    """Each field of each version is an attribute of the right type and default, and no other attributes exist."""
    assert mismatches(RAFT_MESSAGES[name], message_type(name).schema) == []


def test_every_rpc_has_a_class() -> None:
    """All RPCs of the schema have a class, and there are no others."""
    rpcs = {name for name, each in message_types("raft-rpcs").items() if each.schema.kind == "rpc"}
    assert rpcs == RAFT_MESSAGES.keys()


PLANTED = {
    "a field that the class lacks": (
        "      preVote: bool  ; in 2+\n",
        "      preVote: bool  ; in 2+\n      isUrgent: bool  ; in 3+\n",
        "VoteRequest.topics.partitions.isUrgent: VoteRequestPartitionData has no attribute is_urgent",
    ),
    "a tagged field that a shared struct lacks": (
        "  leaderEndpoints: []LeaderEndpoint  ; in 1+, ignorable\n",
        "  leaderEndpoints: []LeaderEndpoint  ; in 1+, ignorable\n    rack: string  ; tag 0 in 1+\n",
        "BeginQuorumEpochRequest.leaderEndpoints.rack: LeaderEndpoint has no attribute rack",
    ),
    "a field that is gone": (
        "      preVote: bool  ; in 2+\n",
        "",
        "VoteRequest.topics.partitions: the schema has no field for VoteRequestPartitionData.pre_vote",
    ),
    "another type": (
        "preVote: bool  ; in 2+",
        "preVote: int8  ; in 2+",
        "VoteRequest.topics.partitions.preVote: <class 'bool'> is the type, not <class 'int'>",
    ),
    "no array any more": (
        "preferredSuccessors: []int32",
        "preferredSuccessors: int32",
        "EndQuorumEpochRequest.topics.partitions.preferredSuccessors: tuple[int, ...] is the type",
    ),
    "an array of numbers for one of structs": (
        "currentVoters: []ReplicaState",
        "currentVoters: []int32",
        "DescribeQuorumResponse.topics.partitions.currentVoters: tuple",
    ),
    "a struct for a number": (
        "  ackWhenCommitted: bool  ; in 1+, default true\n",
        "  ackWhenCommitted: Wish  ; in 1+\n    isThere: bool\n",
        "AddRaftVoterRequest.ackWhenCommitted: <class 'bool'> names no class",
    ),
    "null in one version": (
        "rackId: string  ; in 11+, default empty",
        "rackId: string  ; in 11+, nullable 17, default empty",
        "FetchRequest.rackId: <class 'str'> is the type, not str | None: the field is null in versions [17]",
    ),
    "never null": (
        "records: records  ; nullable 0+",
        "records: records",
        "FetchResponse.responses.partitions.records: bytes | memoryview | None is the type",
    ),
    "another default": (
        "isolationLevel: int8  ; default 0",
        "isolationLevel: int8  ; default 1",
        "FetchRequest.isolationLevel: 0 is the default, not 1",
    ),
    "no default any more": (
        "isolationLevel: int8  ; default 0, ignorable",
        "isolationLevel: int8",
        "FetchRequest.isolationLevel: a default of 0, although every version has the field",
    ),
    "a default in a tagged struct": (
        "    leaderId: int32  ; default -1\n    leaderEpoch: int32  ; default -1\n    host: string",
        "    leaderId: int32  ; default -1\n    leaderEpoch: int32  ; default -2\n    host: string",
        "UpdateRaftVoterResponse.currentLeader: {'leader_id': -1, 'leader_epoch': -1, 'host': '', 'port': 0} is the",
    ),
    "a version without the field": (
        "  timeoutMs: int32\n",
        "  timeoutMs: int32  ; in 1+\n",
        "AddRaftVoterRequest.timeoutMs: no default, although the schema has one, or versions [0]",
    ),
    "a struct of another name": (
        "preferredCandidates: []ReplicaInfo",
        "preferredCandidates: []Candidate",
        "EndQuorumEpochRequest.topics.partitions.preferredCandidates: EndQuorumEpochRequestReplicaInfo stands for Can",
    ),
}


@pytest.mark.parametrize("case", PLANTED)
def test_a_planted_difference_is_caught(case: str) -> None:
    """One change of the schema that the classes do not follow is found, and named by the path of the field."""
    before, after, problem = PLANTED[case]
    assert before in schema_text()
    schemas = parse_schemas(schema_text().replace(before, after, 1))
    found = [line for name, kind in RAFT_MESSAGES.items() for line in mismatches(kind, schemas[name])]
    assert [line for line in found if problem in line], found


@attrs.define
class Changeable:
    """A class that is not as those of messages are."""

    partition: int = 0


def test_a_class_that_can_be_changed_is_caught() -> None:
    """A class that is not frozen, has no unknown tags or has a name of its own is found."""
    schema = message_type("VoteRequest").schema
    found = "\n".join(mismatches(Changeable, schema))
    assert "Changeable stands for VoteRequest" in found
    assert "Changeable is not frozen" in found
    assert "Changeable.unknown_tags is not of type UnknownTags" in found


def test_a_class_that_differs_from_its_schema_is_never_used() -> None:
    """A conversion by a schema with one field more, or with a struct that no attribute names, is refused by name."""
    text = schema_text()
    wider = parse_schemas(text.replace("  voterId: int32  ; in 1+", "  rank: int8\n  voterId: int32  ; in 1+", 1))
    with pytest.raises(InvariantViolation, match=r"VoteRequest and its schema differ in \['rank'\]"):
        struct_conversion(VoteRequest, wider["VoteRequest"].struct)
    nested = parse_schemas(
        text.replace("  voterId: int32  ; in 1+, default -1, ", "  voterId: Voter\n    id: int32  ; ", 1)
    )
    with pytest.raises(InvariantViolation, match="the attribute of voterId names no class for Voter"):
        struct_conversion(VoteRequest, nested["VoteRequest"].struct)


@pytest.mark.parametrize("kind", CLASSES.values(), ids=CLASSES)
def test_no_attribute_can_be_set(kind: Any) -> None:
    """Values of every class are frozen, and take no attribute that the schema lacks."""
    value = kind(**dict.fromkeys(attrs.fields_dict(kind)))
    for name in (*attrs.fields_dict(kind), "extra"):
        with pytest.raises(AttributeError):
            setattr(value, name, None)
