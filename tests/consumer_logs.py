# SPDX-License-Identifier: Apache-2.0
"""Logs with transactions and control records, and what a consumer sees of them, worked out naively."""

from typing import Any

import attrs
from hypothesis import strategies as st

from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.compression import CompressionType
from raftlog.records.messages.control import EndTxnMarker, write_control_record

TIMESTAMP = 1_700_000_000_000
_CODECS = [CompressionType.NONE, CompressionType.NONE, CompressionType.GZIP, CompressionType.ZSTD]


@attrs.frozen
class Step:
    """A batch: what it is, whose, how many records it has and offsets it leaves out before, when, and the codec."""

    kind: str
    producer: int = 1
    count: int = 2
    gap: int = 0
    time: int = 0
    codec: CompressionType = CompressionType.NONE


steps = st.lists(
    st.builds(
        Step,
        st.sampled_from(["plain", "write", "write", "commit", "abort", "leader"]),
        st.integers(1, 3),
        st.integers(1, 3),
        st.integers(0, 2),
        st.integers(0, 9),
        st.sampled_from(_CODECS),
    ),
    max_size=14,
)


@attrs.define
class Seen:
    """A record, and what it turns out to be."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    producer: int | None
    is_control: bool
    is_transactional: bool
    is_aborted: bool = False


class ConsumerLog:
    """A log of some steps: its batches, its records, and the last stable offset.

    Attributes:
        batches: as they are stored.
        base_offsets: of each.
        open_at: the transactions that are open before each batch: where they began, by producer.
        aborted: producer, first offset and marker of each aborted transaction.
        records: all of them, by offset.
        end_offset: after the last batch.
        stable_end: the last stable offset.
    """

    def __init__(self, steps: list[Step]) -> None:
        self.batches: list[bytes] = []
        self.base_offsets: list[int] = []
        self.open_at: list[dict[int, int]] = []
        self.aborted: list[tuple[int, int, int]] = []
        self.records: list[Seen] = []
        self.end_offset = 0
        active: dict[int, int] = {}
        for step in steps:
            self.open_at.append(dict(active))
            base_offset = self.end_offset + step.gap
            self._add(step, base_offset)
            if step.kind == "write":
                active.setdefault(step.producer, base_offset)
            elif step.kind in {"commit", "abort"} and step.producer in active:
                first = active.pop(step.producer)
                if step.kind == "abort":
                    self.aborted.append((step.producer, first, base_offset))
                    for record in self.records:
                        is_of_it = record.producer == step.producer and first <= record.offset < base_offset
                        record.is_aborted |= is_of_it and record.is_transactional and not record.is_control
        self.stable_end = min(active.values(), default=self.end_offset)

    def _add(self, step: Step, base_offset: int) -> None:
        is_transactional = step.kind in {"write", "commit", "abort"}
        is_control = step.kind in {"commit", "abort", "leader"}
        options: dict[str, Any] = {"is_control": is_control, "compression_type": step.codec}
        if is_transactional:
            options |= {"producer_id": step.producer, "producer_epoch": 0, "is_transactional": True, "base_sequence": 0}
        builder = RecordBatchBuilder(base_offset, partition_leader_epoch=1, **options)
        rows: list[tuple[bytes | None, bytes | None]] = [(b"k%d" % each, b"v") for each in range(step.count)]
        if step.kind in {"commit", "abort"}:
            rows = [write_control_record(EndTxnMarker(step.kind == "commit", 0))]
        elif step.kind == "leader":
            rows = [(b"\0\0\0\2", b"")]  # Not a marker: the value does not matter.
        for index, (key, value) in enumerate(rows):
            timestamp = TIMESTAMP + step.time - index
            builder.append(timestamp, key, value)
            producer = step.producer if is_transactional else None
            self.records.append(
                Seen(base_offset + index, timestamp, key, value, producer, is_control, is_transactional)
            )
        self.base_offsets.append(base_offset)
        self.batches.append(builder.build())
        self.end_offset = base_offset + len(rows)

    def seen(
        self,
        from_offset: int | None = None,
        to_offset: int | None = None,
        since_ms: int | None = None,
        *,
        data_only: bool = True,
        read_committed: bool = False,
    ) -> list[Seen]:
        """Return what a reader is given, record by record."""
        return [
            each
            for each in self.records
            if (from_offset is None or each.offset >= from_offset)
            and (to_offset is None or each.offset < to_offset)
            and (since_ms is None or each.timestamp >= since_ms)
            and not (data_only and each.is_control)
            and not (read_committed and (each.is_aborted or each.offset >= self.stable_end))
        ]
