# SPDX-License-Identifier: Apache-2.0
"""Operations on logs, accumulators, histories and snapshots that run while one of their pointers is wrong."""

from types import SimpleNamespace
from typing import Any, ClassVar, Final

from raftlog.log.control_records import KRaftControlRecordStateMachine, update_state
from raftlog.log.memory_log import MemoryLog
from raftlog.log.replicated_log import Isolation
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.records.batches.accumulator import BatchAccumulator
from raftlog.records.batches.iterator import BufferSource, ByteSource, split
from raftlog.records.batches.window import Window
from raftlog.records.columns.columns import read_columns
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.records.messages.control import LeaderChangeMessage
from raftlog.snapshot.file_raw import FileRawSnapshotWriter
from raftlog.snapshot.memory_raw import MemoryRawSnapshotWriter
from raftlog.snapshot.writer import RecordsSnapshotWriter
from raftlog.storage.segments.log_config import LogConfig
from raftlog.storage.segments.time_index import TimeIndex
from raftlog.storage.state.quorum_state_store import QuorumStateStore
from raftlog.testing.contracts.made_batches import raft_batch
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import Endpoints, VoterSet
from raftlog.voters.voter_set_history import VoterSetHistory
from tests.file_logs import (
    BATCH_SIZE,
    cut,
    fill,
    flip,
    forget_durable_point,
    install_snapshot,
    make_snapshot,
    open_log,
    segment_path,
    write_log,
    write_unflushed_log,
)
from tests.invariants.planting import Operation, Scenario
from tests.log.control_batches import voters
from tests.quorum.following.followers import DATA, FollowerOfTwo
from tests.quorum.full_disks import FullDisk
from tests.quorum.messages import (
    CLUSTER,
    LOCAL,
    begin_quorum_epoch_request,
    fetch_request,
    fetch_response,
    update_voter_request,
    vote_response,
)
from tests.quorum.single_replica import LISTENER, SingleReplica, log_with, replica_key, voter_set_of

NOW: Final = 1_700_000_000_000


def _filled(log: Any) -> SimpleNamespace:
    fill(log, 8)
    return SimpleNamespace(log=log, work=None)


def _file_log() -> SimpleNamespace:
    return _filled(open_log(MemoryFileSystem()))


def _prepared(name: str, *arguments: Any) -> tuple[Operation, ...]:
    def prepare(subject: SimpleNamespace) -> None:
        subject.work = getattr(subject.log, name)(*arguments)

    def run(subject: SimpleNamespace) -> None:
        subject.work.run()

    def finish(subject: SimpleNamespace) -> None:
        subject.work.finish()

    return prepare, run, finish


def _append(count: int, epoch: int = 1) -> Operation:
    return lambda subject: fill(subject.log, count, epoch)


def _read(subject: SimpleNamespace) -> None:
    log = subject.log
    for offset in range(log.start_offset, log.end_offset.offset):
        log.read(offset, Isolation.UNCOMMITTED, 1)


def _follow(subject: SimpleNamespace) -> None:
    log = subject.log
    log.append_as_follower(raft_batch(log.end_offset.offset, 2) + raft_batch(log.end_offset.offset + 1, 3), 3)


_OF_ANY_LOG: Final = (
    _append(1),
    *_prepared("prepare_flush"),
    lambda subject: subject.log.update_high_watermark(5),
    lambda subject: subject.log.high_watermark,
    _read,
    lambda subject: make_snapshot(subject.log, 4),
    *_prepared("prepare_leader_epoch", 2),
    _follow,
    *_prepared("prepare_delete_before_snapshot", OffsetAndEpoch(4, 1)),
    *_prepared("prepare_truncate_to", 9),
    *_prepared("prepare_truncate_to", 6),
    _append(3, 5),
    lambda subject: install_snapshot(subject.log, 30, 9),
    *_prepared("prepare_truncate_to_latest_snapshot"),
    _append(4, 9),
    lambda subject: subject.log.flush(),
)
FILE_LOG: Final = Scenario(_file_log, (*_OF_ANY_LOG, lambda subject: subject.log.close()))
OFTEN_NOTED: Final = Scenario(
    lambda: _filled(open_log(MemoryFileSystem(), LogConfig(recovery_point_interval_bytes=1))),
    (lambda subject: subject.log.flush(), _append(1), *_prepared("prepare_flush")),
)
MEMORY_LOG: Final = Scenario(
    lambda: _filled(MemoryLog()),
    (*_OF_ANY_LOG, lambda subject: subject.log.crash(1), lambda subject: subject.log.close()),
)


def _with_a_timestamp(index: TimeIndex) -> None:
    index.add(10, 3)
    index.add(20, 5)


TIME_INDEX: Final = Scenario(
    lambda: TimeIndex(MemoryFileSystem(), "x.timeindex", 0),
    (
        _with_a_timestamp,
        lambda index: index.add(30, 9),
        lambda index: index.keep_first(1),
        TimeIndex.store,
        TimeIndex.compare,
    ),
)


def _append_values(accumulator: BatchAccumulator) -> None:
    accumulator.append(1, [b"x"] * 3, NOW)


def _append_leader_change(accumulator: BatchAccumulator) -> None:
    accumulator.append_leader_change(LeaderChangeMessage(1), NOW)


ACCUMULATOR: Final = Scenario(
    lambda: BatchAccumulator(1, 0, max_batch_records=5, voters_in_force=VoterSet()),
    (
        _append_values,
        _append_values,
        _append_leader_change,
        lambda each: each.append(1, [b"x"], NOW, delay_drain=True),
        BatchAccumulator.drain,
        _append_values,
        BatchAccumulator.drain,
    ),
)
VOTERS: Final = Scenario(
    lambda: VoterSetHistory(VoterSet()),
    (
        lambda history: history.add(1, voters(1)),
        lambda history: history.add(4, voters(1, 2)),
        lambda history: history.add(8, VoterSet()),
        lambda history: history.truncate_old_entries(2),
        lambda history: history.truncate_new_entries(6),
        lambda history: history.truncate_new_entries(3),
        lambda history: history.add(9, VoterSet()),
        lambda history: history.add(10, VoterSet()),
        VoterSetHistory.check_invariants,
    ),
)


def _machine() -> SimpleNamespace:
    log = MemoryLog()
    fill(log, 6)  # type: ignore[arg-type]
    return SimpleNamespace(log=log, machine=KRaftControlRecordStateMachine(voters(1)))


def _update(subject: SimpleNamespace) -> None:
    update_state(subject.machine, subject.log)


MACHINE: Final = Scenario(
    _machine,
    (
        lambda subject: subject.machine.handle_no_snapshot(),
        lambda subject: subject.machine._add(0, voters(1)),
        _update,
        _append(2),
        _update,
        lambda subject: subject.machine.truncate_old_entries(3),
        lambda subject: subject.machine.truncate_new_entries(5),
        _update,
    ),
)


def _snapshot_writer(raw: Any) -> SimpleNamespace:
    writer = RecordsSnapshotWriter(
        raw, NOW, last_contained_log_timestamp=0, kraft_version=KRaftVersion.KRAFT_VERSION_0, max_batch_size_bytes=200
    )
    return SimpleNamespace(log=writer, raw=raw, work=None)


_OF_A_SNAPSHOT: Final = (
    lambda subject: subject.log.append([b"x" * 80], NOW),
    lambda subject: subject.log.append([b"x" * 80], NOW),
    *_prepared("prepare_freeze", NOW),
)
SNAPSHOT_IN_MEMORY: Final = Scenario(
    lambda: _snapshot_writer(MemoryRawSnapshotWriter({}, OffsetAndEpoch(3, 1))),
    _OF_A_SNAPSHOT,
)
SNAPSHOT_IN_A_FILE: Final = Scenario(
    lambda: _snapshot_writer(FileRawSnapshotWriter(MemoryFileSystem(), ".", OffsetAndEpoch(3, 1), "1")),
    _OF_A_SNAPSHOT,
)


def _recover_in_parts(subject: SimpleNamespace) -> None:
    log = open_log(subject.files)
    log.close()


def _damaged() -> SimpleNamespace:
    files = write_unflushed_log()
    flip(files, segment_path(3), 80)
    return SimpleNamespace(files=files)


def _torn() -> SimpleNamespace:
    files = write_unflushed_log()
    cut(files, segment_path(6), 2 * BATCH_SIZE + 5)
    return SimpleNamespace(files=files)


def _without_segments() -> SimpleNamespace:
    files = write_log()
    forget_durable_point(files)
    for offset in (0, 3, 6):
        files.remove(segment_path(offset))
    return SimpleNamespace(files=files)


def _votes() -> SimpleNamespace:
    files = MemoryFileSystem()
    files.make_directory("d")
    return SimpleNamespace(log=QuorumStateStore.open(files, "d", has_log=False), work=None)


class _Growing(BufferSource):
    """Bytes that grow after their length was read."""

    sizes: ClassVar[list[int]] = []

    def size(self) -> int:
        """Return one less the first time."""
        return self.sizes.pop() if self.sizes else super().size()


def _split_growing(_: object) -> None:
    data = memoryview(_LOG + b"abc")
    _Growing.sizes.append(len(data) - 1)
    _split(_Growing(data))


def _split(source: ByteSource, stop: int | None = None) -> None:
    list(split(source, stop=stop))


class _Shrinking(BufferSource):
    """Bytes whose last ones cannot be read."""

    def size(self) -> int:
        """Return more than there are."""
        return super().size() + 7


_LOG: Final = raft_batch(0, 1) + raft_batch(1, 1)
RECOVERY: Final = {
    "a damaged log": Scenario(_damaged, (_recover_in_parts,)),
    "a torn log": Scenario(_torn, (_recover_in_parts,)),
    "a log without segments": Scenario(_without_segments, (_recover_in_parts,)),
}
VOTES: Final = Scenario(
    _votes,
    (
        *_prepared("prepare_write", QuorumStateData(1, leader_epoch=1)),
        *_prepared("prepare_write", QuorumStateData(1, leader_epoch=2)),
    ),
)
CORE: Final = Scenario(
    lambda: SingleReplica(
        ReplicaIdentity(
            key=LOCAL, cluster_id=CLUSTER, endpoints=Endpoints.of({LISTENER: ("host", 1)}), listener=LISTENER
        ),
        QuorumConfig(),
        log=log_with([(1, 3)], voter_set_of(map(replica_key, (1, 2, 3)))),
    ),
    (
        lambda core: core.sleep(1_000),
        lambda core: core.request("", begin_quorum_epoch_request(2, 2), version=1),
        lambda core: core.respond(core.requests[-1].number, fetch_response(2, 2, high_watermark=2)),
        lambda core: core.respond(core.requests[-1].number, fetch_response(2, 2, high_watermark=3)),
    ),
)
LEADING: Final = Scenario(
    lambda: SingleReplica(
        ReplicaIdentity(
            key=LOCAL, cluster_id=CLUSTER, endpoints=Endpoints.of({LISTENER: ("host", 1)}), listener=LISTENER
        ),
        QuorumConfig(),
        log=log_with([(1, 3)], voter_set_of(map(replica_key, (1, 2)))),
    ),
    (
        lambda core: core.sleep(1_000),
        lambda core: core.respond(core.requests[-1].number, vote_response(is_granted=True, epoch=1)),
        lambda core: core.respond(core.requests[-1].number, vote_response(is_granted=True, epoch=2)),
        lambda core: core.request("", fetch_request(replica_key(2), 2, OffsetAndEpoch(6, 2)), version=17),
        lambda core: core.request("", update_voter_request(replica_key(2), 2, port=1), version=0),
        lambda core: core.append(b"a"),
        lambda core: core.sleep(30),
        lambda core: core.sleep(3_000),
    ),
)


def _fill_disk(core: SingleReplica) -> None:
    FullDisk(core.log).is_full = True


WITHOUT_ROOM: Final = Scenario(
    LEADING.make,
    (
        *LEADING.operations[:4],
        _fill_disk,
        lambda core: core.append(b"a"),
        lambda core: core.sleep(30),
    ),
)
LISTENING: Final = Scenario(
    lambda: SingleReplica(
        ReplicaIdentity(
            key=LOCAL, cluster_id=CLUSTER, endpoints=Endpoints.of({LISTENER: ("host", 1)}), listener=LISTENER
        ),
        QuorumConfig(),
        log=log_with([(1, 3)], voter_set_of(map(replica_key, (1, 2, 3)))),
    ),
    (
        lambda core: core.request("", begin_quorum_epoch_request(2, 2), version=1),
        lambda core: core.raft.register_listener(),
        lambda core: core.respond(core.requests[-1].number, fetch_response(2, 2, high_watermark=2)),
        lambda core: core.close(core.deliveries[-1].number, 0),
        lambda core: core.close(core.deliveries[-1].number, 1),
        lambda core: core.close(core.deliveries[-1].number, 2),
        lambda core: core.respond(core.requests[-1].number, fetch_response(2, 2, high_watermark=3)),
        lambda core: core.close(core.deliveries[-1].number, 3),
    ),
)
FETCHING: Final = Scenario(
    FollowerOfTwo,
    (
        lambda core: core.name(),
        lambda core: core.send_chunk(0, DATA[:-1] + b"x"),
        lambda core: core.sleep(20),
        lambda core: core.name(),
        lambda core: core.send_chunk(0, DATA[:100]),
        lambda core: core.send_chunk(100, DATA[100:]),
    ),
)
SPLITTING: Final = Scenario(
    lambda: None,
    (
        lambda _: _split(BufferSource(memoryview(_LOG + b"abc"))),
        lambda _: _split(BufferSource(memoryview(_LOG)), BATCH_SIZE + 3),
        lambda _: _split(BufferSource(memoryview(_LOG + bytes(70) + _LOG))),
        _split_growing,
        lambda _: _split(_Shrinking(memoryview(_LOG))),
        lambda _: Window(_Shrinking(memoryview(_LOG)), None, 10).peek(BATCH_SIZE, BATCH_SIZE),
        lambda _: list(read_columns(BufferSource(memoryview(_LOG)))),
        lambda _: list(read_columns(BufferSource(memoryview(_LOG)), from_offset=1)),
    ),
)
SCENARIOS: Final = {
    **RECOVERY,
    "votes": VOTES,
    "the consensus core": CORE,
    "a snapshot that is fetched": FETCHING,
    "leading an epoch": LEADING,
    "leading without room on the disk": WITHOUT_ROOM,
    "listening": LISTENING,
    "splitting": SPLITTING,
    "a log in files": FILE_LOG,
    "a log that often notes what is durable": OFTEN_NOTED,
    "a log in memory": MEMORY_LOG,
    "a time index": TIME_INDEX,
    "an accumulator": ACCUMULATOR,
    "voter sets": VOTERS,
    "control records": MACHINE,
    "a snapshot in memory": SNAPSHOT_IN_MEMORY,
    "a snapshot in a file": SNAPSHOT_IN_A_FILE,
}
