# SPDX-License-Identifier: Apache-2.0
"""``quorum-state``: a replica's durable election state, as one line of compact JSON without a newline.

::

    {"clusterId":"","leaderId":1,"leaderEpoch":6,"votedId":-1,"appliedOffset":0,
     "currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}                                kraft.version 0
    {"leaderId":-1,"leaderEpoch":5,"votedId":2,"votedDirectoryId":"AQIDBAUGBwgJCgsMDQ4PEA","data_version":1}      1

Source: FileQuorumStateStore, QuorumStateData.
"""

import json
import re
import uuid
from typing import Any, Final

import attrs

from raftlog.errors import DecodeError, UnsupportedVersionError
from raftlog.uuid_text import ZERO_UUID, uuid_from_text, uuid_to_text
from raftlog.voters.voter_set import ReplicaKey

UNKNOWN_ID: Final = -1
"""The id that means no leader, or no vote."""


def _none_if_zero(directory_id: uuid.UUID | None) -> uuid.UUID | None:
    return None if directory_id == ZERO_UUID else directory_id


@attrs.frozen
class QuorumStateData:
    """The fields of ``quorum-state``, in either version. Every instance can be written.

    Attributes:
        data_version: 0 or 1; Kafka writes the one that goes with the last known ``kraft.version``.
        leader_id: the leader of the epoch, or -1. Ids below that are refused.
        leader_epoch: the latest epoch that the replica has seen.
        voted_id: the candidate that it voted for in that epoch, or -1, likewise.
        voted_directory_id: the directory of that candidate, or None; version 1 only.
        current_voters: the voters' ids, or None (JSON null); version 0 only. Kafka uses them only for display.
        cluster_id: always empty in files that Kafka writes; version 0 only.
        applied_offset: always 0 in files that Kafka writes; version 0 only.

    Raises:
        ValueError: a number does not fit in its field, or the cluster id cannot be encoded as UTF-8.
        UnsupportedVersionError: the version is not known, or lacks a field that is set.
    """

    data_version: int
    leader_id: int = UNKNOWN_ID
    leader_epoch: int = -1
    voted_id: int = UNKNOWN_ID
    voted_directory_id: uuid.UUID | None = attrs.field(default=None, converter=_none_if_zero)
    current_voters: tuple[int, ...] | None = ()
    cluster_id: str = ""
    applied_offset: int = 0

    def __attrs_post_init__(self) -> None:
        for value in (self.leader_id, self.leader_epoch, self.voted_id, *(self.current_voters or ())):
            _check_number(value, bits=32)
        _check_number(self.applied_offset, bits=64)
        if min(self.leader_id, self.voted_id) < UNKNOWN_ID:
            raise ValueError(f"the leader {self.leader_id}, or the vote {self.voted_id}, is no id")
        self.cluster_id.encode()
        if self.data_version not in (0, 1):
            raise UnsupportedVersionError(f"unknown quorum-state version {self.data_version}")
        if self.data_version == 0 and self.voted_directory_id is not None:
            raise UnsupportedVersionError("quorum-state version 0 has no voted directory id")
        if self.data_version == 1 and (self.current_voters, self.cluster_id, self.applied_offset) != ((), "", 0):
            raise UnsupportedVersionError("quorum-state version 1 has no voters, cluster id or applied offset")

    @property
    def voted_key(self) -> ReplicaKey | None:
        """The candidate that the replica voted for, or None; without a directory id, any replica with that id."""
        return None if self.voted_id == UNKNOWN_ID else ReplicaKey(self.voted_id, self.voted_directory_id)


def read_quorum_state(data: bytes) -> QuorumStateData:
    """Read ``quorum-state``. Like Kafka, read only the first line, and ignore unknown fields.

    The number -0 is refused, which Kafka reads and never writes: it is what one flipped bit makes of -1.

    Raises:
        DecodeError: it is not a JSON object, or a field is missing or has an invalid value.
        UnsupportedVersionError: its version is not 0 or 1.
    """
    fields = _json_object(re.split(rb"[\r\n]", data, maxsplit=1)[0])
    try:
        return _from_fields(fields)
    except UnsupportedVersionError as error:
        error.rule = "file-format"
        raise error.located(position=0) from None
    except KeyError as error:
        raise DecodeError(f"field {error} is missing", "file-format", position=0) from None
    except ValueError as error:
        raise DecodeError(str(error), "file-format", position=0) from None


def write_quorum_state(state: QuorumStateData) -> bytes:
    """Return the bytes of ``quorum-state`` as Kafka writes them."""
    fields: dict[str, object] = {
        "leaderId": state.leader_id,
        "leaderEpoch": state.leader_epoch,
        "votedId": state.voted_id,
    }
    if state.data_version == 0:
        voters = state.current_voters
        fields = {"clusterId": state.cluster_id} | fields
        fields["appliedOffset"] = state.applied_offset
        fields["currentVoters"] = None if voters is None else [{"voterId": voter_id} for voter_id in voters]
    else:
        fields["votedDirectoryId"] = uuid_to_text(state.voted_directory_id or ZERO_UUID)
    fields["data_version"] = state.data_version
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


def _json_object(line: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(line.decode(), parse_int=_whole_number)
    except RecursionError:
        raise DecodeError("JSON nested too deeply", "file-format", position=0) from None
    except UnicodeDecodeError as error:
        raise DecodeError("not UTF-8", "file-format", position=error.start) from None
    except json.JSONDecodeError as error:
        position = len(error.doc[: error.pos].encode())
        raise DecodeError(f"not JSON: {error.msg}", "file-format", position=position) from None
    except ValueError:  # a number with thousands of digits
        raise DecodeError("not JSON that can be read", "file-format", position=0) from None
    if not isinstance(fields, dict):
        raise DecodeError("not a JSON object", "file-format", position=0)
    return fields


def _whole_number(digits: str) -> int:
    if digits == "-0":
        raise DecodeError("the number -0, which nothing writes", "file-format", position=0)
    return int(digits)


def _from_fields(fields: dict[str, Any]) -> QuorumStateData:
    version = fields["data_version"]
    if type(version) is not int:
        raise ValueError("data_version is not a number")
    in_both = {"leader_id": fields["leaderId"], "leader_epoch": fields["leaderEpoch"], "voted_id": fields["votedId"]}
    if version == 0:
        return QuorumStateData(
            version,
            **in_both,
            cluster_id=_text(fields["clusterId"]),
            applied_offset=fields["appliedOffset"],
            current_voters=_voter_ids(fields["currentVoters"]),
        )
    if version == 1:
        return QuorumStateData(version, **in_both, voted_directory_id=uuid_from_text(_text(fields["votedDirectoryId"])))
    raise UnsupportedVersionError(f"unknown quorum-state version {version}")


def _check_number(value: object, *, bits: int) -> None:
    # JSON's true and 1.0 are refused.
    if type(value) is not int or not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError(f"not a number of {bits} bits: {value!r:.40}")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("a field that should be text is not")
    return value


def _voter_ids(voters: object) -> tuple[int, ...] | None:
    if voters is None:
        return None
    if not isinstance(voters, list) or not all(isinstance(voter, dict) for voter in voters):
        raise ValueError("currentVoters is not an array of objects")
    return tuple(voter["voterId"] for voter in voters)
