# SPDX-License-Identifier: Apache-2.0
"""Records of the coordinators' topics, made for a test."""

from typing import Any

from hypothesis import strategies as st

from raftlog.records.messages.control import EndTxnMarker, write_control_record
from raftlog.records.messages.coordinator import CoordinatorRecord, write_coordinator_record
from raftlog.records.messages.schema import message_types
from raftlog.tools.coordinators.coordinator_state import CoordinatorBatch

GROUPS = ("app", "job")
Row = tuple[bytes, bytes | None]
"""Key and value of a record."""


def coordinator_record(name: str, key: dict[str, Any], value: dict[str, Any] | None, version: int | None = None) -> Row:
    """A record of a type, by the name of its key without ``Key``; fields that are not given have their defaults."""
    types = message_types("coordinator-records")
    key_type, value_type = types[f"{name}Key"], types[f"{name}Value"]
    stated = value_type.versions.highest if version is None else version
    full = None if value is None else value_type.default() | value
    record = CoordinatorRecord(
        key_type.schema.api_key or 0, key_type, key, value_type, None if value is None else stated, full
    )
    return write_coordinator_record(record)


def commit(group: str, partition: int, offset: int | None, *, is_legacy: bool = False) -> Row:
    """A committed offset of a partition of the topic orders; None for a tombstone."""
    name = "LegacyOffsetCommit" if is_legacy else "OffsetCommit"
    key = {"group": group, "topic": "orders", "partition": partition}
    value = None if offset is None else {"offset": offset, "metadata": "m", "commitTimestamp": 5}
    return coordinator_record(name, key, value)


def classic_group(group: str, generation: int | None) -> Row:
    """A group without members; None for a tombstone."""
    value = None if generation is None else {"protocolType": "consumer", "generation": generation}
    return coordinator_record("GroupMetadata", {"group": group}, value)


def marker(*, committed: bool) -> Row:
    """What ends a transaction."""
    return write_control_record(EndTxnMarker(committed, 0, 0))


@st.composite
def coordinator_stories(draw: st.DrawFn) -> list[CoordinatorBatch]:
    """Batches of commits, of groups and of transactions of two producers, in any order, with holes of compaction."""
    batches, offset = [], draw(st.sampled_from((0, 7)))
    for number in range(draw(st.integers(0, 12))):
        producer_id = draw(st.sampled_from((-1, -1, 1, 2)))
        is_control = producer_id > 0 and draw(st.booleans())
        rows = []
        for _ in range(1 if is_control else draw(st.integers(0, 3))):
            offset += draw(st.sampled_from((0, 0, 0, 2)))
            rows.append((offset, *(marker(committed=draw(st.booleans())) if is_control else draw(_rows(offset)))))
            offset += 1
        offset += draw(st.sampled_from((0, 0, 1)))
        batches.append(CoordinatorBatch(offset, 1000 + number, producer_id, is_control, rows))
    return batches


def _rows(offset: int) -> st.SearchStrategy[Row]:
    groups, some = st.sampled_from(GROUPS), st.sampled_from((offset, offset, None))
    commits = st.builds(commit, groups, st.integers(0, 1), some, is_legacy=st.booleans())
    return commits | commits | st.builds(classic_group, groups, some)
