# SPDX-License-Identifier: Apache-2.0
"""The batches of a share partition are merged as Kafka does it: by offset, the highest count and then state counts."""

import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.coordinators.share_batches import combined_batches, merged_share_state

Batch = tuple[int, int, int, int]
"""First and last offset, delivery state and delivery count."""


def as_fields(batch: Batch) -> dict[str, Any]:
    """A batch with the names of the record."""
    return dict(zip(("firstOffset", "lastOffset", "deliveryState", "deliveryCount"), batch, strict=True))


def combined(*batches: Batch, start: int = -1) -> list[Batch]:
    """The batches without overlaps."""
    return [tuple(each.values()) for each in combined_batches(map(as_fields, batches), start)]


_BATCHES = st.builds(
    lambda first, size, state, count: (first, first + size, state, count),
    *(st.integers(0, 12), st.integers(0, 5), st.sampled_from((0, 2, 4)), st.integers(1, 3)),
)


@given(st.lists(_BATCHES, max_size=8), st.integers(-1, 14))
def test_each_offset_has_the_highest_count_and_state(batches: list[Batch], start: int) -> None:
    """As found offset by offset; and no two adjacent batches could be one."""
    found = combined(*batches, start=start)
    expected = {}
    for offset in range(20):
        ranks = [(count, state) for first, last, state, count in batches if first <= offset <= last]
        if ranks and offset >= start:
            expected[offset] = max(ranks)
    shown = [(offset, (count, state)) for first, last, state, count in found for offset in range(first, last + 1)]
    assert (len(shown), dict(shown)) == (len(expected), expected)
    assert [offset for offset, _ in shown] == sorted(expected)
    for before, after in itertools.pairwise(found):
        assert before[1] + 1 < after[0] or before[2:] != after[2:]


def test_the_start_offset_cuts_a_batch() -> None:
    """At its first offset nothing, after it a part, after its last all; -1 is no limit."""
    batch = (3, 5, 2, 1)
    assert [combined(batch, start=start) for start in (-1, 3, 4, 5, 6)] == [
        [batch],
        [batch],
        [(4, 5, 2, 1)],
        [(5, 5, 2, 1)],
        [],
    ]


def test_an_update_says_what_is_new() -> None:
    """Start offset and leader epoch stay if it does not tell them; the epochs of the snapshot stay always."""
    state: dict[str, Any] = {
        "snapshotEpoch": 1,
        "stateEpoch": 2,
        "leaderEpoch": 3,
        "startOffset": 4,
        "deliveryCompleteCount": 5,
    }
    state |= {"createTimestamp": 6, "writeTimestamp": 7, "stateBatches": [as_fields((4, 9, 0, 1))]}
    unknown = {"snapshotEpoch": 1, "leaderEpoch": -1, "startOffset": -1, "deliveryCompleteCount": 5, "stateBatches": []}
    assert merged_share_state(state, unknown) == state
    update = unknown | {"leaderEpoch": 8, "startOffset": 6, "stateBatches": [as_fields((8, 9, 2, 1))]}
    merged = merged_share_state(state, update)
    assert (merged["leaderEpoch"], merged["startOffset"], merged["stateEpoch"]) == (8, 6, 2)
    assert merged["stateBatches"] == [as_fields((6, 7, 0, 1)), as_fields((8, 9, 2, 1))]
    alone = merged_share_state(None, update)
    assert (alone["startOffset"], alone["stateEpoch"], alone["stateBatches"]) == (6, -1, update["stateBatches"])
