# SPDX-License-Identifier: Apache-2.0
"""The rules that bytes must keep, written down once.

Readers, the reference and the tools cite a rule by its id; nothing else in raftlog says what is strict. A rule's
severity says what breaking it means where it is found in the middle of a file; a torn tail and zero padding have rules
of their own.
"""

import enum

import attrs


class Severity(enum.Enum):
    """How much a finding matters, mildest first."""

    HARMLESS = "harmless"
    SUSPICIOUS = "suspicious"
    DAMAGED = "damaged"
    DATA_LOSS = "data-loss"


@attrs.frozen
class Rule:
    """One rule: its id, what breaking it means, what it claims, and where it comes from."""

    id: str
    severity: Severity
    claim: str
    source: str


def _rules(*rules: Rule) -> dict[str, Rule]:
    by_id = {rule.id: rule for rule in rules}
    assert len(by_id) == len(rules)
    return by_id


_SUSPICIOUS = Severity.SUSPICIOUS
_DAMAGED = Severity.DAMAGED

RULES = _rules(
    Rule("tail-torn", _SUSPICIOUS, "a file ends at the end of a batch", "FileLogInputStream"),
    Rule("tail-zero", _SUSPICIOUS, "a log has no zero bytes after its last batch", "KAFKA-13664"),
    Rule("batch-length", _DAMAGED, "a batch length is at least 14 (magic 0, 1) or 49 (magic 2)", "Records"),
    Rule("batch-overrun", _DAMAGED, "a batch in the middle of a file ends inside it", "FileLogInputStream"),
    Rule("batch-magic", _DAMAGED, "magic is 0, 1 or 2", "RecordBatch"),
    Rule("batch-crc", _DAMAGED, "the stored CRC is that of the bytes it covers", "DefaultRecordBatch#ensureValid"),
    Rule("batch-count", _DAMAGED, "a record count is not negative and fits its bytes", "DefaultRecordBatch"),
    Rule("batch-codec", _DAMAGED, "a compression id is 0 to 4", "CompressionType#forId"),
    Rule("codec-stream", _DAMAGED, "a compressed stream decompresses", "Compression"),
    Rule("codec-size", _DAMAGED, "decompressed records stay within the limit", "raftlog"),
    Rule("varint-length", _DAMAGED, "a varint has at most 5 bytes (a varlong 10), all in its batch", "ByteUtils"),
    Rule("varint-range", _DAMAGED, "a varint fits in 32 bits, a varlong in 64", "raftlog"),
    Rule("record-length", _DAMAGED, "a record's length is not negative and ends inside its batch", "DefaultRecord"),
    Rule("record-end", _DAMAGED, "a record's fields fill its length exactly", "DefaultRecord"),
    Rule("record-field", _DAMAGED, "a key or value is -1 (null) or a length inside its record", "DefaultRecord"),
    Rule("record-headers", _DAMAGED, "a header count is not negative and fits its record", "DefaultRecord"),
    Rule("record-header-key", _DAMAGED, "a header key's length is not negative and inside its record", "DefaultRecord"),
    Rule("batch-trailing", _DAMAGED, "no bytes are left after a batch's last record", "DefaultRecordBatch"),
    Rule("batch-missing", _DAMAGED, "a batch holds as many records as its header says", "DefaultRecordBatch"),
    Rule("control-key", _DAMAGED, "a control record's key has a type, and no negative version", "ControlRecordType"),
    Rule("control-type", _SUSPICIOUS, "a control record's type is known", "ControlRecordType"),
    Rule("control-version", _SUSPICIOUS, "a control record's key and value have version 0", "ControlRecordUtils"),
    Rule("control-value", _DAMAGED, "a control record's value reads by the version 0 layout", "ControlRecordUtils"),
    Rule("raft-batch", _DAMAGED, "a batch of raft's has a record for each offset; a control record is bare", "raft"),
    Rule("message-field", _SUSPICIOUS, "a message's fields read by its schema", "generated readers"),
    Rule("message-version", _SUSPICIOUS, "a message has a known version", "generated readers"),
    Rule("message-frame", _SUSPICIOUS, "a metadata record has frame version 1 and a known type", "MetadataRecordSerde"),
    Rule("index-size", _DAMAGED, "an index is a whole number of entries", "AbstractIndex#sanityCheck"),
    Rule("index-order", _DAMAGED, "index entries increase", "OffsetIndex#append"),
    Rule("index-entry", _DAMAGED, "an index entry names the last offset of the batch at its position", "OffsetIndex"),
    Rule("index-orphan", _SUSPICIOUS, "an index has its segment beside it", "LogLoader"),
    Rule("index-timestamp", _DAMAGED, "a time index entry names its batch's max timestamp", "TimeIndex"),
    Rule("index-sanity", _SUSPICIOUS, "an index passes the check that a broker makes when it starts", "LogLoader"),
    Rule("decoder-raised", _SUSPICIOUS, "a decoder that the user named takes every key and value", "raftlog"),
    Rule("snapshot-header", _DAMAGED, "a snapshot starts with its header, and KRaftVersion and Voters", "Snapshots"),
    Rule("snapshot-footer", _DAMAGED, "a snapshot ends with its footer, alone in its batch", "RecordsSnapshotWriter"),
    Rule("snapshot-control", _DAMAGED, "a snapshot has control records in its first and last batch alone", "KIP-630"),
    Rule("snapshot-offset", _DAMAGED, "offsets inside a snapshot count from 0, without gaps", "RecordsSnapshotWriter"),
    Rule("snapshot-epoch", _DAMAGED, "the batches of a snapshot have the epoch of its id", "RecordsSnapshotWriter"),
    Rule("file-format", _DAMAGED, "a small file beside a log reads by its format", "CheckpointFile"),
    Rule("file-crc", _DAMAGED, "a producer snapshot's CRC is that of its bytes", "ProducerStateManager"),
)
