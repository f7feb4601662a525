# SPDX-License-Identifier: Apache-2.0
"""Compares the offset checkpoints of a log directory with its partitions."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Final

import attrs

from raftlog.file_system import join
from raftlog.records.files.file_names import FileKind, parse_directory_name
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence
from raftlog.tools.auditing.finding_limit import MOST_OF_A_RULE, FindingLimit
from raftlog.tools.auditing.judgement.segment_rules import has_lost_tail, stray_offsets
from raftlog.tools.catalogue.findings import Finding

_KINDS: Final = {
    FileKind.RECOVERY_POINT_CHECKPOINT: "a recovery point",
    FileKind.REPLICATION_OFFSET_CHECKPOINT: "a high watermark",
    FileKind.LOG_START_OFFSET_CHECKPOINT: "a log start",
    FileKind.CLEANER_OFFSET_CHECKPOINT: "a cleaned offset",
}
_FEW: Final = 3
"""Up to this many missing partitions have a finding each."""
_OF_ALL_LOGS: Final = frozenset({FileKind.RECOVERY_POINT_CHECKPOINT, FileKind.REPLICATION_OFFSET_CHECKPOINT})
"""The checkpoints in which Kafka writes exactly the logs that it has."""


def judge_checkpoints(directory: PartitionEvidence, partitions: Sequence[PartitionEvidence]) -> Iterator[Finding]:
    """Report offsets in the checkpoints of a log directory that its logs do not reach: one finding per partition.

    A partition without any file is reported if the whole log directory is audited and the offset is above 0. A log
    whose last segment has damaged bytes at its end is not reported again.

    Args:
        directory: the log directory itself.
        partitions: at least those in it; only the coverage and extent of their segments are used.
    """
    here = [each for each in partitions if each.place.log_directory == directory.place.log_directory]
    there = {each.place.topic_partition for each in here}
    logs = {each.place.topic_partition: each for each in here if each.place.topic and each.segments}
    was_listed = not any(file.task.was_named for file in directory.files)
    reported: set[tuple[str, int]] = set()
    for kind, meaning in _KINDS.items():
        checkpoint = directory.small_file(kind)
        if checkpoint is not None and checkpoint.contents is not None:
            limit = FindingLimit(checkpoint.task.path)
            entries = checkpoint.contents["entries"]
            if was_listed and kind in _OF_ALL_LOGS:
                missing = list(_missing(checkpoint, f"{kind.value} has {meaning}", there, reported))
                yield from missing
                if any(finding.path == limit.path for finding in missing):
                    continue  # It may be another directory's checkpoint, and then shows nothing about these logs.
            limit.extend(_beyond(limit.path, entries, meaning, logs, reported))
            yield from limit.findings()


def judge_log_starts(directory: PartitionEvidence, partitions: Sequence[PartitionEvidence]) -> Iterator[Finding]:
    """Report log starts in a log directory's checkpoint that its logs, or its high watermarks, contradict.

    Kafka writes an entry only for a log that starts within its first segment. Retention may delete that segment before
    the next write, and a crash may come in between; a topic with tiered storage starts in remote segments.

    Args:
        directory: the log directory itself.
        partitions: as for ``judge_checkpoints``.

    Source: LogManager#checkpointLogStartOffsetsInDir.
    """
    checkpoint = directory.small_file(FileKind.LOG_START_OFFSET_CHECKPOINT)
    here = [each for each in partitions if each.place.log_directory == directory.place.log_directory]
    logs = {each.place.topic_partition: each for each in here if each.place.topic and each.segments}
    high_watermarks = dict(_offsets(directory.small_file(FileKind.REPLICATION_OFFSET_CHECKPOINT)))
    is_clean = any(file.task.kind is FileKind.CLEAN_SHUTDOWN for file in directory.files)
    for name, offset in _offsets(checkpoint):
        log, path = logs.get(name), "" if checkpoint is None else checkpoint.task.path
        high_watermark, shown = high_watermarks.get(name, offset), f"{name[0]}-{name[1]}"
        if offset > high_watermark:
            reason = f"{shown} starts at {offset}, above its high watermark of {high_watermark}"
            yield Finding(path, "log-start-above", reason, offset=offset)
        elif log is not None and offset < log.start_offset:
            reason = f"{shown} starts at {offset}, but its first segment at {log.start_offset}"
            if _begins_remotely(log, offset):
                yield Finding(path, "log-start-stale", f"{reason}: the rest is in tiered storage", offset=offset)
            elif not is_clean:
                yield Finding(path, "log-start-stale", f"{reason}: it was not shut down cleanly", offset=offset)
            else:
                yield Finding(path, "log-start-below", f"{reason}, although it was shut down cleanly", offset=offset)


def _offsets(checkpoint: FileEvidence | None) -> Iterator[tuple[tuple[str, int], int]]:
    contents = None if checkpoint is None else checkpoint.contents
    for entry in () if contents is None else contents["entries"]:
        yield (entry["topic"], entry["partition"]), entry["offset"]


def _begins_remotely(log: PartitionEvidence, offset: int) -> bool:
    """Whether a log's leader-epoch-checkpoint begins no later than an offset before its first segment."""
    epochs = log.small_file(FileKind.LEADER_EPOCH_CHECKPOINT)
    return epochs is not None and any(entry.start_offset <= offset for entry in epochs.epochs[:1])


def _missing(
    checkpoint: FileEvidence, has: str, there: Set[tuple[str, int]], reported: set[tuple[str, int]]
) -> Iterator[Finding]:
    """Report the missing partitions, each with the path that it should have.

    Those whose directories are beside it under the names of deleted or stray ones are not missing: Kafka writes its
    checkpoints only now and then.

    If most of the named partitions are missing, or very many, that is one finding about the checkpoint.
    """
    entries = (checkpoint.contents or {})["entries"]
    offsets = {(entry["topic"], entry["partition"]): entry["offset"] for entry in entries if entry["offset"] > 0}
    absent = {name: offset for name, offset in offsets.items() if name not in there | reported}
    missing = {name: offset for name, offset in absent.items() if not _is_set_aside(*name, checkpoint)}
    reported.update(missing)
    if len(missing) > min(MOST_OF_A_RULE, max(_FEW, len(offsets) // 2)):
        names = ", ".join(f"{topic}-{partition}" for topic, partition in itertools.islice(missing, _FEW))
        what = f"{len(missing)} of {len(offsets)} partitions that it names have no file here, such as {names}"
        reason = f"{what}: they are lost, or it belongs to another directory"
        yield Finding(checkpoint.task.path, "partition-missing", reason)
        return
    for (topic, partition), offset in missing.items():
        path = join(checkpoint.task.place.log_directory, f"{topic}-{partition}")
        reason = f"{has} of {offset} for it, and there is no file of it: it is lost, or was deleted"
        yield Finding(path, "partition-missing", reason, offset=offset)


def _is_set_aside(topic: str, partition: int, checkpoint: FileEvidence) -> bool:
    for name in checkpoint.task.set_aside:
        parsed = parse_directory_name(name)
        # A long topic is shortened in such a name.
        if parsed is None or parsed.partition != partition or not topic.startswith(parsed.topic):
            continue
        if str(attrs.evolve(parsed, topic=topic)) == name:
            return True
    return False


def _beyond(
    path: str,
    entries: Iterable[Mapping[str, Any]],
    meaning: str,
    logs: Mapping[tuple[str, int], PartitionEvidence],
    reported: set[tuple[str, int]],
) -> Iterator[Finding]:
    for entry in entries:
        topic_partition = entry["topic"], entry["partition"]
        log = logs.get(topic_partition)
        if log is None or topic_partition in reported or _ends_damaged(log) or has_lost_tail(log):
            continue
        if entry["offset"] <= log.end_offset + stray_offsets(log):
            continue
        reported.add(topic_partition)
        name = f"{topic_partition[0]}-{topic_partition[1]}"
        reason = f"{meaning} of {entry['offset']} for {name}, which ends at {log.end_offset}"
        yield Finding(path, "offset-checkpoint", reason, offset=entry["offset"])


def _ends_damaged(log: PartitionEvidence) -> bool:
    coverage = log.segments[-1].coverage
    return coverage is None or coverage.damaged_bytes + coverage.padding_bytes > 0
