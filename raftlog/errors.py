# SPDX-License-Identifier: Apache-2.0
"""Every error that raftlog raises, in one tree.

::

    RaftLogError
    ├─ DecodeError (reason, rule, path, position, base_offset)      the bytes are bad
    │  ├─ CorruptBatchError · TruncatedBatchError · InvalidRecordError · CorruptFileError
    │  └─ UnsupportedMagicError · UnsupportedVersionError · UnsupportedCompressionError
    ├─ LogError            OffsetOutOfRangeError · NonContiguousAppendError · TruncationBelowHighWatermarkError
    │                      BatchTooLargeError · BufferExhaustedError · QuarantinedLogError · DivergedLogError
    │                      InvalidControlBatchError · WorkUnderWayError
    ├─ VoterSetError       EmptyVoterSetError · NoOverlappingMajorityError · TooManyVoterChangesError
    │                      DuplicateVoterError · VoterNotFoundError · QuorumVotersError (text, position, reason)
    ├─ SnapshotError       SnapshotFrozenError · SnapshotNotFoundError · InvalidSnapshotIdError
    │                      IncompleteSnapshotError (also a DecodeError) · SnapshotPositionError
    ├─ QuorumError         NotLeaderError · FencedEpochError · UnknownEpochError · IllegalTransitionError
    │                      QueueFullError · TransferTargetError · UnsafeReadError
    ├─ LogDirectoryError   DirectoryLockedError · NotFormattedError · AlreadyFormattedError · ForkedProcessError
    │  └─ ForeignDirectoryError (path, subject, found, expected)
    ├─ MissingExtraError (extra; also an ImportError) · NoJavaError (least_version, looked_at)
    ├─ SparkJobError (work, reason) · ReplayRefusedError · StateNotThereError · QueryError
    ├─ RepairRefusedError · SourceChangedError (path, change)
    ├─ OptionError (option; also a ValueError) · DivergedStreamError
    └─ StorageError (path, operation; also an OSError)              the disk failed
       └─ MissingFileError · OutOfSpaceError · TooManyOpenFilesError (an OutOfSpaceError)
    InvariantViolation(AssertionError)                              we have a bug; not a RaftLogError on purpose

Unless a docstring says otherwise, an error means that nothing was changed. An error that is stored goes through
``without_frames``, and is raised later as a ``fresh_copy``.
"""

import copy
from typing import Self, TypeVar

import attrs

_AnyError = TypeVar("_AnyError", bound=BaseException)


class RaftLogError(Exception):
    """The root: catch it to catch everything that raftlog raises on purpose."""


@attrs.define
class DecodeError(RaftLogError):
    """The bytes are bad.

    Attributes:
        reason: what is wrong, in one clause without place.
        rule: id of the rule that was broken (``raftlog.records.rules``), or None.
        path: the file, as the caller named it, or None for a buffer.
        position: byte position of the batch or field in that file or buffer, or None.
        base_offset: base offset of the batch that holds the bytes, or None.
    """

    reason: str
    rule: str | None = None
    path: str | None = None
    position: int | None = None
    base_offset: int | None = None

    def located(self, *, path: str | None = None, position: int | None = None, base_offset: int | None = None) -> Self:
        """Fill in the attributes that are not set yet, and return the same error, to be raised again."""
        if self.path is None:
            self.path = path
        if self.position is None:
            self.position = position
        if self.base_offset is None:
            self.base_offset = base_offset
        self.args = (self.reason, self.rule, self.path, self.position, self.base_offset)
        return self

    def __str__(self) -> str:
        place = [self.path] if self.path is not None else []
        if self.position is not None:
            place.append(f"position {self.position}")
        if self.base_offset is not None:
            place.append(f"base offset {self.base_offset}")
        text = f"{', '.join(place)}: {self.reason}" if place else self.reason
        return f"{text} [{self.rule}]" if self.rule else text


class CorruptBatchError(DecodeError):
    """A batch's header is invalid, or its CRC does not match."""


class TruncatedBatchError(DecodeError):
    """A batch, or a value, extends past the end of the bytes."""


class InvalidRecordError(DecodeError):
    """A record, or a field of a message, breaks the format."""


class CorruptFileError(DecodeError):
    """A file beside the log, or a snapshot, does not have the format that its name implies."""


class UnsupportedMagicError(DecodeError):
    """A batch of a magic that is not decoded."""


class UnsupportedVersionError(DecodeError, ValueError):
    """A message or file has an unknown version, or one without a field that is set."""


class UnsupportedCompressionError(DecodeError):
    """A compression id has no codec, or the codec refuses the stream by design."""


class LogError(RaftLogError):
    """A log refuses an operation."""


class OffsetOutOfRangeError(LogError, ValueError):
    """An offset below the log start or above the log end."""


class NonContiguousAppendError(LogError, ValueError):
    """An append does not begin at the log end, or has a gap."""


class TruncationBelowHighWatermarkError(LogError, ValueError):
    """A truncation that would drop committed records."""


class BatchTooLargeError(LogError, ValueError):
    """Records that do not fit in one batch."""


class BufferExhaustedError(LogError):
    """The accumulator has no memory left for the records."""


class InvalidControlBatchError(LogError, ValueError):
    """Bytes are not exactly one control batch, as required for this append."""


class QuarantinedLogError(LogError):
    """The log is damaged below its durable point, and refuses the operation until it is repaired."""


class WorkUnderWayError(LogError):
    """Other prepared ``DiskWork`` must be finished first."""


class DivergedLogError(LogError):
    """Two logs hold different batches at one offset, or a log no longer holds what was read from it."""


class VoterSetError(RaftLogError):
    """A voter set, or a change of one, is refused."""


class EmptyVoterSetError(VoterSetError, ValueError):
    """A voter set to be written has no voters."""


class NoOverlappingMajorityError(VoterSetError, ValueError):
    """Some majority of the old set shares no voter with some majority of the new one."""


class TooManyVoterChangesError(VoterSetError, ValueError):
    """More than one voter is added, or more than one removed: Kafka's guard refuses that."""


class DuplicateVoterError(VoterSetError, ValueError):
    """A voter with this id is already in the set."""


class VoterNotFoundError(VoterSetError, LookupError):
    """No voter has this id, or it has no address of this listener."""


@attrs.define
class QuorumVotersError(VoterSetError, ValueError):
    """A text is not a valid value of ``controller.quorum.voters``.

    Attributes:
        text: the whole value.
        position: of the first wrong character in it, from 0 on.
        reason: what is wrong there.
    """

    text: str
    position: int
    reason: str

    def __str__(self) -> str:
        return f"controller.quorum.voters, character {self.position}: {self.reason}"


class SnapshotError(RaftLogError):
    """A snapshot operation is refused."""


class SnapshotFrozenError(SnapshotError):
    """An append to, or a second freeze of, a frozen snapshot."""


class SnapshotNotFoundError(SnapshotError, LookupError):
    """No snapshot with this id."""


class InvalidSnapshotIdError(SnapshotError, ValueError):
    """A snapshot id that the log does not allow, or a file name that is not a snapshot's."""


class IncompleteSnapshotError(SnapshotError, DecodeError):
    """A snapshot without its header or footer, or cut off inside a batch."""


class SnapshotPositionError(SnapshotError, ValueError):
    """A chunk of a snapshot that does not start where the bytes before it end."""


class QuorumError(RaftLogError):
    """A consensus operation is refused."""


class NotLeaderError(QuorumError):
    """This replica does not lead."""


class FencedEpochError(QuorumError):
    """The caller's epoch is over: there is a later one."""


class UnknownEpochError(QuorumError, ValueError):
    """The caller's epoch is ahead of this replica's, or above the highest possible."""


class QueueFullError(QuorumError):
    """A bounded queue of the consensus core has no place left. Try again later."""


class InvalidUpdateVersionError(QuorumError, ValueError):
    """kraft.version cannot be set to a level: it is a lower one, or a voter does not support it, or is not known."""


class TransferTargetError(QuorumError, ValueError):
    """A replica that leadership cannot be transferred to: it is no other voter, or lacks committed records."""


class UnsafeReadError(QuorumError, ValueError):
    """A way to read that may return an outdated state, and is refused therefore."""


class IllegalTransitionError(QuorumError):
    """A change of the election state that raft does not allow."""


class LogDirectoryError(RaftLogError):
    """A log directory cannot be used."""


class DirectoryLockedError(LogDirectoryError):
    """Another process, or another owner in this one, has locked the directory."""


class NotFormattedError(LogDirectoryError):
    """The directory was not formatted yet, or is not a log directory."""


class AlreadyFormattedError(LogDirectoryError):
    """The directory is already formatted, or holds a log."""


class ForkedProcessError(LogDirectoryError):
    """This process was forked from the one that opened the log or directory, and owns nothing of it."""


@attrs.define
class ForeignDirectoryError(LogDirectoryError):
    """The directory belongs to another cluster, node or topic.

    Attributes:
        path: the file or directory that shows it.
        subject: what differs, such as ``cluster.id``.
        found: what it is.
        expected: what it should be.
    """

    path: str
    subject: str
    found: str
    expected: str

    def __str__(self) -> str:
        return f"{self.path}: {self.subject} is {self.found}, not {self.expected}"


@attrs.define
class MissingExtraError(RaftLogError, ImportError):
    """A package of an extra is not installed.

    Attributes:
        extra: the extra of raftlog that installs it.
        wanted_for: what needs the package.
    """

    extra: str
    wanted_for: str

    def __str__(self) -> str:
        return f"{self.wanted_for} needs a package that is not installed: pip install 'raftlog[{self.extra}]'"


@attrs.define
class NoJavaError(RaftLogError):
    """Spark cannot be started, because no installed Java is new enough.

    Attributes:
        least_version: the oldest version that suffices.
        looked_at: what was found instead, and where.
    """

    least_version: int
    looked_at: str

    def __str__(self) -> str:
        return (
            f"Spark needs Java {self.least_version} or newer, but {self.looked_at}: set JAVA_HOME, or have one brought "
            "by pip install 'raftlog[spark]'"
        )


@attrs.define
class SparkJobError(RaftLogError):
    """A job on Spark has failed. Results that the job has stored so far are kept.

    Attributes:
        work: what the job was doing.
        reason: Spark's message.
    """

    work: str
    reason: str

    def __str__(self) -> str:
        return f"Spark failed at {self.work}: {self.reason}"


class ReplayRefusedError(RaftLogError):
    """A metadata record contradicts the state that the records before it make, as Kafka's replay finds it."""


class StateNotThereError(RaftLogError, LookupError):
    """The given logs and snapshots have no state of the cluster at that offset or time."""


class QueryError(RaftLogError):
    """A query cannot be run: its SQL is wrong, it asks for more than to read, or it needs more memory or disk."""


class RepairRefusedError(RaftLogError):
    """A repair would give up, or put at risk, more than it was asked to; or what it has made is not sound."""


@attrs.define
class SourceChangedError(RaftLogError):
    """A file that a repair was planned from is not what it was.

    Attributes:
        path: of the file, or of its directory.
        change: what is other.
    """

    path: str
    change: str

    def __str__(self) -> str:
        return f"{self.path}: {self.change}"


@attrs.define
class OptionError(RaftLogError, ValueError):
    """An option of a data source is misspelt, missing, or has an invalid value.

    Attributes:
        option: its name.
        reason: what is wrong, and what is valid.
    """

    option: str
    reason: str

    def __str__(self) -> str:
        return f"option {self.option}: {self.reason}"


class NamingPolicyError(RaftLogError, ValueError):
    """A setting of a replication policy of MirrorMaker, or of a topic filter, is invalid."""


@attrs.define
class DivergedStreamError(RaftLogError):
    """A log no longer has the records that a stream has read: it was truncated, or replaced by another log.

    Attributes:
        log: topic and partition.
        offset, epoch: the offset up to which the stream has read (exclusive), and the epoch of the record before it.
        found_offset, found_epoch: what the log has instead: the same offset with another epoch, or its end.
    """

    log: str
    offset: int
    epoch: int
    found_offset: int
    found_epoch: int

    def __str__(self) -> str:
        return (
            f"{self.log}: the stream has read up to offset {self.offset} of epoch {self.epoch}, but the log has offset "
            f"{self.found_offset} of epoch {self.found_epoch} there: it was truncated, or is another log; "
            "what was read since they parted has to be taken back, and a new checkpoint begun"
        )


@attrs.define
class StorageError(RaftLogError, OSError):
    """The disk failed.

    Attributes:
        path: the file.
        operation: what was attempted.
        cause: the operating system's message.
    """

    path: str
    operation: str
    cause: str

    def __str__(self) -> str:
        return f"{self.path}: {self.operation} failed: {self.cause}"


class MissingFileError(StorageError, FileNotFoundError):
    """There is no file of this name."""


class OutOfSpaceError(StorageError):
    """The disk is full, or a quota or size limit is reached."""


class TooManyOpenFilesError(OutOfSpaceError):
    """The process or the system has no file descriptor left. As with a full disk, the operation may be retried."""


class InvariantViolation(AssertionError):  # noqa: N818 - it is not an error of the caller
    """raftlog has a bug: an invariant does not hold."""


def without_frames(error: _AnyError) -> _AnyError:
    """Prepare an error to be stored: remove its traceback and context, and those of its causes. Return the same error.

    A traceback references the frames that the error passed through, and each frame its local variables, such as
    decompressed records and windows of files. An error stored beyond its ``except`` block would keep these alive, in a
    cycle that only the garbage collector frees. The cause stays, since it may explain the failure.
    """
    each: BaseException | None = error
    while each is not None:
        each.__traceback__ = None
        each.__context__ = None
        each = each.__cause__
    return error


def fresh_copy(error: _AnyError) -> _AnyError:
    """Return a copy of one of raftlog's errors, without traceback, cause and context.

    Use it to store an error that is being raised, and to raise a stored one: the stored object itself would gather
    frames with each raise. An error that cannot be copied is returned itself, without its frames.
    """
    try:
        return copy.copy(error)
    except Exception:
        return without_frames(error)
