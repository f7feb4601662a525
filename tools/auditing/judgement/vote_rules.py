# SPDX-License-Identifier: Apache-2.0
"""Contradictions between a replica's quorum-state and the elections that the logs of all replicas record.

A voter votes for one candidate per epoch, and an epoch has one leader. If a replica's quorum-state contradicts a
LeaderChange of the same epoch, the replica broke one of these rules, or its file was changed or restored.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

import attrs

from raftlog.quorum.election_states import contradict
from raftlog.records.files.file_names import FileKind
from raftlog.records.files.quorum_state import UNKNOWN_ID, QuorumStateData
from raftlog.records.messages.control import LeaderChangeMessage
from raftlog.tools.auditing.history.quorum_statements import log_statements
from raftlog.tools.auditing.history.replicas import Replica
from raftlog.tools.auditing.judgement.election_rules import log_epoch
from raftlog.tools.auditing.judgement.voter_rules import election_problem
from raftlog.tools.catalogue.findings import Finding
from raftlog.voters.voter_set import ReplicaKey


@attrs.frozen
class Election:
    """The outcome of an election, as a LeaderChange records it.

    Attributes:
        change: the LeaderChange.
        path: of the segment that it is in.
        log_directory: of that segment.
    """

    change: LeaderChangeMessage
    path: str
    log_directory: str


def judge_votes(quorum: Sequence[Replica]) -> Iterator[Finding]:
    """Yield each quorum-state whose leader or vote contradicts an election that the logs record, or its twin's.

    One fault is one finding: ``judge_election`` reports a quorum-state that is behind its own log, a leader that this
    log contradicts, and a vote for a node that is not a voter. ``replica-leader`` reports an epoch with two leaders.

    Args:
        quorum: replicas of one log.
    """
    elections, judged = _elections(quorum), set[str]()
    for replica in quorum:
        file, state = replica.evidence.small_file(FileKind.QUORUM_STATE), replica.state
        if file is None or state is None or state.leader_epoch < log_epoch(replica.evidence):
            continue
        of_epoch = elections.get(state.leader_epoch, [])
        problem = _leader_problem(replica, state, of_epoch) or _vote_problem(replica, state, of_epoch)
        if problem is not None:
            judged.add(file.task.path)
            yield Finding(file.task.path, *problem, epoch=state.leader_epoch)
    yield from _two_leaders(quorum)
    yield from _two_memories(quorum, judged)


def _two_leaders(quorum: Sequence[Replica]) -> Iterator[Finding]:
    """Yield each quorum-state whose leader of an epoch is not that of most others, if no log names the leader."""
    of_logs = {
        statement.seen.epoch
        for replica in quorum
        for statement in log_statements(replica.evidence)
        if isinstance(statement.value, LeaderChangeMessage)
    }
    by_epoch: dict[int, list[tuple[int, str]]] = {}
    for replica in quorum:
        file, state = replica.evidence.small_file(FileKind.QUORUM_STATE), replica.state
        if file is None or state is None or state.leader_id == UNKNOWN_ID:
            continue
        if state.leader_epoch not in of_logs and state.leader_epoch >= log_epoch(replica.evidence):
            by_epoch.setdefault(state.leader_epoch, []).append((state.leader_id, file.task.path))
    for epoch, said in by_epoch.items():
        usual, _ = Counter(leader_id for leader_id, _ in said).most_common(1)[0]
        witness = next(path for leader_id, path in said if leader_id == usual)
        for leader_id, path in said:
            if leader_id != usual:
                reason = f"leader {leader_id} of epoch {epoch}, but {witness} says {usual}, and no log says which led"
                yield Finding(path, "election-two-leaders", reason, epoch=epoch)


def _two_memories(quorum: Iterable[Replica], judged: Collection[str]) -> Iterator[Finding]:
    """Yield each quorum-state that its node cannot have had in the epoch of another copy of its directory.

    A static voter is one node whatever its directory ids are: it is known by its id alone.

    Args:
        quorum: replicas of one log.
        judged: the files of which it is known that they are wrong, by an election in a log.
    """
    seen: dict[ReplicaKey, list[tuple[QuorumStateData, str]]] = {}
    for replica in quorum:
        file, state, key = replica.evidence.small_file(FileKind.QUORUM_STATE), replica.state, replica.key
        if file is None or state is None or key is None or state.leader_epoch < log_epoch(replica.evidence):
            continue
        if file.task.path in judged:
            continue
        known = seen.setdefault(ReplicaKey(key.id) if state.data_version == 0 else key, [])
        for other, witness in known:
            leaders = {state.leader_id, other.leader_id} - {UNKNOWN_ID}
            if len(leaders) < 2 and contradict(state, other, key.id):  # Two leaders are another fault.
                reason = f"{state_words(state)} in epoch {state.leader_epoch}, but {witness}, of the same node, says"
                reason += f" {state_words(other)}: it cannot have had both"
                yield Finding(file.task.path, "election-double-vote", reason, epoch=state.leader_epoch)
                break
        known.append((state, file.task.path))


def state_words(state: QuorumStateData) -> str:
    """Return the leader and the vote of an election state as text."""
    leader = "no leader" if state.leader_id == UNKNOWN_ID else f"leader {state.leader_id}"
    vote = "no vote" if state.voted_key is None else f"a vote for {state.voted_key}"
    return f"{leader} and {vote}"


_Problem = tuple[str, str] | None
"""A rule and a reason."""


def _leader_problem(replica: Replica, state: QuorumStateData, elections: Sequence[Election]) -> _Problem:
    """Return a problem if other replicas' logs name another leader, and the replica's own log names none."""
    if not elections or any(election.log_directory == replica.path for election in elections):
        return None
    leader_id = elections[0].change.leader_id
    if state.leader_id in {UNKNOWN_ID, leader_id}:
        return None
    reason = f"leader {state.leader_id} of epoch {state.leader_epoch}, but {elections[0].path} says {leader_id}"
    return "election-leader", reason


def _vote_problem(replica: Replica, state: QuorumStateData, elections: Sequence[Election]) -> _Problem:
    """Return a problem if the replica voted for the leader, as a log says, and for another voter, as its file says."""
    for election in elections:
        change, node_id = election.change, replica.directory.node_id
        others = {voter.id for voter in change.voters} - {change.leader_id}
        if state.voted_id in others and node_id in {voter.id for voter in change.granting_voters}:
            reason = f"a vote for {state.voted_id} in epoch {state.leader_epoch}, but {election.path} says that node"
            return "election-double-vote", f"{reason} {node_id} voted for {change.leader_id}"
    return None


def _elections(quorum: Iterable[Replica]) -> dict[int, list[Election]]:
    """Return the elections by epoch, one for each log that records it; none of an epoch with two leaders."""
    found: dict[int, list[Election]] = {}
    for replica in quorum:
        for statement in log_statements(replica.evidence):
            change = statement.value
            if isinstance(change, LeaderChangeMessage) and election_problem(change) is None:
                election = Election(change, statement.file.task.path, replica.path)
                found.setdefault(statement.seen.epoch, []).append(election)
    return {epoch: same for epoch, same in found.items() if len({each.change.leader_id for each in same}) == 1}
