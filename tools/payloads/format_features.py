# SPDX-License-Identifier: Apache-2.0
"""Chooses the features that a new cluster starts with, like kafka-storage of Kafka 4.3.1.

Source: MetadataVersion, Feature, Formatter#calculateEffectiveFeatureLevels.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from raftlog.records.messages.metadata import metadata_record, write_metadata_record
from raftlog.records.messages.releases import METADATA_VERSIONS, NEWEST_DIALECT, RELEASES
from raftlog.voters.kraft_version import KRaftVersion

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"

_KNOWN: Final = tuple(name for each in RELEASES if each <= NEWEST_DIALECT for name in each.metadata_versions)
"""The levels of ``metadata.version`` for which features can be chosen as kafka-storage does."""

_FEATURE_LEVELS: Final[Mapping[str, tuple[str, ...]]] = {
    "eligible.leader.replicas.version": ("4.1-IV0",),
    "group.version": ("4.0-IV0",),
    KRAFT_VERSION: ("3.9-IV0",),
    "share.version": ("4.2-IV0",),
    "streams.version": ("4.2-IV1",),
    "transaction.version": ("4.0-IV2", "4.0-IV2"),
}
"""For each feature, the ``metadata.version`` from which on level 1, 2, ... is the default."""
_LEAST_METADATA_VERSION: Final = {"eligible.leader.replicas.version": "4.0-IV1"}
"""The requirements of features above level 0."""

VERSION_RECORD_START: Final = write_metadata_record(
    metadata_record("FeatureLevelRecord", {"name": METADATA_VERSION, "featureLevel": 0}, version=0)
)[:-3]
"""The start of each record that sets ``metadata.version``: everything before its level, without tagged fields."""


def sets_the_version(value: bytes) -> bool:
    """Whether a record with this value sets ``metadata.version``."""
    return value.startswith(VERSION_RECORD_START)


@attrs.frozen
class Features:
    """The levels that a cluster starts with.

    Attributes:
        kraft_version: not among the records.
        levels: the levels of ``metadata.version``, and of every other feature above level 0.
    """

    kraft_version: KRaftVersion
    levels: Mapping[str, int]

    def records(self) -> tuple[bytes, ...]:
        """Return the FeatureLevelRecords, ``metadata.version`` first, then by name, as Kafka writes them."""
        in_order = sorted(self.levels, key=lambda name: (name != METADATA_VERSION, name))
        fields = [{"name": name, "featureLevel": self.levels[name]} for name in in_order]
        return tuple(write_metadata_record(metadata_record("FeatureLevelRecord", each, version=0)) for each in fields)


def choose_features(release: str, settings: Iterable[str], *, is_dynamic: bool) -> Features:
    """Choose the levels to start with.

    Args:
        release: a Kafka release, such as ``4.3``, or a ``metadata.version``, such as ``4.3-IV0``.
        settings: features with other than their default levels, each as ``name=level``.
        is_dynamic: whether the log names the voters, not the configuration.

    Raises:
        ValueError: a release, feature or level is not known, or conflicts with another one.
    """
    given = dict(map(_parse_setting, settings))
    metadata_version = given.pop(METADATA_VERSION, None)
    if metadata_version is None:
        metadata_version = METADATA_VERSIONS[_metadata_version_of(release)]
    elif metadata_version not in map(METADATA_VERSIONS.get, _KNOWN):
        raise ValueError(f"no {METADATA_VERSION} has level {metadata_version}")
    kraft_level = given.pop(KRAFT_VERSION, int(is_dynamic))
    if kraft_level != int(is_dynamic):
        voters = "voters in the log" if is_dynamic else "static voters"
        raise ValueError(f"{KRAFT_VERSION} {kraft_level} does not go with {voters}")
    levels = {METADATA_VERSION: metadata_version}
    for name in _FEATURE_LEVELS.keys() - {KRAFT_VERSION}:
        level = given.get(name, _default_level(name, metadata_version))
        _check_level(name, level, metadata_version)
        if level:
            levels[name] = level
    return Features(KRaftVersion.from_level(kraft_level), levels)


def _parse_setting(text: str) -> tuple[str, int]:
    name, _, level = text.partition("=")
    if name != METADATA_VERSION and name not in _FEATURE_LEVELS:
        known = ", ".join((METADATA_VERSION, *_FEATURE_LEVELS))
        raise ValueError(f"no feature is called {name[:80]!r}; those that are known: {known}")
    if not (level.isascii() and level.isdigit() and len(level) < 6):
        raise ValueError(f"not a level of {name}: {level[:80]!r}")
    return name, int(level)


def _metadata_version_of(release: str) -> str:
    fitting = [name for name in _KNOWN if release in (name, name.partition("-")[0])]
    if not fitting:
        raise ValueError(f"unknown release {release[:80]!r}; those that are known: {', '.join(_KNOWN)}")
    return fitting[-1]


def _default_level(name: str, metadata_version: int) -> int:
    return sum(METADATA_VERSIONS[since] <= metadata_version for since in _FEATURE_LEVELS[name])


def _check_level(name: str, level: int, metadata_version: int) -> None:
    if level > len(_FEATURE_LEVELS[name]):
        raise ValueError(f"{name} has levels 0 to {len(_FEATURE_LEVELS[name])}, not {level}")
    needed = _LEAST_METADATA_VERSION.get(name)
    if level and needed is not None and metadata_version < METADATA_VERSIONS[needed]:
        raise ValueError(f"{name} {level} needs {METADATA_VERSION} {needed}")
