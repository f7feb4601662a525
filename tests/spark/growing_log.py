# SPDX-License-Identifier: Apache-2.0
"""A log in real files that grows while a stream reads it, with a model of the records that the stream should read."""

from pathlib import Path
from random import Random

from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.segments.log_config import LogConfig
from raftlog.testing.contracts.made_batches import raft_batch
from tests.file_logs import make_snapshot

NAME = "__cluster_metadata-0"
SMALL_SEGMENTS = LogConfig(segment_size_bytes=1024, index_interval_bytes=200, retention_bytes=None, retention_ms=None)


class GrowingLog:
    """A replica's log, and the history of its records: each record says the epoch that it was written in.

    Args:
        data: the log directory.
        random: what decides about sizes.
    """

    def __init__(self, data: Path, random: Random) -> None:
        self._random = random
        self._log = FileLog.open(LocalFileSystem(), str(data / NAME), SMALL_SEGMENTS)
        self._epoch = 1
        self._batch_ends: list[int] = []
        self.records: list[int] = []
        """Epochs by offset, including records that were deleted after a snapshot."""
        self.truncated_to: int | None = None
        """The least offset that it was ever truncated to."""

    @property
    def end(self) -> int:
        """Where the log ends."""
        return len(self.records)

    def append(self) -> None:
        """Write a few batches, which may roll segments."""
        for _ in range(self._random.randint(1, 4)):
            count = self._random.randint(1, 5)
            self._log.append_as_leader(raft_batch(self.end, self._epoch, count, b"%d" % self._epoch), self._epoch)
            self.records += [self._epoch] * count
            self._batch_ends.append(self.end)
        self._log.flush()

    def truncate(self, lowest: int, highest: int | None = None) -> None:
        """Truncate after a batch that ends between two offsets, both inclusive; a new leader continues."""
        kept = [end for end in self._batch_ends if lowest <= end <= (self.end if highest is None else highest)]
        if not kept:
            return
        offset = self._random.choice(kept)
        self._log.truncate_to(offset)
        del self.records[offset:]
        self._batch_ends = [end for end in self._batch_ends if end <= offset]
        self.truncated_to = offset if self.truncated_to is None else min(offset, self.truncated_to)
        self._epoch += 1

    def take_snapshot(self, highest: int, lowest: int = 1) -> None:
        """Replace the records up to a batch's end between two offsets, both inclusive, by a snapshot."""
        ends = [end for end in self._batch_ends if max(lowest, self._log.start_offset + 1) <= end <= highest]
        if ends:
            offset = self._random.choice(ends)
            snapshot_id = make_snapshot(self._log, offset, self.records[offset - 1])
            assert self._log.delete_before_snapshot(snapshot_id)

    @property
    def start(self) -> int:
        """Where the log starts."""
        return self._log.start_offset

    def close(self) -> None:
        """Close the log."""
        self._log.close()
