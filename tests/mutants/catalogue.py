# SPDX-License-Identifier: Apache-2.0
"""All mutants by name."""

from typing import Final

from tests.mutants import (
    of_accumulator,
    of_autopilot,
    of_control_records,
    of_copies,
    of_core_snapshots,
    of_driving,
    of_elections,
    of_failures,
    of_findings,
    of_follow,
    of_following,
    of_invariants,
    of_kernel,
    of_listeners,
    of_live_directories,
    of_logs,
    of_proof,
    of_quarantine,
    of_queries,
    of_quorum,
    of_quorum_state,
    of_readers,
    of_reads,
    of_recovery,
    of_salvage,
    of_scenarios,
    of_settings,
    of_shutdown,
    of_snapshots,
    of_spark,
    of_spark_files,
    of_upgrades,
    of_voter_changes,
)
from tests.mutants.planting import Mutant

VARIABLE: Final = "RAFTLOG_MUTANT"
"""The environment variable that names the mutant to plant."""

_ALL: Final = (
    *of_logs.MUTANTS,
    *of_invariants.MUTANTS,
    *of_recovery.MUTANTS,
    *of_copies.MUTANTS,
    *of_quarantine.MUTANTS,
    *of_proof.MUTANTS,
    *of_salvage.MUTANTS,
    *of_findings.MUTANTS,
    *of_quorum.MUTANTS,
    *of_elections.MUTANTS,
    *of_following.MUTANTS,
    *of_driving.MUTANTS,
    *of_failures.MUTANTS,
    *of_upgrades.MUTANTS,
    *of_quorum_state.MUTANTS,
    *of_listeners.MUTANTS,
    *of_live_directories.MUTANTS,
    *of_follow.MUTANTS,
    *of_reads.MUTANTS,
    *of_settings.MUTANTS,
    *of_shutdown.MUTANTS,
    *of_snapshots.MUTANTS,
    *of_spark.MUTANTS,
    *of_spark_files.MUTANTS,
    *of_queries.MUTANTS,
    *of_scenarios.MUTANTS,
    *of_voter_changes.MUTANTS,
    *of_autopilot.MUTANTS,
    *of_control_records.MUTANTS,
    *of_core_snapshots.MUTANTS,
    *of_accumulator.MUTANTS,
    *of_readers.MUTANTS,
    *of_kernel.MUTANTS,
)
MUTANTS: Final[dict[str, Mutant]] = {mutant.name: mutant for mutant in _ALL}
assert len(MUTANTS) == len(_ALL)
