# SPDX-License-Identifier: Apache-2.0
"""A disk that a scenario drives: work on the log, and election states, end when they are told to, or fail."""

from typing import Any

from raftlog.disk_work import DiskStep, DiskWork
from raftlog.errors import StorageError
from tests.quorum.driving.driven_replicas import ByHand
from tests.quorum.single_replica import SingleReplica
from tests.scenarios.world import CommandError


class SlowDisk:
    """The disk of one replica, on which work waits from now on.

    Args:
        replica: whose disk has nothing to do.
    """

    def __init__(self, replica: SingleReplica) -> None:
        if not replica.is_settled:
            raise CommandError("the disk is at work")
        self._replica = replica
        self._log, self._states = ByHand(), ByHand()
        driven = replica._driven
        driven.log_queue.executor, driven.state_queue.executor = self._log, self._states

    @property
    def waiting(self) -> list[str]:
        """What waits for the disk."""
        kinds = (("the log", self._log), ("an election state", self._states))
        return [name for name, work in kinds if work.waiting]

    def end(self, kind: str) -> None:
        """Let the work end that has begun: ``log`` or ``election-state``.

        Raises:
            CommandError: there is no such work.
        """
        work = self._work(kind)
        if not work.waiting:
            raise CommandError(f"no work waits; there waits {self.waiting}")
        work.run()
        self._replica.settle()

    def _work(self, kind: str) -> ByHand:
        kinds = {"log": self._log, "election-state": self._states}
        if kind not in kinds:
            raise CommandError(f"'{kind}' is neither log nor election-state")
        return kinds[kind]


def fail_next(replica: SingleReplica, kind: str) -> None:
    """Let the next ``flush`` fail, or the next ``election-state``, once its work has begun.

    Raises:
        CommandError: it is neither.
    """
    owners: dict[str, tuple[object, str]] = {
        "flush": (replica.log, "prepare_flush"),
        "election-state": (replica._driven, "election_state"),
    }
    if kind not in owners:
        raise CommandError(f"'{kind}' is neither flush nor election-state")
    owner, name = owners[kind]
    setattr(owner, name, _failing_flush if kind == "flush" else _FailingStore(replica))


def _fail() -> None:
    raise StorageError("disk", "sync", "EIO")


def _failing_flush() -> DiskWork[Any]:
    return DiskWork([DiskStep(_fail)], lambda: None)


class _FailingStore:
    """A store of election states whose disk fails."""

    def __init__(self, replica: SingleReplica) -> None:
        self.state = replica.stored
        self.may_vote = True

    def prepare_write(self, _: object) -> DiskWork[Any]:
        """Prepare to fail."""
        return _failing_flush()
