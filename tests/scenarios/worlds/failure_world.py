# SPDX-License-Identifier: Apache-2.0
"""The world of failures that a replica outlives: replica 1, as in the world of voter changes, and its disk.

Appends are numbered in the order in which they were made: 1, 2 and so on.
"""

from collections.abc import Callable
from typing import Final

from raftlog.errors import NotLeaderError
from tests.quorum.full_disks import FullDisk
from tests.quorum.messages import fetch_response, records_at
from tests.scenarios.world import World, command
from tests.scenarios.worlds.voter_change_world import VoterChangeWorld


class FailureWorld(VoterChangeWorld):
    """Replica 1, whose disk may be full."""

    def __init__(self) -> None:
        self._appended: list[int] = []
        self._full_disk: FullDisk | None = None

    @command
    def fill(self) -> str:
        """Something fills the disk."""
        self._full_disk = FullDisk(self._replica.log)
        self._full_disk.is_full = True
        return "the disk is full"

    @command
    def free(self) -> str:
        """Something frees the disk."""
        if self._full_disk is not None:
            self._full_disk.is_full = False
        return "the disk has room"

    @command
    def append(self, count: int) -> str:
        """Append records as the leader; they are written when 25 ms have passed."""
        try:
            self._appended.append(self._replica.append(*[b"r"] * count).number)
        except NotLeaderError as error:
            return f"not appended: {error}"
        return self._what_happened()

    @command
    def damaged(self, leader: int) -> str:
        """The leader answers a Fetch with records whose checksum does not hold."""
        epoch = self._epoch(None)
        batch = records_at(self._replica.log.end_offset.offset, epoch, 2)
        damaged = batch[:-1] + bytes([batch[-1] ^ 1])
        return self._respond(leader, fetch_response(epoch, leader, records=damaged))

    def _what_happened(self) -> str:
        lines = [super()._what_happened()]
        ended, self._replica.ended = self._replica.ended, []
        lines += [f"append {self._appended.index(each.number) + 1}: {each.outcome.name}" for each in ended]
        status = self._replica.raft.status
        if status.log_refusal is not None:
            lines.append(f"{'disk full' if status.is_disk_full else 'refused'}: {status.log_refusal}")
        return "\n".join(lines)


FAILURE_WORLDS: Final[dict[str, Callable[[], World]]] = {"core": FailureWorld}
