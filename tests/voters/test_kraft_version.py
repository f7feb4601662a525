# SPDX-License-Identifier: Apache-2.0
"""Levels of kraft.version and what goes with them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import UnsupportedVersionError
from raftlog.voters.kraft_version import KRaftVersion


@given(st.integers(-(2**15), 2**15 - 1))
@settings(deadline=None)
def test_a_level_is_known_or_refused(level: int) -> None:
    """Levels 0 and 1 are versions; every other one is an UnsupportedVersionError."""
    if level in (0, 1):
        assert KRaftVersion.from_level(level) == level
    else:
        with pytest.raises(UnsupportedVersionError, match=f"kraft.version {level}"):
            KRaftVersion.from_level(level)


def test_level_0_has_no_records() -> None:
    """With static voters no control record names a version or a voter, so asking is an error."""
    static = KRaftVersion.KRAFT_VERSION_0
    assert not static.is_reconfiguration_supported
    assert static.quorum_state_version == 0
    with pytest.raises(UnsupportedVersionError, match="KRaftVersionRecord"):
        _ = static.kraft_version_record_version
    with pytest.raises(UnsupportedVersionError, match="VotersRecord"):
        _ = static.voters_record_version


def test_level_1_writes_both_records_in_version_0() -> None:
    """With reconfiguration, both records have version 0 and quorum-state has version 1."""
    dynamic = KRaftVersion.KRAFT_VERSION_1
    assert dynamic.is_reconfiguration_supported
    assert dynamic.quorum_state_version == 1
    assert dynamic.kraft_version_record_version == 0
    assert dynamic.voters_record_version == 0
