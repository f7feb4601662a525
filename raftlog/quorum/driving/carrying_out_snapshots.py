# SPDX-License-Identifier: Apache-2.0
"""How effects on snapshots are carried out: one that is fetched, one that the application writes, and reads of them.

Work on a fetched snapshot is work on the log, in its order. The application's snapshot is made durable beside that.
"""

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from raftlog.disk_work import DiskWork
from raftlog.errors import (
    DecodeError,
    InvalidSnapshotIdError,
    MissingExtraError,
    MissingFileError,
    OffsetOutOfRangeError,
    OutOfSpaceError,
    QuarantinedLogError,
    RaftLogError,
    WorkUnderWayError,
)
from raftlog.invariants import present
from raftlog.log.snapshots import begin_snapshot
from raftlog.quorum.driving.disk_queue import Job
from raftlog.quorum.driving.driven import Driven, described
from raftlog.quorum.seam.snapshot_effects import (
    AbandonFetchedSnapshot,
    AbandonSnapshot,
    AppendToFetchedSnapshot,
    BeginFetchedSnapshot,
    BeginSnapshot,
    CleanLog,
    FreezeFetchedSnapshot,
    FreezeSnapshot,
    ReadSnapshot,
    RestartAtLatestSnapshot,
    SnapshotChunk,
)
from raftlog.snapshot.raw import RawSnapshotWriter

_REFUSALS: Final = (DecodeError, MissingExtraError, OutOfSpaceError)
"""Errors after which there is no such snapshot, and nothing else has changed."""

_UNTIMELY: Final = (
    InvalidSnapshotIdError,
    MissingExtraError,
    OffsetOutOfRangeError,
    OutOfSpaceError,
    QuarantinedLogError,
    WorkUnderWayError,
)
"""Errors after which the application's snapshot has not begun, and nothing else has changed."""


def _fetched(driven: Driven) -> RawSnapshotWriter:
    return present(driven.fetched, "the snapshot that is being fetched")


def _work_on_fetched(driven: Driven, number: int, prepare: Callable[[], DiskWork[Any]]) -> None:
    """Do something to the fetched snapshot in its turn. If its bytes are refused, it is removed."""

    def failed(error: RaftLogError) -> None:
        drop_fetched(driven)
        if isinstance(error, _REFUSALS):
            driven.raft.snapshot_refused(number, described(error))
        else:
            driven.fail(number, error)

    driven.log_queue.add(Job(number, prepare, functools.partial(driven.report_log, number), failed))


def drop_fetched(driven: Driven) -> None:
    """Close the fetched snapshot, and remove it unless it is frozen."""
    fetched, driven.fetched = driven.fetched, None
    if fetched is not None:
        fetched.close()


def _begin_fetched(driven: Driven, effect: BeginFetchedSnapshot) -> None:
    def begin() -> DiskWork[None]:
        driven.fetched = driven.log.create_snapshot_unchecked(effect.snapshot_id)
        return DiskWork.done(None)

    _work_on_fetched(driven, effect.number, begin)


def _append_to_fetched(driven: Driven, effect: AppendToFetchedSnapshot) -> None:
    def append() -> DiskWork[None]:
        _fetched(driven).append_at(effect.position, effect.data)
        return DiskWork.done(None)

    _work_on_fetched(driven, effect.number, append)


def _freeze_fetched(driven: Driven, effect: FreezeFetchedSnapshot) -> None:
    def freeze() -> DiskWork[None]:
        return _fetched(driven).prepare_freeze().then(lambda _: drop_fetched(driven))

    _work_on_fetched(driven, effect.number, freeze)


def _abandon_fetched(driven: Driven, effect: AbandonFetchedSnapshot) -> None:
    def abandon() -> DiskWork[None]:
        drop_fetched(driven)
        return DiskWork.done(None)

    _work_on_fetched(driven, effect.number, abandon)


def _restart(driven: Driven, effect: RestartAtLatestSnapshot) -> None:
    driven.work_on_log(effect.number, driven.log.prepare_truncate_to_latest_snapshot)


def _clean(driven: Driven, effect: CleanLog) -> None:
    driven.try_on_log(effect.number, lambda: driven.log.prepare_clean(effect.wall_ms))


def _read(driven: Driven, effect: ReadSnapshot) -> None:
    """Read for a follower. If the file was deleted a moment ago, or cannot be opened now, it fetches records again."""
    chunk = None
    try:
        reader = driven.log.read_snapshot(effect.snapshot_id)
        if reader is not None:
            with reader:
                chunk = SnapshotChunk(reader.size(), reader.read_at(effect.position, effect.max_size_bytes))
    except (MissingFileError, OutOfSpaceError):
        pass
    except RaftLogError as error:
        driven.fail(effect.number, error)
        return
    driven.raft.snapshot_read(effect.number, chunk)


def _begin(driven: Driven, effect: BeginSnapshot) -> None:
    """Let the application write a snapshot, unless the log refuses it."""
    offset = effect.snapshot_id.offset
    try:
        writer = begin_snapshot(driven.log, driven.viewer.machine, offset, now_ms=effect.wall_ms)
    except _UNTIMELY as error:
        _refuse(driven, effect.number, error)
    except RaftLogError as error:
        driven.fail(effect.number, error)
    else:
        if writer is None:
            _refuse(driven, effect.number, InvalidSnapshotIdError(f"there is a snapshot at {offset} already"))
            return
        driven.writer = writer
        driven.application.write_snapshot(effect.number, writer)


def _refuse(driven: Driven, number: int, error: RaftLogError) -> None:
    """Tell the application and the core that there is no such snapshot."""
    writer, driven.writer = driven.writer, None
    if writer is not None:
        writer.close()
    driven.raft.snapshot_refused(number, described(error))
    driven.application.snapshot_refused(number, described(error))


def _freeze(driven: Driven, effect: FreezeSnapshot) -> None:
    number, writer = effect.number, present(driven.writer, "the application's snapshot")

    def report() -> None:
        driven.writer = None
        driven.raft.snapshot_frozen(number)

    def failed(error: RaftLogError) -> None:
        if isinstance(error, _REFUSALS):
            _refuse(driven, number, error)
        else:
            driven.fail(number, error)

    prepare = functools.partial(writer.prepare_freeze, effect.wall_ms)
    driven.snapshot_queue.add(Job(number, prepare, report, failed))


def _abandon(driven: Driven, effect: AbandonSnapshot) -> None:
    writer, driven.writer = driven.writer, None
    present(writer, f"the application's snapshot, effect {effect.number}").close()


CARRY_OUT_SNAPSHOTS: Final[Mapping[type, Callable[[Driven, Any], None]]] = MappingProxyType(
    {
        BeginFetchedSnapshot: _begin_fetched,
        AppendToFetchedSnapshot: _append_to_fetched,
        FreezeFetchedSnapshot: _freeze_fetched,
        AbandonFetchedSnapshot: _abandon_fetched,
        RestartAtLatestSnapshot: _restart,
        CleanLog: _clean,
        ReadSnapshot: _read,
        BeginSnapshot: _begin,
        FreezeSnapshot: _freeze,
        AbandonSnapshot: _abandon,
    }
)
"""By the type of an effect on snapshots: the function that carries it out, or queues it for the disk."""
