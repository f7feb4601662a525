# SPDX-License-Identifier: Apache-2.0
"""KRaft-compatible replicated logs: read, write, inspect and trust them.

The names in ``__all__`` are the public ones; each is imported from its module when it is first asked for, so that
``import raftlog`` costs nothing.
"""

__version__ = "0.1.0"

__all__ = [
    "AlreadyFormattedError",
    "BatchAccumulator",
    "BatchTooLargeError",
    "BufferExhaustedError",
    "CompletedBatch",
    "CompressionType",
    "CorruptBatchError",
    "CorruptFileError",
    "DecodeError",
    "DirectoryFormat",
    "DirectoryLockedError",
    "DivergedLogError",
    "DuplicateVoterError",
    "DynamicVoter",
    "Endpoints",
    "EpochEntry",
    "FencedEpochError",
    "FileLog",
    "FileSystem",
    "ForeignDirectoryError",
    "ForkedProcessError",
    "Header",
    "HistoryEntry",
    "HostPort",
    "IllegalTransitionError",
    "IncompleteSnapshotError",
    "InvalidControlBatchError",
    "InvalidRecordError",
    "InvalidSnapshotIdError",
    "InvariantViolation",
    "Isolation",
    "KRaftControlRecordStateMachine",
    "KRaftVersion",
    "KeyedRecord",
    "LeaderEpochCache",
    "LocalFileSystem",
    "LogAppendInfo",
    "LogConfig",
    "LogDirectory",
    "LogDirectoryError",
    "LogError",
    "LogFetchInfo",
    "LogHistory",
    "LogOffsetMetadata",
    "MemoryLog",
    "MemoryPool",
    "MissingExtraError",
    "MissingFileError",
    "NoOverlappingMajorityError",
    "NonContiguousAppendError",
    "NotFormattedError",
    "NotLeaderError",
    "OffsetAndEpoch",
    "OffsetOutOfRangeError",
    "OpenFile",
    "OutOfSpaceError",
    "Quarantine",
    "QuarantinedLogError",
    "QuorumError",
    "QuorumStateStore",
    "RaftLogError",
    "RawSnapshotReader",
    "RawSnapshotWriter",
    "Record",
    "RecordBatch",
    "RecordBatchBuilder",
    "RecordsSnapshotReader",
    "RecordsSnapshotWriter",
    "RecoveryReport",
    "ReplicaKey",
    "ReplicatedLog",
    "SegmentPosition",
    "SnapshotError",
    "SnapshotFrozenError",
    "SnapshotNotFoundError",
    "SnapshotPositionError",
    "StorageError",
    "SupportedVersionRange",
    "TimestampType",
    "TreeMapLogHistory",
    "TruncatedBatchError",
    "TruncationBelowHighWatermarkError",
    "UnknownEpochError",
    "UnsupportedCompressionError",
    "UnsupportedMagicError",
    "UnsupportedVersionError",
    "ValidOffsetAndEpoch",
    "ValidationKind",
    "VoterNode",
    "VoterNotFoundError",
    "VoterSet",
    "VoterSetError",
    "VoterSetHistory",
    "VoterSetViolation",
    "begin_snapshot",
    "format_log_directory",
    "update_state",
]

TYPE_CHECKING = False  # as in typing, which takes longer to import than all of this
if TYPE_CHECKING:
    from raftlog.control_record_state_machine import KRaftControlRecordStateMachine, update_state
    from raftlog.errors import (
        AlreadyFormattedError,
        BatchTooLargeError,
        BufferExhaustedError,
        CorruptBatchError,
        CorruptFileError,
        DecodeError,
        DirectoryLockedError,
        DivergedLogError,
        DuplicateVoterError,
        FencedEpochError,
        ForeignDirectoryError,
        ForkedProcessError,
        IllegalTransitionError,
        IncompleteSnapshotError,
        InvalidControlBatchError,
        InvalidRecordError,
        InvalidSnapshotIdError,
        InvariantViolation,
        LogDirectoryError,
        LogError,
        MissingExtraError,
        MissingFileError,
        NonContiguousAppendError,
        NoOverlappingMajorityError,
        NotFormattedError,
        NotLeaderError,
        OffsetOutOfRangeError,
        OutOfSpaceError,
        QuarantinedLogError,
        QuorumError,
        RaftLogError,
        SnapshotError,
        SnapshotFrozenError,
        SnapshotNotFoundError,
        SnapshotPositionError,
        StorageError,
        TruncatedBatchError,
        TruncationBelowHighWatermarkError,
        UnknownEpochError,
        UnsupportedCompressionError,
        UnsupportedMagicError,
        UnsupportedVersionError,
        VoterNotFoundError,
        VoterSetError,
    )
    from raftlog.file_system import FileSystem, OpenFile
    from raftlog.kraft_version import KRaftVersion
    from raftlog.leader_epoch_cache import LeaderEpochCache
    from raftlog.log_history import HistoryEntry, LogHistory, TreeMapLogHistory
    from raftlog.log_snapshots import begin_snapshot
    from raftlog.memory_log import MemoryLog
    from raftlog.offsets import (
        EpochEntry,
        LogOffsetMetadata,
        OffsetAndEpoch,
        SegmentPosition,
        ValidationKind,
        ValidOffsetAndEpoch,
    )
    from raftlog.records.accumulator import BatchAccumulator
    from raftlog.records.batch import RecordBatch, TimestampType
    from raftlog.records.builder import RecordBatchBuilder
    from raftlog.records.compression import CompressionType
    from raftlog.records.memory_pool import MemoryPool
    from raftlog.records.open_batch import CompletedBatch, KeyedRecord
    from raftlog.records.record import Header, Record
    from raftlog.replicated_log import Isolation, LogAppendInfo, LogFetchInfo, Quarantine, ReplicatedLog
    from raftlog.snapshot.raw import RawSnapshotReader, RawSnapshotWriter
    from raftlog.snapshot.reader import RecordsSnapshotReader
    from raftlog.snapshot.writer import RecordsSnapshotWriter
    from raftlog.storage.file_log import FileLog
    from raftlog.storage.local_file_system import LocalFileSystem
    from raftlog.storage.log_config import LogConfig
    from raftlog.storage.log_directory import DirectoryFormat, LogDirectory, format_log_directory
    from raftlog.storage.quorum_state_store import QuorumStateStore
    from raftlog.storage.recovery_report import RecoveryReport
    from raftlog.voter_set import (
        DynamicVoter,
        Endpoints,
        HostPort,
        ReplicaKey,
        SupportedVersionRange,
        VoterNode,
        VoterSet,
    )
    from raftlog.voter_set_history import VoterSetHistory, VoterSetViolation
else:
    _HOMES = (  # in this order, the cheapest to import first
        "raftlog.errors",
        "raftlog.kraft_version",
        "raftlog.offsets",
        "raftlog.file_system",
        "raftlog.voter_set",
        "raftlog.log_history",
        "raftlog.voter_set_history",
        "raftlog.leader_epoch_cache",
        "raftlog.records.batch",
        "raftlog.records.builder",
        "raftlog.records.compression",
        "raftlog.records.record",
        "raftlog.records.memory_pool",
        "raftlog.records.open_batch",
        "raftlog.records.accumulator",
        "raftlog.snapshot.raw",
        "raftlog.snapshot.reader",
        "raftlog.snapshot.writer",
        "raftlog.replicated_log",
        "raftlog.memory_log",
        "raftlog.control_record_state_machine",
        "raftlog.log_snapshots",
        "raftlog.storage.local_file_system",
        "raftlog.storage.log_config",
        "raftlog.storage.recovery_report",
        "raftlog.storage.file_log",
        "raftlog.storage.quorum_state_store",
        "raftlog.storage.log_directory",
    )

    def __getattr__(name: str) -> object:
        if name in __all__:
            import importlib

            for home in map(importlib.import_module, _HOMES):
                if hasattr(home, name):
                    return globals().setdefault(name, getattr(home, name))
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
