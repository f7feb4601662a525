# SPDX-License-Identifier: Apache-2.0
"""How long replicas wait in a simulation, and how much they fetch at once."""

from typing import Final

import attrs

from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.testing.simulator.fault_plan import FaultPlan

CONFIG: Final = QuorumConfig(
    election_timeout_ms=300,
    fetch_timeout_ms=600,
    election_backoff_max_ms=200,
    append_linger_ms=5,
    request_timeout_ms=400,
    retry_backoff_ms=100,
    fetch_max_wait_ms=450,
    fetch_snapshot_max_bytes=300,
    cleaning_interval_ms=2_000,
    max_uncommitted_appends=30,
)
CALM_CONFIG: Final = attrs.evolve(CONFIG, fetch_max_wait_ms=200)
"""With autopilots: a leader leads for long enough for their windows, because an idle Fetch is answered in time."""
FEW_BYTES: Final = 200
"""Of records that are fetched at once, in schedules with aimed faults: one batch mostly, and so seldom two epochs."""


def config_of(plan: FaultPlan) -> QuorumConfig:
    """Return the configuration of all replicas of a schedule."""
    config = CALM_CONFIG if plan.autopilot_look_ms else CONFIG
    return attrs.evolve(config, fetch_max_bytes=FEW_BYTES) if plan.is_aimed else config
