# SPDX-License-Identifier: Apache-2.0
"""Settings of a log that make sense are taken, with Kafka's defaults, and others refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.log.retention import Retention
from raftlog.storage.segments.log_config import LogConfig
from raftlog.storage.segments.log_segment import RollLimits
from raftlog.storage.segments.segment_indexes import IndexLimits


def test_the_defaults_are_kafkas() -> None:
    """They are those of the parts that take them."""
    config = LogConfig()
    assert (config.roll_limits, config.index_limits, config.retention) == (RollLimits(), IndexLimits(), Retention())
    assert config.segment_size_bytes == 1024**3


@given(st.integers(1, 2**31 - 1), st.integers(0), st.integers(0), st.integers(24, 2**31 - 1))
def test_every_sensible_setting_reaches_its_part(
    segment_size_bytes: int, segment_ms: int, interval_bytes: int, max_index_size_bytes: int
) -> None:
    """The settings decide when segments roll and indexes are filled; an index has space for at least one entry."""
    config = LogConfig(segment_size_bytes, segment_ms, interval_bytes, max_index_size_bytes)
    assert config.roll_limits == RollLimits(segment_size_bytes, segment_ms)
    assert config.index_limits == IndexLimits(interval_bytes, max_index_size_bytes)
    assert config.index_limits.max_offset_entries > 0
    assert config.index_limits.max_time_entries > 0


@given(st.none() | st.integers(0), st.none() | st.integers(0))
def test_retention_may_be_without_limit(retention_bytes: int | None, retention_ms: int | None) -> None:
    """None means no limit."""
    config = LogConfig(retention_bytes=retention_bytes, retention_ms=retention_ms)
    assert config.retention == Retention(retention_bytes, retention_ms)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("segment_size_bytes", 0),
        ("segment_size_bytes", 2**31),
        ("segment_ms", -1),
        ("index_interval_bytes", -1),
        ("max_index_size_bytes", 23),
        ("max_index_size_bytes", 2**31),
        ("retention_bytes", -1),
        ("retention_ms", -1),
        ("recovery_point_interval_bytes", -1),
    ],
)
def test_a_setting_out_of_range_is_refused(name: str, value: int) -> None:
    """The error names the setting."""
    with pytest.raises(ValueError, match=name):
        LogConfig(**{name: value})
