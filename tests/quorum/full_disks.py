# SPDX-License-Identifier: Apache-2.0
"""A disk that can be full: the log on it then takes nothing, and is as it was."""

from typing import Any, Final

from raftlog.errors import OutOfSpaceError
from raftlog.log.replicated_log import ReplicatedLog

_NEED_ROOM: Final = ("prepare_append_as_leader", "prepare_append_as_follower", "prepare_leader_epoch", "prepare_clean")


class FullDisk:
    """The disk of a log, from now on.

    Args:
        log: which is as usual while the disk is not full.

    Attributes:
        is_full: whether there is no room.
        refusals: how often something had no room.
    """

    def __init__(self, log: ReplicatedLog) -> None:
        self.is_full = False
        self.refusals = 0
        for name in _NEED_ROOM:
            self._guard(log, name)

    def _guard(self, log: ReplicatedLog, name: str) -> None:
        prepare = getattr(log, name)

        def guarded(*arguments: Any) -> Any:
            if self.is_full:
                self.refusals += 1
                raise OutOfSpaceError("log", "write", "no space left on device")
            return prepare(*arguments)

        setattr(log, name, guarded)
