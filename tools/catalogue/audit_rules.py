# SPDX-License-Identifier: Apache-2.0
"""The catalogue: every rule that an audit checks, including the rules about bytes (``raftlog.records.rules``).

A rule is one claim about sound files. ``raftlog explain RULE`` prints a rule from this catalogue, and the detectors in
``raftlog.tools.auditing`` cite its id. Severities mean:

* *harmless*: a healthy Kafka produces this every day; the finding only explains what is there.
* *suspicious*: a sound cluster may show this after a crash or during an operation; an operator should look at it.
* *damaged*: no sound program writes such bytes or states. The data may still exist elsewhere.
* *data-loss*: records that these files held, or were promised to hold, are missing from them.
"""

from typing import Final

from raftlog.records.rules import RULES, Rule, Severity, Subject
from raftlog.tools.catalogue.mirror_rules import MIRROR_RULES
from raftlog.tools.catalogue.quorum_rules import QUORUM_RULES
from raftlog.tools.catalogue.segment_rules import SEGMENT_RULES

_HARMLESS = Severity.HARMLESS
_SUSPICIOUS = Severity.SUSPICIOUS
_DAMAGED = Severity.DAMAGED
_DATA_LOSS = Severity.DATA_LOSS

_FILES = (
    Rule(
        "file-unknown",
        _HARMLESS,
        Subject.ANYTHING,
        "a log's directory has only files of Kafka or raftlog",
        "LogFileUtils",
        "notes.txt beside 00000000000000000000.log",
    ),
    Rule(
        "file-left-over",
        _HARMLESS,
        Subject.ANYTHING,
        "a file that is being written or deleted does not remain after the next startup",
        "LogLoader",
        "00000000000000000042.log.deleted",
    ),
    Rule(
        "file-gone",
        _HARMLESS,
        Subject.ANYTHING,
        "a file that was listed still exists when it is read",
        "raftlog",
        "a live broker deleted a segment during the audit",
    ),
    Rule(
        "directory-changed",
        _HARMLESS,
        Subject.ANYTHING,
        "no file of a directory changes while the directory is read",
        "raftlog",
        "a live broker appended to a log during the audit, which judges what it saw last",
    ),
    Rule(
        "file-unreadable",
        _SUSPICIOUS,
        Subject.ANYTHING,
        "every file can be opened and read",
        "raftlog",
        "permission denied, or the disk gives an I/O error",
    ),
    Rule(
        "audit-failed",
        _SUSPICIOUS,
        Subject.ANYTHING,
        "raftlog can survey and judge any file",
        "raftlog",
        "a bug in raftlog, which you should report: the files may be sound or not",
    ),
    Rule(
        "directory-empty",
        _SUSPICIOUS,
        Subject.ANYTHING,
        "a partition's directory has a segment",
        "LogLoader",
        "orders-0/ with only partition.metadata",
    ),
    Rule(
        "segments-gone",
        _DATA_LOSS,
        Subject.ANYTHING,
        "a partition that had records, by its other files, has a segment, or a snapshot of all of them",
        "LogLoader",
        "orders-0/ with leader-epoch-checkpoint and 00000000000000000300.snapshot, and no .log",
    ),
    Rule(
        "segment-twice",
        _DAMAGED,
        Subject.LOGS,
        "a partition has one segment per base offset",
        "LogSegments",
        "0.log beside 00000000000000000000.log",
    ),
    Rule(
        "segment-size",
        _DAMAGED,
        Subject.LOGS,
        "a segment has at most 2147483647 bytes",
        "FileRecords",
        "a segment of 3 GiB",
    ),
    Rule(
        "index-missing",
        _HARMLESS,
        Subject.LOGS,
        "a segment of more than one index interval has its indexes",
        "LogLoader",
        "00000000000000000000.log without its .index: Kafka rebuilds it",
    ),
    Rule(
        "topic-id",
        _DAMAGED,
        Subject.PARTITION_METADATA,
        "partition.metadata has the topic's id, the same on each replica",
        "PartitionMetadataFile",
        "__cluster_metadata-0 with another id than AAAAAAAAAAAAAAAAAAAAAQ",
    ),
    Rule(
        "offset-checkpoint",
        _SUSPICIOUS,
        Subject.OFFSET_CHECKPOINTS,
        "an offset checkpoint names no offset after the end of its log",
        "OffsetCheckpointFile",
        "a recovery point of 500 for a log that ends at 320",
    ),
    Rule(
        "log-start-above",
        _SUSPICIOUS,
        Subject.OFFSET_CHECKPOINTS,
        "no log starts above its high watermark; the two files are written at different times",
        "LogManager#checkpointLogStartOffsetsInDir",
        "a log start of 400 beside a high watermark of 300",
    ),
    Rule(
        "log-start-below",
        _SUSPICIOUS,
        Subject.OFFSET_CHECKPOINTS,
        "after a clean shutdown, a log start in a checkpoint is within the log's first segment or after it",
        "LogManager#checkpointLogStartOffsetsInDir",
        "a log start of 100 for a log whose first segment starts at 250",
    ),
    Rule(
        "log-start-stale",
        _HARMLESS,
        Subject.OFFSET_CHECKPOINTS,
        "a log start in a checkpoint is within the log's first segment or after it; one of tiered storage is before it",
        "LogManager#checkpointLogStartOffsetsInDir",
        "a broker was killed after retention had deleted a segment",
    ),
    Rule(
        "partition-missing",
        _SUSPICIOUS,
        Subject.OFFSET_CHECKPOINTS,
        "a partition that an offset checkpoint names is in its log directory; one of a deleted topic may be named for "
        "some seconds or, after a crash, until the next startup",
        "LogManager#checkpointLogRecoveryOffsets",
        "a recovery point of 300 for orders-0, but no directory orders-0",
    ),
)

_EPOCHS = (
    Rule(
        "epochs-order",
        _DAMAGED,
        Subject.LEADER_EPOCH_CHECKPOINT,
        "epochs and start offsets of a leader-epoch-checkpoint increase",
        "LeaderEpochFileCache",
        "epoch 3 after epoch 4",
    ),
    Rule(
        "epochs-start",
        _DAMAGED,
        Subject.LEADER_EPOCH_CHECKPOINT,
        "the start offset of an epoch in a leader-epoch-checkpoint is that of its first batch",
        "LeaderEpochFileCache#assign",
        "epoch 4 at 120, whose first batch is at 100",
    ),
    Rule(
        "epochs-missing",
        _SUSPICIOUS,
        Subject.LOGS,
        "a leader-epoch-checkpoint names each epoch of the log",
        "LeaderEpochFileCache#assign",
        "batches of epoch 4, but no entry for it",
    ),
    Rule(
        "epochs-beyond",
        _HARMLESS,
        Subject.LEADER_EPOCH_CHECKPOINT,
        "an epoch with an entry in a leader-epoch-checkpoint has a batch",
        "KafkaRaftLog#initializeLeaderEpoch",
        "a leader was killed before its first record: epoch 7 at the end of the log",
    ),
    Rule(
        "epoch-opening",
        _DAMAGED,
        Subject.RAFT,
        "each epoch of a raft log starts with its LeaderChange",
        "LeaderState#appendLeaderChangeMessage",
        "epoch 6 starts with a data batch",
    ),
    Rule(
        "epoch-leader",
        _DAMAGED,
        Subject.RAFT,
        "an epoch has one LeaderChange, at its start",
        "LeaderState",
        "a second LeaderChange in epoch 6",
    ),
    Rule(
        "leader-voted",
        _DAMAGED,
        Subject.RAFT,
        "the leader of a new epoch is one of the voters, and one of those that voted for it",
        "CandidateState",
        "leader 4 of voters 1, 2, 3",
    ),
    Rule(
        "leader-elected",
        _SUSPICIOUS,
        Subject.RAFT,
        "a leader was granted the votes of a majority",
        "CandidateState",
        "1 of 3 voters granted",
    ),
    Rule(
        "leader-voters",
        _SUSPICIOUS,
        Subject.RAFT,
        "a LeaderChange names the voters that are in force",
        "LeaderState",
        "it names 1, 2, 3, but the voters are 1, 2, 4",
    ),
    Rule(
        "control-place",
        _DAMAGED,
        Subject.RAFT,
        "a raft log has no snapshot headers, snapshot footers or transaction markers",
        "KRaftControlRecordStateMachine",
        "a SnapshotFooter in a segment",
    ),
)

_SNAPSHOTS = (
    Rule(
        "log-start-uncovered",
        _DATA_LOSS,
        Subject.RAFT,
        "a log that starts above 0 has a snapshot that ends at its start or later",
        "KafkaRaftLog#recoverSnapshots",
        "the log starts at 500, but the newest snapshot ends at 300",
    ),
    Rule(
        "snapshot-unfinished",
        _HARMLESS,
        Subject.SNAPSHOTS,
        "a snapshot that was begun is complete",
        "FileRawSnapshotWriter",
        "00000000000000000042-0000000003.checkpoint.part",
    ),
    Rule(
        "snapshot-ahead",
        _SUSPICIOUS,
        Subject.SNAPSHOTS,
        "no snapshot ends after the log's end",
        "KafkaRaftLog#truncateToLatestSnapshot",
        "a snapshot up to 900 beside a log that ends at 700: the next startup discards the log",
    ),
    Rule(
        "snapshot-id",
        _DAMAGED,
        Subject.SNAPSHOTS,
        "a snapshot's epoch is that of the record before its end",
        "KafkaRaftLog#createNewSnapshot",
        "snapshot 100-4, but offset 99 has epoch 3",
    ),
    Rule(
        "snapshot-boundary",
        _SUSPICIOUS,
        Subject.SNAPSHOTS,
        "a snapshot ends at the end of a batch",
        "KAFKA-14619",
        "a snapshot up to 105 in the middle of a batch from 100 to 109",
    ),
    Rule(
        "snapshot-timestamp",
        _DAMAGED,
        Subject.SNAPSHOTS,
        "a snapshot's last contained timestamp is that of the log at its end",
        "RecordsSnapshotWriter",
        "a header of 1700000000000, but the log has 1700000090000",
    ),
    Rule(
        "snapshot-order",
        _SUSPICIOUS,
        Subject.SNAPSHOTS,
        "a snapshot's last contained timestamp is not before those of earlier offsets, or after those of later ones",
        "BatchAccumulator",
        "a header of 1700000000000 in a snapshot up to 900, but offset 700 has 1700000090000",
    ),
    Rule(
        "snapshot-voters",
        _DAMAGED,
        Subject.SNAPSHOTS,
        "a snapshot has the voters in force before its end",
        "KRaftControlRecordStateMachine",
        "voters 1, 2, 3, but the log has 1, 2",
    ),
    Rule(
        "snapshot-version",
        _DAMAGED,
        Subject.SNAPSHOTS,
        "a snapshot has the kraft.version in force before its end",
        "KRaftControlRecordStateMachine",
        "kraft.version 0, but the log has 1",
    ),
    Rule(
        "snapshot-records",
        _DAMAGED,
        Subject.MESSAGES,
        "a snapshot has the topics, configs, registrations and so on that the log has before its end",
        "KIP-630, MetadataDelta",
        "the PARTITION_RECORD of orders-0 has another leaderEpoch than by the log",
    ),
    Rule(
        "record-attributes",
        _SUSPICIOUS,
        Subject.MESSAGES,
        "the attributes of a record in the metadata log, which are not used, are 0",
        "DefaultRecord",
        "attributes 0x01",
    ),
    Rule(
        "controller-caps",
        _SUSPICIOUS,
        Subject.MESSAGES,
        "each registered controller is a voter, or supports as high a metadata.version as the voters",
        "KIP-1312",
        "controller 4, which was removed, is registered with levels up to 21, and the voters with 25",
    ),
    Rule(
        "bootstrap-differs",
        _SUSPICIOUS,
        Subject.LOG_DIRECTORIES,
        "nodes were formatted with the same initial voters and, until a leader has written them, the same records",
        "StorageTool",
        "initial voters 1, 2, 3 on one node, and 2, 3, 4 on another",
    ),
    Rule(
        "bootstrap-unlike",
        _HARMLESS,
        Subject.LOG_DIRECTORIES,
        "nodes have the same bootstrap.checkpoint, although the log has what its first leader wrote of it",
        "BootstrapDirectory",
        "a node that was formatted later, by another release, has another metadata.version in it",
    ),
    Rule(
        "snapshot-twins",
        _DAMAGED,
        Subject.RAFT_REPLICAS,
        "snapshots of one id are the same on all replicas",
        "KIP-630",
        "two snapshots 100-4 with different voters",
    ),
)

CATALOGUE: Final[dict[str, Rule]] = RULES | {
    rule.id: rule for rule in (*_FILES, *SEGMENT_RULES, *_EPOCHS, *_SNAPSHOTS, *QUORUM_RULES, *MIRROR_RULES)
}
"""Every rule by its id."""

ASKED_FOR: Final = {
    "message-field": "verify --messages, audit --messages, dump-log with a decoder",
    "message-version": "verify --messages, audit --messages, dump-log with a decoder",
    "message-frame": "verify --messages, audit --messages, dump-log with a decoder",
    "record-attributes": "verify --messages, audit --messages",
    "controller-caps": "verify --messages, audit --messages",
    "snapshot-records": "verify --messages, audit --messages",
    "decoder-raised": "dump-log --key-decoder-class or --value-decoder-class",
    "index-sanity": "dump-log --index-sanity-check",
}
"""Rules that are checked only on request, with the commands and options that request them."""

UNREADABLE_RULES: Final = frozenset({"file-unreadable", "audit-failed"})
"""Rules of findings about a file that exists, but whose condition is unknown."""
UNREAD_RULES: Final = UNREADABLE_RULES | {"file-gone"}
"""Rules of findings about a file that could not be read, whether or not it exists."""
DISORDER_RULES: Final = frozenset({"offset-gap", "offset-order"})
"""Rules of findings about offsets that are not consecutive: every offset after one may belong to another batch."""
RELATIVE_RULES: Final = frozenset({"index-entry", "index-timestamp", "index-beyond"})
"""Rules about offsets of index entries, which are stored relative to the offset in their segment's name."""
TAIL_RULES: Final = frozenset({"tail-torn", "tail-zero"})
"""Rules of findings about bytes that a crash leaves at the end of a log, and nowhere else."""
