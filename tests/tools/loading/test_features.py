# SPDX-License-Identifier: Apache-2.0
"""The levels of features that releases support; tests/kafka/test_load_check.py compares them with Kafka's."""

import pytest

from raftlog.records.messages.releases import LEVELS, METADATA_VERSIONS
from raftlog.tools.loading.features import CHECKED_RELEASES, supported_levels, unsupported_level


def test_every_release_with_messages_of_its_own_is_checked() -> None:
    """A release that is added is checked too."""
    assert CHECKED_RELEASES == LEVELS


@pytest.mark.parametrize("release", CHECKED_RELEASES)
def test_levels_are_inclusive(release: str) -> None:
    """At each end, and one level outside of it."""
    for name, (lowest, highest) in supported_levels(release).items():
        assert unsupported_level(release, name, lowest) is None
        assert unsupported_level(release, name, highest) is None
        assert (
            unsupported_level(release, name, lowest - 1)
            == f"{name} has level {lowest - 1}, and {release} supports {lowest} to {highest}"
        )
        assert unsupported_level(release, name, highest + 1) is not None


def test_a_feature_that_is_not_known_has_level_0() -> None:
    """And no other one."""
    assert unsupported_level("4.4", "none", 0) is None
    assert unsupported_level("4.4", "none", 1) == "none has level 1, and 4.4 supports 0 to 0"


def test_a_release_supports_its_own_metadata_version() -> None:
    """The last one that has its name."""
    for release in CHECKED_RELEASES:
        own = [level for name, level in METADATA_VERSIONS.items() if name.startswith(f"{release}-")]
        assert supported_levels(release)["metadata.version"][1] == own[-1]
