# SPDX-License-Identifier: Apache-2.0
"""What an application asks of its replica: appends, reads, listeners, a new kraft.version, and to resign or stop.

Source: RaftClient.
"""

from collections.abc import Sequence

from raftlog.quorum.acting import act
from raftlog.quorum.elections.shutting_down import begin_shutdown
from raftlog.quorum.leadership import PendingAppend
from raftlog.quorum.leading.appending import append
from raftlog.quorum.leading.leading_epoch import is_append_due
from raftlog.quorum.leading.reading import begin_read
from raftlog.quorum.leading.resigning import request_resignation
from raftlog.quorum.leading.upgrading import upgrade_kraft_version
from raftlog.quorum.listening.delivering import close_delivery, register, unregister
from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.seam.effects import ReadPolicy
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import ReplicaKey


class ApplicationInputs:
    """The inputs of ``Raft`` that come from the application. ``Raft.take_effects`` returns their effects.

    Source: RaftClient.
    """

    _replica: LocalReplica

    def append(self, values: Sequence[bytes], *, epoch: int, required_base_offset: int | None = None) -> PendingAppend:
        """Append records as the leader. What becomes of them is told once, by an ``EndAppend`` with the same number.

        Records of several calls are written and flushed together: at the latest after ``append_linger_ms``, or when the
        flush before them is done.

        Args:
            values: of the records, which have no keys. All of them go into one batch.
            epoch: in which the caller believes this replica to be the leader.
            required_base_offset: refuse the append unless the first record gets this offset.

        Returns:
            the number of the append, and the offset of its last record.

        Raises:
            NotLeaderError: this replica does not lead that epoch, or has not begun it in the log yet, or has halted.
            UnknownEpochError: the epoch is a later one.
            NonContiguousAppendError: the first record would not get the required offset.
            BatchTooLargeError: the records do not fit in one batch.
            BufferExhaustedError: too many records wait for the disk, or ``max_uncommitted_appends`` appends wait to be
                committed. Try again after the next effects.
            ValueError: there are no records, or a value is empty.

            Nothing has changed then.

        Source: RaftClient#prepareAppend.
        """
        replica = self._replica
        appended = append(replica, values, epoch, required_base_offset)
        if is_append_due(replica):
            act(replica)
        return appended

    def read_barrier(self, policy: ReadPolicy = ReadPolicy.MAJORITY, *, timeout_ms: int | None = None) -> int:
        """Begin a linearizable read, and return its number. What becomes of it is told once, by an ``EndRead``.

        A confirmed read names an offset. Answer it from a state that has all records before that: it then has all that
        was committed, by any leader, when this was called.

        Args:
            policy: MAJORITY. Reads by a lease are refused.
            timeout_ms: after which the read ends; ``request_timeout_ms`` if it is None.

        Raises:
            UnsafeReadError: the read is one by a lease.
            NotLeaderError: this replica does not lead, or has halted.
            QueueFullError: 1,000 reads wait already. Try again after the next effects.
            ValueError: the timeout is negative.

            Nothing has changed then.

        Differs: Kafka has no such reads. DECISIONS.md 59.
        """
        limit_ms = self._replica.config.request_timeout_ms if timeout_ms is None else timeout_ms
        number = begin_read(self._replica, policy, limit_ms)
        act(self._replica)
        return number

    def resign(self, epoch: int, preferred: ReplicaKey | None = None) -> None:
        """Resign the leadership of an epoch, so that another voter is elected. Nothing happens if it is over already.

        Args:
            epoch: in which the caller believes this replica to be the leader.
            preferred: the voter that stands for election first. It need not win: voters elect the best log.

        Raises:
            ValueError: the epoch is negative.
            UnknownEpochError: the epoch is a later one.
            NotLeaderError: this replica does not lead that epoch, or has halted.
            TransferTargetError: ``preferred`` is not another voter, or lacks committed records.

            Nothing has changed then.

        Source: RaftClient#resign, which names no voter.
        """
        request_resignation(self._replica, epoch, preferred)
        act(self._replica)

    def shutdown(self, timeout_ms: int) -> int:
        """Shut down, and return the number of the shutdown. That it is complete is told by an ``EndShutdown``.

        A leader resigns, and waits for its successor. Afterwards this replica ignores all input, and refuses requests
        with BROKER_NOT_AVAILABLE. A second call changes nothing.

        Raises:
            ValueError: the timeout is negative.

        Source: RaftClient#shutdown.
        """
        number = begin_shutdown(self._replica, timeout_ms)
        act(self._replica)
        return number

    def register_listener(self) -> int:
        """Add a listener of committed records, and return its number.

        It is first given the newest snapshot, or else the log from its beginning, and then what is committed, in the
        order of the offsets. Each delivery is an effect, and the next one follows when it is closed. It is also told of
        epochs and leaders, by ``NotifyLeaderChange``.

        Raises:
            QueueFullError: there are 100 listeners already. Nothing has changed.

        Source: RaftClient#register.
        """
        number = register(self._replica)
        act(self._replica)
        return number

    def unregister_listener(self, number: int) -> None:
        """Remove a listener: it is given nothing more. Close what it is reading, because that keeps its snapshot.

        Removing a listener that is not registered changes nothing.

        Source: RaftClient#unregister.
        """
        unregister(self._replica, number)
        act(self._replica)

    def delivery_closed(self, number: int, next_offset: int | None = None) -> None:
        """Note that a listener has closed what it was given.

        A listener that has taken nothing of it is given it again, after ``retry_backoff_ms``. Report a snapshot or
        records that could not be read in the same way: what to deliver is then decided anew. A delivery that is not
        open is ignored.

        Args:
            number: of the effect.
            next_offset: the offset after the last record that the listener has processed; of a snapshot, its end
                offset. None if it has taken nothing.

        Raises:
            ValueError: the delivery does not have that offset. Nothing has changed.

        Source: KafkaRaftClient.ListenerContext#onClose.
        """
        if self._replica.halt_reason is None:
            close_delivery(self._replica, number, next_offset)
            act(self._replica)

    def upgrade_kraft_version(
        self, version: KRaftVersion, *, epoch: int, validate_only: bool = False
    ) -> PendingAppend | None:
        """Upgrade kraft.version as the leader. It ends as an append does, by an ``EndAppend`` with the same number.

        The voters must have told this leader their directory ids, and that they support the level. They do so by
        themselves, within ``QuorumConfig.update_voter_period_ms`` of following it.

        Args:
            version: the level to be in force. A lower one than now is refused.
            epoch: in which the caller believes this replica to be the leader.
            validate_only: whether to check only if an upgrade is possible.

        Returns:
            the number of the append, and the offset of its last record; None if nothing is written, because the level
            is in force or being written already, or only a check was asked for.

        Raises:
            NotLeaderError: this replica does not lead that epoch, or has not begun it in the log yet, or has halted.
            UnknownEpochError: the epoch is a later one.
            InvalidUpdateVersionError: the level is a lower one, or a voter has not told the leader that it supports
                the level, or its directory id.
            BufferExhaustedError: too many records wait for the disk, or ``max_uncommitted_appends`` appends wait to be
                committed. Try again after the next effects.

            Nothing has changed then.

        Source: RaftClient#upgradeKRaftVersion. Differs: DECISIONS.md 58.
        """
        appended = upgrade_kraft_version(self._replica, epoch, version, validate_only=validate_only)
        act(self._replica)
        return appended
