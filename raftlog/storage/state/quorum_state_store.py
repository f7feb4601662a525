# SPDX-License-Identifier: Apache-2.0
r"""Stores a replica's election state durably: Kafka's ``quorum-state``, and two checksummed copies beside it.

A replica that forgets its vote may vote twice in an epoch, and then there may be two leaders. ``quorum-state`` has no
checksum, so the copies take precedence; Kafka does not know them, and leaves them alone::

    raftlog-quorum-state 0
    sequence 12                  incremented with each state that is written
    {"leaderId":-1,"leaderEpoch":5,"votedId":2,"votedDirectoryId":"AQIDBAUGBwgJCgsMDQ4PEA","data_version":1}
    vote lost                    only if a vote may have been forgotten, until an operator accepts that
    crc32c 89abcdef              of all lines above

Both copies are replaced durably, one after the other, and then ``quorum-state``. A crash in between leaves the old
state in some files and the new one, which is unacknowledged, in others. Opening the store chooses one of them and
writes it to all three files before it is used. It does so even if all three agree, because the page cache may hold what
the disk does not (``rewriting``).

A full disk must not keep a replica from voting: ``raftlog-reserve`` occupies the space of one such file, is removed
when a state does not fit, and is made again when there is space. The files are replaced one after the other, so the
space of one is enough.

Source: FileQuorumStateStore. Differs: DECISIONS.md 18: Kafka has no copies, and takes a missing file for a fresh start.
"""

import contextlib
import enum
import re
from collections.abc import Callable
from typing import Final, Self, TypeVar, cast

import attrs

from raftlog.disk_work import DiskResult, DiskStep, DiskWork
from raftlog.errors import (
    CorruptFileError,
    DecodeError,
    InvariantViolation,
    MissingFileError,
    OutOfSpaceError,
    StorageError,
    TooManyOpenFilesError,
    WorkUnderWayError,
    fresh_copy,
    without_frames,
)
from raftlog.file_system import FileSystem, join, own_view, read_file, remove_if_there, replace_file
from raftlog.invariants import invariant
from raftlog.offsets import MAX_EPOCH
from raftlog.process_ownership import Owned
from raftlog.quorum.election_states import check_transition, is_undecided
from raftlog.records.checksum import crc32c
from raftlog.records.files.file_names import FileKind
from raftlog.records.files.quorum_state import UNKNOWN_ID, QuorumStateData, read_quorum_state, write_quorum_state

T = TypeVar("T")

COPY_NAMES: Final = ("raftlog-quorum-state-1", "raftlog-quorum-state-2")

RESERVE_NAME: Final = "raftlog-reserve"
_RESERVE: Final = bytes(512)
"""A file of any length takes a whole block of the file system, which is more than a state needs."""
_MAX_SIZE_BYTES: Final = 1024 * 1024
_COPY: Final = re.compile(
    rb"(raftlog-quorum-state 0\nsequence ([0-9]{1,18})\n([^\n]*)\n(vote lost\n)?)crc32c ([0-9a-f]{8})\n"
)


class QuorumStateOrigin(enum.Enum):
    """Where a state comes from."""

    FRESH = "fresh"
    """There is no file and no log: the replica has never taken part in an election."""
    COPIES = "copies"
    """The copies, or the one of them that is sound."""
    KAFKA = "kafka"
    """``quorum-state``: there are no sound copies, or Kafka has run in this directory since they were written."""
    LOST = "lost"
    """No file is sound, although there was a state: the replica may have voted for an unknown candidate."""
    STALE = "stale"
    """A sound file, but of an epoch below the log's: an old image, or the disk has lost writes. Votes may be lost."""


@attrs.frozen
class StoredQuorumState:
    """The state that follows from the three files.

    Attributes:
        origin: where the state comes from.
        state: None if it is fresh or lost.
        is_settled: whether all three files have it; otherwise they must, before the state is used.
        problems: what is wrong with files that cannot be read.
        last_sequence: the highest sequence number of a copy, 0 if there is none.
        is_vote_lost: whether a vote may have been forgotten, now or before an earlier open.
    """

    origin: QuorumStateOrigin
    state: QuorumStateData | None
    is_settled: bool
    problems: tuple[DecodeError | StorageError, ...] = ()
    last_sequence: int = 0
    is_vote_lost: bool = False

    @property
    def may_vote(self) -> bool:
        """Whether the replica may vote and be a candidate: False if it may have forgotten a vote."""
        return not self.is_vote_lost


@attrs.frozen
class QuorumStateCopy:
    """The content of a checksummed copy.

    Attributes:
        state: as in ``quorum-state``.
        sequence: incremented with each state that is written.
        is_vote_lost: whether a vote may have been forgotten.
    """

    state: QuorumStateData
    sequence: int
    is_vote_lost: bool = False

    def encode(self) -> bytes:
        """Return the bytes of the file."""
        text = f"raftlog-quorum-state 0\nsequence {self.sequence}\n".encode() + write_quorum_state(self.state) + b"\n"
        text += b"vote lost\n" if self.is_vote_lost else b""
        return text + f"crc32c {crc32c(text):08x}\n".encode()


def read_quorum_state_copy(data: bytes) -> QuorumStateCopy:
    """Read the bytes of a copy.

    Raises:
        DecodeError: they are not those of a copy, the CRC does not match, or the state cannot be read.
    """
    match = _COPY.fullmatch(data)
    if match is None:
        raise CorruptFileError("not a copy of quorum-state of version 0", "file-format", position=0)
    if crc32c(match[1]) != int(match[5], 16):
        raise CorruptFileError("the stored CRC does not match the lines above it", "file-crc", position=match.start(5))
    return QuorumStateCopy(_read_state(match[3]), int(match[2]), is_vote_lost=match[4] is not None)


def _read_state(data: bytes) -> QuorumStateData:
    state = read_quorum_state(data)
    if state.leader_epoch < 0:
        raise CorruptFileError(f"an epoch of {state.leader_epoch}", "file-format", position=0)
    return state


def load_quorum_state(
    file_system: FileSystem, directory: str, *, has_log: bool, last_epoch: int = 0
) -> StoredQuorumState:
    """Read the stored election state; nothing is written.

    The copy of the higher epoch takes precedence, then that of the higher sequence number. ``quorum-state`` takes
    precedence over both if Kafka must have written it later: its epoch is higher, or the epoch is the same and only
    ``quorum-state`` has a leader or a vote. A flipped bit may raise its epoch, too: beside sound copies, a leader whose
    epoch the log has no record of is not believed, and the replica begins in the epoch after that, undecided.

    Args:
        file_system: where the directory is.
        directory: of the log.
        has_log: whether the log ends above 0, or is in quarantine: such a replica has taken part in elections.
        last_epoch: of the log (``last_fetched_epoch``). A replica stores an epoch before it has a record of it.

    Raises:
        StorageError: no copy is sound, and the disk does not give one of the files back. What is left says neither
            whether a vote was lost nor, perhaps, which one was given.
    """
    loading = _Loading(file_system, directory)
    copies = [copy for name in COPY_NAMES if (copy := loading.read(name, read_quorum_state_copy))]
    in_kafkas_file = loading.read(FileKind.QUORUM_STATE.value, _read_state)
    latest = max(copies, key=lambda copy: (copy.state.leader_epoch, copy.sequence), default=None)
    unread = next((each for each in loading.problems if isinstance(each, StorageError)), None)
    if latest is None and unread is not None:
        raise fresh_copy(unread)
    is_lost = latest is not None and latest.is_vote_lost
    if latest is not None and (in_kafkas_file is None or not _is_later(in_kafkas_file, latest.state)):
        is_settled = copies == [latest, latest] and in_kafkas_file == latest.state
        found = StoredQuorumState(QuorumStateOrigin.COPIES, latest.state, is_settled, is_vote_lost=is_lost)
    elif in_kafkas_file is not None:
        is_known = latest is None or in_kafkas_file.leader_epoch <= max(last_epoch, latest.state.leader_epoch)
        state = in_kafkas_file if is_known else _without_leader(in_kafkas_file)
        found = StoredQuorumState(QuorumStateOrigin.KAFKA, state, False, is_vote_lost=is_lost)
    elif has_log or loading.problems:
        found = StoredQuorumState(QuorumStateOrigin.LOST, None, False, is_vote_lost=True)
    else:
        found = StoredQuorumState(QuorumStateOrigin.FRESH, None, False)
    if found.state is not None and found.state.leader_epoch < last_epoch:
        is_noted = found.is_settled and is_lost
        found = attrs.evolve(found, origin=QuorumStateOrigin.STALE, is_settled=is_noted, is_vote_lost=True)
    last_sequence = max((copy.sequence for copy in copies), default=0)
    return attrs.evolve(found, problems=tuple(loading.problems), last_sequence=last_sequence)


def _is_later(in_kafkas_file: QuorumStateData, copy: QuorumStateData) -> bool:
    if in_kafkas_file.leader_epoch != copy.leader_epoch:
        return in_kafkas_file.leader_epoch > copy.leader_epoch
    return is_undecided(copy) and not is_undecided(in_kafkas_file)


def _without_leader(state: QuorumStateData) -> QuorumStateData:
    """Return a state that keeps all promises of another one, but does not name its leader: of the epoch after it."""
    if state.leader_id == UNKNOWN_ID or state.leader_epoch == MAX_EPOCH:
        return state
    undecided = attrs.evolve(state, leader_id=UNKNOWN_ID, voted_id=UNKNOWN_ID, voted_directory_id=None)
    return attrs.evolve(undecided, leader_epoch=state.leader_epoch + 1)


class _Loading:
    """Reads files that may be missing or bad, and collects what is wrong with the bad ones."""

    def __init__(self, file_system: FileSystem, directory: str) -> None:
        self._file_system = file_system
        self._directory = directory
        self.problems: list[DecodeError | StorageError] = []

    def read(self, name: str, parse: Callable[[bytes], T]) -> T | None:
        """Return the parsed file; None if it is missing or bad."""
        path = join(self._directory, name)
        try:
            return parse(read_file(self._file_system, path, _MAX_SIZE_BYTES))
        except MissingFileError:
            return None
        except DecodeError as error:
            self.problems.append(without_frames(error.located(path=path)))
        except StorageError as error:
            self.problems.append(without_frames(error))
        return None


class QuorumStateStore(Owned):
    """Keeps the state of a replica that is running; ``open`` makes it.

    Attributes:
        recovered: what was found on open.
        state: what was written last; None if the replica is fresh, or has lost its state.
        may_vote: whether the replica may vote and be a candidate. If not, only ``accept_loss`` changes that: no write
            and no other open does.
    """

    def __init__(self, file_system: FileSystem, directory: str, recovered: StoredQuorumState) -> None:
        super().__init__(join(directory, FileKind.QUORUM_STATE.value))
        self._file_system = file_system
        self._directory = directory
        self._path = join(directory, FileKind.QUORUM_STATE.value)
        self._sequence = self._generation = recovered.last_sequence
        self._failure: StorageError | None = None
        self._is_writing = False
        self.recovered: Final = recovered
        self.state = recovered.state
        self.may_vote = recovered.may_vote

    @classmethod
    def open(cls, file_system: FileSystem, directory: str, *, has_log: bool, last_epoch: int = 0) -> Self:
        """Read the stored election state, and write it to all three files; ``recovered`` has what was found.

        Args:
            file_system: where the directory is.
            directory: of the log.
            has_log: as for ``load_quorum_state``.
            last_epoch: as for ``load_quorum_state``.

        Raises:
            OutOfSpaceError: the files cannot be written, not even with the space of the reserve.
            StorageError: the files cannot be written, and the state that was read must not be used; or they cannot be
                read, as for ``load_quorum_state``.
        """
        recovered = load_quorum_state(file_system, directory, has_log=has_log, last_epoch=last_epoch)
        store = cls(own_view(file_system, directory), directory, recovered)
        if recovered.state is not None:
            # Even if all three agree: they may be in the page cache only, after a failed sync of another process.
            store._writing(recovered.state).complete()
        store._keep_reserve()
        return store

    @property
    def last_epoch(self) -> int:
        """The latest epoch that the replica knows of; 0 if it knows of none."""
        return 0 if self.state is None else self.state.leader_epoch

    def accept_loss(self) -> None:
        """Let a replica vote although it may have forgotten a vote. The next ``write`` makes that durable.

        Only an operator may decide this, knowing that no vote of this replica can matter in an open election.
        """
        self.may_vote = True

    def write(self, state: QuorumStateData) -> None:
        """Make a state durable. It must not be acted upon, or sent to a peer, before this returns.

        Raises:
            WorkUnderWayError: another state is being written. Nothing was changed.
            FencedEpochError: its epoch is negative, or below that of the previous state. Nothing was changed.
            IllegalTransitionError: the epoch is that of the previous state, but leader or vote were replaced or
                removed; or there is a new vote, and the replica may not vote. Nothing was changed.
            OutOfSpaceError: there was no space, not even with that of the reserve. After a crash the replica may find
                this state or the previous one.
            StorageError: the disk failed, and what is on it is unknown. Every later call raises this error again.
            ForkedProcessError: this process was forked from the one that opened the store. Nothing was changed.

        Source: FileQuorumStateStore#writeElectionState.
        """
        self.prepare_write(state).complete()

    def prepare_write(self, state: QuorumStateData) -> DiskWork[DiskResult[QuorumStateData]]:
        """Prepare ``write``: until the work is finished, ``state`` does not change, and no other may be written.

        The result carries the state's epoch, and as its generation the sequence number of its copies.

        Raises:
            WorkUnderWayError, FencedEpochError, IllegalTransitionError: as for ``write``.
            StorageError: an earlier state could not be written.
            ForkedProcessError: this process was forked from the one that opened the store.
        """
        self.check_owner()
        if self._failure is not None:
            raise fresh_copy(self._failure)
        if self._is_writing:
            raise WorkUnderWayError(
                f"{self._directory}: the election state that is being written must be finished first"
            )
        check_transition(state, self.state, may_vote=self.may_vote)
        return self._writing(state)

    def _writing(self, state: QuorumStateData) -> DiskWork[DiskResult[QuorumStateData]]:
        # The second one is for a retry with the space of the reserve.
        sequences = self._sequence + 1, self._sequence + 2
        self._is_writing = True
        copies = self._copy(state), self._copy(state)

        def take(written: object) -> None:
            number, path = sequences[cast("int", written)], self._path
            invariant(self._generation < number, "{}: copy {}, previous {}", path, number, self._generation)
            invariant(number <= self._sequence, "{}: copy {}, last number {}", path, number, self._sequence)
            self.state, self._generation = state, number

        def end() -> None:
            self._is_writing = False

        names = (*COPY_NAMES, FileKind.QUORUM_STATE.value, RESERVE_NAME)
        paths = (*(join(self._directory, name) for name in names), self._directory)
        step = DiskStep(lambda: self._store(state, *copies), take, paths, self._note_failure)
        return DiskWork([step], lambda: DiskResult(state, state.leader_epoch, self._generation), on_end=end)

    def _copy(self, state: QuorumStateData) -> bytes:
        invariant(
            self._generation <= self._sequence, "{}: {}, previous {}", self._path, self._sequence, self._generation
        )
        invariant(self._is_writing, "{}: a copy is numbered that is not to be written", self._path)
        self._sequence += 1
        return QuorumStateCopy(state, self._sequence, is_vote_lost=not self.may_vote).encode()

    def _note_failure(self, error: BaseException) -> None:
        """Refuse all further writes, unless the disk was full: the files, or after a bug the store, may be wrong."""
        if isinstance(error, StorageError) and not isinstance(error, OutOfSpaceError):
            self._failure = fresh_copy(error)
        elif isinstance(error, InvariantViolation):
            self._failure = StorageError(self._path, "write", f"a bug of raftlog: {error}")

    def _store(self, state: QuorumStateData, first_copy: bytes, second_copy: bytes) -> int:
        """Write the first copy; if the disk is full, free the reserve and write the second. Return which: 0 or 1."""
        self.check_owner()
        try:
            self._store_in_files(state, first_copy)
            return 0
        except OutOfSpaceError as error:
            # The reserve helps against a full disk, but not against a lack of descriptors.
            is_for_room = not isinstance(error, TooManyOpenFilesError)
            if not is_for_room or not remove_if_there(self._file_system, join(self._directory, RESERVE_NAME)):
                raise
            self._store_in_files(state, second_copy)
            self._keep_reserve()
            return 1

    def _keep_reserve(self) -> None:
        """Make the reserve if it is missing, and if there is space for it."""
        path = join(self._directory, RESERVE_NAME)
        if not self._file_system.exists(path):
            with contextlib.suppress(StorageError):
                replace_file(self._file_system, path, _RESERVE)

    def _store_in_files(self, state: QuorumStateData, copy: bytes) -> None:
        for name in COPY_NAMES:
            replace_file(self._file_system, join(self._directory, name), copy)
        kafkas_file = join(self._directory, FileKind.QUORUM_STATE.value)
        replace_file(self._file_system, kafkas_file, write_quorum_state(state))
