# SPDX-License-Identifier: Apache-2.0
"""The names of files in a log, of files in a log directory, and of the directories that hold a log.

::

    00000000000000000042.log                    a segment from offset 42 on; .index, .timeindex, ... go with it
    00000000000000000042.log.deleted            on its way out; .cleaned and .swap: on its way in
    00000000000000000042-0000000003.checkpoint  a KRaft snapshot up to offset 42 (exclusive), of epoch 3
    00000000000000000042-0000000003-1234567.checkpoint.part     one that is being written
    quorum-state.tmp                            a small file that is being written
    orders-0                                    the log of a partition
    orders-0.<32 hexadecimal digits>-delete     on its way out; -future: a copy in the making; -stray: of no topic

Parsing a name and formatting it again gives the same name. Names that Kafka does not write are not parsed.

Source: LogFileUtils, Snapshots, LocalLog.
"""

import enum
import functools
import re
from typing import Final, Self

import attrs

from raftlog.offsets import OffsetAndEpoch

METADATA_TOPIC: Final = "__cluster_metadata"
"""The topic of raft's own log, which is its partition 0."""


class FileKind(enum.Enum):
    """What a file contains; the value is the distinctive part of its name."""

    LOG = ".log"
    OFFSET_INDEX = ".index"
    TIME_INDEX = ".timeindex"
    TRANSACTION_INDEX = ".txnindex"
    PRODUCER_SNAPSHOT = ".snapshot"
    SNAPSHOT = ".checkpoint"
    """A KRaft snapshot, unlike ``.snapshot``, which is a producer snapshot."""
    LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
    PARTITION_METADATA = "partition.metadata"
    QUORUM_STATE = "quorum-state"
    BOOTSTRAP_SNAPSHOT = "bootstrap.checkpoint"
    """A file in the log directory that old format tools wrote."""
    META_PROPERTIES = "meta.properties"
    RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
    LOG_START_OFFSET_CHECKPOINT = "log-start-offset-checkpoint"
    REPLICATION_OFFSET_CHECKPOINT = "replication-offset-checkpoint"
    CLEANER_OFFSET_CHECKPOINT = "cleaner-offset-checkpoint"
    LOCK = ".lock"
    CLEAN_SHUTDOWN = ".kafka_cleanshutdown"


OFFSET_CHECKPOINTS: Final = frozenset(
    {
        FileKind.RECOVERY_POINT_CHECKPOINT,
        FileKind.LOG_START_OFFSET_CHECKPOINT,
        FileKind.REPLICATION_OFFSET_CHECKPOINT,
        FileKind.CLEANER_OFFSET_CHECKPOINT,
    }
)
"""The kinds of files of a log directory that have an offset per partition."""

SEGMENT_KINDS: Final = frozenset(
    {
        FileKind.LOG,
        FileKind.OFFSET_INDEX,
        FileKind.TIME_INDEX,
        FileKind.TRANSACTION_INDEX,
        FileKind.PRODUCER_SNAPSHOT,
    }
)
"""The kinds whose name is an offset."""

_FIXED_KINDS = {kind.value: kind for kind in FileKind if kind not in SEGMENT_KINDS | {FileKind.SNAPSHOT}}


class FileState(enum.Enum):
    """The stage of a file's life; the value is the suffix of its name."""

    CURRENT = ""
    DELETED = ".deleted"
    CLEANED = ".cleaned"
    SWAP = ".swap"
    PART = ".part"
    TEMPORARY = ".tmp"


_SEGMENT_STATES = {FileState.CURRENT, FileState.DELETED, FileState.CLEANED, FileState.SWAP}
_SNAPSHOT_STATES = {FileState.CURRENT, FileState.DELETED, FileState.PART}
_FIXED_STATES = {FileState.CURRENT, FileState.TEMPORARY}

_MAX_OFFSET = (1 << 63) - 1
_MAX_EPOCH = (1 << 31) - 1
# `re` compiles these patterns on first use and caches them.
_DIGITS = r"[0-9]{1,20}"


@attrs.frozen
class FileName:
    """The parts of a file's name; ``str()`` formats it.

    Attributes:
        kind: what the file contains.
        state: the stage of its life.
        base_offset: for segment kinds, the first offset (inclusive) that the segment may have; for a producer snapshot,
            the offset (exclusive) up to which it has the state of producers.
        snapshot_id: for a KRaft snapshot, its end offset (exclusive) and epoch.
        random_digits: make the name of a snapshot that is being written unique; otherwise empty.

    Raises:
        ValueError: no file of this kind can have such a name.
    """

    kind: FileKind
    state: FileState = FileState.CURRENT
    base_offset: int | None = None
    snapshot_id: OffsetAndEpoch | None = None
    random_digits: str = ""

    @classmethod
    def of_snapshot(cls, snapshot_id: OffsetAndEpoch, state: FileState = FileState.CURRENT) -> Self:
        """Return the name of a KRaft snapshot.

        Raises:
            ValueError: its end offset or epoch is negative or too large, or a snapshot is never in that state.
        """
        return cls(FileKind.SNAPSHOT, state, snapshot_id=snapshot_id)

    def __attrs_post_init__(self) -> None:
        if self.kind in SEGMENT_KINDS:
            states, fits = _SEGMENT_STATES, self._is_segment()
        elif self.kind is FileKind.SNAPSHOT:
            states, fits = _SNAPSHOT_STATES, self._is_snapshot()
        else:
            states, fits = _FIXED_STATES, self._has_no_numbers()
        if self.state not in states or not fits:
            raise ValueError(f"no file has such a name: {attrs.astuple(self, recurse=False)}")

    def _is_segment(self) -> bool:
        offset_fits = self.base_offset is not None and 0 <= self.base_offset <= _MAX_OFFSET
        return offset_fits and self.snapshot_id is None and not self.random_digits

    def _is_snapshot(self) -> bool:
        if self.snapshot_id is None or self.base_offset is not None:
            return False
        if self.random_digits and not (self.state is FileState.PART and re.fullmatch(_DIGITS, self.random_digits)):
            return False
        return 0 <= self.snapshot_id.offset <= _MAX_OFFSET and 0 <= self.snapshot_id.epoch <= _MAX_EPOCH

    def _has_no_numbers(self) -> bool:
        return self.base_offset is None and self.snapshot_id is None and not self.random_digits

    def __str__(self) -> str:
        return f"{self._stem()}{self.kind.value}{self.state.value}"

    def _stem(self) -> str:
        if self.base_offset is not None:
            return f"{self.base_offset:020}"
        if self.snapshot_id is not None:
            stem = f"{self.snapshot_id.offset:020}-{self.snapshot_id.epoch:010}"
            return f"{stem}-{self.random_digits}" if self.random_digits else stem
        return ""


_SEGMENT = r"([0-9]{20})(\.[a-z]+)(\.[a-z]+)?"
_SNAPSHOT = r"([0-9]{20})-([0-9]{10})(?:-([0-9]{1,20}))?\.checkpoint(\.[a-z]+)?"


@functools.lru_cache(maxsize=4096)  # Many directories have the same names.
def parse_file_name(name: str) -> FileName | None:
    """Parse a file's name, given without its folder; None if Kafka writes no such name."""
    try:
        return _segment_name(name) or _snapshot_name(name) or _fixed_name(name)
    except ValueError:
        return None


def _segment_name(name: str) -> FileName | None:
    match = re.fullmatch(_SEGMENT, name)
    return match and FileName(FileKind(match[2]), FileState(match[3] or ""), base_offset=int(match[1]))


def _snapshot_name(name: str) -> FileName | None:
    match = re.fullmatch(_SNAPSHOT, name)
    if match is None:
        return None
    snapshot_id = OffsetAndEpoch(int(match[1]), int(match[2]))
    state = FileState(match[4] or "")
    return FileName(FileKind.SNAPSHOT, state, snapshot_id=snapshot_id, random_digits=match[3] or "")


def _fixed_name(name: str) -> FileName | None:
    kind = _FIXED_KINDS.get(name.removesuffix(FileState.TEMPORARY.value))
    return kind and FileName(kind, FileState.CURRENT if name == kind.value else FileState.TEMPORARY)


class DirectoryState(enum.Enum):
    """The stage of a partition directory's life; the value is the suffix of its name."""

    CURRENT = ""
    DELETE = "-delete"
    FUTURE = "-future"
    STRAY = "-stray"


_TOPIC = r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,249}"
_UNIQUE_ID = r"[0-9a-f]{32}"
_DIRECTORY = r"(.{1,249})-(0|[1-9][0-9]{0,9})(?:\.([0-9a-f]{32})(-delete|-future|-stray))?"
_MAX_NAME_LENGTH = 255


@attrs.frozen
class DirectoryName:
    """The parts of the name of a partition's directory; ``str()`` formats it.

    Kafka shortens a long topic name when it renames a directory as deleted or stray, so that the directory name has at
    most 255 characters. The topic that is read back is then the shortened one.

    Attributes:
        topic: the topic's name.
        partition: the number of the partition.
        state: the stage of the directory's life.
        unique_id: 32 hexadecimal digits if the state is not current, else None.

    Raises:
        ValueError: no directory of a partition can have such a name.
    """

    topic: str
    partition: int
    state: DirectoryState = DirectoryState.CURRENT
    unique_id: str | None = None

    def __attrs_post_init__(self) -> None:
        is_current = self.state is DirectoryState.CURRENT
        id_fits = self.unique_id is None if is_current else re.fullmatch(_UNIQUE_ID, self.unique_id or "") is not None
        if not (re.fullmatch(_TOPIC, self.topic) and 0 <= self.partition <= _MAX_EPOCH and id_fits):
            raise ValueError(f"no directory has such a name: {attrs.astuple(self, recurse=False)}")

    def __str__(self) -> str:
        suffix = f"-{self.partition}"
        if self.state is not DirectoryState.CURRENT:
            suffix += f".{self.unique_id}{self.state.value}"
        if self.state in (DirectoryState.DELETE, DirectoryState.STRAY):
            return self.topic[: _MAX_NAME_LENGTH - len(suffix)] + suffix
        return self.topic + suffix


@functools.lru_cache(maxsize=1024)
def parse_directory_name(name: str) -> DirectoryName | None:
    """Parse the name of a partition's directory; None if Kafka writes no such name."""
    match = re.fullmatch(_DIRECTORY, name)
    if match is None:
        return None
    try:
        directory = DirectoryName(match[1], int(match[2]), DirectoryState(match[4] or ""), match[3])
    except ValueError:
        return None
    return directory if str(directory) == name else None
