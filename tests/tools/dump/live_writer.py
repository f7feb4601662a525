# SPDX-License-Identifier: Apache-2.0
"""A process that writes a log as a node does: ``python -m tests.tools.dump.live_writer DIRECTORY SEED END_OFFSET``."""

import sys
from pathlib import Path
from random import Random

from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.segments.log_config import LogConfig
from raftlog.testing.contracts.made_batches import raft_batch
from tests.file_logs import BATCH_SIZE, install_snapshot, make_snapshot


def write(directory: Path, random: Random, end_offset: int) -> None:
    """Append, roll, truncate, delete, restart and take over snapshots, until the log ends at an offset, for good."""
    directory.mkdir()
    config = LogConfig(segment_size_bytes=9 * BATCH_SIZE, index_interval_bytes=BATCH_SIZE - 1)
    log = FileLog.open(LocalFileSystem(), str(directory), config)
    epoch = 1
    while log.end_offset.offset < end_offset:
        end, committed = log.end_offset.offset, log.high_watermark.offset
        step = random.random()
        if step < 0.9 or end == committed:
            log.append_as_leader(raft_batch(end, epoch), epoch)
        elif step < 0.94:
            log.truncate_to(max(committed, end - random.randint(1, 12)))
            epoch += 1
        elif step < 0.96:
            log.flush()
            log.close()
            log = FileLog.open(LocalFileSystem(), str(directory), config)
        elif step < 0.99:
            log.flush()
            log.delete_before_snapshot(make_snapshot(log, end, log.last_fetched_epoch))
        elif end + 7 < end_offset:
            epoch += 1
            install_snapshot(log, end + random.randint(1, 5), epoch)
            log.truncate_to_latest_snapshot()
    log.flush()
    log.close()


if __name__ == "__main__":
    write(Path(sys.argv[1]), Random(int(sys.argv[2])), int(sys.argv[3]))
