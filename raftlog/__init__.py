# SPDX-License-Identifier: Apache-2.0
"""KRaft-compatible replicated logs: read, write, inspect and trust them.

The names in ``__all__`` are the public ones; each is imported from its module when it is first asked for, so that
``import raftlog`` costs nothing.
"""

__version__ = "0.1.0"

__all__ = [
    "BatchTooLargeError",
    "BufferExhaustedError",
    "CompressionType",
    "CorruptBatchError",
    "DecodeError",
    "DirectoryLockedError",
    "DivergedLogError",
    "DuplicateVoterError",
    "DynamicVoter",
    "Endpoints",
    "EpochEntry",
    "FencedEpochError",
    "ForeignDirectoryError",
    "Header",
    "HostPort",
    "IllegalTransitionError",
    "IncompleteSnapshotError",
    "InvalidRecordError",
    "InvalidSnapshotIdError",
    "InvariantViolation",
    "KRaftVersion",
    "LogDirectoryError",
    "LogError",
    "LogOffsetMetadata",
    "MissingExtraError",
    "NoOverlappingMajorityError",
    "NonContiguousAppendError",
    "NotLeaderError",
    "OffsetAndEpoch",
    "OffsetOutOfRangeError",
    "QuarantinedLogError",
    "QuorumError",
    "RaftLogError",
    "Record",
    "RecordBatch",
    "RecordBatchBuilder",
    "ReplicaKey",
    "SegmentPosition",
    "SnapshotError",
    "SnapshotFrozenError",
    "SnapshotNotFoundError",
    "StorageError",
    "SupportedVersionRange",
    "TimestampType",
    "TruncatedBatchError",
    "TruncationBelowHighWatermarkError",
    "UnsupportedCompressionError",
    "UnsupportedMagicError",
    "UnsupportedVersionError",
    "ValidOffsetAndEpoch",
    "ValidationKind",
    "VoterNode",
    "VoterNotFoundError",
    "VoterSet",
    "VoterSetError",
]

TYPE_CHECKING = False  # as in typing, which takes longer to import than all of this
if TYPE_CHECKING:
    from raftlog.errors import (
        BatchTooLargeError,
        BufferExhaustedError,
        CorruptBatchError,
        DecodeError,
        DirectoryLockedError,
        DivergedLogError,
        DuplicateVoterError,
        FencedEpochError,
        ForeignDirectoryError,
        IllegalTransitionError,
        IncompleteSnapshotError,
        InvalidRecordError,
        InvalidSnapshotIdError,
        InvariantViolation,
        LogDirectoryError,
        LogError,
        MissingExtraError,
        NonContiguousAppendError,
        NoOverlappingMajorityError,
        NotLeaderError,
        OffsetOutOfRangeError,
        QuarantinedLogError,
        QuorumError,
        RaftLogError,
        SnapshotError,
        SnapshotFrozenError,
        SnapshotNotFoundError,
        StorageError,
        TruncatedBatchError,
        TruncationBelowHighWatermarkError,
        UnsupportedCompressionError,
        UnsupportedMagicError,
        UnsupportedVersionError,
        VoterNotFoundError,
        VoterSetError,
    )
    from raftlog.kraft_version import KRaftVersion
    from raftlog.offsets import (
        EpochEntry,
        LogOffsetMetadata,
        OffsetAndEpoch,
        SegmentPosition,
        ValidationKind,
        ValidOffsetAndEpoch,
    )
    from raftlog.records.batch import RecordBatch, TimestampType
    from raftlog.records.builder import RecordBatchBuilder
    from raftlog.records.compression import CompressionType
    from raftlog.records.record import Header, Record
    from raftlog.voter_set import (
        DynamicVoter,
        Endpoints,
        HostPort,
        ReplicaKey,
        SupportedVersionRange,
        VoterNode,
        VoterSet,
    )
else:
    _HOMES = (  # in this order, the cheapest to import first
        "raftlog.errors",
        "raftlog.kraft_version",
        "raftlog.offsets",
        "raftlog.voter_set",
        "raftlog.records.batch",
        "raftlog.records.builder",
        "raftlog.records.compression",
        "raftlog.records.record",
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
