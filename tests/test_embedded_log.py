# SPDX-License-Identifier: Apache-2.0
"""The log inside another program: the example of the README, unchanged."""

import uuid
from pathlib import Path

from raftlog.log.control_records import KRaftControlRecordStateMachine, update_state
from raftlog.log.snapshots import begin_snapshot
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.accumulator import BatchAccumulator
from raftlog.records.messages.control import LeaderChangeMessage, Voter
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.state.log_directory import DirectoryFormat, LogDirectory, format_log_directory
from raftlog.voters.voter_set import Endpoints, ReplicaKey, SupportedVersionRange, VoterNode, VoterSet


def embedded_example(path: str, now_ms: int) -> VoterSet | None:
    """Open a log, append, take a snapshot, and ask for the voter set: in fewer than 20 lines."""
    files = LocalFileSystem()
    with LogDirectory.open(files, path) as directory, FileLog.open(files, directory.log_path) as log:
        batches = BatchAccumulator(log.last_fetched_epoch + 1, log.end_offset.offset)
        batches.append_leader_change(LeaderChangeMessage(1, (Voter(1),), (Voter(1),)), now_ms)
        batches.append(batches.epoch, [b"hello", b"world"], now_ms)
        with batches.drain() as drained:
            for batch in drained:
                log.append_as_leader(batch.data, batches.epoch)
        log.flush()
        log.update_high_watermark(log.flushed_offset)  # One voter: what is durable is committed.
        state = KRaftControlRecordStateMachine(VoterSet())
        update_state(state, log)
        if (snapshot := begin_snapshot(log, state, log.end_offset.offset, now_ms=now_ms)) is not None:
            with snapshot:
                snapshot.append([b"hello world"], now_ms)
                snapshot.freeze(now_ms)
        return state.voter_set_at_offset(log.end_offset.offset - 1)


def test_the_embedded_example(tmp_path: Path) -> None:
    """The example's log holds what it appended, its snapshot verifies, and the voters are those of the directory."""
    node = VoterNode(
        ReplicaKey(1, uuid.UUID(int=1 << 100)),
        Endpoints.of({"CONTROLLER": ("localhost", 9093)}),
        SupportedVersionRange(0, 1),
    )
    path = str(tmp_path / "log")
    format_log_directory(LocalFileSystem(), path, DirectoryFormat.standalone("cluster", node), 1_700_000_000_000)

    assert embedded_example(path, 1_700_000_000_000) == VoterSet.of([node])

    with LogDirectory.open(LocalFileSystem(), path) as directory:
        log = FileLog.open(LocalFileSystem(), directory.log_path)
        assert (log.start_offset, log.end_offset.offset) == (0, 3)
        assert log.latest_snapshot_id == OffsetAndEpoch(3, 1)
        assert log.quarantine is None
        log.close()
