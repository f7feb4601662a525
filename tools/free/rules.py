# SPDX-License-Identifier: Apache-2.0
"""The rules by which ``raftlog free`` offers files, in the order of safety, with the part of Kafka that they follow."""

import enum
from typing import Final

import attrs


class FreeStep(enum.Enum):
    """How harmless it is to remove something, the most harmless first. The value is a heading for the operator."""

    REMOVED_AT_STARTUP = "Removed at the next startup anyway"
    COVERED = "Covered by a newer sound snapshot in the same directory"
    WRITTEN_AGAIN = "Written again at the next startup, which needs the room again"

    @property
    def is_lasting(self) -> bool:
        """Whether what comes free stays free when the node starts."""
        return self is not FreeStep.WRITTEN_AGAIN

    @property
    def number(self) -> int:
        """The place among the steps, from 1."""
        return list(FreeStep).index(self) + 1


@attrs.frozen
class FreeRule:
    """One reason for which something may be removed.

    Attributes:
        id: its name in JSON lines.
        step: how harmless that is.
        reason: why, for the operator.
        source: the part of Kafka that shows it.
    """

    id: str
    step: FreeStep
    reason: str
    source: str


DELETED_PARTITION: Final = FreeRule(
    "deleted-partition",
    FreeStep.REMOVED_AT_STARTUP,
    "the partition was deleted, and its directory only waits for its removal",
    "LogManager#loadLogs",
)
DELETED_FILE: Final = FreeRule(
    "deleted-file",
    FreeStep.REMOVED_AT_STARTUP,
    "a segment that was replaced or deleted, below the last segment of the log",
    "LogLoader#removeTempFilesAndCollectSwapFiles",
)
DELETED_SNAPSHOT: Final = FreeRule(
    "deleted-snapshot",
    FreeStep.REMOVED_AT_STARTUP,
    "a snapshot that was deleted, and is not newer than a sound one",
    "KafkaRaftLog#recoverSnapshots",
)
PARTIAL_SNAPSHOT: Final = FreeRule(
    "partial-snapshot",
    FreeStep.REMOVED_AT_STARTUP,
    "a snapshot that was not finished",
    "KafkaRaftLog#recoverSnapshots",
)
PARTIAL_COMPACTION: Final = FreeRule(
    "partial-compaction",
    FreeStep.REMOVED_AT_STARTUP,
    "an unfinished result of compaction: what it was made of is still there",
    "LogLoader#removeTempFilesAndCollectSwapFiles",
)
ORPHAN_INDEX: Final = FreeRule(
    "orphan-index",
    FreeStep.REMOVED_AT_STARTUP,
    "an index without its segment",
    "LogLoader#loadSegmentFiles",
)
STRAY_PRODUCERS: Final = FreeRule(
    "stray-producers",
    FreeStep.REMOVED_AT_STARTUP,
    "a producer snapshot of no segment, and not the newest",
    "ProducerStateManager#removeStraySnapshots",
)
HALF_COPIED: Final = FreeRule(
    "half-copied",
    FreeStep.REMOVED_AT_STARTUP,
    "an unfinished copy by raftlog of bytes that are still in their segment",
    "raftlog.storage.segments.damaged_files",
)
OLD_SNAPSHOT: Final = FreeRule(
    "old-snapshot",
    FreeStep.COVERED,
    "a snapshot that a newer one replaces",
    "KafkaRaftLog#deleteBeforeSnapshot",
)
COVERED_SEGMENT: Final = FreeRule(
    "covered-segment",
    FreeStep.COVERED,
    "all offsets of the segment are below the end of the newest sound snapshot",
    "KafkaRaftLog#deleteBeforeSnapshot",
)
OLD_PRODUCERS: Final = FreeRule(
    "old-producers",
    FreeStep.COVERED,
    "a producer snapshot of a metadata log, which has no producers, and not the newest",
    "KafkaRaftLog#createLog",
)
INDEX: Final = FreeRule(
    "index",
    FreeStep.WRITTEN_AGAIN,
    "an index of a sound segment of a metadata log, which is made anew at each startup",
    "KafkaRaftLog#createLog, LogLoader#recoverSegment",
)

FREE_RULES: Final = (
    DELETED_PARTITION,
    DELETED_FILE,
    DELETED_SNAPSHOT,
    PARTIAL_SNAPSHOT,
    PARTIAL_COMPACTION,
    ORPHAN_INDEX,
    STRAY_PRODUCERS,
    HALF_COPIED,
    OLD_SNAPSHOT,
    COVERED_SEGMENT,
    OLD_PRODUCERS,
    INDEX,
)
"""All rules, in the order in which what they offer is shown."""
