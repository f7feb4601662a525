# SPDX-License-Identifier: Apache-2.0
"""The merge of an update into the state of a share partition.

Of batches that overlap, each offset has the state of the one that was delivered more often, and of equal ones the later
state. Adjacent batches of one state are one batch, and what is below the start offset is gone.

Source: ShareCoordinatorShard#handleShareUpdate and #merge, PersisterStateBatchCombiner.
"""

import heapq
import itertools
from collections.abc import Iterable, Mapping
from typing import Any, Final

StateBatch = Mapping[str, Any]
"""``firstOffset``, ``lastOffset`` (inclusive), ``deliveryState`` and ``deliveryCount``."""
_UNKNOWN: Final = -1
_KEPT: Final = ("startOffset", "leaderEpoch")
"""What an update need not say."""


def merged_share_state(state: Mapping[str, Any] | None, update: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of a share partition after an update.

    Args:
        state: the fields of a ShareSnapshotValue; None if there is none, so that the update is all that is known.
        update: the fields of a ShareUpdateValue.
    """
    if state is None:
        unknown = {"stateEpoch": _UNKNOWN, "createTimestamp": _UNKNOWN, "writeTimestamp": _UNKNOWN}
        return unknown | dict(update)
    found = dict(state)
    found |= {name: update[name] for name in _KEPT if update[name] != _UNKNOWN}
    found["deliveryCompleteCount"] = update["deliveryCompleteCount"]
    found["stateBatches"] = combined_batches([*state["stateBatches"], *update["stateBatches"]], found["startOffset"])
    return found


def combined_batches(batches: Iterable[StateBatch], start_offset: int) -> list[dict[str, Any]]:
    """Return batches without overlaps, by offset.

    Args:
        batches: in any order; they may overlap.
        start_offset: what is below it is left out, exclusive; -1 for no limit.
    """
    begins = sorted((max(each["firstOffset"], start_offset), *_rank(each), each["lastOffset"]) for each in batches)
    waiting = [each for each in begins if each[0] <= each[3]]
    borders = sorted({border for first, _, _, last in waiting for border in (first, last + 1)})
    found: list[dict[str, Any]] = []
    active: list[tuple[int, int, int]] = []
    position = 0
    for border, next_border in itertools.pairwise(borders):
        while position < len(waiting) and waiting[position][0] == border:
            _, count, state, last = waiting[position]
            heapq.heappush(active, (-count, -state, last))
            position += 1
        while active and active[0][2] < border:
            heapq.heappop(active)
        if active:
            _append(found, border, next_border - 1, -active[0][1], -active[0][0])
    return found


def _rank(batch: StateBatch) -> tuple[int, int]:
    return batch["deliveryCount"], batch["deliveryState"]


def _append(found: list[dict[str, Any]], first: int, last: int, state: int, count: int) -> None:
    before = found[-1] if found else None
    if before is not None and before["lastOffset"] + 1 == first and _rank(before) == (count, state):
        before["lastOffset"] = last
        return
    found.append({"firstOffset": first, "lastOffset": last, "deliveryState": state, "deliveryCount": count})
