# SPDX-License-Identifier: Apache-2.0
"""Rules that compare a replica's quorum-state with its log, with copies of the file, and with other replicas."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from raftlog.file_paths import directory_of, name_of
from raftlog.quorum.election_states import keeps_promises
from raftlog.records.files.file_names import FileKind
from raftlog.records.files.quorum_state import UNKNOWN_ID, QuorumStateData
from raftlog.records.messages.control import LeaderChangeMessage
from raftlog.storage.state.quorum_state_store import COPY_NAMES
from raftlog.tools.auditing.evidence import ControlSeen, FileEvidence, PartitionEvidence
from raftlog.tools.auditing.history.log_directories import DirectoryIdentity
from raftlog.tools.auditing.history.quorum_statements import log_statements, snapshot_statements, voters_of
from raftlog.tools.auditing.history.replicas import Replica, quorum_state_of, voters_in_force
from raftlog.tools.auditing.judgement.voter_rules import election_problem
from raftlog.tools.catalogue.findings import Finding
from raftlog.voters.voter_set import ReplicaKey

_DECIDED: Final = ("leader_epoch", "leader_id", "voted_id", "voted_directory_id")
"""The fields that elections are about; the others may differ between a file and its copies."""


_LAST_EPOCH: Final = (1 << 31) - 1
"""The greatest that a file can hold."""


def judge_election(evidence: PartitionEvidence) -> Iterator[Finding]:
    """Report a quorum-state that is missing, or that contradicts its log or its copies; raft logs only."""
    if not evidence.is_raft:
        return
    file = evidence.small_file(FileKind.QUORUM_STATE)
    copies = _copies(evidence)
    if file is None:
        yield from _missing(evidence, copies)
    elif (state := quorum_state_of(file)) is not None:
        yield from _contradictions(evidence, file.task.path, state)
        yield from _copies_apart(file, copies)


def judge_granted_votes(quorum: Sequence[Replica], directories: Iterable[DirectoryIdentity]) -> Iterator[Finding]:
    """Report voters that have lost a vote which, according to another replica's log, elected a leader.

    Their disk was wiped or restored from an old copy, so they may vote a second time in the same epoch.

    Args:
        quorum: replicas of one log, the most up to date first.
        directories: all surveyed log directories of their cluster, including those without a metadata log.
    """
    granted, voters = _granted_votes(quorum), voters_in_force(quorum[0])
    newest = {each.key: each for each in reversed(quorum)}  # An old copy is no voter's memory, and is said to be one.
    for replica in quorum:
        if replica.key is None or newest[replica.key] is not replica or not replica.is_voter_of(voters):
            continue
        epoch, known = granted.get(replica.key.id, -1), log_epoch(replica.evidence)
        if max(known, replica.state.leader_epoch if replica.state else -1) < epoch:
            yield _forgotten(replica, epoch)
    for directory in directories:
        key = ReplicaKey(-1 if directory.node_id is None else directory.node_id, directory.directory_id)
        if key.directory_id is not None and key in voters.voter_keys and key not in newest:
            reason = f"voter {key} has no metadata log, and may vote twice in an epoch"
            yield Finding(directory.identity_path, "election-missing", reason)


def _granted_votes(quorum: Iterable[Replica]) -> dict[int, int]:
    """Return, per voter, the latest epoch in which a LeaderChange lists it as granting its vote."""
    granted: dict[int, int] = {}
    for replica in quorum:
        for seen, change in _leader_changes(replica.evidence):
            for voter in change.granting_voters if election_problem(change) is None else ():
                granted[voter.id] = max(seen.epoch, granted.get(voter.id, -1))
    return granted


def _forgotten(replica: Replica, epoch: int) -> Finding:
    path = _quorum_state_path(replica.evidence)
    if replica.state is None:
        reason = (
            f"node {replica.directory.node_id} voted in epoch {epoch}, as another log says, and has no record of it"
        )
        return Finding(path, "election-missing", reason)
    known = replica.state.leader_epoch
    reason = f"quorum-state is of epoch {known}, but another log says that the node voted in epoch {epoch}"
    return Finding(path, "election-stale", reason, epoch=known)


def _quorum_state_path(evidence: PartitionEvidence) -> str:
    file = evidence.small_file(FileKind.QUORUM_STATE)
    directory = directory_of(evidence.files[0].task.path)
    return f"{directory}/{FileKind.QUORUM_STATE.value}" if file is None else file.task.path


def log_epoch(evidence: PartitionEvidence) -> int:
    """Return the epoch that a log has certainly reached; -1 if it has none.

    A higher epoch that only a batch without a LeaderChange claims is a fault of that batch, and is ignored.
    """
    segments = [file.extent for file in evidence.segments if file.extent is not None]
    if not segments:
        return max((snapshot_id.epoch for snapshot_id in evidence.snapshots_by_id), default=-1)
    opened = [seen.epoch for seen, _ in _leader_changes(evidence)]
    return min(max([segments[0].first_epoch, *opened]), segments[-1].last_epoch)


def _missing(evidence: PartitionEvidence, copies: list[FileEvidence]) -> Iterator[Finding]:
    """Report a missing quorum-state, if the directory was listed and the log has records of an epoch above 0."""
    was_listed = any(not file.task.was_named for file in evidence.files)
    if was_listed and log_epoch(evidence) > 0 and evidence.end_offset > 0:
        directory = directory_of(evidence.files[0].task.path)
        reason = f"a log of {evidence.end_offset} offsets up to epoch {log_epoch(evidence)} without quorum-state"
        if copies:
            reason += f", of which there is a copy: {_vote_text(copies[0].contents or {})}"
        yield Finding(f"{directory}/{FileKind.QUORUM_STATE.value}", "election-missing", reason)


def _contradictions(evidence: PartitionEvidence, path: str, state: QuorumStateData) -> Iterator[Finding]:
    epoch = log_epoch(evidence)
    if state.leader_epoch == _LAST_EPOCH:
        reason = f"quorum-state is of epoch {_LAST_EPOCH}, the greatest possible: no further election is possible"
        yield Finding(path, "election-last-epoch", reason, epoch=_LAST_EPOCH)
        return
    if state.leader_epoch < epoch:
        reason = f"quorum-state is of epoch {state.leader_epoch}, but the log has reached epoch {epoch}"
        yield Finding(path, "election-stale", reason, epoch=state.leader_epoch)
        return
    of_epoch = [each for each in _leader_changes(evidence) if each[0].epoch == state.leader_epoch]
    for seen, change in of_epoch[:1]:  # A second one is reported as such.
        if state.leader_id not in {UNKNOWN_ID, change.leader_id}:
            if election_problem(change) is None:
                known = f"where the log says {change.leader_id}"
                reason = f"leader {state.leader_id} of epoch {state.leader_epoch}, {known}"
                yield Finding(path, "election-leader", reason, offset=seen.offset, epoch=state.leader_epoch)
            return
    yield from _strangers(evidence, path, state)


def _strangers(evidence: PartitionEvidence, path: str, state: QuorumStateData) -> Iterator[Finding]:
    """Yield that the leader was never a voter, as far as is known here, or else that who was voted for never was."""
    voters, vote = _voters_ever(evidence, state), state.voted_key
    if not voters:
        return
    ids = {voter.id for voter in voters}
    known = ", ".join(map(str, sorted(ids)))
    if state.leader_id not in {UNKNOWN_ID, *ids} and state.leader_id not in _leaders_ever(evidence):
        reason = f"leader {state.leader_id} of epoch {state.leader_epoch}, but the voters have been {known}"
        yield Finding(path, "election-stranger", reason, epoch=state.leader_epoch)
    elif vote is not None and not any(_is_same(vote, voter) for voter in voters):
        reason = f"a vote for {vote}, but the voters have been {known}"
        yield Finding(path, "election-vote", reason, epoch=state.leader_epoch)


def _leaders_ever(evidence: PartitionEvidence) -> set[int]:
    return {change.leader_id for _, change in _leader_changes(evidence)}


def _is_same(vote: ReplicaKey, voter: ReplicaKey) -> bool:
    return vote.id == voter.id and (None in {vote.directory_id, voter.directory_id} or vote == voter)


def _voters_ever(evidence: PartitionEvidence, state: QuorumStateData) -> set[ReplicaKey]:
    """Return every known past or present voter; without a directory id if only the voter's id is known."""
    snapshots = (snapshot.voters for snapshot in snapshot_statements(evidence))
    statements = [*log_statements(evidence), *(each for each in snapshots if each is not None)]
    sets = (voters_of(statement) for statement in statements)
    keys = {key for voters in sets if voters is not None for key in voters.voter_keys}
    with_directory = {key.id for key in keys if key.directory_id is not None}
    named = set(state.current_voters or ())
    for _, change in _leader_changes(evidence):
        named |= {voter.id for voter in change.voters}
    return keys | {ReplicaKey(voter_id) for voter_id in named - with_directory}


def _leader_changes(evidence: PartitionEvidence) -> list[tuple[ControlSeen, LeaderChangeMessage]]:
    said = ((statement.seen, statement.value) for statement in log_statements(evidence))
    return [(seen, change) for seen, change in said if isinstance(change, LeaderChangeMessage)]


def _copies(evidence: PartitionEvidence) -> list[FileEvidence]:
    return [file for file in evidence.files if file.contents and name_of(file.task.path) in COPY_NAMES]


def _copies_apart(file: FileEvidence, copies: list[FileEvidence]) -> Iterator[Finding]:
    """Report the first copy that differs from quorum-state; one finding is enough, as both copies may be older.

    Kafka writes only quorum-state. Two equal copies with an earlier state therefore mean that Kafka has run here since.
    A lone copy, or a copy that differs from the other one, is an old file that was restored.
    """
    mine = file.contents or {}
    for copy in copies:
        theirs = copy.contents or {}
        if _decided(mine) == _decided(theirs):
            continue
        reason = f"the copy says {_vote_text(theirs)}, quorum-state {_vote_text(mine)}"
        epoch = theirs.get("leader_epoch")
        if _are_alike(copies) and _may_come_after(file, copy):
            yield Finding(copy.task.path, "election-handover", f"{reason}: Kafka has run here since", epoch=epoch)
        else:
            yield Finding(copy.task.path, "election-copies", reason, epoch=epoch)
        return


def _decided(fields: Mapping[str, Any]) -> list[Any]:
    return [fields.get(name) for name in _DECIDED]


def _are_alike(copies: list[FileEvidence]) -> bool:
    """Whether all copies exist and are from one write: after a crash, one of them may be older, or both are equal."""
    writes = {(*_decided(copy.contents or {}), (copy.contents or {}).get("sequence")) for copy in copies}
    return len(copies) == len(COPY_NAMES) and len(writes) == 1


def _may_come_after(file: FileEvidence, copy: FileEvidence) -> bool:
    """Whether quorum-state may follow the copy's state: it has a later epoch, or keeps the promises of that epoch."""
    later, earlier = quorum_state_of(file), quorum_state_of(copy)
    if later is None or earlier is None:
        return False
    if later.leader_epoch != earlier.leader_epoch:
        return later.leader_epoch > earlier.leader_epoch
    return keeps_promises(later, earlier)


def _vote_text(fields: Mapping[str, Any]) -> str:
    epoch, leader, vote = (fields.get(name) for name in ("leader_epoch", "leader_id", "voted_id"))
    return f"epoch {epoch}, leader {leader}, vote {vote}"
