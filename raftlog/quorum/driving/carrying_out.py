# SPDX-License-Identifier: Apache-2.0
"""How each effect is carried out: one function per effect, and a table of them.

Work on the log and election states are queued. All else is done at once: no message is in the list before it may be
sent, and a read or a rise of the high watermark names only what a reported view has.
"""

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, get_args

from raftlog.disk_work import DiskWork
from raftlog.errors import (
    BatchTooLargeError,
    DecodeError,
    MissingExtraError,
    NonContiguousAppendError,
    OffsetOutOfRangeError,
    OutOfSpaceError,
    RaftLogError,
    WorkUnderWayError,
)
from raftlog.log.replicated_log import Isolation
from raftlog.quorum.driving.carrying_out_snapshots import CARRY_OUT_SNAPSHOTS
from raftlog.quorum.driving.disk_queue import Job
from raftlog.quorum.driving.driven import Driven
from raftlog.quorum.seam.effects import (
    AppendAsFollower,
    AppendAsLeader,
    EnterEpoch,
    FlushLog,
    Notice,
    NotifyLeaderChange,
    RaiseHighWatermark,
    ReadLog,
    SendRequest,
    SendResponse,
    StoreElectionState,
    TruncateToEndOffset,
)

_BAD_RECORDS: Final = (DecodeError, NonContiguousAppendError, BatchTooLargeError, MissingExtraError)


def _store(driven: Driven, effect: StoreElectionState) -> None:
    number = effect.number
    prepare = functools.partial(driven.election_state.prepare_write, effect.state)
    report, failed = functools.partial(driven.raft.stored, number), functools.partial(driven.fail, number)
    driven.state_queue.add(Job(number, prepare, report, failed))


def _enter_epoch(driven: Driven, effect: EnterEpoch) -> None:
    driven.try_on_log(effect.number, lambda: driven.log.prepare_leader_epoch(effect.epoch))


def _append_as_leader(driven: Driven, effect: AppendAsLeader) -> None:
    driven.try_on_log(effect.number, lambda: driven.log.prepare_append_as_leader(effect.batches, effect.epoch))


def _append_as_follower(driven: Driven, effect: AppendAsFollower) -> None:
    """Append what a leader has sent, which cannot stop this replica: it fetches again after a pause."""

    def prepare() -> DiskWork[Any]:
        return driven.log.prepare_append_as_follower(effect.records, effect.epoch)

    driven.try_on_log(effect.number, prepare, *_BAD_RECORDS)


def _flush(driven: Driven, effect: FlushLog) -> None:
    driven.work_on_log(effect.number, driven.log.prepare_flush)


def _truncate(driven: Driven, effect: TruncateToEndOffset) -> None:
    driven.try_on_log(effect.number, lambda: driven.log.prepare_truncate_to_end_offset(effect.end_offset))


def _read(driven: Driven, effect: ReadLog) -> None:
    """Read for a follower. There is nothing for it if the records are gone, or no file can be opened."""
    records: bytes | memoryview = b""
    try:
        records = driven.log.read(effect.offset, Isolation.UNCOMMITTED, effect.max_size_bytes).records
    except (OffsetOutOfRangeError, OutOfSpaceError, WorkUnderWayError):
        pass
    except RaftLogError as error:
        driven.fail(effect.number, error)
        return
    driven.raft.log_read(effect.number, records)


def _raise_high_watermark(driven: Driven, effect: RaiseHighWatermark) -> None:
    try:
        driven.log.update_high_watermark(effect.offset)
    except RaftLogError as error:
        driven.fail(effect.number, error)


def _send(driven: Driven, effect: SendRequest | SendResponse) -> None:
    driven.network.send(effect)


def _tell(driven: Driven, effect: Notice | NotifyLeaderChange) -> None:
    driven.application.tell(effect)


CARRY_OUT: Final[Mapping[type, Callable[[Driven, Any], None]]] = MappingProxyType(
    {
        StoreElectionState: _store,
        EnterEpoch: _enter_epoch,
        AppendAsLeader: _append_as_leader,
        AppendAsFollower: _append_as_follower,
        FlushLog: _flush,
        TruncateToEndOffset: _truncate,
        ReadLog: _read,
        RaiseHighWatermark: _raise_high_watermark,
        SendRequest: _send,
        SendResponse: _send,
        NotifyLeaderChange: _tell,
        **CARRY_OUT_SNAPSHOTS,
        **dict.fromkeys(get_args(Notice), _tell),
    }
)
"""By the type of an effect: the function that carries it out, or queues it for the disk."""
