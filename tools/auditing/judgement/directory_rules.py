# SPDX-License-Identifier: Apache-2.0
"""Compares log directories with each other, and with the voters of their metadata logs."""

import uuid
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from raftlog.records.files.file_names import FileKind
from raftlog.tools.auditing.agreement.bootstrap_rules import judge_bootstraps
from raftlog.tools.auditing.agreement.identities import judge_identities
from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.history.histories import by_history
from raftlog.tools.auditing.history.log_directories import DirectoryIdentity, by_cluster, log_directories
from raftlog.tools.auditing.history.log_lineages import name_faults
from raftlog.tools.auditing.history.quorum_view import QuorumView, view_of
from raftlog.tools.auditing.history.replicas import Replica, replicas, voters_in_force
from raftlog.tools.auditing.judgement.checkpoint_rules import judge_checkpoints, judge_log_starts
from raftlog.tools.auditing.judgement.committed_rules import judge_committed
from raftlog.tools.auditing.judgement.election_rules import judge_granted_votes
from raftlog.tools.auditing.judgement.snapshot_rules import ending_amid_batches, misnamed
from raftlog.tools.auditing.judgement.vote_rules import judge_votes
from raftlog.tools.catalogue.findings import Finding
from raftlog.uuid_text import uuid_to_text

T = TypeVar("T")


def judge_directories(evidence: Sequence[PartitionEvidence]) -> Iterator[Finding]:
    """Report contradictions between log directories that are audited together.

    A node may have several directories, as brokers do.

    Args:
        evidence: of all log directories, and of the partitions in them.
    """
    directories = list(log_directories(evidence).values())
    yield from _without_meta(evidence, directories)
    yield from _checkpoints(evidence)
    yield from _foreign(directories)
    yield from judge_bootstraps(evidence)
    copies = list(_same_directory(directories))
    yield from copies
    copied = {finding.path for finding in copies}
    originals = [each for each in directories if each.identity_path not in copied]
    yield from _same_partition(evidence, originals)
    shared = {each.directory_id for each in directories if each.identity_path in copied}
    of_copies = {each.identity_path for each in directories if each.directory_id in shared}
    of_cluster: dict[str | None, list[DirectoryIdentity]] = {}
    for original in originals:
        of_cluster.setdefault(original.cluster_id, []).append(original)
    for quorum in _quorums(replicas(evidence)):
        same_node = list(_same_node(quorum, copied))
        yield from same_node
        of_twins = {path for finding in same_node for path in _of_node(quorum, finding.path)}
        yield from judge_identities(quorum, voters_in_force(quorum[0]), of_copies | of_twins)
        yield from _other_directory(quorum, shared)
        yield from judge_granted_votes(quorum, of_cluster.get(quorum[0].directory.cluster_id, ()))
        yield from judge_votes(quorum)
        view = view_of(quorum)
        yield from _majority(quorum, view)
        yield from _misnamed(quorum, view)
        yield from judge_committed(quorum, view)


def _quorums(found: Iterable[Replica]) -> Iterator[list[Replica]]:
    """Divide replicas by log and cluster, in their order."""
    by_log: dict[tuple[str, int], list[Replica]] = {}
    for replica in found:
        by_log.setdefault(replica.evidence.place.topic_partition, []).append(replica)
    for of_one_name in by_log.values():
        for of_one_id in by_cluster(of_one_name, lambda replica: replica.directory.cluster_id).values():
            yield from by_history(of_one_id, lambda replica: replica.evidence)


def _without_meta(evidence: Sequence[PartitionEvidence], directories: Iterable[DirectoryIdentity]) -> Iterator[Finding]:
    with_partitions = {each.place.log_directory for each in evidence if each.place.topic}
    listed = {
        each.place.log_directory
        for each in evidence
        if not each.place.topic and not any(file.task.was_named for file in each.files)
    }
    for directory in directories:
        if directory.meta is None and directory.path in listed & with_partitions:
            reason = "the log directory names no node and no cluster: Kafka does not start on it"
            yield Finding(f"{directory.path}/{FileKind.META_PROPERTIES.value}", "meta-missing", reason)
        elif directory.meta is not None and directory.meta.contents is not None:
            names = {"cluster.id": directory.cluster_id, "node.id": directory.node_id}
            unsaid = " and no ".join(name for name, value in names.items() if value is None)
            if unsaid:
                yield _finding(directory, "meta-missing", f"it has no {unsaid}: Kafka does not start on it")


def _checkpoints(evidence: Sequence[PartitionEvidence]) -> Iterator[Finding]:
    partitions: dict[str, list[PartitionEvidence]] = {}
    for each in evidence:
        partitions.setdefault(each.place.log_directory, []).append(each)
    for directory in evidence:
        if not directory.place.topic:
            yield from judge_checkpoints(directory, partitions[directory.place.log_directory])
            yield from judge_log_starts(directory, partitions[directory.place.log_directory])


def _foreign(directories: Iterable[DirectoryIdentity]) -> Iterator[Finding]:
    """Report the directories whose cluster id differs from that of most directories."""
    counts = Counter(each.cluster_id for each in directories if each.cluster_id is not None)
    for home, _ in counts.most_common(1):
        for directory in directories:
            if directory.cluster_id not in {None, home}:
                reason = f"cluster id {directory.cluster_id}, but {counts[home]} others have {home}"
                yield _finding(directory, "cluster-foreign", reason)


def _same_directory(directories: Iterable[DirectoryIdentity]) -> Iterator[Finding]:
    with_id = [directory for directory in directories if directory.directory_id is not None]
    for first, other in _repeated(with_id, [directory.directory_id for directory in with_id]):
        if first.directory_id is not None:
            reason = f"directory id {uuid_to_text(first.directory_id)} is that of {first.path} too: a copied disk"
            yield _finding(other, "directory-twice", reason)


def _same_partition(
    evidence: Iterable[PartitionEvidence], directories: Iterable[DirectoryIdentity]
) -> Iterator[Finding]:
    """Report partitions that a broker has in two of its log directories; for raft logs, ``node-twice`` does."""
    by_path = {directory.path: directory for directory in directories if directory.node_id is not None}
    partitions = [
        each for each in evidence if each.segments and not each.is_raft and each.place.log_directory in by_path
    ]
    nodes = [by_path[each.place.log_directory] for each in partitions]
    keys = [
        (node.cluster_id, node.node_id, each.place.topic_partition)
        for node, each in zip(nodes, partitions, strict=True)
    ]
    for first, other in _repeated(partitions, keys):
        reason = f"{first.place.log_directory}, of the same broker, has the partition too"
        yield Finding(other.segments[0].task.path, "partition-twice", reason)


def _same_node(quorum: Iterable[Replica], copied: set[str]) -> Iterator[Finding]:
    known = sorted(
        (each.directory for each in quorum if each.directory.node_id is not None), key=lambda each: each.path
    )
    originals = [directory for directory in known if directory.identity_path not in copied]
    for first, other in _repeated(originals, [directory.node_id for directory in originals]):
        reason = f"node {other.node_id} is that of {first.path} too, and both have a metadata log"
        yield _finding(other, "node-twice", reason)


def _of_node(quorum: Iterable[Replica], path: str) -> Iterator[str]:
    """Yield the paths of the meta.properties that have the same node id as that of a path."""
    directories = [replica.directory for replica in quorum]
    ids = {directory.node_id for directory in directories if directory.identity_path == path}
    return (directory.identity_path for directory in directories if directory.node_id in ids)


def _repeated(values: Iterable[T], keys: Iterable[Hashable]) -> Iterator[tuple[T, T]]:
    """Yield each value whose key occurred before, with the first value of that key."""
    first: dict[Hashable, T] = {}
    for value, key in zip(values, keys, strict=True):
        if first.setdefault(key, value) is not value:
            yield first[key], value


def _other_directory(quorum: Sequence[Replica], shared: Collection[uuid.UUID | None]) -> Iterator[Finding]:
    """Report nodes whose directory id differs from that of the voter in the most up-to-date log."""
    voters = voters_in_force(quorum[0])
    here = {replica.key for replica in quorum}
    for replica in quorum:
        directory = replica.directory
        voter = voters.voters.get(-1 if directory.node_id is None else directory.node_id)
        if voter is None or directory.directory_id is None or directory.directory_id in shared:
            continue
        if not replica.is_voter_of(voters) and voter.voter_key not in here:
            reason = (
                f"directory id {uuid_to_text(directory.directory_id)} of node {directory.node_id}, which is a voter "
            )
            yield _finding(directory, "directory-id", f"{reason}as {voter.voter_key}")


def _majority(quorum: Sequence[Replica], view: QuorumView) -> Iterator[Finding]:
    """Report that a majority of voters is missing, if several replicas were given: the user meant a quorum.

    A voter with another directory is here: ``directory-id`` says that it does not count.
    """
    ids, voters = {replica.directory.node_id for replica in quorum}, view.voters
    present = ids & voters.voter_ids
    if len(ids) > 1 and None not in ids and len(voters) > 0 and len(present) < voters.majority_size:
        ids_text = ", ".join(map(str, voters.voters))
        reason = f"{len(present)} of the voters {ids_text} are among the replicas; {voters.majority_size} are needed"
        yield Finding(quorum[0].path, "majority-missing", reason)


def _misnamed(quorum: Sequence[Replica], view: QuorumView) -> Iterator[Finding]:
    """Report the snapshots whose names only other replicas contradict: by themselves, their directories are sound."""
    if len(quorum) == 1:
        return
    known = {(path, each.is_certain) for replica in quorum for path, each in name_faults([replica.evidence]).items()}
    amid = {path for replica in quorum for path in ending_amid_batches(replica.evidence)}
    for copy in view.judgement.copies:
        for snapshot_id, doubted in copy.doubted.items():
            is_known = not {(doubted.path, doubted.is_certain), (doubted.path, True)}.isdisjoint(known)
            if not is_known and doubted.path not in amid:
                yield misnamed(snapshot_id, doubted.path, doubted.reason, is_certain=doubted.is_certain)


def _finding(directory: DirectoryIdentity, rule: str, reason: str) -> Finding:
    return Finding(directory.identity_path, rule, reason)
