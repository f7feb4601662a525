# SPDX-License-Identifier: Apache-2.0
"""The catalogue: every rule that an audit checks, those of the bytes (``raftlog.records.rules``) included.

A rule is one claim about sound files. ``raftlog explain RULE`` prints what stands here, and a detector in
``raftlog.tools.auditing`` cites its id. Severities mean:

* *harmless*: a healthy Kafka leaves it behind every day; it explains what is there.
* *suspicious*: a sound cluster may show it after a crash or in the middle of something; somebody should look.
* *damaged*: bytes or states that nothing sound writes. What they stood for may be elsewhere.
* *data-loss*: records that were here, or that were promised to be here, are gone from these files.
"""

from typing import Final

from raftlog.records.rules import RULES, Rule, Severity
from raftlog.tools.catalogue.quorum_rules import QUORUM_RULES

_HARMLESS = Severity.HARMLESS
_SUSPICIOUS = Severity.SUSPICIOUS
_DAMAGED = Severity.DAMAGED
_DATA_LOSS = Severity.DATA_LOSS

_FILES = (
    Rule(
        "file-unknown",
        _HARMLESS,
        "a log's directory holds files that Kafka or raftlog names",
        "LogFileUtils",
        "notes.txt beside 00000000000000000000.log",
    ),
    Rule(
        "file-left-over",
        _HARMLESS,
        "a file on its way in or out is gone after the next start",
        "LogLoader",
        "00000000000000000042.log.deleted",
    ),
    Rule(
        "file-gone",
        _HARMLESS,
        "a file that was listed is there when it is read",
        "raftlog",
        "a live broker deleted a segment meanwhile",
    ),
    Rule(
        "file-unreadable",
        _SUSPICIOUS,
        "every file can be opened and read",
        "raftlog",
        "permission denied, or the disk gives an I/O error",
    ),
    Rule(
        "audit-failed",
        _SUSPICIOUS,
        "raftlog surveys and judges any file without failing itself",
        "raftlog",
        "a bug: the files may be sound, or not; please report it",
    ),
    Rule(
        "directory-empty",
        _SUSPICIOUS,
        "a partition's directory has a segment",
        "LogLoader",
        "orders-0/ with partition.metadata alone",
    ),
    Rule(
        "segments-gone",
        _DATA_LOSS,
        "a partition whose files have seen records has a segment, or a snapshot of all of them",
        "LogLoader",
        "orders-0/ with leader-epoch-checkpoint and 00000000000000000300.snapshot, and no .log",
    ),
    Rule(
        "segment-twice",
        _DAMAGED,
        "a partition has one segment of a base offset",
        "LogSegments",
        "0.log beside 00000000000000000000.log",
    ),
    Rule("segment-size", _DAMAGED, "a segment has at most 2147483647 bytes", "FileRecords", "a segment of 3 GiB"),
    Rule(
        "index-missing",
        _HARMLESS,
        "a segment of more than one index interval has its indexes",
        "LogLoader",
        "00000000000000000000.log without its .index: Kafka makes it anew",
    ),
    Rule(
        "topic-id",
        _DAMAGED,
        "partition.metadata names the topic's id, on each replica the same",
        "PartitionMetadataFile",
        "__cluster_metadata-0 with another id than AAAAAAAAAAAAAAAAAAAAAQ",
    ),
    Rule(
        "offset-checkpoint",
        _SUSPICIOUS,
        "a checkpoint of offsets names none beyond the end of its log",
        "OffsetCheckpointFile",
        "a recovery point of 500 for a log that ends at 320",
    ),
    Rule(
        "partition-missing",
        _SUSPICIOUS,
        "a partition that a checkpoint of offsets names is in its log directory; one of a topic that was just deleted "
        "may be named for some seconds, or up to the next start after a crash",
        "LogManager#checkpointLogRecoveryOffsets",
        "a recovery point of 300 for orders-0, and no directory orders-0",
    ),
)

_SEGMENTS = (
    Rule(
        "segment-start",
        _DAMAGED,
        "a segment's first batch does not start before the offset of its name",
        "LogSegment",
        "00000000000000000100.log starts at offset 90",
    ),
    Rule(
        "segment-overlap",
        _DAMAGED,
        "a segment ends before the next one starts",
        "LogSegments",
        "offsets 90 to 99 in two segments",
    ),
    Rule(
        "segment-gap",
        _DATA_LOSS,
        "a log of raft goes on in the next segment where one ends; of others compaction may empty segments",
        "KafkaRaftLog",
        "a segment ends at 100, the next one starts at 250",
    ),
    Rule(
        "log-end",
        _SUSPICIOUS,
        "a log of raft reaches the offsets that files beside it have seen it reach",
        "KafkaRaftLog",
        "00000000000000000230.snapshot beside a log that ends at 190: what was not flushed is lost, or it was cut",
    ),
    Rule(
        "log-end-durable",
        _DATA_LOSS,
        "a log of raft reaches the offset up to which raftlog-recovery-point and raftlog-flush-mark call it durable",
        "raftlog",
        "durable up to 4711, and the log ends at 4000",
    ),
    Rule(
        "segment-reach",
        _DAMAGED,
        "offsets of a segment are less than 2147483648 above its first",
        "LogSegment#canConvertToRelativeOffset",
        "offset 4294967296 in 00000000000000000000.log",
    ),
    Rule(
        "offset-order",
        _DAMAGED,
        "a batch starts after the one before it ends",
        "LogValidator",
        "offsets 40 to 49 after 40 to 49",
    ),
    Rule(
        "offset-gap",
        _DATA_LOSS,
        "in a log of raft each batch starts where the one before it ends",
        "BatchAccumulator",
        "offset 57 after offset 48",
    ),
    Rule(
        "offset-missing",
        _SUSPICIOUS,
        "offsets are missing between batches of a log only where something shows that it was compacted",
        "LogCleanerManager",
        "offset 50 is next and 100 follows, in a topic that cleaner-offset-checkpoint does not name",
    ),
    Rule(
        "offset-compacted",
        _HARMLESS,
        "a log that is not compacted has every offset",
        "LogCleaner",
        "offsets 3, 9 and 12 of a compacted topic",
    ),
    Rule(
        "offset-negative",
        _DAMAGED,
        "offsets and offset deltas are not negative",
        "DefaultRecordBatch",
        "a base offset of -1",
    ),
    Rule(
        "epoch-order",
        _DAMAGED,
        "epochs of batches do not go back",
        "LeaderEpochFileCache",
        "a batch of epoch 3 after one of epoch 5",
    ),
    Rule(
        "epoch-negative",
        _DAMAGED,
        "a batch of raft has an epoch of 0 or above",
        "KafkaRaftLog",
        "partition leader epoch -1 in __cluster_metadata",
    ),
    Rule(
        "batch-attributes",
        _SUSPICIOUS,
        "attribute bits 7 to 15 are not used",
        "DefaultRecordBatch",
        "attributes 0x0100",
    ),
    Rule(
        "batch-bare",
        _SUSPICIOUS,
        "a batch of raft has no producer and no transaction",
        "BatchBuilder",
        "a producer id of 7 in __cluster_metadata",
    ),
    Rule(
        "raft-record",
        _DAMAGED,
        "a data record of raft has the timestamp of its batch, and no headers",
        "RecordsIterator",
        "a timestamp delta of 5 in __cluster_metadata: Kafka stops reading there",
    ),
    Rule(
        "raft-frame",
        _DAMAGED,
        "no record of raft is longer than the whole batch as it is stored, compressed or not",
        "RecordsIterator",
        "a record of 3018 bytes in a gzip batch of 122: Kafka stops reading there",
    ),
    Rule(
        "record-offset",
        _DAMAGED,
        "a batch's records have increasing offsets from its first to its last",
        "DefaultRecordBatch",
        "offset delta 3 after 7",
    ),
    Rule(
        "timestamp-max",
        _SUSPICIOUS,
        "a batch's max timestamp is that of its latest record",
        "LogValidator",
        "a max timestamp of 1700000000000 over records up to 1700000000500",
    ),
    Rule(
        "timestamp-negative",
        _SUSPICIOUS,
        "a timestamp is -1 (none), or not negative",
        "RecordBatch",
        "a max timestamp of -9",
    ),
    Rule(
        "timestamp-back",
        _HARMLESS,
        "max timestamps of batches do not go back",
        "KIP-32",
        "a new leader's clock is 20 ms behind",
    ),
    Rule(
        "metadata-version-missing",
        _SUSPICIOUS,
        "a metadata log that has records sets metadata.version, where bootstrap.checkpoint does",
        "ActivationRecordsGenerator",
        "a TopicRecord was appended to an empty log, and Kafka writes metadata.version to an empty log only",
    ),
    Rule(
        "frame-empty",
        _SUSPICIOUS,
        "a data record of __cluster_metadata has no key, and a value",
        "MetadataRecordSerde",
        "a record without value",
    ),
)

_INDEXES = (
    Rule(
        "index-padding",
        _HARMLESS,
        "an index has no zeros after its last entry",
        "AbstractIndex#resize",
        "a broker that was killed left 10 MiB of preallocated index",
    ),
    Rule(
        "index-sparse",
        _HARMLESS,
        "an index has an entry for each interval of bytes",
        "LogSegment#append",
        "no entry for 1 MiB of batches",
    ),
    Rule(
        "index-append",
        _HARMLESS,
        "an index entry is made for each batch",
        "LogSegment#append",
        "an older broker made one for several batches that it appended together",
    ),
    Rule(
        "index-beyond",
        _DAMAGED,
        "an index entry points into its segment",
        "OffsetIndex",
        "position 9000 of a segment of 8000 bytes",
    ),
    Rule(
        "time-index-order",
        _DAMAGED,
        "timestamps and offsets of a time index increase",
        "TimeIndex#maybeAppend",
        "timestamp 5 after 9",
    ),
    Rule(
        "transaction-index",
        _DAMAGED,
        "a transaction index lists the transactions that its segment aborts",
        "TransactionIndex",
        "a producer's ABORT marker without an entry",
    ),
)

_EPOCHS = (
    Rule(
        "epochs-order",
        _DAMAGED,
        "epochs and start offsets of a leader-epoch-checkpoint increase",
        "LeaderEpochFileCache",
        "epoch 3 after epoch 4",
    ),
    Rule(
        "epochs-start",
        _DAMAGED,
        "a leader-epoch-checkpoint has each epoch start where its first batch does",
        "LeaderEpochFileCache#assign",
        "epoch 4 at 120, whose first batch is at 100",
    ),
    Rule(
        "epochs-missing",
        _SUSPICIOUS,
        "a leader-epoch-checkpoint names each epoch of the log",
        "LeaderEpochFileCache#assign",
        "batches of epoch 4, and no entry for it",
    ),
    Rule(
        "epochs-beyond",
        _HARMLESS,
        "an epoch's first batch is written when its entry is",
        "KafkaRaftLog#initializeLeaderEpoch",
        "a leader was killed before its first record: epoch 7 at the end of the log",
    ),
    Rule(
        "epoch-opening",
        _DAMAGED,
        "each epoch of a raft log starts with its LeaderChange",
        "LeaderState#appendLeaderChangeMessage",
        "epoch 6 starts with a data batch",
    ),
    Rule(
        "epoch-leader",
        _DAMAGED,
        "an epoch has one LeaderChange, at its start",
        "LeaderState",
        "a second LeaderChange in epoch 6",
    ),
    Rule(
        "leader-elected",
        _SUSPICIOUS,
        "a leader is one of the voters that it names, and was granted the votes of most",
        "CandidateState",
        "1 of 3 voters granted",
    ),
    Rule(
        "leader-voters",
        _SUSPICIOUS,
        "a LeaderChange names the voters that are in force",
        "LeaderState",
        "it names 1, 2, 3 where the voters are 1, 2, 4",
    ),
    Rule(
        "control-place",
        _DAMAGED,
        "snapshot headers, footers and transaction markers are not in a log of raft",
        "KRaftControlRecordStateMachine",
        "a SnapshotFooter in a segment",
    ),
)

_SNAPSHOTS = (
    Rule(
        "log-start-uncovered",
        _DATA_LOSS,
        "a log that starts above 0 has a snapshot up to its start or beyond",
        "KafkaRaftLog#recoverSnapshots",
        "the log starts at 500, the newest snapshot ends at 300",
    ),
    Rule(
        "snapshot-unfinished",
        _HARMLESS,
        "a snapshot that was begun is finished",
        "FileRawSnapshotWriter",
        "00000000000000000042-0000000003.checkpoint.part",
    ),
    Rule(
        "snapshot-ahead",
        _SUSPICIOUS,
        "no snapshot ends beyond the log's end",
        "KafkaRaftLog#truncateToLatestSnapshot",
        "a snapshot up to 900 of a log that ends at 700: the next start drops the log",
    ),
    Rule(
        "snapshot-id",
        _DAMAGED,
        "a snapshot's epoch is that of the record before its end",
        "KafkaRaftLog#createNewSnapshot",
        "snapshot 100-4, where offset 99 is of epoch 3",
    ),
    Rule(
        "snapshot-boundary",
        _SUSPICIOUS,
        "a snapshot ends where a batch does",
        "KAFKA-14619",
        "a snapshot up to 105 in the middle of a batch from 100 to 109",
    ),
    Rule(
        "snapshot-timestamp",
        _DAMAGED,
        "a snapshot's last contained timestamp is that of the log at its end",
        "RecordsSnapshotWriter",
        "a header of 1700000000000, where the log has 1700000090000",
    ),
    Rule(
        "snapshot-voters",
        _DAMAGED,
        "a snapshot has the voters in force before its end",
        "KRaftControlRecordStateMachine",
        "voters 1, 2, 3, where the log has 1, 2",
    ),
    Rule(
        "snapshot-version",
        _DAMAGED,
        "a snapshot has the kraft.version in force before its end",
        "KRaftControlRecordStateMachine",
        "kraft.version 0, where the log has 1",
    ),
    Rule(
        "snapshot-twins",
        _DAMAGED,
        "snapshots of one id on several replicas say the same",
        "KIP-630",
        "two snapshots 100-4 with different voters",
    ),
)

CATALOGUE: Final[dict[str, Rule]] = RULES | {
    rule.id: rule for rule in (*_FILES, *_SEGMENTS, *_INDEXES, *_EPOCHS, *_SNAPSHOTS, *QUORUM_RULES)
}
"""Every rule by its id."""

ASKED_FOR: Final = {
    "message-field": "verify --messages, audit --messages, dump-log with a decoder",
    "message-version": "verify --messages, audit --messages, dump-log with a decoder",
    "message-frame": "verify --messages, audit --messages, dump-log with a decoder",
    "decoder-raised": "dump-log --key-decoder-class or --value-decoder-class",
    "index-sanity": "dump-log --index-sanity-check",
}
"""Rules that are checked only where somebody asks for it, with what does."""

UNREADABLE_RULES: Final = frozenset({"file-unreadable", "audit-failed"})
"""What is found where nobody can tell how a file is, though it is there."""
UNREAD_RULES: Final = UNREADABLE_RULES | {"file-gone"}
"""What is found of a file that could not be read."""
DISORDER_RULES: Final = frozenset({"offset-gap", "offset-order"})
"""What is found where offsets do not go on as they should: behind it each may be that of another batch."""
TAIL_RULES: Final = frozenset({"tail-torn", "tail-zero"})
"""What is found of bytes that a crash leaves at the end of a log, and nowhere else."""
