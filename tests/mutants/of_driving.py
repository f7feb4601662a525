# SPDX-License-Identifier: Apache-2.0
"""A wrong driver: effects in another order, and results of a log as it was before."""

from typing import Any, Final

from raftlog.quorum.driving import carrying_out
from raftlog.quorum.driving.disk_queue import DiskQueue
from raftlog.quorum.driving.replica_driver import ReplicaDriver
from raftlog.quorum.seam.log_view import LogView
from tests.mutants.planting import Mutant, Wrong, instead, swapped

DRIVER: Final = "tests/quorum/driving/test_replica_driver.py"
EFFECTS: Final = "tests/quorum/driving/test_carrying_out.py"
LATE: Final = "tests/quorum/seam/test_late_results.py"


def _nested(right: Wrong) -> Wrong:
    def settle(driver: Any) -> None:
        driver._is_settling = False
        right(driver)

    return settle


MUTANTS: Final = (
    Mutant(
        "K-log-before-vote",
        "work on the log waits for the election states before it",
        "DECISIONS.md 61",
        instead(DiskQueue, "is_next_before", lambda *_: True),
        (DRIVER,),
    ),
    Mutant(
        "S-nested-settle",
        "effects are carried out in order, also if the network answers at once",
        "DECISIONS.md 61",
        swapped(ReplicaDriver, "settle", _nested),
        (DRIVER,),
    ),
    Mutant(
        "R24-view",
        "a report with a view that is older than the last one is refused",
        "etcd-io/raft async_storage_writes_append_aba_race",
        instead(LogView, "is_older_than", lambda *_: False),
        (LATE,),
    ),
    Mutant(
        "K-bad-records",
        "a leader cannot stop its follower by records that the log refuses",
        "KAFKA-18723",
        instead(carrying_out, "DecodeError", KeyError),
        (EFFECTS,),
    ),
)
