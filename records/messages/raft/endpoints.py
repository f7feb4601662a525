# SPDX-License-Identifier: Apache-2.0
"""The structs that several RPCs share: where a replica listens, and which snapshot is meant.

Source: the ``NodeEndpoint``, ``LeaderEndpoint``, ``Listener`` and ``SnapshotId`` of Kafka's message schemas.
"""

import attrs

from raftlog.records.messages.schema import UnknownTags


@attrs.frozen(kw_only=True)
class NodeEndpoint:
    """Names the address of a leader that the response identifies by its id."""

    node_id: int
    host: str
    port: int
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class LeaderEndpoint:
    """Names the leader's address for a voter, with the name of the listener."""

    name: str
    host: str
    port: int
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class Listener:
    """Names a voter's address, with the name of the listener."""

    name: str
    host: str
    port: int
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class SnapshotId:
    """Names the snapshot that is fetched: its exclusive end offset, and the epoch of the record before it."""

    end_offset: int
    epoch: int
    unknown_tags: UnknownTags = ()
