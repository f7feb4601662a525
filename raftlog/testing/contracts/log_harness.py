# SPDX-License-Identifier: Apache-2.0
"""The object that the contract of a log is tested on: a log that can be closed, opened again and crashed."""

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import pytest

from raftlog.disk_work import DiskResult, DiskWork
from raftlog.errors import WorkUnderWayError
from raftlog.log.replicated_log import ReplicatedLog
from raftlog.log.retention import Retention
from raftlog.offsets import OffsetAndEpoch
from raftlog.testing.file_system.faults import Operation, Step
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem

KEEP_ALL: Final = Retention(max_bytes=None, max_age_ms=None)


class LogHarness(Protocol):
    """One log, and the means to reopen it and to crash its machine."""

    @property
    def log(self) -> ReplicatedLog:
        """The log; it may be another object after ``reopen`` or ``crash``."""
        ...

    def reopen(self) -> None:
        """Close the log, and open it again."""
        ...

    def crash(self) -> None:
        """Lose what is not durable, and open the log again."""
        ...


class LogInParts:
    """A log that executes blocking calls by their ``prepare_...`` form, and checks what must hold in between.

    Only ``run`` may sync, and only the paths that the work named before. Queries answered from memory give the same
    before and after it, and no other work is accepted meanwhile.
    """

    def __init__(self, log: ReplicatedLog, file_system: MemoryFileSystem | None = None) -> None:
        self._log = log
        self._file_system = file_system

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def _steps(self) -> Sequence[Step]:
        return () if self._file_system is None else tuple(self._file_system.steps)

    def _in_parts(self, prepare: Callable[[], DiskWork[DiskResult[Any]]]) -> Any:
        syncs = (Operation.SYNC, Operation.SYNC_DIRECTORY)
        before = self._steps()
        work = prepare()
        prepared = self._steps()
        assert not [step for step in prepared[len(before) :] if step.operation in syncs]
        if work.is_needed:
            with pytest.raises(WorkUnderWayError):
                work.finish()
            for more in (self._log.prepare_flush, lambda: self._log.prepare_truncate_to(self._log.end_offset.offset)):
                with pytest.raises(WorkUnderWayError):
                    more()
            pointers = self._pointers()
            work.run()
            assert self._pointers() == pointers
            for step in self._steps()[len(prepared) :]:
                is_read = step.operation in (Operation.READ, Operation.OPEN, Operation.LIST)
                assert is_read or step.path.removesuffix(".tmp") in work.paths
        ran = self._steps()
        result = work.finish()
        assert not [step for step in self._steps()[len(ran) :] if step.operation in syncs]
        assert (result.epoch, result.generation) == (self._log.last_fetched_epoch, self._log.generation)
        assert work.finish() is result
        return result.value

    def _pointers(self) -> Sequence[object]:
        log = self._log
        return (log.start_offset, log.high_watermark, log.flushed_offset, log.end_offset, log.last_fetched_epoch)

    def append_as_leader(self, batches: bytes, epoch: int) -> Any:
        """Append as a leader."""
        return self._in_parts(lambda: self._log.prepare_append_as_leader(batches, epoch))

    def append_as_follower(self, batches: bytes, epoch: int) -> Any:
        """Append as a follower."""
        return self._in_parts(lambda: self._log.prepare_append_as_follower(batches, epoch))

    def flush(self) -> None:
        """Flush."""
        assert self._in_parts(self._log.prepare_flush) == self._log.flushed_offset == self._log.end_offset.offset

    def initialize_leader_epoch(self, epoch: int) -> None:
        """Begin an epoch."""
        self._in_parts(lambda: self._log.prepare_leader_epoch(epoch))

    def truncate_to(self, offset: int) -> None:
        """Truncate."""
        assert self._in_parts(lambda: self._log.prepare_truncate_to(offset)) == self._log.end_offset.offset

    def truncate_to_end_offset(self, end_offset: OffsetAndEpoch) -> Any:
        """Truncate where logs diverge."""
        return self._in_parts(lambda: self._log.prepare_truncate_to_end_offset(end_offset))

    def truncate_to_latest_snapshot(self) -> Any:
        """Restart at the latest snapshot."""
        return self._in_parts(self._log.prepare_truncate_to_latest_snapshot)

    def delete_before_snapshot(self, snapshot_id: OffsetAndEpoch) -> Any:
        """Move the log start."""
        return self._in_parts(lambda: self._log.prepare_delete_before_snapshot(snapshot_id))

    def clean(self, now_ms: int) -> bool:
        """Clean, step by step."""
        has_cleaned = False
        while self._in_parts(lambda: self._log.prepare_clean(now_ms)):
            has_cleaned = True
        return has_cleaned
