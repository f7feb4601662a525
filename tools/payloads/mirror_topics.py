# SPDX-License-Identifier: Apache-2.0
"""Which topics are MirrorMaker 2's, by their names under its default policy.

Other separators and topics that a configuration renames are not known here: the user names the decoder for them.

Source: DefaultReplicationPolicy, ReplicationPolicy, MirrorMakerConfig#workerConfig.
"""

from typing import Final, Literal

MirrorTopic = Literal["offset-syncs", "checkpoints", "heartbeats", "connect-offsets", "connect-configs"]
"""What the records of a topic are."""

_HEARTBEATS: Final = "heartbeats"
_PATTERNS: Final[tuple[tuple[str, str, MirrorTopic], ...]] = (
    ("mm2-offset-syncs.", ".internal", "offset-syncs"),
    ("mm2-offsets.", "", "connect-offsets"),
    ("mm2-configs.", "", "connect-configs"),
    ("", ".checkpoints.internal", "checkpoints"),
    ("", f".{_HEARTBEATS}", "heartbeats"),
)
"""How names begin and end. Connect's topics have dots under every policy and separator."""
_HIDDEN_PREFIXES: Final = ("__", ".")
"""Of names that MirrorMaker takes for Kafka's own, whatever they end with."""


def mirror_topic(name: str | None) -> MirrorTopic | None:
    """Return what the records of a topic are by its name; None if it is not one of MirrorMaker's.

    ``heartbeats`` and names that end with it may as well be topics of an application.
    """
    if name is None or name.startswith(_HIDDEN_PREFIXES):
        return None
    if name == _HEARTBEATS:
        return "heartbeats"
    for start, end, kind in _PATTERNS:
        has_alias = len(name) > len(start) + len(end) or not end
        if name.startswith(start) and name.endswith(end) and has_alias:
            return kind
    return None
