# SPDX-License-Identifier: Apache-2.0
"""KRaft-compatible replicated logs: read, write, inspect and trust them.

The names in ``__all__`` are the public ones. Each is imported from its module on first use, so ``import raftlog`` is
cheap.
"""

__version__ = "0.1.0"

__all__ = [
    "AbortedRange",
    "ActionKind",
    "AlreadyFormattedError",
    "BatchAccumulator",
    "BatchColumns",
    "BatchTooLargeError",
    "BufferExhaustedError",
    "BufferSource",
    "ByteSource",
    "Chunk",
    "CompletedBatch",
    "CompressionType",
    "ControlRecord",
    "ControlRecordType",
    "CorruptBatchError",
    "CorruptFileError",
    "Corruption",
    "DecodeError",
    "DirectoryFormat",
    "DirectoryLockedError",
    "DiskResult",
    "DiskWork",
    "DivergedLogError",
    "DrainedBatches",
    "DuplicateVoterError",
    "DynamicVoter",
    "EmptyVoterSetError",
    "EndTxnMarker",
    "Endpoints",
    "EpochEntry",
    "FencedEpochError",
    "FileLock",
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
    "KRaftVersionRecord",
    "KeyedRecord",
    "LeaderChangeMessage",
    "LeaderEpochs",
    "LegacyBatch",
    "LegacyRecord",
    "LocalFileSystem",
    "LogAppendInfo",
    "LogConfig",
    "LogDirectory",
    "LogDirectoryError",
    "LogError",
    "LogFetchInfo",
    "LogHistory",
    "LogOffsetMetadata",
    "LogState",
    "MemoryLog",
    "MemoryPool",
    "MetaProperties",
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
    "QueueFullError",
    "QuorumError",
    "QuorumStateData",
    "QuorumStateStore",
    "QuorumVotersError",
    "RaftLogError",
    "RawSnapshotReader",
    "RawSnapshotWriter",
    "Record",
    "RecordBatch",
    "RecordBatchBuilder",
    "RecordColumns",
    "RecordView",
    "RecordsSnapshotReader",
    "RecordsSnapshotWriter",
    "RecoveryAction",
    "RecoveryReport",
    "ReplicaKey",
    "ReplicatedLog",
    "Retention",
    "Segment",
    "SegmentPosition",
    "SnapshotError",
    "SnapshotFooterRecord",
    "SnapshotFrozenError",
    "SnapshotHeaderRecord",
    "SnapshotNotFoundError",
    "SnapshotPositionError",
    "StorageError",
    "SupportedVersionRange",
    "TimestampType",
    "TooManyOpenFilesError",
    "TooManyVoterChangesError",
    "TornTail",
    "Transactions",
    "TransferTargetError",
    "TreeMapLogHistory",
    "TruncatedBatchError",
    "TruncationBelowHighWatermarkError",
    "UnknownEpochError",
    "UnsafeReadError",
    "UnsupportedCompressionError",
    "UnsupportedMagicError",
    "UnsupportedVersionError",
    "ValidOffsetAndEpoch",
    "ValidationKind",
    "Voter",
    "VoterNode",
    "VoterNotFoundError",
    "VoterSet",
    "VoterSetError",
    "VoterSetHistory",
    "VoterSetProblem",
    "VoterSetViolation",
    "VotersRecord",
    "VotersRecordEndpoint",
    "VotersRecordVoter",
    "WorkUnderWayError",
    "ZeroPadding",
    "begin_snapshot",
    "check_voter_set_change",
    "format_log_directory",
    "lead_epoch",
    "map_segments",
    "open_quorum_state",
    "open_segment",
    "parse_controller_quorum_voters",
    "prepare_to_lead",
    "read_columns",
    "read_control_record",
    "read_records",
    "split",
    "static_voter_set",
    "update_state",
    "voter_set_change_problems",
]

TYPE_CHECKING = False  # as in typing, which takes longer to import than all of this
if TYPE_CHECKING:
    from raftlog.disk_work import DiskResult, DiskWork
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
        EmptyVoterSetError,
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
        QueueFullError,
        QuorumError,
        QuorumVotersError,
        RaftLogError,
        SnapshotError,
        SnapshotFrozenError,
        SnapshotNotFoundError,
        SnapshotPositionError,
        StorageError,
        TooManyOpenFilesError,
        TooManyVoterChangesError,
        TransferTargetError,
        TruncatedBatchError,
        TruncationBelowHighWatermarkError,
        UnknownEpochError,
        UnsafeReadError,
        UnsupportedCompressionError,
        UnsupportedMagicError,
        UnsupportedVersionError,
        VoterNotFoundError,
        VoterSetError,
        WorkUnderWayError,
    )
    from raftlog.file_system import FileLock, FileSystem, OpenFile
    from raftlog.log.control_records import KRaftControlRecordStateMachine, update_state
    from raftlog.log.epochs import LeaderEpochs
    from raftlog.log.memory_log import MemoryLog
    from raftlog.log.replicated_log import Isolation, LogAppendInfo, LogFetchInfo, Quarantine, ReplicatedLog
    from raftlog.log.retention import Retention
    from raftlog.log.snapshots import begin_snapshot
    from raftlog.log.state import LogState
    from raftlog.offsets import (
        EpochEntry,
        LogOffsetMetadata,
        OffsetAndEpoch,
        SegmentPosition,
        ValidationKind,
        ValidOffsetAndEpoch,
    )
    from raftlog.records.batches.accumulator import BatchAccumulator
    from raftlog.records.batches.batch import RecordBatch, TimestampType
    from raftlog.records.batches.builder import RecordBatchBuilder
    from raftlog.records.batches.compression import CompressionType
    from raftlog.records.batches.iterator import BufferSource, Corruption, TornTail, ZeroPadding, split
    from raftlog.records.batches.legacy import LegacyBatch, LegacyRecord
    from raftlog.records.batches.memory_pool import MemoryPool
    from raftlog.records.batches.open_batch import CompletedBatch, DrainedBatches, KeyedRecord
    from raftlog.records.batches.record import Header, Record, RecordView
    from raftlog.records.batches.window import ByteSource
    from raftlog.records.columns.column_values import BatchColumns, Chunk, RecordColumns
    from raftlog.records.columns.columns import read_columns, read_records
    from raftlog.records.columns.transactions import AbortedRange, Transactions
    from raftlog.records.files.property_files import MetaProperties
    from raftlog.records.files.quorum_state import QuorumStateData
    from raftlog.records.messages.control import (
        ControlRecord,
        ControlRecordType,
        EndTxnMarker,
        KRaftVersionRecord,
        LeaderChangeMessage,
        SnapshotFooterRecord,
        SnapshotHeaderRecord,
        Voter,
        VotersRecord,
        VotersRecordEndpoint,
        VotersRecordVoter,
        read_control_record,
    )
    from raftlog.snapshot.raw import RawSnapshotReader, RawSnapshotWriter
    from raftlog.snapshot.reader import RecordsSnapshotReader
    from raftlog.snapshot.writer import RecordsSnapshotWriter
    from raftlog.storage.local_file_system import LocalFileSystem
    from raftlog.storage.log.file_log import FileLog
    from raftlog.storage.reading.segment_reader import Segment, map_segments, open_segment
    from raftlog.storage.recovery.recovery_report import ActionKind, RecoveryAction, RecoveryReport
    from raftlog.storage.segments.log_config import LogConfig
    from raftlog.storage.state.leading import lead_epoch, open_quorum_state, prepare_to_lead
    from raftlog.storage.state.log_directory import DirectoryFormat, LogDirectory, format_log_directory
    from raftlog.storage.state.quorum_state_store import QuorumStateStore
    from raftlog.voters.controller_quorum_voters import parse_controller_quorum_voters, static_voter_set
    from raftlog.voters.history import HistoryEntry, LogHistory, TreeMapLogHistory
    from raftlog.voters.kraft_version import KRaftVersion
    from raftlog.voters.voter_set import (
        DynamicVoter,
        Endpoints,
        HostPort,
        ReplicaKey,
        SupportedVersionRange,
        VoterNode,
        VoterSet,
    )
    from raftlog.voters.voter_set_change import VoterSetProblem, check_voter_set_change, voter_set_change_problems
    from raftlog.voters.voter_set_history import VoterSetHistory, VoterSetViolation
else:
    _HOMES = (  # in this order, the cheapest to import first
        "raftlog.errors",
        "raftlog.voters.kraft_version",
        "raftlog.offsets",
        "raftlog.file_system",
        "raftlog.disk_work",
        "raftlog.voters.voter_set",
        "raftlog.voters.voter_set_change",
        "raftlog.voters.controller_quorum_voters",
        "raftlog.voters.history",
        "raftlog.voters.voter_set_history",
        "raftlog.log.epochs",
        "raftlog.records.batches.batch",
        "raftlog.records.batches.builder",
        "raftlog.records.batches.compression",
        "raftlog.records.batches.record",
        "raftlog.records.batches.window",
        "raftlog.records.batches.legacy",
        "raftlog.records.batches.iterator",
        "raftlog.records.columns.transactions",
        "raftlog.records.columns.column_values",
        "raftlog.records.columns.columns",
        "raftlog.records.files.property_files",
        "raftlog.records.files.quorum_state",
        "raftlog.records.messages.control",
        "raftlog.records.batches.memory_pool",
        "raftlog.records.batches.open_batch",
        "raftlog.records.batches.accumulator",
        "raftlog.snapshot.raw",
        "raftlog.snapshot.reader",
        "raftlog.snapshot.writer",
        "raftlog.log.state",
        "raftlog.log.replicated_log",
        "raftlog.log.retention",
        "raftlog.log.memory_log",
        "raftlog.log.control_records",
        "raftlog.log.snapshots",
        "raftlog.storage.local_file_system",
        "raftlog.storage.segments.log_config",
        "raftlog.storage.recovery.recovery_report",
        "raftlog.storage.log.file_log",
        "raftlog.storage.state.leading",
        "raftlog.storage.state.quorum_state_store",
        "raftlog.storage.state.log_directory",
        "raftlog.storage.reading.segment_reader",
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
