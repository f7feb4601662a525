# SPDX-License-Identifier: Apache-2.0
"""Who a replica is: what it tells its peers about itself, and what it checks in their requests."""

import uuid
from typing import Final

import attrs

from raftlog.records.files.file_names import METADATA_TOPIC
from raftlog.voters.voter_set import Endpoints, HostPort, ReplicaKey, SupportedVersionRange

METADATA_TOPIC_ID: Final = uuid.UUID(int=1)
"""The topic id of the metadata log, which Kafka fixes."""

KRAFT_VERSIONS: Final = SupportedVersionRange(0, 1)
"""The levels of kraft.version that raftlog supports."""


@attrs.frozen(kw_only=True)
class ReplicaIdentity:
    """A replica of one log.

    Attributes:
        key: the node id, and the id of the log's directory.
        cluster_id: of the cluster. Requests that name another one are refused.
        endpoints: where this replica listens; it needs an address at ``listener``.
        listener: the name of the listener that replicas use among each other.
        supported_kraft_versions: the levels of kraft.version that this replica supports.
        can_become_voter: whether this replica may be a voter, as controllers may. It then flushes records before it
            says that it has them, even while it is an observer.
        bootstrap_servers: where a replica that knows no leader asks for one.
        topic_name: of the log's topic.
        topic_id: of the log's topic.

    Raises:
        ValueError: there is no directory id, the node id is negative, or there is no address at the listener.
    """

    key: ReplicaKey
    cluster_id: str
    endpoints: Endpoints
    listener: str
    supported_kraft_versions: SupportedVersionRange = KRAFT_VERSIONS
    can_become_voter: bool = True
    bootstrap_servers: tuple[HostPort, ...] = ()
    topic_name: str = METADATA_TOPIC
    topic_id: uuid.UUID = METADATA_TOPIC_ID

    def __attrs_post_init__(self) -> None:
        if self.key.directory_id is None or self.key.id < 0:
            raise ValueError(f"{self.key} lacks a directory id, or its node id is negative")
        if self.endpoints.address(self.listener) is None:
            raise ValueError(f"{self.endpoints} has no address at listener {self.listener}")

    @property
    def bootstrap_ids(self) -> tuple[int, ...]:
        """The ids that stand for the bootstrap servers, in their order: -2, -3 and so on."""
        return tuple(range(-2, -2 - len(self.bootstrap_servers), -1))


@attrs.frozen
class ReceivedRequest:
    """How a request arrived.

    Attributes:
        token: given back with the response.
        version: of the message.
        listener: name of the listener that received it.
        expected_voters_offset: for a request to change voters: refuse it with INVALID_UPDATE_VERSION unless the last
            voter set is that of the VotersRecord at this offset. None means any set.
    """

    token: object
    version: int
    listener: str
    expected_voters_offset: int | None = None
