# SPDX-License-Identifier: Apache-2.0
"""What the functions that carry out effects share: the core, its log, its store, and the disk work that is queued."""

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import attrs

from raftlog.disk_work import DiskWork
from raftlog.errors import OutOfSpaceError, QuarantinedLogError, RaftLogError
from raftlog.log.control_records import KRaftControlRecordStateMachine, update_state
from raftlog.log.replicated_log import ReplicatedLog
from raftlog.quorum.driving.disk_queue import DiskQueue, Job
from raftlog.quorum.driving.ports import Application, ElectionStateStore, Transport
from raftlog.quorum.raft import Raft
from raftlog.quorum.seam.log_view import ControlRecordView, LogView, control_record_view, log_view
from raftlog.snapshot.raw import RawSnapshotWriter
from raftlog.snapshot.writer import RecordsSnapshotWriter


@attrs.define(eq=False)
class LogViewer:
    """Makes views of a log, which share what has not changed.

    Attributes:
        log: of which views are made.
        machine: the log's control records, read up to the end of the last view.
    """

    log: ReplicatedLog
    machine: KRaftControlRecordStateMachine
    _control_records: ControlRecordView | None = attrs.field(default=None, init=False)
    _changes: int = attrs.field(default=-1, init=False)

    def view(self) -> LogView:
        """Let the state machine read what is new in the log, and return the view.

        Of a log in quarantine, the control records below the damage are known.

        Raises:
            RaftLogError: as ``update_state``, but not QuarantinedLogError.
        """
        machine, known = self.machine, self._control_records
        with contextlib.suppress(QuarantinedLogError):
            update_state(machine, self.log)
        if known is None or machine.changes != self._changes:
            self._changes, self._control_records = machine.changes, (known := control_record_view(machine))
        return log_view(self.log, known)


def described(error: RaftLogError) -> str:
    """Return the kind of an error, and what it says."""
    return f"{type(error).__name__}: {error}"


@attrs.define(eq=False)
class Driven:
    """A replica that is driven.

    Attributes:
        raft: the core.
        log: its log.
        viewer: makes the views of the log.
        election_state: where the election state is kept.
        network: carries the messages.
        application: is told what becomes of its appends.
        log_queue: work on the log.
        state_queue: election states to be written.
        snapshot_queue: the application's snapshot, to be frozen.
        fetched: the snapshot that is being fetched from a leader, or None.
        writer: of the application's snapshot, or None.
    """

    raft: Raft
    log: ReplicatedLog
    viewer: LogViewer
    election_state: ElectionStateStore
    network: Transport
    application: Application
    log_queue: DiskQueue
    state_queue: DiskQueue
    snapshot_queue: DiskQueue
    fetched: RawSnapshotWriter | None = None
    writer: RecordsSnapshotWriter | None = None

    @property
    def queues(self) -> tuple[DiskQueue, DiskQueue, DiskQueue]:
        """The queues of the log, of election states, and of the application's snapshot."""
        return self.log_queue, self.state_queue, self.snapshot_queue

    def work_on_log(self, number: int, prepare: Callable[[], DiskWork[Any]]) -> None:
        """Do something to the log in its turn, and report it with a new view."""
        report, failed = functools.partial(self.report_log, number), functools.partial(self.fail, number)
        self.log_queue.add(Job(number, prepare, report, failed))

    def try_on_log(self, number: int, prepare: Callable[[], DiskWork[Any]], *refusals: type[RaftLogError]) -> None:
        """Do something to the log in its turn, which leaves the log as it was if the disk is full.

        Args:
            number: of the effect.
            prepare: returns the work.
            refusals: the errors after which the log is as it was, too.
        """

        def failed(error: RaftLogError) -> None:
            is_full = isinstance(error, OutOfSpaceError)
            if is_full or isinstance(error, refusals):
                self._report_refusal(number, error, is_full=is_full)
            else:
                self.fail(number, error)

        self.log_queue.add(Job(number, prepare, functools.partial(self.report_log, number), failed))

    def _report_refusal(self, number: int, refusal: RaftLogError, *, is_full: bool) -> None:
        try:
            view = self.viewer.view()
        except RaftLogError as error:
            self.fail(number, error)
        else:
            self.raft.log_refused(number, view, described(refusal), is_full=is_full)

    def report_log(self, number: int) -> None:
        """Report work on the log with a new view; if the log cannot be read, as failed."""
        try:
            view = self.viewer.view()
        except RaftLogError as error:
            self.fail(number, error)
        else:
            self.raft.log_changed(number, view)

    def fail(self, number: int, error: RaftLogError) -> None:
        """Report that an effect has failed."""
        self.raft.effect_failed(number, described(error))
