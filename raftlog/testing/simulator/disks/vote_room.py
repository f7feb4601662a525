# SPDX-License-Identifier: Apache-2.0
"""Checks that a full disk has room for an election state: what the reserve of the store occupies."""

from raftlog.disk_work import DiskWork
from raftlog.errors import OutOfSpaceError, RaftLogError
from raftlog.file_system import join
from raftlog.storage.state.quorum_state_store import RESERVE_NAME
from raftlog.testing.simulator.checks.ledger import Ledger
from raftlog.testing.simulator.disks.simulated_disk import SimulatedDisk
from raftlog.testing.simulator.violation import check


class VoteRoom:
    """Watches the reserve in one directory.

    Args:
        ledger: of the directory.
        disk: of the machine.
        path: of the directory.
    """

    def __init__(self, ledger: Ledger, disk: SimulatedDisk, path: str) -> None:
        self._ledger = ledger
        self._disk = disk
        self._path = join(path, RESERVE_NAME)
        self._had_reserve = False

    @property
    def _has_reserve(self) -> bool:
        return self._disk.files.exists(self._path)

    def storing(self) -> None:
        """Note that a state is about to be stored."""
        self._had_reserve = self._has_reserve

    def stored(self) -> None:
        """Check that a state that was stored has left a reserve, unless the disk had another error than being full."""
        is_kept = self._has_reserve or self._disk.has_erred
        check(is_kept, "votes-have-room", "{} has stored a state, and keeps no reserve", self._ledger.key)

    def ended(self, work: DiskWork[object]) -> None:
        """Check that a state that was not stored for lack of room had no reserve."""
        try:
            work.check()
        except OutOfSpaceError as error:
            check(not self._had_reserve, "votes-have-room", "{} has a reserve: {}", self._ledger.key, error)
        except RaftLogError:
            return  # The disk has failed, or the process has ended before.
