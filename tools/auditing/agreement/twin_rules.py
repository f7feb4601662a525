# SPDX-License-Identifier: Apache-2.0
"""Compares snapshots of one id that replicas of a raft log have: each was made from the same records."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.messages.control import KRaftVersionRecord, SnapshotHeaderRecord, VotersRecord
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence
from raftlog.tools.auditing.history.histories import by_history
from raftlog.tools.catalogue.findings import Finding


def judge_twins(replicas: Sequence[PartitionEvidence]) -> Iterator[Finding]:
    """Report snapshots whose contents differ from those of most snapshots with the same id.

    If as many have one content as another, those are wrong that no log beside them can vouch for, as a log that starts
    where the snapshot ends cannot. Snapshots with a finding are not compared.

    Args:
        replicas: replicas of one topic and partition, with the findings about their files.
    """
    for of_one_cluster in by_history(replicas, lambda replica: replica):
        for snapshot_id, twins in _twins(of_one_cluster).items():
            yield from _judge(snapshot_id, twins)


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
        path: its path.
        contents: its contents.
        has_log: whether the log beside it has the record before its end.
    """

    path: str
    contents: _Contents
    has_log: bool


def _twins(replicas: Sequence[PartitionEvidence]) -> dict[OffsetAndEpoch, list[_Twin]]:
    by_id: dict[OffsetAndEpoch, list[_Twin]] = {}
    for replica in replicas:
        ends = {batch.snapshot_offset for file in replica.segments for batch in file.snapshot_batches}
        for snapshot_id, file in replica.snapshots_by_id.items():
            if not file.findings and snapshot_id.offset > 0:  # Each node formats its own snapshot at 0.
                twin = _Twin(file.task.path, _contents(file), snapshot_id.offset in ends)
                by_id.setdefault(snapshot_id, []).append(twin)
    return by_id


def _judge(snapshot_id: OffsetAndEpoch, twins: Sequence[_Twin]) -> Iterator[Finding]:
    counts = Counter(twin.contents for twin in twins)
    vouched = Counter(twin.contents for twin in twins if twin.has_log)
    usual = max(counts, key=lambda contents: (counts[contents], vouched[contents]))
    witness = next(twin.path for twin in twins if twin.contents == usual)
    for twin in twins:
        names = (field.name for field in attrs.fields(_Contents))
        differing = next((name for name in names if getattr(twin.contents, name) != getattr(usual, name)), None)
        if differing is not None:
            reason = f"{differing.replace('_', ' ')} differs from that of {witness}"
            yield Finding(twin.path, "snapshot-twins", reason, offset=snapshot_id.offset, epoch=snapshot_id.epoch)


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
