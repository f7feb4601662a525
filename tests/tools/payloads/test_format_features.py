# SPDX-License-Identifier: Apache-2.0
"""The features that a cluster starts with: what Kafka 4.3.1 says for its releases, and what it refuses."""

import pytest

from raftlog.records.messages.metadata import read_metadata_record
from raftlog.records.messages.releases import METADATA_VERSIONS, NEWEST_DIALECT
from raftlog.tools.payloads.format_features import choose_features
from raftlog.voters.kraft_version import KRaftVersion

NO_FEATURES: dict[str, int] = {}
OF_KAFKA = {
    "3.3": {"metadata.version": 7},
    "3.8": {"metadata.version": 20},
    "3.9": {"metadata.version": 21},
    "4.0-IV0": {"metadata.version": 22, "group.version": 1},
    "4.0": {"metadata.version": 25, "group.version": 1, "transaction.version": 2},
    "4.1": {
        "metadata.version": 27,
        "group.version": 1,
        "transaction.version": 2,
        "eligible.leader.replicas.version": 1,
    },
    "4.2-IV0": {
        "metadata.version": 28,
        "group.version": 1,
        "transaction.version": 2,
        "eligible.leader.replicas.version": 1,
        "share.version": 1,
    },
    "4.3": {
        "metadata.version": 30,
        "group.version": 1,
        "transaction.version": 2,
        "eligible.leader.replicas.version": 1,
        "share.version": 1,
        "streams.version": 1,
    },
}
"""What Feature#defaultLevel gives; recorded from Kafka 4.3.1."""
UNCOMPARED = METADATA_VERSIONS[NEWEST_DIALECT.metadata_versions[-1]] + 1
"""The first level of ``metadata.version`` of which Kafka's choice is not known here."""


@pytest.mark.parametrize("release", OF_KAFKA)
def test_a_release_starts_with_the_levels_of_kafka(release: str) -> None:
    """The levels of a release are those of Kafka, and kraft.version is 1 exactly if voters are in the log."""
    for is_dynamic in (True, False):
        features = choose_features(release, [], is_dynamic=is_dynamic)
        assert features.levels == OF_KAFKA[release]
        assert features.kraft_version == KRaftVersion(int(is_dynamic))


def test_the_records_are_in_kafkas_order() -> None:
    """metadata.version comes first, then the others by name; level 0 is not written."""
    features = choose_features("4.3", ["group.version=0"], is_dynamic=True)
    messages = [read_metadata_record(value).message for value in features.records()]
    assert [(each["name"], each["featureLevel"]) for each in messages] == [
        ("metadata.version", 30),
        ("eligible.leader.replicas.version", 1),
        ("share.version", 1),
        ("streams.version", 1),
        ("transaction.version", 2),
    ]


def test_a_metadata_version_brings_its_features() -> None:
    """metadata.version as a feature counts like the release, and the last of two settings counts."""
    settings = ["metadata.version=7", "metadata.version=20"]
    assert choose_features("4.3", settings, is_dynamic=True).levels == {"metadata.version": 20}


def test_levels_of_metadata_version() -> None:
    """3.3-IV3 is level 7, and 4.3-IV0 level 30."""
    assert METADATA_VERSIONS["3.3-IV3"] == 7
    assert METADATA_VERSIONS["4.3-IV0"] == 30


@pytest.mark.parametrize(
    ("release", "setting", "reason"),
    [
        ("9.9", "group.version=1", "unknown release '9.9'"),
        ("4.3", "no.such.version=1", "no feature is called 'no.such.version'"),
        ("4.3", "group.version", "not a level"),
        ("4.3", "group.version=-1", "not a level"),
        ("4.3", "group.version=\u0663", "not a level"),
        ("4.3", "group.version=" + "9" * 5000, "not a level"),
        ("4.3", "group.version=2", "levels 0 to 1, not 2"),
        ("4.3", f"metadata.version={UNCOMPARED}", f"no metadata.version has level {UNCOMPARED}"),
        ("4.3", "kraft.version=0", "kraft.version 0 does not go with voters in the log"),
        ("4.3", "kraft.version=2", "kraft.version 2 does not go with voters in the log"),
        ("4.0-IV0", "eligible.leader.replicas.version=1", "needs metadata.version 4.0-IV1"),
    ],
)
def test_options_that_exclude_each_other_are_refused(release: str, setting: str, reason: str) -> None:
    """An unknown release, feature or level, and a level that does not go with the rest, are refused."""
    with pytest.raises(ValueError, match=reason):
        choose_features(release, [setting], is_dynamic=True)
