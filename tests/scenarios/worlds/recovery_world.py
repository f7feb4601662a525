# SPDX-License-Identifier: Apache-2.0
"""The world of a log directory on a disk that crashes, fails, and returns wrong bytes.

Each batch is appended separately. A segment holds three batches of one record: offsets 0 to 2, 3 to 5, and so on.
``open`` prints the report of startup recovery.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

import attrs

from raftlog.file_system import join
from raftlog.log.replicated_log import ReplicatedLog
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource, Piece, TornTail, ZeroPadding, split
from raftlog.snapshot.paths import snapshot_name
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.recovery.recovery_report import ActionKind, RecoveryReport
from raftlog.testing.file_system.faults import Fault, Operation
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.file_logs import DIRECTORY, cut, flip, forget_durable_point, kill, open_log, overwrite, segment_path
from tests.offset_notation import offset_and_epoch_text
from tests.scenarios.world import CommandError, World, command
from tests.scenarios.worlds.batch_notation import batch_text
from tests.scenarios.worlds.log_world import LogWorld
from tests.scenarios.worlds.snapshot_world import SnapshotWorld

_INDEX_SUFFIXES: Final = (".index", ".timeindex")
_LEADING_ZEROS: Final = re.compile(r"\b0{8,}(?=\d)")
_BYTE_IN_RECORDS: Final = 65
"""The position of a byte after the header of a batch."""


class Disk:
    """A disk, and the log on it while that is open."""

    def __init__(self) -> None:
        self.files = MemoryFileSystem()
        self.opened: FileLog | None = None

    @property
    def log(self) -> ReplicatedLog:
        """The open log."""
        if self.opened is None:
            raise CommandError("the log is not open")
        return self.opened

    def open(self) -> FileLog:
        """Open the log."""
        if self.opened is not None:
            raise CommandError("the log is open")
        self.opened = open_log(self.files)
        return self.opened

    def reopen(self) -> None:
        """Close the log, and open it again."""
        self.log.close()
        self.opened = None
        self.open()

    def crash(self) -> None:
        """Lose what is not durable, and open the log again."""
        self.stop(self.files.crash(lambda count: 0))
        self.open()

    def stop(self, files: MemoryFileSystem) -> None:
        """End the process: the log is not closed, and the disk continues with other contents."""
        self.files, self.opened = files, None


class RecoveryWorld(SnapshotWorld):
    """A directory with a log, opened and empty at first."""

    def __init__(self) -> None:
        self.disk = Disk()
        super().__init__(self.disk)
        self.disk.open()

    def close(self) -> None:
        """Leave the log as it is: its disk is in memory, and may have failed."""

    @property
    def files(self) -> MemoryFileSystem:
        """The disk's file system."""
        return self.disk.files

    @command
    def state(self) -> str:
        """Print the log, up to where it is durable, its snapshots, and whether it is in quarantine."""
        lines = [f"{LogWorld.state(self)} flushed {self.log.flushed_offset}"]
        if self.log.snapshot_ids:
            lines.append(f"snapshots: {' '.join(map(offset_and_epoch_text, self.log.snapshot_ids))}")
        if self.log.quarantine is not None:
            bad = self.log.quarantine
            lines.append(f"quarantine: from offset {bad.first_bad_offset} until the end is {bad.durable_end_offset}")
        return "\n".join(lines)

    @command
    def append(self, *batches: str, epoch: int) -> str:
        """Append batches as the leader of an epoch, one by one."""
        for each in batches:
            super().append(each, epoch=epoch)
        return self.state()

    @command
    def append_as_follower(self, *batches: str, epoch: int) -> str:
        """Append batches that the leader of an epoch has sent, one by one."""
        for each in batches:
            super().append_as_follower(each, epoch=epoch)
        return self.state()

    # The process

    @command
    def begin_again(self) -> str:
        """Begin with another disk, which is empty."""
        self.disk.stop(MemoryFileSystem())
        self.disk.open()
        return self.state()

    @command
    def open(self) -> str:
        """Open the log, and print what startup recovery has found and done."""
        return "\n".join([*_report_lines(self.disk.open().recovery), self.state()])

    @command
    def reopen(self) -> str:
        """Close the log in order, and open it again."""
        self.shut_down()
        return self.open()

    @command
    def shut_down(self) -> str:
        """Close the log in order."""
        self.log.close()
        self.disk.stop(self.files)
        return self.segments()

    @command
    def kill(self) -> str:
        """End the process. The machine keeps running, with everything that was written."""
        self.disk.stop(kill(self.files))
        return self.segments()

    @command
    def crash(self, *, keep: str = "none") -> str:
        """End the machine's power: of what was not synced, none or all is left. The log is not opened."""
        if keep not in {"none", "all"}:
            raise CommandError(f"a crash keeps none or all, not '{keep}'")
        self.disk.stop(self.files.crash(lambda count: count - 1 if keep == "all" else 0))
        return self.segments()

    # The disk

    @command
    def segments(self) -> str:
        """Print what is in the files of batches."""
        return "\n".join(
            f"segment {base_offset}: {' '.join(map(_piece_text, _pieces(data))) or 'empty'}"
            for base_offset, data in self._segment_contents()
        )

    @command
    def list_files(self) -> str:
        """Print the names of all files but indexes and the lock."""
        names = (name for name in self.files.list(DIRECTORY) if not name.endswith((*_INDEX_SUFFIXES, ".lock")))
        return "\n".join(sorted(map(_short, names)))

    @command
    def flip_bit(self, offset: int) -> str:
        """Change a bit in the records of the batch that starts at an offset."""
        path, position, _ = self._place(offset)
        flip(self.files, path, position + _BYTE_IN_RECORDS)
        return self.segments()

    @command
    def damage_snapshot(self, snapshot_id: OffsetAndEpoch) -> str:
        """Change a bit in the middle of a snapshot."""
        path = join(DIRECTORY, snapshot_name(snapshot_id))
        data = bytearray(self.files.contents()[path])
        data[len(data) // 2] ^= 1
        self.files.remove(path)  # It is read-only.
        self.files.open(path, create=True).append(bytes(data))
        return f"changed a bit of {_short(path)}"

    @command
    def tear(self, offset: int, *, left: int) -> str:
        """Cut a file so that so many bytes of the batch at an offset are left."""
        path, position, _ = self._place(offset)
        cut(self.files, path, position + left)
        return self.segments()

    @command
    def zero(self, offset: int) -> str:
        """Overwrite the batch at an offset with zeros, as where a file's length was written before its bytes."""
        path, position, size_bytes = self._place(offset)
        overwrite(self.files, path, position, bytes(size_bytes))
        return self.segments()

    @command
    def remove_segment(self, base_offset: int) -> str:
        """Remove the file of a segment."""
        self.files.remove(segment_path(base_offset))
        return self.segments()

    @command
    def remove_raftlog_files(self) -> str:
        """Remove the files that Kafka does not write, which say what is durable."""
        forget_durable_point(self.files)
        return self.segments()

    @command
    def fail(self, operation: str, *, path_end: str = "") -> str:
        """Let the next operation of a kind fail."""
        try:
            fault = Fault(Operation(operation), path_end=path_end)
        except ValueError:
            raise CommandError(f"'{operation}' is none of {', '.join(each.value for each in Operation)}") from None
        self.files.faults.append(fault)
        return f"the next {operation} will fail"

    def _segment_contents(self) -> Iterator[tuple[int, bytes]]:
        for path, data in sorted(self.files.contents().items()):
            if path.endswith(".log"):
                yield int(path.removeprefix(f"{DIRECTORY}/").removesuffix(".log")), data

    def _place(self, offset: int) -> tuple[str, int, int]:
        """Return the path, position and size of the batch that starts at an offset."""
        for base_offset, data in self._segment_contents():
            for piece in _pieces(data):
                if isinstance(piece, RecordBatch) and piece.base_offset == offset:
                    return segment_path(base_offset), piece.position, piece.size_bytes
        raise CommandError(f"no sound batch starts at {offset}")


def _report_lines(report: RecoveryReport) -> Iterator[str]:
    """Yield the lines of a report; rebuilt files, which follow from the log, are only counted."""
    kept = tuple(action for action in report.actions if action.kind is not ActionKind.REBUILT)
    yield from (_short(line) for line in attrs.evolve(report, actions=kept).lines())
    if len(kept) < len(report.actions):
        yield f"files rebuilt from the batches: {len(report.actions) - len(kept)}"


def _pieces(data: bytes) -> Iterator[Piece]:
    return split(BufferSource(data))


def _piece_text(piece: Piece) -> str:
    match piece:
        case RecordBatch():
            return batch_text(piece)
        case TornTail():
            return f"torn({piece.size_bytes} bytes)"
        case ZeroPadding():
            return f"zeros({piece.size_bytes} bytes)"
    return f"corrupt({piece.size_bytes} bytes)"


def _short(text: str) -> str:
    """Return text without the directory, and without the leading zeros of names."""
    return _LEADING_ZEROS.sub("", text).replace(f"{DIRECTORY}/", "")


RECOVERY_WORLDS: Final[dict[str, Callable[[], World]]] = {"file": RecoveryWorld}
