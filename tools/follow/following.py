# SPDX-License-Identifier: Apache-2.0
"""Looks at a log again and again, with pauses, until it is idle or the reader has enough."""

import errno
import os
import select
import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import attrs

from raftlog.errors import StorageError, fresh_copy, without_frames
from raftlog.tools.follow.follower import Growth, LogFollower, LookResult
from raftlog.tools.follow.notices import Notice

_LONGEST_POLL_MS: Final = 2**31 - 1
_LEAST_INTERVAL_S: Final = 0.001
_PASSING: Final = frozenset(
    {errno.EACCES, errno.EIO, errno.ENOENT, errno.ESTALE, errno.EMFILE, errno.ENFILE, errno.EINTR, errno.ENOMEM}
)
"""Errors that are waited out, as a missing log is; that of a dangling link is ``ENOENT``."""


class Pauses(Protocol):
    """A clock, and a way to wait."""

    def now_s(self) -> float:
        """Return the time in seconds, from any origin."""
        ...

    def wait(self, seconds: float) -> None:
        """Wait.

        Raises:
            BrokenPipeError: nobody reads the output any more.
        """
        ...


@attrs.frozen
class OutputPauses:
    """Real time, on which waits end as soon as the reader of the output is gone.

    Attributes:
        descriptor: of the output; None for one that has no reader.
    """

    descriptor: int | None

    def now_s(self) -> float:
        """Return the time of a clock that only goes forward."""
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        """Wait, 24 days at most. Without this check, an idle log would keep the process after its reader has left."""
        if self.descriptor is None or not hasattr(select, "poll"):
            time.sleep(seconds)
            return
        poll = select.poll()
        poll.register(self.descriptor, 0)
        wait_ms = min(seconds * 1000, _LONGEST_POLL_MS)
        if any(state & (select.POLLERR | select.POLLHUP) for _, state in poll.poll(wait_ms)):
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def follow(
    follower: LogFollower,
    take: Callable[[Sequence[Growth | Notice]], bool],
    pauses: Pauses,
    interval_s: float,
    until_idle_s: float | None = None,
    stumble: Callable[[StorageError], None] = lambda _: None,
) -> None:
    """Show what becomes of a log.

    Args:
        follower: of the log.
        take: shows what one look has found, and returns whether to go on.
        pauses: the clock.
        interval_s: how long to wait, in seconds, if nothing was found; at least 1 ms.
        until_idle_s: after how many seconds without a change to end; 0 for one interval, None for never. Then the end
            of the log is taken as it is, so that a batch that is not complete is shown as torn.

        stumble: says why the log cannot be read now, in a way that may pass: it is looked at again.

    Raises:
        StorageError: the log cannot be read, and will not by itself, or cannot at the end.
        BrokenPipeError: the output has no reader.
    """
    interval_s = max(interval_s, _LEAST_INTERVAL_S)
    least_idle_s = None if until_idle_s is None else until_idle_s or interval_s
    last_change_s = pauses.now_s()
    while True:
        look, error = _looked(follower)
        if error is not None:
            stumble(error)
        if not take(look.items):
            return
        now_s = pauses.now_s()
        if look.has_moved:
            last_change_s = now_s
        elif least_idle_s is not None and now_s - last_change_s >= least_idle_s:
            if error is not None:
                raise fresh_copy(error)
            look = follower.look(is_last=True)
            if not take(look.items):
                return
            if _is_end(look):
                _show_rest(follower, take, look)
                return
            last_change_s = now_s
        if not look.has_more:
            left_s = interval_s if least_idle_s is None else last_change_s + least_idle_s - now_s
            pauses.wait(min(interval_s, max(left_s, _LEAST_INTERVAL_S)))


def _looked(follower: LogFollower) -> tuple[LookResult, StorageError | None]:
    """Look, and return the error if it may pass: the log cannot be opened or read at the moment."""
    try:
        return follower.look(), None
    except StorageError as error:
        cause = error.__cause__
        if not isinstance(cause, OSError) or cause.errno not in _PASSING:
            raise
        return LookResult(), without_frames(error)


def _show_rest(follower: LogFollower, take: Callable[[Sequence[Growth | Notice]], bool], look: LookResult) -> None:
    """Show what is after damage at the end, as a dump does, which takes all that is there as it is."""
    while look.has_moved:
        look = follower.look(is_last=True)
        if not take(look.items):
            return


def _is_end(look: LookResult) -> bool:
    """Whether a last look has found nothing, or only what is torn or damaged at the end."""
    sound = [item for item in look.items if isinstance(item, Notice) or not item.is_unsound]
    return not look.has_moved or (bool(look.items) and not sound)
