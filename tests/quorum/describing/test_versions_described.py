# SPDX-License-Identifier: Apache-2.0
"""A replica tells which RPCs and which levels of kraft.version it supports."""

import pytest

from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.records.messages.raft.api_versions_messages import ApiVersionsRequest, ApiVersionsResponse
from raftlog.records.messages.raft.raft_messages import read_rpc, write_rpc
from raftlog.records.messages.schema import message_types
from raftlog.voters.voter_set import Endpoints, SupportedVersionRange
from tests.quorum.messages import CLUSTER, LOCAL
from tests.quorum.single_replica import LISTENER, SingleReplica


def answer(version: int, supported: SupportedVersionRange | None = None) -> ApiVersionsResponse:
    """Return what a replica answers, after a way as bytes."""
    identity = ReplicaIdentity(
        key=LOCAL,
        cluster_id=CLUSTER,
        endpoints=Endpoints.of({LISTENER: ("localhost", 9991)}),
        listener=LISTENER,
        supported_kraft_versions=supported or SupportedVersionRange(0, 1),
    )
    core = SingleReplica(identity, QuorumConfig())
    core.request("asked", ApiVersionsRequest(), version=version)
    (response,) = core.take_responses()
    assert response.token == "asked"
    message = response.message
    assert isinstance(message, ApiVersionsResponse)
    return read_rpc(ApiVersionsResponse, write_rpc(message, version), version)


@pytest.mark.parametrize("version", range(5))
def test_all_rpcs_of_raft_are_named_with_all_their_versions(version: int) -> None:
    """As the schemas have them, in the order of their keys."""
    requests = [each for each in message_types("raft-rpcs").values() if each.name.endswith("Request")]
    expected = sorted((each.api_key, each.versions.lowest, each.versions.highest) for each in requests if each.api_key)
    named = [(each.api_key, each.min_version, each.max_version) for each in answer(version).api_keys]
    assert named == expected


@pytest.mark.parametrize("supported", [SupportedVersionRange(0, 0), SupportedVersionRange(0, 1)])
def test_the_levels_of_kraft_version_are_those_of_the_identity(supported: SupportedVersionRange) -> None:
    """A feature like those of Kafka."""
    (feature,) = answer(4, supported).supported_features
    assert (feature.name, feature.min_version, feature.max_version) == ("kraft.version", *_ends(supported))


def _ends(supported: SupportedVersionRange) -> tuple[int, int]:
    return supported.minimum, supported.maximum
