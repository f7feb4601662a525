# SPDX-License-Identifier: Apache-2.0
"""Offset syncs of a topic as columns: each key is parsed once, and values as a whole."""

from typing import Final

import numpy as np

from raftlog.errors import InvalidRecordError
from raftlog.invariants import present
from raftlog.records.messages.mirrors.mirror_records import (
    OFFSET_SYNC_VALUE_SIZE,
    MirrorRecordType,
    read_mirror_record,
    read_offset_sync_key,
)
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.mirrors.comparing.lifetimes import Syncs
from raftlog.tools.mirrors.comparing.rows import Int64s
from raftlog.tools.mirrors.reading.clusters import StoredChunk
from raftlog.tools.spark.rows.options import TopicPartition

_UNREADABLE: Final = -1
"""The number of keys that are no key of an offset sync."""


class SyncColumns:
    """All offset syncs of a topic.

    Attributes:
        findings: about records that are no offset sync.
        is_whole: whether no offset is missing from the beginning on.
    """

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.is_whole = True
        self._next_offset = 0
        self._places: dict[TopicPartition, int] = {}
        self._numbers: dict[bytes | None, int] = {None: _UNREADABLE}
        self._columns: list[tuple[Int64s, ...]] = []

    def add(self, stored: StoredChunk) -> None:
        """Read the next records."""
        records = present(stored.chunk.records, "records")
        offsets = records.to_numpy("offset")
        self.is_whole = self.is_whole and bool((offsets == self._next_offset + np.arange(len(offsets))).all())
        self._next_offset += len(offsets)
        keys, values = records.keys(), records.values()
        for key in set(keys).difference(self._numbers):
            self._numbers[key] = self._number_of(key or b"")
        numbers = np.fromiter(map(self._numbers.__getitem__, keys), np.int64, len(keys))
        is_sync = (numbers != _UNREADABLE) & (records.to_numpy("value_size") == OFFSET_SYNC_VALUE_SIZE)
        for at in np.flatnonzero(~is_sync).tolist():
            try:
                read_mirror_record(MirrorRecordType.OFFSET_SYNC, keys[at], values[at])
            except InvalidRecordError as error:
                self.findings.append(Finding(stored.path, "mirror.sync", error.reason, offset=int(offsets[at])))
        pairs = np.frombuffer(b"".join(values[at] or b"" for at in np.flatnonzero(is_sync).tolist()), ">i8")
        batches = np.frombuffer(records.ends, np.int64).searchsorted(np.arange(len(offsets)), side="right")
        producers = stored.chunk.batches.to_numpy("producer_id")[batches]
        rest = (producers, offsets, records.to_numpy("timestamp"))
        self._columns.append((numbers[is_sync], pairs[::2], pairs[1::2], *(each[is_sync] for each in rest)))

    def by_place(self) -> dict[TopicPartition, Syncs]:
        """Return the syncs by partition of the source, each in the order of the topic."""
        if not self._places:
            return {}
        numbers, *columns = (np.concatenate(each).astype(np.int64) for each in zip(*self._columns, strict=True))
        order = np.argsort(numbers, kind="stable")
        ends = np.cumsum(np.bincount(numbers, minlength=len(self._places)))
        rows = np.split(order, ends[:-1])
        found = {place: Syncs(*(each[rows[number]] for each in columns)) for place, number in self._places.items()}
        return {place: each for place, each in found.items() if each}

    def _number_of(self, key: bytes) -> int:
        """Return the number of the partition that a key names, which may have several keys."""
        try:
            found = read_offset_sync_key(key)
        except InvalidRecordError:
            return _UNREADABLE
        return self._places.setdefault((found.topic, found.partition), len(self._places))
