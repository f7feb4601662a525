# SPDX-License-Identifier: Apache-2.0
"""What real Kafka quorums said and wrote: the requests and responses of one, and the logs of several.

Source: the golden files, which Kafka 4.3.1 wrote, and a proxy between its controllers.
"""

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

import attrs

from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.messages.raft.api_versions_messages import ApiVersionsResponse
from raftlog.records.messages.raft.raft_messages import RAFT_MESSAGES, RaftMessage, from_message
from raftlog.records.messages.rpc import read_correlation_id, read_request, read_response
from raftlog.uuid_text import uuid_from_text
from raftlog.voters.voter_set import Endpoints, HostPort, ReplicaKey, VoterSet
from tests.golden_files import GOLDEN

LISTENER: Final = "CONTROLLER"
RAFT_KEYS: Final = {1, 52, 53, 54, 55, 59, 80, 81, 82}
"""The api keys of requests that a consensus core answers."""

API_VERSIONS: Final = 18
"""The api key of the request for a replica's versions."""


@attrs.frozen
class RecordedQuorum:
    """A quorum of controllers 1 to 3 or 4, and broker 101.

    Attributes:
        folder: of its files.
        first_port: controller 1 listens at the one after it, and so on.
        is_static: whether it began with kraft.version 0.
    """

    folder: Path
    first_port: int
    is_static: bool = False

    @property
    def whole_log(self) -> Path:
        """The log directory of a replica that has all records."""
        return self.log_of(3)

    @property
    def static_voters(self) -> VoterSet:
        """The configured voters; none if the log names them."""
        ids = (1, 2, 3) if self.is_static else ()
        return VoterSet.from_inet_addresses(LISTENER, {each: HostPort("127.0.0.1", self.port(each)) for each in ids})

    def port(self, replica_id: int) -> int:
        """Return where a controller listens."""
        return self.first_port + replica_id

    def log_of(self, replica_id: int) -> Path:
        """Return the log directory of a replica."""
        return self.folder / "data" / f"n{replica_id}" / "__cluster_metadata-0"

    def identity(self, replica_id: int) -> ReplicaIdentity:
        """Return who a replica is, according to its meta.properties."""
        lines = (self.log_of(replica_id).parent / "meta.properties").read_text("utf-8").splitlines()
        found = dict(line.split("=", 1) for line in lines if "=" in line)
        return ReplicaIdentity(
            key=ReplicaKey(int(found["node.id"]), uuid_from_text(found["directory.id"])),
            cluster_id=found["cluster.id"],
            endpoints=Endpoints.of({LISTENER: ("127.0.0.1", self.port(replica_id))}),
            listener=LISTENER,
        )


WIRE: Final = RecordedQuorum(GOLDEN / "wire", 19290)
DYNAMIC: Final = RecordedQuorum(GOLDEN / "dynamic-quorum", 19090)
STATIC: Final = RecordedQuorum(GOLDEN / "static-upgrade", 19090, is_static=True)


@attrs.frozen
class Frame:
    """One frame between replicas, or from a tool to a replica.

    Attributes:
        number: of the frame, in the order of the recording.
        ms: time of day, in ms since the Unix epoch.
        receiver: id of the replica that the request was sent to.
        token: of the request, the same for its response.
        version: of the message.
        message: the request or response.
    """

    number: int
    ms: int
    receiver: int
    token: tuple[str, int]
    version: int
    message: RaftMessage

    @property
    def is_request(self) -> bool:
        """Whether it is a request."""
        return type(self.message).__name__.endswith("Request")


def frames() -> Iterator[Frame]:
    """Yield the frames of raft's messages in the order of the recording.

    Some responses are recorded before their requests; such a request is yielded just before its response.
    """
    recorded = list(_frames(RAFT_KEYS))
    asked = {each.token: each for each in recorded if each.is_request}
    seen = set()
    for each in recorded:
        request = asked.get(each.token, each)
        if request.token not in seen:
            seen.add(request.token)
            yield request
        if each is not request:
            yield each


def api_versions_responses(replica_id: int) -> Iterator[ApiVersionsResponse]:
    """Yield what a replica has answered to requests for its versions."""
    for each in _frames({API_VERSIONS}):
        if each.receiver == replica_id and isinstance(each.message, ApiVersionsResponse):
            yield each.message


def _frames(keys: Collection[int]) -> Iterator[Frame]:
    rows = list(map(json.loads, (WIRE.folder / "frames.jsonl").read_text("utf-8").splitlines()))
    asked: dict[tuple[str, int], tuple[int, int]] = {}
    for row in rows:
        data = bytes.fromhex(row["frame"])
        if row["way"] == "request":
            key, version, correlation_id = (int.from_bytes(data[a:b], "big") for a, b in ((0, 2), (2, 4), (4, 8)))
            asked[row["connection"], correlation_id] = key, version
    for row in rows:
        data, is_request = bytes.fromhex(row["frame"]), row["way"] == "request"
        correlation_id = int.from_bytes(data[4:8], "big") if is_request else read_correlation_id(data)
        token = row["connection"], correlation_id
        key, version = asked[token]
        if key in keys:
            found = read_request(data) if is_request else read_response(data, key, version)
            message = from_message(RAFT_MESSAGES[found.type.name], found.message)
            yield Frame(row["n"], row["ms"], row["to"], token, version, message)


def batches(directory: Path) -> list[RecordBatch]:
    """Return the batches of a log directory, in their order."""
    return [batch for path in sorted(directory.glob("*.log")) for batch in batches_of(path.read_bytes())]


def batches_of(data: bytes | memoryview | None) -> list[RecordBatch]:
    """Return the batches in bytes, in their order."""
    return [each for each in split(BufferSource(bytes(data or b""))) if isinstance(each, RecordBatch)]
