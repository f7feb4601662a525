# SPDX-License-Identifier: Apache-2.0
"""Opens a log directory for ``raftlog log``."""

import argparse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

import attrs

from raftlog.errors import VoterSetError
from raftlog.file_system import FileSystem
from raftlog.invariants import present
from raftlog.log.control_records import KRaftControlRecordStateMachine, update_state
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.state.leading import open_quorum_state
from raftlog.storage.state.log_directory import LogDirectory
from raftlog.storage.state.quorum_state_store import QuorumStateStore
from raftlog.tools.terminal.standard_error import say
from raftlog.voters.controller_quorum_voters import static_voter_set
from raftlog.voters.voter_set import ReplicaKey

DEFAULT_LISTENER_NAME: Final = "CONTROLLER"
"""The name of the controllers' listener in Kafka's own examples."""


def add_static_voters_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that names static voters, which are configuration and not in a log directory."""
    parser.add_argument(
        "--controller-quorum-voters",
        default="",
        metavar="ID@HOST:PORT,...",
        help="the voters by configuration (controller.quorum.voters), in force until a record names voters",
    )


@attrs.frozen
class OpenedLog:
    """A locked and open log directory, its log, and the state of the log's control records up to its end."""

    directory: LogDirectory
    log: FileLog
    state_machine: KRaftControlRecordStateMachine
    quorum_state: QuorumStateStore

    @property
    def replica_key(self) -> ReplicaKey:
        """The id and directory id of this replica."""
        meta = self.directory.meta
        return ReplicaKey(present(meta.node_id, "node.id, which version 1 has,"), meta.directory_id)

    @property
    def epoch(self) -> int:
        """The highest epoch that this replica knows of; 0 if it knows of none."""
        state = self.quorum_state.state
        return max(self.log.last_fetched_epoch, 0 if state is None else state.leader_epoch)

    def check_is_only_voter(self, *, is_forced: bool) -> None:
        """Refuse to act alone if there may be other voters, unless the user forces it.

        Raises:
            VoterSetError: this replica is not the only voter, or has no vote, or may have forgotten one.
        """
        if is_forced:
            return
        voters = self.state_machine.last_voter_set
        if not voters.is_only_voter(self.replica_key):
            found = (
                f"the voters are {voters}" if voters else "the log names no voters, nor does --controller-quorum-voters"
            )
            raise VoterSetError(f"{found}, and this is {self.replica_key}: only with --force")
        if not self.quorum_state.may_vote:
            raise VoterSetError("quorum-state is lost, damaged or older than the log: only with --force")

    def commit_all(self) -> None:
        """Make all of the log durable, which commits it if this is the only voter."""
        self.log.flush()
        self.log.update_high_watermark(self.log.end_offset.offset)


@contextmanager
def opened_log(file_system: FileSystem, path: str, static_voters: str = "") -> Iterator[OpenedLog]:
    """Open a log directory until the block ends.

    Args:
        file_system: the file system of the directory.
        path: the path of the directory.
        static_voters: the value of ``controller.quorum.voters``, for a log whose records name no voters.

    Raises:
        QuorumVotersError: the static voters cannot be parsed.
        LogDirectoryError: it is not formatted, is locked by another process, or belongs to another topic.
        DecodeError: a file in it is malformed.
        StorageError: the disk failed.
        RaftLogError: as for ``update_state``.
    """
    voters = static_voter_set(static_voters, DEFAULT_LISTENER_NAME)
    with ExitStack() as stack:
        directory = stack.enter_context(LogDirectory.open(file_system, path))
        log = FileLog.open(file_system, directory.log_path)
        stack.callback(log.close)
        state_machine = KRaftControlRecordStateMachine(voters)
        update_state(state_machine, log)
        yield OpenedLog(directory, log, state_machine, open_quorum_state(file_system, directory.log_path, log))


@contextmanager
def opened_local_log(path: str, static_voters: str = "") -> Iterator[OpenedLog]:
    """Open and lock a local log directory until the block ends; report on standard error what opening it repaired.

    Args:
        path: the path of the directory.
        static_voters: as for ``opened_log``.

    Raises:
        RaftLogError: as for ``opened_log``.
    """
    with opened_log(LocalFileSystem(), path, static_voters) as opened:
        for action in opened.log.recovery.actions:
            say(str(action))
        yield opened
