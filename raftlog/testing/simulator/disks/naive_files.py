# SPDX-License-Identifier: Apache-2.0
"""What the files of a directory say without the log: which batches are whole, and what a second open finds to do."""

import struct
from collections.abc import Iterator, Sequence
from typing import Final

from raftlog.records.batches.batch import CRC_START
from raftlog.records.checksum import crc32c
from raftlog.records.files.file_names import FileKind, FileState, parse_file_name
from raftlog.records.limits import LOG_OVERHEAD
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.recovery.recovery_point import FLUSH_MARK_NAME, RECOVERY_POINT_NAME, load_durable_point
from raftlog.storage.recovery.recovery_report import ActionKind
from raftlog.storage.segments.log_config import LogConfig
from raftlog.testing.file_system.crash_states import DiskState
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from raftlog.testing.simulator.checks.ledger import Ledger, StoredBatch
from raftlog.testing.simulator.violation import check

_OFFSET_BYTES: Final = 8
_MARK: Final = struct.Struct(">8sqqqq")
_MARK_MAGIC: Final = b"RLFLUSH\0"
_MARK_POSITIONS: Final = (0, 4096)
_EPOCH: Final = slice(12, 16)
_CRC: Final = slice(17, 21)
_LAST: Final = slice(23, 27)
_UNFINISHED: Final = (".tmp", *(each.value for each in FileState if each is not FileState.CURRENT))
_INDEXES: Final = frozenset({FileKind.OFFSET_INDEX, FileKind.TIME_INDEX})


def kind_of(path: str) -> FileKind | None:
    """Return what a file is by its name; None for a file that no log reads."""
    name = parse_file_name(path.rpartition("/")[2])
    return name.kind if name is not None and name.state is FileState.CURRENT else None


def whole_in(state: DiskState, batches: Sequence[StoredBatch]) -> list[StoredBatch]:
    """Return those of some batches that are whole in a segment, wherever they stand in it."""
    segments = [data for path, data, _ in state if data and kind_of(path) is FileKind.LOG]
    return [each for each in batches if any(_is_whole_in(data, each) for data in segments)]


def is_whole_up_to(state: DiskState, batch: StoredBatch) -> bool:
    """Whether whole batches lead from the start of a segment to a batch; a log may start inside of its first one."""
    segments = [data for path, data, _ in state if data and kind_of(path) is FileKind.LOG]
    return any(_leads_to(data, batch) for data in segments)


def _leads_to(data: bytes, batch: StoredBatch) -> bool:
    position, epoch, next_offset = 0, 0, int.from_bytes(data[:_OFFSET_BYTES])
    while position + LOG_OVERHEAD < len(data):
        found = _whole_batch_at(data, position)
        if found is None:
            return False
        offset, its_epoch = int.from_bytes(found[:_OFFSET_BYTES]), _number(found, _EPOCH)
        if offset != next_offset or not epoch <= its_epoch <= batch.epoch:
            return False
        if offset == batch.base_offset:
            return True
        position, epoch, next_offset = position + len(found), its_epoch, offset + _number(found, _LAST) + 1
    return False


def _is_whole_in(data: bytes, batch: StoredBatch) -> bool:
    whole = _whole_batches_at(data, batch.base_offset)
    return any((_number(found, _EPOCH), _number(found, _CRC)) == (batch.epoch, batch.crc) for found in whole)


def written_end(state: DiskState, end_offset: int) -> int:
    """Return up to where, exclusive, whole batches follow on an offset, in segments in use and in those set aside."""
    segments = [data for path, data, _ in state if data and FileKind.LOG.value in path]
    while found := next((each for data in segments for each in _whole_batches_at(data, end_offset)), None):
        end_offset += _number(found, _LAST) + 1
    return end_offset


def _whole_batches_at(data: bytes, base_offset: int) -> Iterator[bytes]:
    """Return the batches of a base offset whose CRC is right, wherever they stand in a segment."""
    wanted = base_offset.to_bytes(_OFFSET_BYTES)
    start = data.find(wanted)
    while start >= 0:
        found = _whole_batch_at(data, start)
        if found is not None:
            yield found
        start = data.find(wanted, start + 1)


def _whole_batch_at(data: bytes, position: int) -> bytes | None:
    """Return the batch at a position of a segment, or None if its CRC is wrong or the segment ends before it does."""
    size_bytes = LOG_OVERHEAD + _number(data, slice(position + _OFFSET_BYTES, position + LOG_OVERHEAD))
    found = data[position : position + size_bytes]
    is_whole = CRC_START < len(found) == size_bytes and crc32c(found[CRC_START:]) == _number(found, _CRC)
    return found if is_whole else None


def _number(batch: bytes, place: slice) -> int:
    return int.from_bytes(batch[place])


def durable_end_in(state: DiskState, path: str) -> int | None:
    """Return up to where, exclusive, the recovery point and the flush marks of its generation say a log was durable.

    None if the recovery point does not say it.
    """
    files = {name.removeprefix(f"{path}/"): data or b"" for name, data, _ in state}
    lines = dict(line.split(b" ", 1) for line in files.get(RECOVERY_POINT_NAME, b"").splitlines() if b" " in line)
    if not lines.keys() >= {b"durable_end_offset", b"generation"}:
        return None
    ends, generation = [int(lines[b"durable_end_offset"])], int(lines[b"generation"])
    marks = files.get(FLUSH_MARK_NAME, b"")
    for start in _MARK_POSITIONS:
        slot = marks[start : start + _MARK.size]
        if len(slot) == _MARK.size:
            magic, its_generation, end, no_generation, no_end = _MARK.unpack(slot)
            if (magic, its_generation) == (_MARK_MAGIC, generation) == (_MARK_MAGIC, ~no_generation) and end == ~no_end:
                ends.append(end)
    return max(ends)


def check_settled(state: DiskState, path: str, config: LogConfig, ledger: Ledger) -> None:
    """Check that an open has left nothing to do: another one, without the indexes, does nothing but make the same ones.

    Args:
        state: the files as the open has left them.
        path: of the log.
        config: of the log.
        ledger: of the directory.
    """
    files = MemoryFileSystem(tuple(each for each in state if kind_of(each[0]) not in _INDEXES))
    with FileLog.open(files, path, config) as log:
        made = files.contents()  # A log that is closed completes its indexes.
    done = [str(each) for each in log.recovery.actions if each.kind is not ActionKind.REBUILT]
    check(not done, "opens-finish", "{}: a second open finds {}", ledger.key, done)
    had = {name: data for name, data, _ in state}
    unfinished = [name for name in had if name.endswith(_UNFINISHED)]
    check(not unfinished, "opens-finish", "{}: {} is left", ledger.key, unfinished)
    for name in {**made, **had}:  # A missing file has no entries.
        is_same = kind_of(name) not in _INDEXES or (had.get(name) or b"") == made.get(name, b"")
        check(is_same, "opens-finish", "{}: {} is not what the segment says", ledger.key, name)


def check_witnessed(state: DiskState, path: str, ledger: Ledger, truncating_to: int | None) -> None:
    """Check that the recovery point has the epochs of durable batches: no CRC covers them, so that two files do.

    It may start later than the ledger: a deletion, or a restart at a snapshot, was under way.

    Args:
        state: what is on the disk.
        path: of the log.
        ledger: of the directory.
        truncating_to: where a truncation that was under way would have cut the log; None if none was.
    """
    stored = load_durable_point(MemoryFileSystem(state), path).epochs
    if stored is None:
        return
    end = ledger.durable_end if truncating_to is None else min(ledger.durable_end, truncating_to)
    durable = [each for each in ledger.batches if each.next_offset <= end]
    for batch in durable[1:]:
        is_known = stored.epoch_for_offset(batch.base_offset) in (batch.epoch, None)
        check(is_known, "epochs-are-witnessed", "{}: {} is not in {}", ledger.key, batch, stored)
