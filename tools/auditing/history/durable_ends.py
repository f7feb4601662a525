# SPDX-License-Identifier: Apache-2.0
"""Finds how far a log once reached, and how far it was durable, from the files beside its segments."""

from collections.abc import Iterator, Sequence

from raftlog.records.files.file_names import FileKind, FileState
from raftlog.storage.recovery.recovery_point import (
    FLUSH_MARK_NAME,
    RECOVERY_POINT_NAME,
    FlushMark,
    RecoveryPoint,
    StoredDurablePoint,
)
from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.survey.small_file_survey import file_name


def ends_seen(evidence: PartitionEvidence) -> Iterator[tuple[int, str]]:
    """Yield former end offsets of a log: the names of producer snapshots, and the start of a later epoch."""
    for file in evidence.files:
        if file.task.state is not FileState.CURRENT:
            continue
        if file.task.kind is FileKind.PRODUCER_SNAPSHOT:
            yield file.task.base_offset or 0, file_name(file.task)
        elif file.task.kind is FileKind.LEADER_EPOCH_CHECKPOINT and file.epochs and not file.findings:
            last = file.epochs[-1]
            if last.epoch > evidence.last_epoch:
                yield last.start_offset, f"{file_name(file.task)} (epoch {last.epoch})"


def durable_end_offset(evidence: PartitionEvidence) -> int | None:
    """Return the durable end by raftlog's files; None if there are none, or if Kafka has written since."""
    contents = {file_name(file.task): file.contents for file in evidence.files if file.contents is not None}
    marks = contents.get(FLUSH_MARK_NAME, {}).get("marks", [])
    said = contents.get(RECOVERY_POINT_NAME)
    if said is None and not marks:
        return None
    point = None
    if said is not None:
        epochs: Sequence[dict[str, int]] = said["epochs"]
        if max((entry["epoch"] for entry in epochs), default=-1) < evidence.last_epoch:
            return None
        point = RecoveryPoint(durable_end_offset=said["durable_end_offset"], generation=said["generation"])
    return StoredDurablePoint(point, tuple(FlushMark(**mark) for mark in marks)).durable_end_offset
