# SPDX-License-Identifier: Apache-2.0
"""Compares snapshots of one id that replicas of a raft log have: each was made from the same records."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.messages.control import KRaftVersionRecord, SnapshotHeaderRecord, VotersRecord
from raftlog.tools.auditing.agreement.snapshot_contents import (
    ContentReader,
    by_contents,
    first_difference,
    read_contents,
)
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence
from raftlog.tools.auditing.history.histories import by_history
from raftlog.tools.catalogue.findings import Finding


def judge_twins(replicas: Sequence[PartitionEvidence], read: ContentReader = read_contents) -> Iterator[Finding]:
    """Report snapshots whose contents differ from those of most snapshots with the same id.

    If as many have one content as another, those are wrong that no log beside them can vouch for, as a log that starts
    where the snapshot ends cannot. Snapshots with a finding are not compared.

    Args:
        replicas: replicas of one topic and partition, with the findings about their files.
        read: reads a snapshot again, if its batches are not those of a twin.
    """
    for of_one_cluster in by_history(replicas, lambda replica: replica):
        for snapshot_id, twins in _twins(of_one_cluster).items():
            yield from _judge(snapshot_id, twins, read)


@attrs.frozen
class _Contents:
    """The contents that snapshots of one id must agree on; the order of voters does not matter."""

    timestamp: int | None
    kraft_version: int | None
    voters: frozenset[Any] | None
    record_count: int | None


@attrs.frozen
class _Twin:
    """A snapshot that others have under the same id.

    Attributes:
        file: the snapshot.
        contents: what its control records say.
        has_log: whether the log beside it has the record before its end.
    """

    file: FileEvidence
    contents: _Contents
    has_log: bool

    @property
    def path(self) -> str:
        return self.file.task.path


def _twins(replicas: Sequence[PartitionEvidence]) -> dict[OffsetAndEpoch, list[_Twin]]:
    by_id: dict[OffsetAndEpoch, list[_Twin]] = {}
    for replica in replicas:
        ends = {batch.snapshot_offset for file in replica.segments for batch in file.snapshot_batches}
        for snapshot_id, file in replica.snapshots_by_id.items():
            if not file.findings and snapshot_id.offset > 0:  # Each node formats its own snapshot at 0.
                twin = _Twin(file, _contents(file), snapshot_id.offset in ends)
                by_id.setdefault(snapshot_id, []).append(twin)
    return by_id


def _judge(snapshot_id: OffsetAndEpoch, twins: Sequence[_Twin], read: ContentReader) -> Iterator[Finding]:
    counts, vouched = Counter(twin.contents for twin in twins), Counter(twin.contents for twin in twins if twin.has_log)
    usual = max(twins, key=lambda twin: (counts[twin.contents], vouched[twin.contents]))
    names = [field.name for field in attrs.fields(_Contents)]
    for twin in twins:
        differing = [name for name in names if getattr(twin.contents, name) != getattr(usual.contents, name)]
        if differing:
            yield _finding(
                snapshot_id, twin.file, f"{differing[0].replace('_', ' ')} differs from that of {usual.path}"
            )
    yield from _judge_records(snapshot_id, [twin for twin in twins if twin.contents == usual.contents], read)


def _judge_records(snapshot_id: OffsetAndEpoch, twins: Sequence[_Twin], read: ContentReader) -> Iterator[Finding]:
    """Report twins whose data records are not those of most."""
    with_log = {twin.path for twin in twins if twin.has_log}
    groups = by_contents((twin.file for twin in twins), read)
    usual = max(groups, key=lambda group: (len(group), sum(file.task.path in with_log for file in group)))
    for file in (file for group in groups if group is not usual for file in group):
        record = first_difference(file, usual[0], read)
        if record is not None:
            yield _finding(snapshot_id, file, f"{record} {usual[0].task.path}")


def _finding(snapshot_id: OffsetAndEpoch, file: FileEvidence, reason: str) -> Finding:
    return Finding(file.task.path, "snapshot-twins", reason, offset=snapshot_id.offset, epoch=snapshot_id.epoch)


def _contents(file: FileEvidence) -> _Contents:
    timestamp = kraft_version = voters = None
    for _, value in file.control_values():
        match value:
            case SnapshotHeaderRecord():
                timestamp = value.last_contained_log_timestamp
            case KRaftVersionRecord():
                kraft_version = value.kraft_version
            case VotersRecord():
                voters = frozenset(value.voters)
    return _Contents(timestamp, kraft_version, voters, None if file.extent is None else file.extent.record_count)
