# SPDX-License-Identifier: Apache-2.0
"""A slow model of a coordinator's state: what counts for each key is found by looking through all records each time.

For a committed offset, only records after the last tombstone of its key count; one of a transaction counts if the first
marker of its producer after it is a commit. Of those that count, the last one is the offset. It shares no code with
``raftlog.tools.coordinators``.
"""

import json
from collections.abc import Sequence
from typing import Any

from raftlog.records.messages.coordinator import CoordinatorRecord, read_coordinator_record
from raftlog.tools.coordinators.coordinator_state import CoordinatorBatch

_Row = tuple[int, int, Any, bool]
"""Offset, producer id, key as text, and whether there is a value; of a marker, the key is whether it commits."""


def naive_offsets(topic: str, batches: Sequence[CoordinatorBatch]) -> tuple[dict[str, int], set[tuple[int, int]]]:
    """The offset of the record that counts, by key; and each pending record with its producer."""
    rows, markers = _rows(topic, batches)
    latest: dict[str, int] = {}
    pending: set[tuple[int, int]] = set()
    for key in {row[2] for row in rows}:
        of_key = [row for row in rows if row[2] == key]
        removed = max((offset for offset, _, _, has_value in of_key if not has_value), default=-1)
        candidates = [row for row in of_key if row[0] > removed]
        counts = [row[0] for row in candidates if _has_effect(row, markers)]
        if counts:
            latest[key] = max(counts)
        pending |= set({row[1]: row[0] for row in candidates if _is_pending(row, markers)}.items())
    return latest, pending


def _rows(topic: str, batches: Sequence[CoordinatorBatch]) -> tuple[list[_Row], list[_Row]]:
    rows: list[_Row] = []
    markers: list[_Row] = []
    for batch in batches:
        for offset, key, value in batch.records:
            if batch.is_control:
                assert key is not None
                markers.append((offset, batch.producer_id, key[3] == 1, False))
                continue
            record = read_coordinator_record(topic, key, value)
            assert isinstance(record, CoordinatorRecord)
            text = json.loads(record.key_json())
            if "partition" in text["data"]:
                text["type"] = "1"  # Both types of commits are about one offset.
            rows.append((offset, batch.producer_id, json.dumps(text), value is not None))
    return rows, markers


def _is_transactional(key: str, producer_id: int) -> bool:
    """Whether a record waits for a marker: only commits do."""
    return producer_id >= 0 and "partition" in json.loads(key)["data"]


def _is_pending(row: _Row, markers: Sequence[_Row]) -> bool:
    is_ended = any(marker[1] == row[1] and marker[0] > row[0] for marker in markers)
    return _is_transactional(row[2], row[1]) and not is_ended


def _has_effect(row: _Row, markers: Sequence[_Row]) -> bool:
    if not _is_transactional(row[2], row[1]):
        return True
    after = [marker for marker in markers if marker[1] == row[1] and marker[0] > row[0]]
    return bool(after) and bool(after[0][2])
