# SPDX-License-Identifier: Apache-2.0
"""Damaging copies of what a real Kafka left, and running ``raftlog salvage`` on them."""

import json
from pathlib import Path
from typing import Any, Final

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.checksum import crc32c
from tests.tools.console import Outcome, run
from tests.tools.repair.repaired import LOG

FIRST: Final = "00000000000000000000.log"


def plan(*sources: str | Path, file: Path, options: tuple[str, ...] = ()) -> Outcome:
    """Plan a salvage; JSON lines are printed. The verb overwrites no plan: one that is there is removed before."""
    if file.is_file():
        file.unlink()
    return run("salvage", *sources, "--plan", file, "--format", "jsonl", "-j1", *options)


def apply(file: Path, out: Path) -> Outcome:
    """Carry a plan out; JSON lines are printed."""
    return run("salvage", "--apply", file, "--out", out, "--format", "jsonl")


def content(file: Path) -> dict[str, Any]:
    """The content of a plan."""
    found: dict[str, Any] = json.loads(file.read_text())["content"]
    return found


def batch_at(directory: Path, offset: int) -> tuple[Path, RecordBatch]:
    """The segment and the batch of a log that has a record."""
    for path in sorted((directory / LOG).glob("*.log")):
        for piece in split(BufferSource(path.read_bytes())):
            if isinstance(piece, RecordBatch) and piece.base_offset <= offset < piece.next_offset:
                return path, piece
    raise AssertionError(offset)


def erase(directory: Path, start: int, end: int) -> None:
    """Overwrite the batches with records from one offset to another (exclusive) with zeros, as ddrescue does."""
    for path in sorted((directory / LOG).glob("*.log")):
        data = bytearray(path.read_bytes())
        for batch in split(BufferSource(bytes(data))):
            if isinstance(batch, RecordBatch) and batch.base_offset < end and batch.next_offset > start:
                data[batch.position : batch.position + batch.size_bytes] = bytes(batch.size_bytes)
        path.write_bytes(data)


def rewrite(directory: Path, offset: int) -> None:
    """Give the batch that has a record other bytes, with a CRC that holds: its base timestamp is 1 ms off."""
    path, batch = batch_at(directory, offset)
    changed = bytearray(batch.buffer)
    changed[34] ^= 1
    changed[17:21] = crc32c(changed[21:]).to_bytes(4, "big")
    data = bytearray(path.read_bytes())
    data[batch.position : batch.position + batch.size_bytes] = changed
    path.write_bytes(data)


def without_snapshots(directory: Path, above: int = 0) -> None:
    """Delete the snapshots of a log that end above an offset."""
    for path in (directory / LOG).glob("*.checkpoint"):
        if int(path.name[:20]) > above:
            path.unlink()


def spoil(directory: Path, offset: int, at: int = 61) -> None:
    """Flip a bit in the batch that has a record, at a byte of the batch."""
    path, batch = batch_at(directory, offset)
    data = bytearray(path.read_bytes())
    data[batch.position + at] ^= 4
    path.write_bytes(data)
