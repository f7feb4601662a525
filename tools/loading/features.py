# SPDX-License-Identifier: Apache-2.0
"""The levels of features that a controller of each release supports.

A FeatureLevelRecord with another level is refused; a feature that is not known has level 0 alone. Levels that a release
knows and has not released yet count as unknown: a controller reads them with ``unstable.feature.versions.enable``.

Source: QuorumFeatures#defaultSupportedFeatureMap, FeatureControlManager#replay.
"""

import functools
from typing import Final

from raftlog.records.messages.releases import LEVELS, METADATA_VERSIONS, RELEASES
from raftlog.tools.payloads.format_features import KRAFT_VERSION, METADATA_VERSION

CHECKED_RELEASES: Final = LEVELS
"""The releases whose rules are known, by name, oldest first."""

_LEVELS: Final = {
    "eligible.leader.replicas.version": (("4.0", 1),),
    "group.version": (("4.0", 1),),
    KRAFT_VERSION: (("3.9", 1),),
    "share.version": (("4.1", 1), ("4.4", 2)),
    "streams.version": (("4.2", 1),),
    "transaction.version": (("4.0", 2),),
}
"""By feature: the releases that brought a new highest level, and that level."""
_LOWEST_METADATA_VERSION: Final = {"3.9": 1}
"""The lowest level of ``metadata.version``, where it is not that of 3.3-IV3."""
TRANSACTIONS_LEVEL: Final = METADATA_VERSIONS["3.6-IV1"]
"""The level of ``metadata.version`` from which on a controller may abort a transaction when it becomes active."""

RELEASES_WITH_DEFAULT: Final = frozenset({"3.9"})
"""The releases whose loader takes the lowest ``metadata.version`` for a log that sets none; the others refuse it."""
MIGRATION_LEVEL: Final = METADATA_VERSIONS["3.4-IV0"]
"""The level from which on 3.9 looks at the migration from ZooKeeper when it becomes active."""
LAST_TO_MIGRATE: Final = "3.9"
NO_MIGRATION_STATE: Final = 4
"""Kafka's number of a migration that has no state: 3.9 does not become active with it."""
FIRST_TO_BEGIN_ANEW: Final = "4.1"
"""The first release whose controller writes what the node was formatted with if no record has set a level."""


@functools.cache
def supported_levels(release: str) -> dict[str, tuple[int, int]]:
    """Return the lowest and the highest level of each feature that a release supports, both inclusive.

    Raises:
        LookupError: the release is not one of ``CHECKED_RELEASES``.
    """
    at = CHECKED_RELEASES.index(release)
    newest = next(each for each in RELEASES if each.name == release).metadata_versions[-1]
    lowest = _LOWEST_METADATA_VERSION.get(release, min(METADATA_VERSIONS.values()))
    found = {METADATA_VERSION: (lowest, METADATA_VERSIONS[newest])}
    for name, steps in _LEVELS.items():
        levels = [level for since, level in steps if CHECKED_RELEASES.index(since) <= at]
        if levels:
            found[name] = (0, levels[-1])
    return found


def unsupported_level(release: str, name: str, level: int) -> str | None:
    """Return what is wrong with a level of a feature for a release, or None."""
    lowest, highest = supported_levels(release).get(name, (0, 0))
    if lowest <= level <= highest:
        return None
    return f"{name} has level {level}, and {release} supports {lowest} to {highest}"


def default_level(release: str) -> int | None:
    """Return the level of ``metadata.version`` that a release takes for a log that sets none; None for no level."""
    return supported_levels(release)[METADATA_VERSION][0] if release in RELEASES_WITH_DEFAULT else None


def begins_anew(release: str) -> bool:
    """Whether a controller that becomes active writes what its node was formatted with if no record set a level."""
    return CHECKED_RELEASES.index(release) >= CHECKED_RELEASES.index(FIRST_TO_BEGIN_ANEW)
