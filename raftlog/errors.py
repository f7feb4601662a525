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
    ├─ LogDirectoryError   DirectoryLockedError · NotFormattedError · AlreadyFormattedError · ForkedProcessError
    │  └─ ForeignDirectoryError (path, subject, found, expected)
    ├─ MissingExtraError (extra; also an ImportError) · NoJavaError (least_version, looked_at)
    ├─ SparkJobError (work, reason)
    ├─ OptionError (option; also a ValueError) · DivergedStreamError
    └─ StorageError (path, operation; also an OSError)              the disk failed
       └─ MissingFileError · OutOfSpaceError · TooManyOpenFilesError (an OutOfSpaceError)
    InvariantViolation(AssertionError)                              we have a bug; not a RaftLogError on purpose

Unless a docstring says otherwise, an error means that nothing was changed. An error that is kept goes through
``without_frames``, and is raised as a ``fresh_copy``.
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
        """Fill in the places that are not known yet, and return the same error, to be raised again."""
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
    """A batch header or checksum does not hold."""


class TruncatedBatchError(DecodeError):
    """A batch, or a value, goes on past the end of the bytes."""


class InvalidRecordError(DecodeError):
    """A record, or a field of a message, breaks the format."""


class CorruptFileError(DecodeError):
    """A file beside the log, or a snapshot, is not what its name says."""


class UnsupportedMagicError(DecodeError):
    """A batch of a magic that is not decoded."""


class UnsupportedVersionError(DecodeError, ValueError):
    """A version of a message or file that is not known, or that lacks a field that was set."""


class UnsupportedCompressionError(DecodeError):
    """A compression id without a codec, or a stream that its codec refuses by design."""


class LogError(RaftLogError):
    """A log refuses an operation."""


class OffsetOutOfRangeError(LogError, ValueError):
    """An offset below the log start or above the log end."""


class NonContiguousAppendError(LogError, ValueError):
    """An append whose base offset is not acceptable after the log end."""


class TruncationBelowHighWatermarkError(LogError, ValueError):
    """A truncation that would drop committed records."""


class BatchTooLargeError(LogError, ValueError):
    """Records that do not fit in one batch."""


class BufferExhaustedError(LogError):
    """The accumulator holds as much as it may."""


class InvalidControlBatchError(LogError, ValueError):
    """Bytes that are not the one control batch that is to be appended."""


class QuarantinedLogError(LogError):
    """The log is damaged below its durable point and refuses to act as if it were short."""


class WorkUnderWayError(LogError):
    """Work that a disk does in another thread must be finished first."""


class DivergedLogError(LogError):
    """Two logs hold different batches at one offset; or one log does not hold any more what was read from it."""


class VoterSetError(RaftLogError):
    """A voter set, or a change of one, is refused."""


class EmptyVoterSetError(VoterSetError, ValueError):
    """A voter set without voters is to be written."""


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
    """A text that is no value of ``controller.quorum.voters``.

    Attributes:
        text: the whole value.
        position: of the character in it, from 0 on, where what is wrong begins.
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
    """A snapshot id that the log does not allow, or a name that is not one."""


class IncompleteSnapshotError(SnapshotError, DecodeError):
    """A snapshot without its header or footer, or cut off inside a batch."""


class SnapshotPositionError(SnapshotError, ValueError):
    """A chunk of a snapshot that does not start where the bytes before it end."""


class QuorumError(RaftLogError):
    """A consensus operation is refused."""


class NotLeaderError(QuorumError):
    """This replica does not lead."""


class FencedEpochError(QuorumError):
    """The epoch of the caller is over."""


class UnknownEpochError(QuorumError, ValueError):
    """The epoch of the caller is ahead of this replica's."""


class IllegalTransitionError(QuorumError):
    """A role change that the transition table does not have."""


class LogDirectoryError(RaftLogError):
    """A log directory cannot be used."""


class DirectoryLockedError(LogDirectoryError):
    """Another process holds the directory."""


class NotFormattedError(LogDirectoryError):
    """The directory was not made for anybody yet, or is no log directory."""


class AlreadyFormattedError(LogDirectoryError):
    """The directory belongs to somebody, or holds a log."""


class ForkedProcessError(LogDirectoryError):
    """This process was forked from the one that opened the log or directory, and owns nothing of it."""


@attrs.define
class ForeignDirectoryError(LogDirectoryError):
    """The directory belongs to another cluster, node or topic.

    Attributes:
        path: the file or directory that says so.
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
        extra: the extra of raftlog that brings it.
        wanted_for: what was asked for.
    """

    extra: str
    wanted_for: str

    def __str__(self) -> str:
        return f"{self.wanted_for} needs a package that is not installed: pip install 'raftlog[{self.extra}]'"


@attrs.define
class NoJavaError(RaftLogError):
    """Spark cannot be started here, as no Java is new enough.

    Attributes:
        least_version: the oldest that would do.
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
    """Spark cannot go on with a job. What it has done so far is kept, where the job keeps anything.

    Attributes:
        work: what was going on.
        reason: what Spark said.
    """

    work: str
    reason: str

    def __str__(self) -> str:
        return f"Spark failed at {self.work}: {self.reason}"


@attrs.define
class OptionError(RaftLogError, ValueError):
    """An option of a data source that is misspelt, missing, or has a value that cannot be.

    Attributes:
        option: its name.
        reason: what is wrong, and what would do.
    """

    option: str
    reason: str

    def __str__(self) -> str:
        return f"option {self.option}: {self.reason}"


@attrs.define
class DivergedStreamError(RaftLogError):
    """A log is not the one any more that a stream has read up to a place: it was truncated there, or is another.

    Attributes:
        log: topic and partition.
        offset, epoch: up to where the stream has read (exclusive), and the epoch of the record before that.
        found_offset, found_epoch: what the log has instead: the same offset and another epoch, or its end.
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
        operation: what was tried.
        cause: the operating system's words.
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
    """No descriptor was to be had. Likewise for want of room, of another kind: it may be tried again."""


class InvariantViolation(AssertionError):  # noqa: N818 - it is not an error of the caller
    """raftlog has a bug: something that must hold does not."""


def without_frames(error: _AnyError) -> _AnyError:
    """Return an error as it may be kept: this one, without its traceback, those of its causes, and its context.

    A traceback holds the frames that the error passed through, and a frame all its local variables: decompressed
    records, windows of files. Whoever keeps an error beyond the ``except`` block that caught it would keep these too,
    and build a cycle that only the collector of garbage takes apart. The cause stays, as it may say what failed.
    """
    each: BaseException | None = error
    while each is not None:
        each.__traceback__ = None
        each.__context__ = None
        each = each.__cause__
    return error


def fresh_copy(error: _AnyError) -> _AnyError:
    """Return a copy of one of raftlog's errors that was raised nowhere yet: without traceback, cause and context.

    To keep an error that is on its way up, and to raise one that is kept: the error itself would gather frames with
    each raise. One that cannot be copied is returned itself, without its frames.
    """
    try:
        return copy.copy(error)
    except Exception:
        return without_frames(error)
