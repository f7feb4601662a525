# SPDX-License-Identifier: Apache-2.0
"""Decoders know MirrorMaker's topics by their names, and so do classes of topics: both agree."""

from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from raftlog.tools.mirrors.naming import DefaultPolicy, TopicKind, classify
from raftlog.tools.mirrors.reading.flow import FoundConfig
from raftlog.tools.payloads.mirror_topics import mirror_topic

PARTS = st.sampled_from(
    ["", "A", "mm2-offset-syncs", "mm2-offsets", "mm2-configs", "internal", "checkpoints", "heartbeats", "__x", "."]
)
KINDS: Final = {
    "offset-syncs": TopicKind.MM2_OFFSET_SYNCS,
    "checkpoints": TopicKind.MM2_CHECKPOINTS,
    "connect-offsets": TopicKind.CONNECT_INTERNAL,
    "connect-configs": TopicKind.CONNECT_INTERNAL,
}


@given(st.lists(PARTS, min_size=1, max_size=5).map(".".join))
@example(".checkpoints.internal")
@example(".heartbeats")
@example("mm2-offset-syncs..internal")
def test_decoders_follow_the_classes_of_topics(name: str) -> None:
    """What is Kafka's own for MirrorMaker has no decoder of it; every kind that has a decoder has that one.

    Connect's topics may have other names; decoders go by the beginning then. An application's topic may end with
    heartbeats.
    """
    kind, decoder = classify(name, DefaultPolicy()).kind, mirror_topic(name)
    if kind in {TopicKind.KAFKA_INTERNAL, TopicKind.METADATA_QUORUM}:
        assert decoder is None or name.startswith("mm2-")
    if kind is TopicKind.MM2_HEARTBEATS and not name.startswith("mm2-"):
        assert decoder == "heartbeats"
    if kind in {TopicKind.MM2_OFFSET_SYNCS, TopicKind.MM2_CHECKPOINTS}:
        assert decoder is not None
        assert KINDS[decoder] is kind
    if decoder in {"offset-syncs", "checkpoints"}:
        assert KINDS[decoder] is kind


@pytest.mark.parametrize(("level", "passes"), [("4.0", True), ("3.x", False)])
def test_a_level_has_its_own_default_exclusion(level: str, passes: bool) -> None:
    """Without topics.exclude, the releases before 4.0 leave out whatever ends with internal."""
    config = FoundConfig("mm2-configs.A.internal", "A", "B", {"topics": ".*"})
    found = config.topic_filter(level)  # type: ignore[arg-type]
    assert found is not None
    assert found.should_replicate_topic("orders.internal") is passes
    assert FoundConfig("mm2-configs.A.internal", "A", "B", {}).topic_filter("4.0") is None
