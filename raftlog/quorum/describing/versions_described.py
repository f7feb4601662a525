# SPDX-License-Identifier: Apache-2.0
"""Describes which RPCs and which levels of kraft.version this replica supports: a leader asks that of a new voter.

Source: ApiVersionsRequest, DefaultApiVersionManager#apiVersionResponse. In Kafka a server answers, without its client.
"""

import functools
from typing import Final

from raftlog.invariants import present
from raftlog.quorum.leading.adding_voters import KRAFT_VERSION_FEATURE
from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.seam.identity import ReceivedRequest
from raftlog.records.messages.raft.api_versions_messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    ApiVersionsResponseApiVersion,
    ApiVersionsResponseSupportedFeatureKey,
)
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.raft_messages import RAFT_MESSAGES
from raftlog.records.messages.schema import message_type

_REQUESTS: Final = tuple(name for name in RAFT_MESSAGES if name.endswith("Request"))


def handle_api_versions_request(
    replica: LocalReplica, _received: ReceivedRequest, _request: ApiVersionsRequest
) -> ApiVersionsResponse:
    """Return all RPCs of raft in all their versions, and the levels of kraft.version of the replica's identity."""
    supported = replica.identity.supported_kraft_versions
    feature = ApiVersionsResponseSupportedFeatureKey(
        name=KRAFT_VERSION_FEATURE, min_version=supported.minimum, max_version=supported.maximum
    )
    return ApiVersionsResponse(error_code=ErrorCode.NONE, api_keys=_api_keys(), supported_features=(feature,))


@functools.cache
def _api_keys() -> tuple[ApiVersionsResponseApiVersion, ...]:
    """Return the versions of all RPCs, by ascending key."""
    kinds = sorted(
        ((present(each.api_key, each.name), each.versions) for each in map(message_type, _REQUESTS)),
        key=lambda kind: kind[0],
    )
    return tuple(
        ApiVersionsResponseApiVersion(api_key=key, min_version=versions.lowest, max_version=versions.highest)
        for key, versions in kinds
    )
