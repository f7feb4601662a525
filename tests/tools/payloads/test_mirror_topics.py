# SPDX-License-Identifier: Apache-2.0
"""What the records of a topic are by its name: MirrorMaker's own rules for names, under its default policy."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.payloads.mirror_topics import MirrorTopic, mirror_topic
from tests.records.messages.mirrors.mirror_corpus import MIRROR

PATTERNS: dict[MirrorTopic, str] = {
    "offset-syncs": r"mm2-offset-syncs\..*\.internal",
    "connect-offsets": r"mm2-offsets\..*",
    "connect-configs": r"mm2-configs\..*",
    "checkpoints": r".*\.checkpoints\.internal",
    "heartbeats": r"(.*\.)?heartbeats",
}
"""The same rules as patterns; the first that fits counts."""
PARTS = st.sampled_from(
    ["mm2-offset-syncs", "mm2-offsets", "mm2-configs", ".", "checkpoints", "internal", "heartbeats", "A", "_", ""]
)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("mm2-offset-syncs.B.internal", "offset-syncs"),
        ("mm2-offset-syncs.b.c.internal", "offset-syncs"),
        ("mm2-offset-syncs..internal", None),
        ("mm2-offset-syncs.internal", None),
        ("mm2-offset-syncs_B_internal", None),
        ("A.mm2-offset-syncs.B.internal", None),
        ("A.checkpoints.internal", "checkpoints"),
        (".checkpoints.internal", None),
        (".heartbeats", None),
        ("__x.checkpoints.internal", None),
        ("checkpoints.internal", None),
        ("A_checkpoints_internal", None),
        ("heartbeats", "heartbeats"),
        ("A.heartbeats", "heartbeats"),
        ("B.A.heartbeats", "heartbeats"),
        ("myheartbeats", None),
        ("A_heartbeats", None),
        ("mm2-offsets.A.internal", "connect-offsets"),
        ("mm2-configs.A.internal", "connect-configs"),
        ("mm2-configs.", "connect-configs"),
        ("mm2-configs", None),
        ("mm2-status.A.internal", None),
        ("orders", None),
        ("", None),
        (None, None),
    ],
)
def test_names(name: str | None, kind: MirrorTopic | None) -> None:
    """Each rule, and names that just miss it."""
    assert mirror_topic(name) == kind


@given(st.lists(PARTS, max_size=6).map("".join) | st.text(max_size=20))
def test_any_name(name: str) -> None:
    """Any name is what the first fitting pattern says."""
    assert mirror_topic(name) == next((kind for kind, each in PATTERNS.items() if re.fullmatch(each, name, re.S)), None)


def test_the_topics_of_a_real_mirror() -> None:
    """The topics of two mirrored clusters, by what is in them."""
    names = {path.name.rpartition("-")[0] for path in MIRROR.glob("*/*-[0-9]*")}
    assert {name: kind for name in sorted(names) if (kind := mirror_topic(name))} == {
        "A.checkpoints.internal": "checkpoints",
        "A.heartbeats": "heartbeats",
        "heartbeats": "heartbeats",
        "mm2-configs.A.internal": "connect-configs",
        "mm2-configs.B.internal": "connect-configs",
        "mm2-offset-syncs.B.internal": "offset-syncs",
        "mm2-offsets.A.internal": "connect-offsets",
        "mm2-offsets.B.internal": "connect-offsets",
    }
