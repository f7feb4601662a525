# SPDX-License-Identifier: Apache-2.0
"""Compares what the nodes of a cluster were formatted with: initial voters, and bootstrap.checkpoint."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from raftlog.records.files.file_names import FileKind
from raftlog.records.messages.control import VotersRecord, VotersRecordVoter
from raftlog.records.messages.voters import voters_problem
from raftlog.snapshot.paths import BOOTSTRAP_SNAPSHOT_ID
from raftlog.tools.auditing.agreement.snapshot_contents import (
    ContentReader,
    by_contents,
    first_difference,
    read_contents,
)
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence
from raftlog.tools.auditing.history.histories import by_history
from raftlog.tools.auditing.history.log_directories import DirectoryIdentity, by_cluster, log_directories
from raftlog.tools.catalogue.findings import Finding


def judge_bootstraps(evidence: Sequence[PartitionEvidence], read: ContentReader = read_contents) -> Iterator[Finding]:
    """Report nodes that were formatted with other initial voters, or other records, than most nodes of their cluster.

    Until the first leader has written them, records of different nodes would be a matter of luck. After that they do
    not matter, and nodes that were formatted by different releases have different ones.

    Args:
        evidence: all log directories, and the partitions in them. Files with findings are left out.
        read: reads a bootstrap.checkpoint again.
    """
    directories = log_directories(evidence)
    surveyed = {each.place.log_directory for each in evidence if not each.place.topic}
    raft_logs = [each for each in evidence if each.is_raft and each.place.log_directory in surveyed]
    logs = _by_cluster(raft_logs, directories)
    for of_one_id in logs.values():
        for together in by_history(of_one_id, lambda log: log):
            yield from _initial_voters(together)
    for cluster_id, of_one_id in _by_cluster([each for each in evidence if not each.place.topic], directories).items():
        files = [file for each in of_one_id if (file := each.small_file(FileKind.BOOTSTRAP_SNAPSHOT)) is not None]
        has_records = any(log.last_epoch >= 0 for log in logs.get(cluster_id, ()))
        yield from _checkpoints([file for file in files if not file.findings], read, has_records=has_records)


def _by_cluster(
    places: Sequence[PartitionEvidence], directories: Mapping[str, DirectoryIdentity]
) -> dict[str, list[PartitionEvidence]]:
    return by_cluster(places, lambda each: directories[each.place.log_directory].cluster_id)


def _initial_voters(logs: Sequence[PartitionEvidence]) -> Iterator[Finding]:
    """Report snapshots at offset 0 with other voters than most of those that have any."""
    found = []
    for log in logs:
        file = log.snapshots_by_id.get(BOOTSTRAP_SNAPSHOT_ID)
        if file is None or file.findings:
            continue
        for control, value in file.control_values():
            if isinstance(value, VotersRecord) and voters_problem(value) is None:
                found.append((file, control, frozenset(value.voters)))
    if not found:
        return
    usual, _ = Counter(named for _, _, named in found).most_common(1)[0]
    witness = next(file.task.path for file, _, named in found if named == usual)
    for file, control, named in found:
        if named != usual:
            reason = f"the initial voters are {_ids(named)}, but {_ids(usual)} in {witness}"
            if _ids(named) == _ids(usual):
                reason = f"initial voters {_ids(named)} have other directories or endpoints than in {witness}"
            yield Finding(file.task.path, "bootstrap-differs", reason, control.position, offset=control.offset)


def _ids(voters: frozenset[VotersRecordVoter]) -> str:
    return ", ".join(str(voter_id) for voter_id in sorted(voter.id for voter in voters))


def _checkpoints(files: Sequence[FileEvidence], read: ContentReader, *, has_records: bool) -> Iterator[Finding]:
    if len(files) < 2:
        return
    groups = by_contents(files, read)
    usual = max(groups, key=len)
    for file in (file for group in groups if group is not usual for file in group):
        difference = f"{first_difference(file, usual[0], read)} {usual[0].task.path}"
        if has_records:
            yield Finding(file.task.path, "bootstrap-unlike", f"{difference}: the log has what its first leader wrote")
        else:
            yield Finding(file.task.path, "bootstrap-differs", f"{difference}: the first leader decides")
