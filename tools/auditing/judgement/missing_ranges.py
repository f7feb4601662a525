# SPDX-License-Identifier: Apache-2.0
"""Missing offsets in logs other than raft's: either compaction removed them, or batches were lost.

The log directory's cleaner checkpoint, the topic's name, and the batches themselves show whether a log was compacted.
"""

import re
from collections.abc import Iterator
from typing import Final

import attrs

from raftlog.records.files.file_names import FileKind, FileState
from raftlog.tools.auditing.evidence import OffsetHoles, PartitionEvidence
from raftlog.tools.auditing.judgement.segment_rules import holes_between, misnamed_segments
from raftlog.tools.catalogue.findings import Finding

_COMPACTED_TOPIC: Final = re.compile(
    r"__consumer_offsets|__transaction_state|__share_group_state|_schemas"  # Of brokers, and of schema registries.
    r"|.*connect.*[-_.](configs?|offsets?|status)"  # Of Connect, as its examples name them.
    r"|(.*\.)?heartbeats|.*[-.]internal|.*-changelog"  # Of MirrorMaker, and of Kafka Streams.
)


def judge_holes(partition: PartitionEvidence, directory: PartitionEvidence | None) -> Iterator[Finding]:
    """Report offsets that are missing in a log without any sign of compaction: one finding, at the first hole.

    Nothing is reported if the log directory was not surveyed: compaction may have removed whole batches, and then only
    the directory's cleaner-offset-checkpoint shows it.

    Args:
        partition: all files of a partition.
        directory: the files of its log directory itself; None if it was not surveyed as a whole.

    Source: LogCleanerManager#updateCheckpoints, which adds compacted partitions, and removes those no longer compacted.
    """
    if partition.is_raft or directory is None or _is_compacted(partition, directory):
        return
    found = sorted(_holes(partition), key=lambda each: each[1].start_offset)
    if found:
        path, first = found[0]
        missing = sum(holes.missing_count for _, holes in found)
        places = sum(holes.hole_count for _, holes in found)
        many = f"{missing} offsets are missing at {places} places, the first is {first.start_offset}"
        reason = f"{many}, and nothing shows that the log was ever compacted"
        yield Finding(path, "offset-missing", reason, first.position, offset=first.start_offset)


def _holes(partition: PartitionEvidence) -> Iterator[tuple[str, OffsetHoles]]:
    """Yield the holes in and between segments, except holes where a segment's ``.log`` is missing."""
    orphans = [
        file.task.base_offset or 0
        for file in partition.files
        if any(finding.rule == "index-orphan" for finding in file.findings)
    ]
    too_low = {each.segment.task.path: each.start_offset - each.base_offset for each in misnamed_segments(partition)}
    for segment in partition.segments:
        holes = _without_name(segment.holes, too_low.get(segment.task.path, 0))
        if holes is not None:
            yield segment.task.path, holes
    for segment, start_offset, end_offset in holes_between(partition):
        if not any(start_offset <= orphan < end_offset for orphan in orphans):
            yield segment.task.path, OffsetHoles(start_offset, 0, end_offset - start_offset, 1)


def _without_name(holes: OffsetHoles | None, by: int) -> OffsetHoles | None:
    """Return holes without the one before a segment's first batch, if that is one of its name only."""
    if holes is None or not by:
        return holes
    count, missing = holes.hole_count - 1, holes.missing_count - by
    return attrs.evolve(holes, hole_count=count, missing_count=missing) if count else None


def _is_compacted(partition: PartitionEvidence, directory: PartitionEvidence) -> bool:
    """Whether there is a sign that a log is compacted, or the cleaner's checkpoint cannot be decoded."""
    if _COMPACTED_TOPIC.fullmatch(partition.place.topic):
        return True
    if any(file.shows_compaction or file.task.state is FileState.CLEANED for file in partition.files):
        return True
    checkpoint = directory.small_file(FileKind.CLEANER_OFFSET_CHECKPOINT)
    if checkpoint is None:
        return False
    entries = None if checkpoint.contents is None else checkpoint.contents["entries"]
    return entries is None or partition.place.topic_partition in {
        (entry["topic"], entry["partition"]) for entry in entries
    }
