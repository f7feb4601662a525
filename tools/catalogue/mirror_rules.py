# SPDX-License-Identifier: Apache-2.0
"""Rules about a topic and its mirror in another cluster, which ``raftlog verify-mirror`` checks.

``raftlog.tools.catalogue.audit_rules`` has the whole catalogue, and explains the severities.
"""

from typing import Final

from raftlog.records.rules import Rule, Severity, Subject

_HARMLESS = Severity.HARMLESS
_SUSPICIOUS = Severity.SUSPICIOUS
_DAMAGED = Severity.DAMAGED
_DATA_LOSS = Severity.DATA_LOSS


def _rule(name: str, severity: Severity, claim: str, source: str, example: str) -> Rule:
    return Rule(f"mirror.{name}", severity, Subject.NOTHING, claim, source, example)


MIRROR_RULES: Final = (
    _rule(
        "anchor",
        _DAMAGED,
        "the two offsets of an offset sync are those of one record",
        "OffsetSync",
        "the record at offset 55 of A.orders-0 is not the one at offset 55 of orders-0",
    ),
    _rule(
        "sync",
        _DAMAGED,
        "offset syncs can be read, are within both logs, and rise as long as one task writes them",
        "OffsetSyncWriter",
        "a sync says (55, 900), and the target ends at offset 320",
    ),
    _rule(
        "lost",
        _DATA_LOSS,
        "each record that was mirrored, or passed by what was, is in the target",
        "MirrorSourceTask",
        "offset 40 of orders-0 has no record in A.orders-0, and those before and after it have",
    ),
    _rule(
        "hole",
        _DATA_LOSS,
        "each offset of a target that is not compacted has a record, or is of a control batch",
        "UnifiedLog",
        "offset 40 of A.orders-0 has none",
    ),
    _rule(
        "late-start",
        _SUSPICIOUS,
        "the first record of a target is the first one of its source",
        "MirrorSourceTask",
        "A.orders-0 begins with the record at offset 40 of orders-0, which has earlier ones",
    ),
    _rule(
        "changed",
        _DAMAGED,
        "a mirrored record has the key, value, headers and timestamp of its source",
        "MirrorSourceTask",
        "the value at offset 40 differs",
    ),
    _rule(
        "reordered",
        _DAMAGED,
        "mirrored records are in the order of their source",
        "MirrorSourceTask",
        "offsets 40 and 41 have changed places",
    ),
    _rule(
        "foreign",
        _SUSPICIOUS,
        "between mirrored records, a target has no others",
        "MirrorSourceTask",
        "offset 40 of A.orders-0 has a record that orders-0 does not have: maybe the last copy of it",
    ),
    _rule(
        "written-to",
        _SUSPICIOUS,
        "nobody but MirrorMaker writes to a target",
        "KIP-382",
        "from offset 320 on, A.orders-0 has records of a producer: usual after a fail-over",
    ),
    _rule(
        "source-recreated",
        _DATA_LOSS,
        "a source is the topic that was mirrored",
        "MirrorSourceTask",
        "orders was deleted and created again: its offsets begin at 0 once more",
    ),
    _rule(
        "duplicate",
        _DAMAGED,
        "as long as one task mirrors, each record is in the target once",
        "KIP-382",
        "offsets 40 and 41 have the same record of the source",
    ),
    _rule(
        "copied-again",
        _HARMLESS,
        "where a task goes on, it goes on after what was mirrored",
        "KIP-382",
        "MirrorMaker was killed before it could store its offsets, and has mirrored 200 records again",
    ),
    _rule(
        "shrunk",
        _DATA_LOSS,
        "a target only grows",
        "OffsetSyncWriter",
        "syncs go back from offset 300 to 0: the target was deleted, or cut",
    ),
    _rule(
        "checkpoint-ahead",
        _DATA_LOSS,
        "where a checkpoint points, a group has read all before",
        "MirrorCheckpointTask",
        "a group that moves would begin at offset 60, and the first record it has not read is at offset 50",
    ),
    _rule(
        "checkpoint-odd",
        _SUSPICIOUS,
        "a checkpoint follows from an offset sync and from an offset that the group has committed",
        "OffsetSyncStore#translateDownstream",
        "offset 57 of the target, and no sync is at 57 or 56",
    ),
    _rule(
        "heartbeat-gap",
        _SUSPICIOUS,
        "heartbeats come in their interval",
        "MirrorHeartbeatTask",
        "none of A -> B from 10:00 to 10:20",
    ),
    _rule(
        "cycle",
        _DAMAGED,
        "no topic is mirrored back to where it came from",
        "MirrorSourceConnector#isCycle",
        "B.A.orders in cluster A",
    ),
    _rule(
        "unpaired",
        _SUSPICIOUS,
        "each topic that is to be mirrored has a mirror with as many partitions, and each mirror has a source",
        "MirrorSourceConnector",
        "orders has two partitions, and A.orders has one",
    ),
    _rule(
        "lag",
        _HARMLESS,
        "all records of a source are mirrored",
        "KIP-382",
        "the last 12 of orders-0 are not, yet",
    ),
    _rule(
        "below-log-start",
        _HARMLESS,
        "what was mirrored is still there on both sides",
        "LogCleaner, UnifiedLog",
        "retention has deleted the first 1,000 records of the source",
    ),
    _rule(
        "aborted",
        _HARMLESS,
        "all records of the source are mirrored, aborted ones too",
        "source.consumer.isolation.level",
        "a task that reads committed leaves out 20",
    ),
)
