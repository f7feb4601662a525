# SPDX-License-Identifier: Apache-2.0
"""States of coordinators that show an offset that was not committed, or hide one that was."""

from typing import Any, Final

from raftlog.tools.coordinators import share_batches
from raftlog.tools.coordinators.coordinator_state import OFFSET, CoordinatorState
from raftlog.tools.state import coordinator_reading
from tests.mutants.planting import Mutant, Wrong, instead, swapped

STATE: Final = "tests/tools/coordinators/test_coordinator_state.py"
WAITS: Final = f"{STATE}::test_an_offset_of_a_transaction_waits_for_its_marker"
LAST: Final = f"{STATE}::test_the_last_record_of_a_key_counts"


def _at_once(right: Wrong) -> Wrong:
    return lambda self, offset, index, _, key, value: right(self, offset, index, -1, key, value)


def _always_committed(self: Any, _offset: int, _index: int, producer_id: int, _key: Any, _value: Any) -> None:
    for pending in self._pending.pop(producer_id, ()):
        entry = self.entries.pop(pending)
        self.entries[(OFFSET, *pending[2:])] = entry


def _last_wins(batches: Any, start_offset: int) -> Any:
    by_offset = {}
    for each in batches:
        for offset in range(max(each["firstOffset"], start_offset), each["lastOffset"] + 1):
            by_offset[offset] = each
    return [dict(by_offset[offset], firstOffset=offset, lastOffset=offset) for offset in sorted(by_offset)]


MUTANTS: Final = (
    Mutant(
        "R-coordinators-pending",
        "an offset of a transaction waits for the marker",
        "OffsetMetadataManager#replay",
        swapped(CoordinatorState, "_replay", _at_once),
        (WAITS,),
    ),
    Mutant(
        "R-coordinators-marker",
        "an aborted transaction commits nothing, and a committed one no offset that a later record has set",
        "OffsetMetadataManager#replayEndTransactionMarker",
        instead(CoordinatorState, "_end", _always_committed),
        (WAITS, LAST),
    ),
    Mutant(
        "R-coordinators-tombstone",
        "a tombstone removes what is pending, too",
        "OffsetMetadataManager#replay",
        instead(CoordinatorState, "_remove_pending", lambda *_: None),
        (LAST,),
    ),
    Mutant(
        "R-coordinators-share",
        "of batches that overlap, the one that was delivered more often counts",
        "PersisterStateBatchCombiner",
        instead(share_batches, "combined_batches", _last_wins),
        ("tests/tools/coordinators/test_share_batches.py",),
    ),
    Mutant(
        "R-coordinators-damage",
        "what damage has taken is not what compaction has removed",
        "Cleaner#cleanSegments",
        instead(coordinator_reading._Extent, "add_damage", lambda _: None),
        ("tests/tools/state/test_coordinator_extent.py",),
    ),
)
