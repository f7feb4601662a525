# SPDX-License-Identifier: Apache-2.0
"""Who a log directory belongs to, by each file that says so: its cluster, its node, and its directory id."""

from collections.abc import Collection, Iterator, Sequence

from raftlog.records.files.file_names import FileKind
from raftlog.tools.auditing.history.replicas import Replica
from raftlog.tools.catalogue.findings import Finding
from raftlog.uuid_text import uuid_to_text
from raftlog.voters.voter_set import ReplicaKey, VoterSet


def judge_identities(quorum: Sequence[Replica], voters: VoterSet, reported: Collection[str]) -> Iterator[Finding]:
    """Report files that contradict each other about a node's cluster, its id, or its directory id.

    Args:
        quorum: replicas of one raft log.
        voters: the voters in force.
        reported: paths of meta.properties that were reported to be those of other nodes or directories.
    """
    for replica in quorum:
        yield from _other_cluster(replica)
        meta = replica.directory.meta
        if meta is not None and not meta.findings and meta.task.path not in reported:
            problem = _problem(replica.directory.node_id, replica.key, voters)
            if problem is not None:
                yield Finding(meta.task.path, *problem)


def _other_cluster(replica: Replica) -> Iterator[Finding]:
    file, state, home = replica.evidence.small_file(FileKind.QUORUM_STATE), replica.state, replica.directory.cluster_id
    if file is not None and state is not None and state.cluster_id and home not in {None, state.cluster_id}:
        reason = f"cluster id {state.cluster_id}, but the log directory is of cluster {home}"
        yield Finding(file.task.path, "election-cluster", reason, epoch=state.leader_epoch)


def _problem(node_id: int | None, key: ReplicaKey | None, voters: VoterSet) -> tuple[str, str] | None:
    """Return the rule and the reason why a meta.properties is not that of the voter that it seems to be of, or None."""
    if node_id is None or key is None:
        return None
    if key.directory_id is None:
        voter = voters.voters.get(node_id)
        if voter is None or voter.voter_key.directory_id is None:
            return None
        reason = f"it has no directory.id, but node {node_id} is a voter as {voter.voter_key}: Kafka makes another id"
        return "directory-unnamed", reason
    owner = next((each for each in voters.voter_keys if each.directory_id == key.directory_id), None)
    if owner is None or owner.id == node_id:
        return None
    directory = uuid_to_text(key.directory_id)
    return "node-id", f"node {node_id}, but directory id {directory} is that of voter {owner.id}"
