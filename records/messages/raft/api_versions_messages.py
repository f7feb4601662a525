# SPDX-License-Identifier: Apache-2.0
"""ApiVersions: which versions of which RPCs a node knows, and which levels of which features it supports.

A leader asks a new voter for its levels of kraft.version. Versions below 4 omit features whose lowest level is 0.

Source: ApiVersionsRequestData, ApiVersionsResponseData; KIP-35, KIP-584, KIP-853.
"""

import attrs

from raftlog.records.messages.schema import UnknownTags


@attrs.frozen(kw_only=True)
class ApiVersionsRequest:
    """Asks a node for the RPCs and features that it supports.

    Attributes:
        client_software_name: letters, digits, dots and dashes; a node refuses others.
        client_software_version: likewise.
        cluster_id: of the cluster that the sender means to talk to, or None.
        node_id: that the sender means to talk to, or -1.
    """

    client_software_name: str = ""
    client_software_version: str = ""
    cluster_id: str | None = None
    node_id: int = -1
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class ApiVersionsResponseApiVersion:
    """Names the versions of an RPC that a node knows, both ends inclusive."""

    api_key: int
    min_version: int
    max_version: int
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class ApiVersionsResponseSupportedFeatureKey:
    """Names the levels of a feature that a node supports, both ends inclusive."""

    name: str
    min_version: int
    max_version: int
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class ApiVersionsResponseFinalizedFeatureKey:
    """Names the levels of a feature that are in force in the cluster, both ends inclusive."""

    name: str
    max_version_level: int
    min_version_level: int
    unknown_tags: UnknownTags = ()


@attrs.frozen(kw_only=True)
class ApiVersionsResponse:
    """Answers an ApiVersionsRequest.

    Attributes:
        finalized_features_epoch: the offset up to which the node knows the finalized features; -1 if it knows none.
        zk_migration_ready: always False since Kafka 4.0.
    """

    error_code: int
    api_keys: tuple[ApiVersionsResponseApiVersion, ...]
    throttle_time_ms: int = 0
    supported_features: tuple[ApiVersionsResponseSupportedFeatureKey, ...] = ()
    finalized_features_epoch: int = -1
    finalized_features: tuple[ApiVersionsResponseFinalizedFeatureKey, ...] = ()
    zk_migration_ready: bool = False
    unknown_tags: UnknownTags = ()
