# SPDX-License-Identifier: Apache-2.0
"""Looks at a log again and again, with pauses, until it is idle or the reader has enough."""

import errno
import os
import select
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import attrs

from raftlog.tools.follow.follower import Growth, LogFollower, LookResult
from raftlog.tools.follow.notices import Notice


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
        """Wait. Without this check, an idle log would keep the process alive after its reader has left."""
        if self.descriptor is None or not hasattr(select, "poll"):
            time.sleep(seconds)
            return
        poll = select.poll()
        poll.register(self.descriptor, 0)
        if any(state & (select.POLLERR | select.POLLHUP) for _, state in poll.poll(seconds * 1000)):
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def follow(
    follower: LogFollower,
    take: Callable[[Sequence[Growth | Notice]], bool],
    pauses: Pauses,
    interval_s: float,
    until_idle_s: float | None = None,
) -> None:
    """Show what becomes of a log.

    Args:
        follower: of the log.
        take: shows what one look has found, and returns whether to go on.
        pauses: the clock.
        interval_s: how long to wait, in seconds, if nothing was found.
        until_idle_s: after how many seconds without a change to end; None for never. Then the end of the log is taken
            as it is, so that a batch that is not complete is shown as torn.

    Raises:
        StorageError: the log cannot be read.
        BrokenPipeError: the output has no reader.
    """
    last_change_s = pauses.now_s()
    while True:
        look = follower.look()
        if not take(look.items):
            return
        now_s = pauses.now_s()
        if look.has_moved:
            last_change_s = now_s
        elif until_idle_s is not None and now_s - last_change_s >= until_idle_s:
            look = follower.look(is_last=True)
            if not take(look.items) or _is_end(look):
                return
            last_change_s = now_s
        if not look.has_more:
            left_s = interval_s if until_idle_s is None else max(0.0, last_change_s + until_idle_s - now_s)
            pauses.wait(min(interval_s, left_s))


def _is_end(look: LookResult) -> bool:
    """Whether a last look has found nothing, or only what is torn or damaged at the end."""
    sound = [item for item in look.items if isinstance(item, Notice) or not item.is_unsound]
    return not look.has_moved or (bool(look.items) and not sound)
