# SPDX-License-Identifier: Apache-2.0
"""The rules that bytes must keep, written down once.

Readers, the reference and the tools cite a rule by its id; no other module of raftlog decides what is strict. A rule's
severity is that of a violation in the middle of a file; a torn tail and zero padding have rules of their own.
"""

import enum
import functools
from typing import NamedTuple

from raftlog.invariants import invariant


@functools.total_ordering
class Severity(enum.Enum):
    """How much a finding matters. Ordered: a more severe one compares as greater."""

    HARMLESS = "harmless"
    SUSPICIOUS = "suspicious"
    DAMAGED = "damaged"
    DATA_LOSS = "data-loss"

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Severity):
            return NotImplemented
        mildest_first = list(Severity)
        return mildest_first.index(self) < mildest_first.index(other)


class Subject(enum.Enum):
    """The input that a rule applies to. If an audit reads no such input, the rule counts as not checked."""

    BATCHES = "batches"
    """Segments and snapshots."""
    LOGS = "logs"
    """Segments."""
    SNAPSHOTS = "snapshots"
    INDEXES = "indexes"
    TIME_INDEX = "time indexes"
    PRODUCER_SNAPSHOT = "producer snapshots"
    LEADER_EPOCH_CHECKPOINT = "leader epoch checkpoints"
    OFFSET_CHECKPOINTS = "offset checkpoints of a log directory"
    PARTITION_METADATA = "partition.metadata"
    META_PROPERTIES = "meta.properties"
    QUORUM_STATE = "quorum-state"
    TOPICS = "logs of topics"
    RAFT = "raft logs"
    MESSAGES = "messages of raft logs, if they are read"
    REPLICAS = "two replicas of one log"
    RAFT_REPLICAS = "two replicas of one raft log"
    TOPIC_REPLICAS = "two replicas of one topic's log"
    LOG_DIRECTORIES = "two log directories"
    ANYTHING = "any file"
    NOTHING = "nothing that an audit reads: dump-log or verify-mirror alone cites the rule"


class Rule(NamedTuple):
    """One rule about stored bytes.

    Attributes:
        id: the name by which it is cited.
        severity: how bad a violation is.
        subject: the input that must be present for it to be checked.
        claim: what is true of sound bytes, in one sentence.
        source: where it comes from: a class of Kafka, a KIP or an issue.
        example: bytes that violate it.
    """

    id: str
    severity: Severity
    subject: Subject
    claim: str
    source: str
    example: str


def _rules(*rules: Rule) -> dict[str, Rule]:
    by_id = {rule.id: rule for rule in rules}
    invariant(len(by_id) == len(rules), "two rules have one id")
    return by_id


_SUSPICIOUS = Severity.SUSPICIOUS
_DAMAGED = Severity.DAMAGED

RULES = _rules(
    Rule(
        "tail-torn",
        _SUSPICIOUS,
        Subject.BATCHES,
        "a file ends at the end of a batch",
        "FileLogInputStream",
        "the last 40 bytes of a batch of 98 are missing: the machine stopped in the middle of a write",
    ),
    Rule(
        "tail-zero",
        _SUSPICIOUS,
        Subject.BATCHES,
        "a log has no zero bytes after its last batch",
        "KAFKA-13664",
        "4096 zero bytes at the end: preallocated, or left by a crash",
    ),
    Rule(
        "batch-length",
        _DAMAGED,
        Subject.BATCHES,
        "a batch length is at least 14 (magic 0, 1) or 49 (magic 2)",
        "Records",
        "a length of 3",
    ),
    Rule(
        "batch-overrun",
        _DAMAGED,
        Subject.BATCHES,
        "a batch in the middle of a file ends inside it",
        "FileLogInputStream",
        "a length of 2147483647 in a file of 8000 bytes",
    ),
    Rule("batch-magic", _DAMAGED, Subject.BATCHES, "magic is 0, 1 or 2", "RecordBatch", "magic 5"),
    Rule(
        "batch-crc",
        _DAMAGED,
        Subject.BATCHES,
        "the stored CRC is that of the bytes it covers",
        "DefaultRecordBatch#ensureValid",
        "one bit of a value was flipped",
    ),
    Rule(
        "batch-count",
        _DAMAGED,
        Subject.BATCHES,
        "a record count is not negative and fits its bytes",
        "DefaultRecordBatch",
        "a record count of -7, or of 1000000 in 200 bytes",
    ),
    Rule(
        "batch-codec",
        _DAMAGED,
        Subject.BATCHES,
        "a compression id is 0 to 4",
        "CompressionType#forId",
        "compression id 6",
    ),
    Rule(
        "codec-stream",
        _DAMAGED,
        Subject.BATCHES,
        "a compressed stream decompresses",
        "Compression",
        "a zstd frame ends too early",
    ),
    Rule(
        "codec-trailing",
        _SUSPICIOUS,
        Subject.BATCHES,
        "nothing follows a compressed stream in its batch",
        "Compression",
        "7 bytes after the end of an lz4 frame, which Kafka does not read",
    ),
    Rule(
        "codec-size",
        _DAMAGED,
        Subject.BATCHES,
        "decompressed records stay within the limit",
        "raftlog",
        "40 bytes of gzip that decompress to 1 GiB",
    ),
    Rule(
        "varint-length",
        _DAMAGED,
        Subject.BATCHES,
        "a varint has at most 5 bytes (a varlong 10), all in its batch",
        "ByteUtils",
        "six bytes that all have the continuation bit set",
    ),
    Rule(
        "varint-range",
        _DAMAGED,
        Subject.BATCHES,
        "a varint fits in 32 bits, a varlong in 64",
        "raftlog",
        "a varint of 2^35",
    ),
    Rule(
        "record-length",
        _DAMAGED,
        Subject.BATCHES,
        "a record's length is not negative and ends inside its batch",
        "DefaultRecord",
        "a record of 900 bytes in a batch of 300",
    ),
    Rule(
        "record-end",
        _DAMAGED,
        Subject.BATCHES,
        "a record's fields fill its length exactly",
        "DefaultRecord",
        "a record of 20 bytes whose fields take 17",
    ),
    Rule(
        "record-field",
        _DAMAGED,
        Subject.BATCHES,
        "a key or value is -1 (null) or a length inside its record",
        "DefaultRecord",
        "a key of -5 bytes",
    ),
    Rule(
        "record-headers",
        _DAMAGED,
        Subject.BATCHES,
        "a header count is not negative and fits its record",
        "DefaultRecord",
        "4000 headers in a record of 30 bytes",
    ),
    Rule(
        "record-header-key",
        _DAMAGED,
        Subject.BATCHES,
        "a header key's length is not negative and inside its record",
        "DefaultRecord",
        "a header key of -1 bytes",
    ),
    Rule(
        "batch-trailing",
        _DAMAGED,
        Subject.BATCHES,
        "no bytes are left after a batch's last record",
        "DefaultRecordBatch",
        "12 bytes after the last record that the header counts",
    ),
    Rule(
        "batch-missing",
        _DAMAGED,
        Subject.BATCHES,
        "a batch holds as many records as its header says",
        "DefaultRecordBatch",
        "a header that counts 5 records in a batch of 4",
    ),
    Rule(
        "control-key",
        _DAMAGED,
        Subject.BATCHES,
        "a control record's key has a type, and no negative version",
        "ControlRecordType",
        "a key of one byte",
    ),
    Rule("control-type", _SUSPICIOUS, Subject.RAFT, "a control record's type is known", "ControlRecordType", "type 42"),
    Rule(
        "control-version",
        _SUSPICIOUS,
        Subject.RAFT,
        "a control record's key and value have version 0",
        "ControlRecordUtils",
        "a key of version 1",
    ),
    Rule(
        "control-value",
        _DAMAGED,
        Subject.BATCHES,
        "a control record's value can be decoded by the version 0 layout",
        "ControlRecordUtils",
        "a LeaderChange of 3 bytes",
    ),
    Rule(
        "raft-batch",
        _DAMAGED,
        Subject.RAFT,
        "a raft batch has one record per offset, and its control records have no headers and no own timestamps",
        "raft",
        "10 offsets and 9 records in __cluster_metadata",
    ),
    Rule(
        "message-field",
        _SUSPICIOUS,
        Subject.MESSAGES,
        "a message's fields can be decoded by its schema",
        "generated readers",
        "a TopicRecord whose name ends after the value's last byte",
    ),
    Rule(
        "message-version",
        _SUSPICIOUS,
        Subject.MESSAGES,
        "a message has a known version",
        "generated readers",
        "version 9 of a message that has versions 0 to 2",
    ),
    Rule(
        "message-frame",
        _SUSPICIOUS,
        Subject.MESSAGES,
        "a metadata record has frame version 1 and a known type",
        "MetadataRecordSerde",
        "a value that starts with frame version 7",
    ),
    Rule(
        "index-size",
        _DAMAGED,
        Subject.INDEXES,
        "an index is a whole number of entries",
        "AbstractIndex#sanityCheck",
        "an offset index of 83 bytes",
    ),
    Rule(
        "index-order",
        _DAMAGED,
        Subject.INDEXES,
        "index entries increase",
        "OffsetIndex#append",
        "position 4000 after position 9000",
    ),
    Rule(
        "index-entry",
        _DAMAGED,
        Subject.INDEXES,
        "an index entry names the last offset of the batch at its position",
        "OffsetIndex",
        "an entry of offset 57 at the batch of offsets 40 to 49",
    ),
    Rule(
        "index-orphan",
        _SUSPICIOUS,
        Subject.INDEXES,
        "an index has its segment beside it",
        "LogLoader",
        "00000000000000000042.index without 00000000000000000042.log",
    ),
    Rule(
        "index-timestamp",
        _DAMAGED,
        Subject.TIME_INDEX,
        "a time index entry names its batch's max timestamp",
        "TimeIndex",
        "timestamp 5 for a batch whose max timestamp is 9",
    ),
    Rule(
        "index-sanity",
        _SUSPICIOUS,
        Subject.NOTHING,
        "an index passes the check that a broker makes at startup",
        "LogLoader",
        "a last entry below the segment's base offset",
    ),
    Rule(
        "decoder-raised",
        _SUSPICIOUS,
        Subject.NOTHING,
        "a decoder that the user named decodes every key and value",
        "raftlog",
        "a decoder that was named with --value-decoder raised a ValueError",
    ),
    Rule(
        "snapshot-header",
        _DAMAGED,
        Subject.SNAPSHOTS,
        "a snapshot starts with its header, and KRaftVersion and Voters",
        "Snapshots",
        "a snapshot that starts with a data batch",
    ),
    Rule(
        "snapshot-footer",
        _DAMAGED,
        Subject.SNAPSHOTS,
        "a snapshot ends with its footer, alone in its batch",
        "RecordsSnapshotWriter",
        "a snapshot that ends with a data batch: it was not finished",
    ),
    Rule(
        "snapshot-control",
        _DAMAGED,
        Subject.SNAPSHOTS,
        "a snapshot has control records only in its first and last batch",
        "KIP-630",
        "a Voters record in the middle of a snapshot",
    ),
    Rule(
        "snapshot-offset",
        _DAMAGED,
        Subject.SNAPSHOTS,
        "offsets inside a snapshot count from 0, without gaps",
        "RecordsSnapshotWriter",
        "offset 12 after offset 9",
    ),
    Rule(
        "snapshot-epoch",
        _DAMAGED,
        Subject.SNAPSHOTS,
        "the batches of a snapshot have the epoch of its id",
        "RecordsSnapshotWriter",
        "a batch of epoch 4 in 00000000000000000100-0000000003.checkpoint",
    ),
    Rule(
        "file-format",
        _DAMAGED,
        Subject.ANYTHING,
        "a small file beside a log can be decoded by its format",
        "CheckpointFile",
        "a leader-epoch-checkpoint that counts 3 entries and has 2",
    ),
    Rule(
        "file-crc",
        _DAMAGED,
        Subject.ANYTHING,
        "the CRC in a producer snapshot, or in a file that raftlog keeps, is that of the file's bytes",
        "ProducerStateManager",
        "one bit of a producer's sequence was flipped",
    ),
)
