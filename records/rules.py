# SPDX-License-Identifier: Apache-2.0
"""The rules that bytes must keep, written down once.

Readers, the reference and the tools cite a rule by its id; nothing else in raftlog says what is strict. A rule's
severity says what breaking it means where it is found in the middle of a file; a torn tail and zero padding have rules
of their own.
"""

import enum
import functools

import attrs


@functools.total_ordering
class Severity(enum.Enum):
    """How much a finding matters, mildest first; a worse one is greater."""

    HARMLESS = "harmless"
    SUSPICIOUS = "suspicious"
    DAMAGED = "damaged"
    DATA_LOSS = "data-loss"

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Severity):
            return NotImplemented
        mildest_first = list(Severity)
        return mildest_first.index(self) < mildest_first.index(other)


@attrs.frozen
class Rule:
    """One rule.

    Attributes:
        id: its name.
        severity: what breaking it means.
        claim: what holds of sound bytes, in one sentence.
        source: where it comes from: a class of Kafka's, an improvement proposal or an issue.
        example: what breaks it.
    """

    id: str
    severity: Severity
    claim: str
    source: str
    example: str


def _rules(*rules: Rule) -> dict[str, Rule]:
    by_id = {rule.id: rule for rule in rules}
    assert len(by_id) == len(rules)
    return by_id


_SUSPICIOUS = Severity.SUSPICIOUS
_DAMAGED = Severity.DAMAGED

RULES = _rules(
    Rule(
        "tail-torn",
        _SUSPICIOUS,
        "a file ends at the end of a batch",
        "FileLogInputStream",
        "the last 40 bytes of a batch of 98 are missing: the machine stopped in the middle of a write",
    ),
    Rule(
        "tail-zero",
        _SUSPICIOUS,
        "a log has no zero bytes after its last batch",
        "KAFKA-13664",
        "4096 zero bytes at the end: preallocated, or left by a crash",
    ),
    Rule(
        "batch-length",
        _DAMAGED,
        "a batch length is at least 14 (magic 0, 1) or 49 (magic 2)",
        "Records",
        "a length of 3",
    ),
    Rule(
        "batch-overrun",
        _DAMAGED,
        "a batch in the middle of a file ends inside it",
        "FileLogInputStream",
        "a length of 2147483647 in a file of 8000 bytes",
    ),
    Rule("batch-magic", _DAMAGED, "magic is 0, 1 or 2", "RecordBatch", "magic 5"),
    Rule(
        "batch-crc",
        _DAMAGED,
        "the stored CRC is that of the bytes it covers",
        "DefaultRecordBatch#ensureValid",
        "one bit of a value was flipped",
    ),
    Rule(
        "batch-count",
        _DAMAGED,
        "a record count is not negative and fits its bytes",
        "DefaultRecordBatch",
        "a record count of -7, or of 1000000 in 200 bytes",
    ),
    Rule("batch-codec", _DAMAGED, "a compression id is 0 to 4", "CompressionType#forId", "compression id 6"),
    Rule("codec-stream", _DAMAGED, "a compressed stream decompresses", "Compression", "a zstd frame ends too early"),
    Rule(
        "codec-size",
        _DAMAGED,
        "decompressed records stay within the limit",
        "raftlog",
        "40 bytes of gzip that stand for 1 GiB",
    ),
    Rule(
        "varint-length",
        _DAMAGED,
        "a varint has at most 5 bytes (a varlong 10), all in its batch",
        "ByteUtils",
        "six bytes that all say that another one follows",
    ),
    Rule("varint-range", _DAMAGED, "a varint fits in 32 bits, a varlong in 64", "raftlog", "a varint of 2^35"),
    Rule(
        "record-length",
        _DAMAGED,
        "a record's length is not negative and ends inside its batch",
        "DefaultRecord",
        "a record of 900 bytes in a batch of 300",
    ),
    Rule(
        "record-end",
        _DAMAGED,
        "a record's fields fill its length exactly",
        "DefaultRecord",
        "a record of 20 bytes whose fields take 17",
    ),
    Rule(
        "record-field",
        _DAMAGED,
        "a key or value is -1 (null) or a length inside its record",
        "DefaultRecord",
        "a key of -5 bytes",
    ),
    Rule(
        "record-headers",
        _DAMAGED,
        "a header count is not negative and fits its record",
        "DefaultRecord",
        "4000 headers in a record of 30 bytes",
    ),
    Rule(
        "record-header-key",
        _DAMAGED,
        "a header key's length is not negative and inside its record",
        "DefaultRecord",
        "a header key of -1 bytes",
    ),
    Rule(
        "batch-trailing",
        _DAMAGED,
        "no bytes are left after a batch's last record",
        "DefaultRecordBatch",
        "12 bytes behind the last record that the header counts",
    ),
    Rule(
        "batch-missing",
        _DAMAGED,
        "a batch holds as many records as its header says",
        "DefaultRecordBatch",
        "a header that counts 5 records, and 4 records",
    ),
    Rule(
        "control-key",
        _DAMAGED,
        "a control record's key has a type, and no negative version",
        "ControlRecordType",
        "a key of one byte",
    ),
    Rule("control-type", _SUSPICIOUS, "a control record's type is known", "ControlRecordType", "type 42"),
    Rule(
        "control-version",
        _SUSPICIOUS,
        "a control record's key and value have version 0",
        "ControlRecordUtils",
        "a key of version 1",
    ),
    Rule(
        "control-value",
        _DAMAGED,
        "a control record's value reads by the version 0 layout",
        "ControlRecordUtils",
        "a LeaderChange of 3 bytes",
    ),
    Rule(
        "raft-batch",
        _DAMAGED,
        "a batch of raft's has a record for each offset; a control record is bare",
        "raft",
        "10 offsets and 9 records in __cluster_metadata",
    ),
    Rule(
        "message-field",
        _SUSPICIOUS,
        "a message's fields read by its schema",
        "generated readers",
        "a TopicRecord whose name ends behind the value's last byte",
    ),
    Rule(
        "message-version",
        _SUSPICIOUS,
        "a message has a known version",
        "generated readers",
        "version 9 of a message that has versions 0 to 2",
    ),
    Rule(
        "message-frame",
        _SUSPICIOUS,
        "a metadata record has frame version 1 and a known type",
        "MetadataRecordSerde",
        "a value that starts with frame version 7",
    ),
    Rule(
        "index-size",
        _DAMAGED,
        "an index is a whole number of entries",
        "AbstractIndex#sanityCheck",
        "an offset index of 83 bytes",
    ),
    Rule("index-order", _DAMAGED, "index entries increase", "OffsetIndex#append", "position 4000 after position 9000"),
    Rule(
        "index-entry",
        _DAMAGED,
        "an index entry names the last offset of the batch at its position",
        "OffsetIndex",
        "an entry of offset 57 at the batch of offsets 40 to 49",
    ),
    Rule(
        "index-orphan",
        _SUSPICIOUS,
        "an index has its segment beside it",
        "LogLoader",
        "00000000000000000042.index without 00000000000000000042.log",
    ),
    Rule(
        "index-timestamp",
        _DAMAGED,
        "a time index entry names its batch's max timestamp",
        "TimeIndex",
        "timestamp 5 for a batch whose greatest is 9",
    ),
    Rule(
        "index-sanity",
        _SUSPICIOUS,
        "an index passes the check that a broker makes when it starts",
        "LogLoader",
        "a last entry below the segment's base offset",
    ),
    Rule(
        "decoder-raised",
        _SUSPICIOUS,
        "a decoder that the user named takes every key and value",
        "raftlog",
        "a decoder that was named with --value-decoder raised a ValueError",
    ),
    Rule(
        "snapshot-header",
        _DAMAGED,
        "a snapshot starts with its header, and KRaftVersion and Voters",
        "Snapshots",
        "a snapshot that starts with a data batch",
    ),
    Rule(
        "snapshot-footer",
        _DAMAGED,
        "a snapshot ends with its footer, alone in its batch",
        "RecordsSnapshotWriter",
        "a snapshot that ends with a data batch: it was not finished",
    ),
    Rule(
        "snapshot-control",
        _DAMAGED,
        "a snapshot has control records in its first and last batch alone",
        "KIP-630",
        "a Voters record in the middle of a snapshot",
    ),
    Rule(
        "snapshot-offset",
        _DAMAGED,
        "offsets inside a snapshot count from 0, without gaps",
        "RecordsSnapshotWriter",
        "offset 12 after offset 9",
    ),
    Rule(
        "snapshot-epoch",
        _DAMAGED,
        "the batches of a snapshot have the epoch of its id",
        "RecordsSnapshotWriter",
        "a batch of epoch 4 in 00000000000000000100-0000000003.checkpoint",
    ),
    Rule(
        "file-format",
        _DAMAGED,
        "a small file beside a log reads by its format",
        "CheckpointFile",
        "a leader-epoch-checkpoint that counts 3 entries and has 2",
    ),
    Rule(
        "file-crc",
        _DAMAGED,
        "the CRC of a producer snapshot, and of a file of raftlog's, is that of its bytes",
        "ProducerStateManager",
        "one bit of a producer's sequence was flipped",
    ),
)
