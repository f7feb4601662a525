# SPDX-License-Identifier: Apache-2.0
"""Partitions without a segment, which once had records according to the files that are left."""

from collections.abc import Iterator
from typing import Final

from raftlog.file_paths import directory_of, name_of
from raftlog.records.files.file_names import FileKind, FileState
from raftlog.snapshot.paths import BOOTSTRAP_SNAPSHOT_ID
from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.history.durable_ends import durable_end_offset, ends_seen
from raftlog.tools.auditing.survey.log_witnesses import is_witness
from raftlog.tools.catalogue.findings import Finding

_SEGMENT_KINDS: Final = frozenset(
    {FileKind.LOG, FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX}
)


def judge_empty(evidence: PartitionEvidence) -> Iterator[Finding]:
    """Report a partition without a segment if remaining files show that it had records; at most one finding.

    Without such files, ``find_tasks`` reports the directory. An index without its segment is reported by its own rule.
    """
    tasks = [file.task for file in evidence.files if file.task.state is FileState.CURRENT]
    witnesses = [task for task in tasks if is_witness(name_of(task.path), task.kind, task.state)]
    is_formatted_only = {file.task.snapshot_id for file in evidence.files} == {BOOTSTRAP_SNAPSHOT_ID}
    if is_formatted_only or not witnesses or any(task.kind in _SEGMENT_KINDS for task in tasks):
        return
    path = directory_of(witnesses[0].path)
    covered = max((snapshot_id.offset for snapshot_id in evidence.snapshots_by_id), default=0)
    durable = durable_end_offset(evidence) or 0
    seen, witness = max(ends_seen(evidence), default=(0, ""))
    reason = "the directory of a partition has no segment"
    rest = f", of which {covered} are in a snapshot" if covered else ""
    if durable > covered:
        lost = f"its log was durable up to offset {durable}{rest}"
        yield Finding(path, "log-end-durable", f"{reason}, and {lost}", offset=covered)
    elif seen > covered:
        yield Finding(
            path, "segments-gone", f"{reason}, and {witness} has seen offsets up to {seen}{rest}", offset=covered
        )
    else:
        saved = f"; a snapshot has what was before offset {covered}" if covered else ""
        yield Finding(path, "directory-empty", f"{reason}{saved}")
