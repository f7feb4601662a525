# SPDX-License-Identifier: Apache-2.0
"""What a driver needs from its embedder, as protocols: a store of election states, a network, an application, threads.

The log is a ``ReplicatedLog``, and chance is ``Draws``.
"""

from collections.abc import Callable
from typing import Protocol

from raftlog.disk_work import DiskResult, DiskWork
from raftlog.quorum.seam.effects import Notice, NotifyLeaderChange, SendRequest, SendResponse
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.snapshot.writer import RecordsSnapshotWriter


class ElectionStateStore(Protocol):
    """Where the election state is kept, as in ``raftlog.storage.state.quorum_state_store.QuorumStateStore``."""

    @property
    def state(self) -> QuorumStateData | None:
        """The state that was written last; None for a replica that has taken part in no election."""
        ...

    @property
    def may_vote(self) -> bool:
        """Whether the replica has forgotten no vote."""
        ...

    def prepare_write(self, state: QuorumStateData) -> DiskWork[DiskResult[QuorumStateData]]:
        """Prepare to make a state durable.

        Raises:
            RaftLogError: the state must not follow the last one, or the disk has failed.
        """
        ...


class Transport(Protocol):
    """Carries messages to other replicas. It may lose, delay, reorder and duplicate them.

    It should raise nothing: a message that cannot be sent is lost, and a request is reported as failed. What it raises
    comes out of ``ReplicaDriver.settle``, and the message counts as sent.
    """

    def send(self, effect: SendRequest | SendResponse) -> None:
        """Send a message, without waiting for anything.

        A response goes to the peer whose request came with the effect's ``token``. What becomes of a request is
        reported with ``Raft.receive_response`` or ``Raft.request_failed``.
        """
        ...


class Application(Protocol):
    """Appends records, and listens to what is committed.

    It should raise nothing. What it raises comes out of ``ReplicaDriver.settle``, and it is not told the same again.
    """

    def tell(self, effect: Notice | NotifyLeaderChange) -> None:
        """Take note of what became of an append, of a delivery to a listener, or of a leader.

        It may call the core's inputs.
        """
        ...

    def write_snapshot(self, number: int, writer: RecordsSnapshotWriter) -> None:
        """Write the state after the snapshot's end offset, now or later, and then call an input of the core.

        Args:
            number: that ``Raft.create_snapshot`` returned, for ``Raft.freeze_snapshot`` or ``Raft.abandon_snapshot``.
            writer: append to it; the driver freezes and closes it.
        """
        ...

    def snapshot_refused(self, number: int, reason: str) -> None:
        """Take note that there will be no snapshot: the log has refused its offset, or the disk is full."""
        ...


class Executor(Protocol):
    """Runs work for a disk, such as ``concurrent.futures.ThreadPoolExecutor``. Two threads are enough."""

    def submit(self, work: Callable[[], object], /) -> object:
        """Call a function once, now or later, on any thread."""
        ...


class RunAtOnce:
    """An executor for a driver that waits for its disk: work is done when ``submit`` returns."""

    def submit(self, work: Callable[[], object], /) -> None:
        """Call a function now."""
        work()
