# SPDX-License-Identifier: Apache-2.0
"""Checks of pointers that are missing, or after which a log continues."""

from typing import Any, Final

from raftlog import invariants
from raftlog.errors import InvariantViolation
from raftlog.log.queries import LogQueries
from raftlog.storage.log.fail_stop import FailStop
from raftlog.storage.segments.log_segment import LogSegment
from tests.mutants.planting import Mutant, Wrong, instead, missing, swapped

TESTS: Final = "tests/invariants/test_invariants.py"
PLANTED: Final = f"{TESTS}::test_every_check_notices_a_planted_violation"


def _going_on(right: Wrong) -> Wrong:
    def note(guard: Any, error: BaseException) -> None:
        if not isinstance(error, InvariantViolation):
            right(guard, error)

    return note


MUTANTS: Final = (
    Mutant(
        "R-invariant",
        "a check that does not hold raises an error",
        "TigerBeetle, TIGER_STYLE.md",
        instead(invariants, "invariant", lambda *_: None),
        (f"{TESTS}::test_a_message_is_made_on_failure_alone", f"{TESTS}::test_a_snapshot_is_closed_by_a_violation"),
    ),
    Mutant(
        "R-pointers",
        "start, high watermark, flushed offset and end of a log are in order after each move",
        "ARCHITECTURE.md, Pointers into a log",
        missing(LogQueries, "_check_pointer_invariants"),
        (f"{PLANTED}[raftlog/log/queries.py]",),
    ),
    Mutant(
        "R-segment",
        "a segment's size, offsets and index agree after each move",
        "LogSegment#append",
        missing(LogSegment, "_check_invariants"),
        (f"{PLANTED}[raftlog/storage/segments/log_segment.py]",),
    ),
    Mutant(
        "R-violation",
        "a log refuses everything after a violation in a write",
        "DECISIONS.md, 51",
        swapped(FailStop, "note", _going_on),
        (f"{TESTS}::test_a_log_does_nothing_after_a_violation",),
    ),
)
