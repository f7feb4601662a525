# SPDX-License-Identifier: Apache-2.0
"""Drives a consensus core over a log, a store of election states, and a network.

::

    driver.raft.tick(monotonic_ms, wall_ms)            # the present time, before any other input
    driver.raft.receive_request(message, received)     # any input of the core
    driver.settle()                                    # carries out what follows from it

With an executor of threads, ``settle`` never waits for a sync: call it again when ``wake`` was called.
"""

from collections import deque
from collections.abc import Callable

from raftlog.disk_work import nothing
from raftlog.errors import LogDirectoryError
from raftlog.log.control_records import KRaftControlRecordStateMachine
from raftlog.log.replicated_log import ReplicatedLog
from raftlog.quorum.driving.carrying_out import CARRY_OUT
from raftlog.quorum.driving.carrying_out_snapshots import drop_fetched
from raftlog.quorum.driving.disk_queue import DiskQueue
from raftlog.quorum.driving.driven import Driven, LogViewer
from raftlog.quorum.driving.ports import Application, ElectionStateStore, Executor, RunAtOnce, Transport
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.raft import Raft, StartingPoint
from raftlog.quorum.roles.draws import Draws
from raftlog.quorum.seam.effects import Effect
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.voters.voter_set import VoterSet


class ReplicaDriver:
    """Carries out the effects of one core. Use it, and all that it is given, from one thread: it takes no locks.

    Work on the log is done one piece at a time, in the order of the effects, and so are writes of the election state.
    The two are independent, except that work on the log waits for the election states that were handed out before it:
    a log must not be in an epoch that the election state does not know (DECISIONS.md 18).

    The driver changes log and store from now on; no other code may. It closes neither.

    Args:
        log: of the replica.
        election_state: of the replica.
        identity: who the replica is.
        config: its timeouts.
        draws: its random choices.
        network: carries its messages.
        application: is told what becomes of its appends.
        static_voters: the configured set; empty if the log, or its bootstrap snapshot, names the voters.
        has_been_voter: as for ``StartingPoint``.
        executor: runs work for the disk. Without one, every call waits for its disk.
        wake: called on a thread of the executor when ``settle`` has something to do.
        watch: called with each effect, in order, before it is carried out or queued: for traces and checks. It must
            call neither the core nor the driver.
        monotonic_ms: a clock that never goes back.
        wall_ms: time of day, in ms since the Unix epoch.

    Attributes:
        raft: the core. After each of its inputs, call ``settle``.
        machine: the log's control records, which the driver reads as far as the log is reported.

    Raises:
        RaftLogError: the log cannot be read.
    """

    def __init__(
        self,
        log: ReplicatedLog,
        election_state: ElectionStateStore,
        *,
        identity: ReplicaIdentity,
        config: QuorumConfig,
        draws: Draws,
        network: Transport,
        application: Application,
        monotonic_ms: int,
        wall_ms: int,
        static_voters: VoterSet | None = None,
        has_been_voter: bool = False,
        executor: Executor | None = None,
        wake: Callable[[], object] = nothing,
        watch: Callable[[Effect], object] | None = None,
    ) -> None:
        self.machine = machine = KRaftControlRecordStateMachine(static_voters or VoterSet())
        viewer = LogViewer(log, machine)
        found = StartingPoint(
            log=viewer.view(),
            stored=election_state.state,
            may_vote=election_state.may_vote,
            has_been_voter=has_been_voter,
        )
        self.raft = Raft(identity, config, draws, found, monotonic_ms=monotonic_ms, wall_ms=wall_ms)
        runs = executor or RunAtOnce()
        self._driven = Driven(
            self.raft,
            log,
            viewer,
            election_state,
            network,
            application,
            log_queue=DiskQueue(runs, wake),
            state_queue=DiskQueue(runs, wake),
            snapshot_queue=DiskQueue(runs, wake),
        )
        self._watch = watch
        self._queues = self._driven.queues
        self._effects: deque[Effect] = deque()
        self._is_settling = False

    @property
    def is_settled(self) -> bool:
        """Whether no effect waits to be carried out, and no work for the disk is queued or under way."""
        return not self._effects and all(queue.is_idle for queue in self._queues)

    def settle(self) -> None:
        """Carry out effects until there are no more, or the rest waits for work that the executor has not done yet.

        A call out of the network or the application, while effects are being carried out, does nothing: the call that
        is under way carries out the new effects too, after those before them.

        If the network, the application or the executor raises, so does this. What was being carried out counts as done,
        but work that the executor did not take has failed; all else is carried out by the next call.
        """
        if self._is_settling:
            return
        self._is_settling = True
        try:
            self._advance()
            while self._has_effects():
                effect = self._effects.popleft()
                if self._watch is not None:
                    self._watch(effect)
                self._carry_out(effect)
                self._advance()
        finally:
            self._is_settling = False

    def _has_effects(self) -> bool:
        if not self._effects:
            self._effects.extend(self.raft.take_effects())
        return bool(self._effects)

    def _carry_out(self, effect: Effect) -> None:
        CARRY_OUT[type(effect)](self._driven, effect)

    def _advance(self) -> None:
        """Finish and report what has run, and begin what may begin, as long as there is any of it."""
        log, states, snapshots = self._queues
        while log.count or states.count or snapshots.count:
            is_changed = log.finish_ran() or states.finish_ran() or snapshots.finish_ran()
            if self.raft.halt_reason is not None:  # By what has just failed, too: nothing is begun after that.
                for queue in self._queues:
                    queue.clear()
            is_changed = states.begin_next() or snapshots.begin_next() or is_changed
            oldest = states.oldest
            if oldest is None or log.is_next_before(oldest):
                is_changed = log.begin_next() or is_changed
            if not is_changed:
                return

    def stop(self) -> None:
        """Stop for good: work that has not begun is dropped, and what has run is finished. Appends end, unknown.

        Messages that are ready are dropped too, as a network may do. Stopping twice is harmless.

        Raises:
            WorkUnderWayError: the executor is running work now. Wait for that, and stop again.
        """
        reason = LogDirectoryError("the driver was stopped")
        self.raft.stop(str(reason))
        self.settle()
        for queue in self._queues:
            queue.close(reason)
        drop_fetched(self._driven)
        if self._driven.writer is not None:
            self._driven.writer.close()
