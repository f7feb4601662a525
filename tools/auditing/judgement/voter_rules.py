# SPDX-License-Identifier: Apache-2.0
"""Judges the sequence of voter sets and kraft.versions of a raft log.

The control records of the log and its snapshots are read in the order of their offsets, as a replica would. A voter
set, or a kraft.version, is in force until the next record of it. The LeaderChanges and snapshots in between say what it
is too, and are compared with it: a value that nothing else supports is wrong. If records may be missing, nothing is
compared until the next record or snapshot.

A voter set that was reported is not compared with later ones, so that one fault is one finding.

A set that no leader writes is one that somebody has written with a tool, if it is a batch of its own at the end of its
epoch: a leader begins an epoch with its own record, and goes on after a change of voters. That is reported as such.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, TypeGuard, TypeVar

from raftlog.records.messages.control import KRaftVersionRecord, LeaderChangeMessage, VotersRecord
from raftlog.records.messages.voters import voter_set, voters_problem
from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.history.quorum_statements import (
    SnapshotStatement,
    Statement,
    gaps,
    is_damaged,
    log_statements,
    snapshot_statements,
)
from raftlog.tools.auditing.history.voter_changes import VoterDifference, disjoint_majorities, rewritten_text
from raftlog.tools.auditing.judgement.in_force import Testimony, ValueInForce
from raftlog.tools.catalogue.findings import Finding
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import ReplicaKey, VoterSet

T = TypeVar("T")

_BOOTSTRAP: Final = -1
_LEVELS: Final = frozenset(map(int, KRaftVersion))


def judge_voters(evidence: PartitionEvidence) -> Iterator[Finding]:
    """Report problems with the voter sets, kraft.versions and elections of a raft log; other logs have none."""
    if evidence.is_raft:
        yield from _Reading(evidence).findings()


def election_problem(change: LeaderChangeMessage) -> str | None:
    """Return why a leader cannot have been elected as its LeaderChange says, or None.

    Source: CandidateState, LeaderState#appendLeaderChangeMessageAndBootstrapRecords.
    """
    voters = {voter.id for voter in change.voters}
    granted = {voter.id for voter in change.granting_voters} & voters
    if change.leader_id not in voters:
        return f"leader {change.leader_id} is not one of the voters {_ids(voters)} that it names"
    if 2 * len(granted) <= len(voters):
        return f"leader {change.leader_id} was granted {len(granted)} votes of {len(voters)}, which is not a majority"
    return None


def _leader_fault(change: LeaderChangeMessage) -> tuple[str, str] | None:
    """Return the rule that a new leader's record breaks, and how, or None.

    A leader that was removed may lead until its removal is committed, but no new epoch: a candidate is a voter, and its
    own vote is the first that it gets.
    """
    problem = election_problem(change)
    voters, granted = ({voter.id for voter in named} for named in (change.voters, change.granting_voters))
    if change.leader_id not in voters:
        return "leader-voted", problem or ""
    if granted and change.leader_id not in granted:
        return "leader-voted", f"leader {change.leader_id} is not among those that voted for it: {_ids(granted)}"
    return None if problem is None else ("leader-elected", problem)


class _Reading:
    """Reads a log and its snapshots once, in the order of their offsets."""

    def __init__(self, evidence: PartitionEvidence) -> None:
        self._evidence = evidence
        # A log that starts at offset 0 starts with static voters, which no record names, at kraft.version 0.
        self._voters: ValueInForce[VoterSet | None] | None = ValueInForce(_BOOTSTRAP - 1, None)
        self._version: ValueInForce[int] | None = ValueInForce(_BOOTSTRAP - 1, 0)
        # A snapshot that repeats what the log says is correct.
        self._bad_sets: set[bytes] = set()
        self._statements = log_statements(evidence)
        self._last_change: Statement | None = None
        self._voter_batches = self._batches_with(VotersRecord)
        self._leader_batches = self._batches_with(LeaderChangeMessage)
        self._last_sets = _last_sets(evidence, self._statements)

    def _batches_with(self, kind: type) -> set[int]:
        return {each.seen.batch_offset for each in self._statements if isinstance(each.value, kind)}

    def findings(self) -> Iterator[Finding]:
        """Yield the findings in the order in which they become certain."""
        snapshots = snapshot_statements(self._evidence)
        # Records between snapshots before the log start are not known either.
        forgotten = (snapshot.offset for snapshot in snapshots if snapshot.offset < self._evidence.start_offset - 1)
        events: list[tuple[int, int, Statement | SnapshotStatement | None]] = [
            *((offset, 0, None) for offset in (*gaps(self._evidence), *forgotten)),
            *((statement.seen.offset, 1, statement) for statement in self._statements),
            *((snapshot.offset, 2, snapshot) for snapshot in snapshots),
        ]
        for _, _, event in sorted(events, key=lambda event: event[:2]):
            if isinstance(event, Statement):
                yield from self._read(event)
            elif event is not None:
                yield from self._read_snapshot(event)
            else:
                yield from self._forget()
        yield from self._forget()

    def _forget(self) -> Iterator[Finding]:
        yield from self._end_voters()
        yield from self._end_version()

    def _end_voters(self) -> Iterator[Finding]:
        if self._voters is not None:
            yield from self._voters.settle()
        self._voters = None

    def _end_version(self) -> Iterator[Finding]:
        if self._version is not None:
            yield from self._version.settle()
        self._version = None

    def _read(self, statement: Statement) -> Iterator[Finding]:
        match statement.value:
            case KRaftVersionRecord():
                yield from self._read_version(statement, statement.value.kraft_version)
            case VotersRecord():
                yield from self._read_voters(statement, statement.value)
                self._last_change = statement
            case LeaderChangeMessage():
                yield from self._read_leader(statement, statement.value)

    # kraft.version

    def _read_version(self, statement: Statement, level: int) -> Iterator[Finding]:
        before = self._version
        yield from self._end_version()
        if level not in _LEVELS:
            yield statement.finding("kraft-version-known", f"kraft.version {level}, but only 0 and 1 are known")
            return
        if _is_trusted(before) and level < before.value:
            reason = f"kraft.version {level} after {before.value} at offset {before.offset}"
            yield statement.finding("kraft-version-order", reason)
            return
        self._version = ValueInForce(statement.seen.offset, level)
        if level > 0 and statement.seen.batch_offset not in self._voter_batches and not is_damaged(statement):
            reason = f"kraft.version {level} at offset {statement.seen.offset} without a Voters record in its batch"
            yield statement.finding("kraft-version-voters", reason)

    # Voter sets

    def _read_voters(self, statement: Statement, record: VotersRecord) -> Iterator[Finding]:
        before = self._voters
        yield from self._end_voters()
        problem = voters_problem(record)
        if problem is not None:
            self._bad_sets.add(statement.seen.value)
            yield statement.finding("voters-schema", problem)
            return
        after = voter_set(record)
        self._voters = ValueInForce(statement.seen.offset, after)
        if _is_trusted(self._version) and self._version.value < 1:
            self._version.is_doubted = self._voters.is_doubted = True
            yield statement.finding("voters-version", f"a Voters record at kraft.version {self._version.value}")
        elif (change := _change_problem(before, after)) is not None:
            self._voters.is_doubted = True
            rewriting = self._rewriting(statement, before, after)
            yield statement.finding(*(change if rewriting is None else rewriting))
        elif (uncommitted := self._uncommitted(statement, before, after)) is not None:
            self._voters.is_doubted = True
            reason = f"voters become {_named(after)} in the same {uncommitted} must be committed before"
            yield statement.finding("voters-uncommitted", reason)
        else:
            yield from self._judge_ranges(statement, after)

    def _rewriting(
        self, statement: Statement, before: ValueInForce[VoterSet | None] | None, after: VoterSet
    ) -> tuple[str, str] | None:
        """Return that a set was written by a tool, not by a leader, or None.

        A leader adds one voter, removes one, or updates one. The first that it writes is its LeaderChange.
        """
        if not _binds(before) or before.value is None:
            return None
        if statement.seen.offset not in self._last_sets:
            return None
        if before.value.voter_keys == after.voter_keys or len(VoterDifference.between(before.value, after)) < 2:
            return None
        return "voters-rewritten", rewritten_text(before.value, before.offset, after)

    def _uncommitted(
        self, statement: Statement, before: ValueInForce[VoterSet | None] | None, after: VoterSet
    ) -> str | None:
        """Return how a change is too early: its leader's first record or the change before it cannot be committed yet.

        A leader must wait for both. Nothing is committed between two records of a batch, and in a millisecond no other
        voter fetches, flushes, and fetches again; but ``raftlog log append`` leads and appends at once, without others.
        """
        if not _binds(before) or before.value is None or before.value == after:
            return None
        batch_offset = statement.seen.batch_offset
        if batch_offset in self._leader_batches or before.offset >= batch_offset:
            return "batch as a change that"
        is_update = before.value.voter_keys == after.voter_keys  # It waits for no change that has timed out.
        if is_update or len(before.value) == 1 or self._last_change is None or statement.seen.timestamp < 0:
            return None
        last, seen = self._last_change.seen, statement.seen
        is_at_once = (last.epoch, last.timestamp) == (seen.epoch, seen.timestamp)
        return f"millisecond as the change at offset {last.offset}, which" if is_at_once else None

    def _judge_ranges(self, statement: Statement, voters: VoterSet) -> Iterator[Finding]:
        if not _is_trusted(self._version) or voters.supports_version(self._version.value):
            return
        level = self._version.value
        ids = [id_ for id_, node in voters.voters.items() if not node.supported_kraft_versions.contains(level)]
        yield statement.finding("voters-range", f"kraft.version {level}, which voters {_ids(ids)} do not support")

    # Witnesses of the set in force

    def _read_leader(self, statement: Statement, change: LeaderChangeMessage) -> Iterator[Finding]:
        named = frozenset(voter.id for voter in change.voters)
        in_force = self._voters
        problem = _leader_fault(change)
        if _is_trusted(in_force) and in_force.value is not None:
            expected = f"{_named(in_force.value)} of offset {in_force.offset} are in force"
            reason = f"it names voters {{{_ids(named)}}}, but {expected}"
            agrees = named == in_force.value.voter_ids
            in_force.witnesses.append(Testimony(named, None, agrees, statement.finding("leader-voters", reason)))
            problem = problem if agrees else None
        if problem is not None:
            yield statement.finding(*problem)

    def _read_snapshot(self, snapshot: SnapshotStatement) -> Iterator[Finding]:
        problem = next(_snapshot_problems(snapshot), None)
        if problem is not None:
            if snapshot.voters is None or snapshot.voters.seen.value not in self._bad_sets:
                yield problem
        elif snapshot.offset == _BOOTSTRAP:
            self._voters = ValueInForce(_BOOTSTRAP, snapshot.voter_set)
            self._version = ValueInForce(_BOOTSTRAP, snapshot.kraft_version)
        elif self._compare_version(snapshot):
            yield from self._compare_voters(snapshot)

    def _compare_version(self, snapshot: SnapshotStatement) -> bool:
        """Use or compare a snapshot's level; return whether it is in force, or nothing else is known."""
        level, in_force = snapshot.kraft_version, self._version
        if not _is_trusted(in_force):
            self._version = ValueInForce(snapshot.offset, level)
            return True
        reason = f"kraft.version {level} at offset {snapshot.offset}, but the log has {in_force.value}"
        finding = snapshot.header.finding("snapshot-version", reason)
        in_force.witnesses.append(Testimony(level, level, level == in_force.value, finding))
        return level == in_force.value

    def _compare_voters(self, snapshot: SnapshotStatement) -> Iterator[Finding]:
        voters, in_force = snapshot.voter_set, self._voters
        if not _is_trusted(in_force):
            self._voters = ValueInForce(snapshot.offset, voters) if in_force is None else in_force
            if voters is not None and snapshot.voters is not None and in_force is None:
                yield from self._judge_ranges(snapshot.voters, voters)
            return
        reason = f"voters {_named(voters)} at offset {snapshot.offset}, but the log has {_named(in_force.value)}"
        if voters is not None and in_force.value is not None:
            reason += f" ({VoterDifference.between(in_force.value, voters)})"
        ids = frozenset[int]() if voters is None else voters.voter_ids
        finding = snapshot.header.finding("snapshot-voters", reason)
        in_force.witnesses.append(Testimony(ids, voters or VoterSet(), voters == in_force.value, finding))


def _last_sets(evidence: PartitionEvidence, statements: Iterable[Statement]) -> set[int]:
    """Return the offsets of Voters records, each in a batch of its own, that are followed by nothing of their epoch.

    One may follow another: a quorum can be rewritten again before it has had a leader.
    """
    batches = Counter(each.seen.batch_offset for each in statements)
    alone = {
        each.seen.offset: each.seen.epoch
        for each in statements
        if isinstance(each.value, VotersRecord) and batches[each.seen.batch_offset] == 1
    }
    ends: dict[int, int] = {}
    for file in evidence.segments:
        for seen in file.epochs:
            ends[seen.epoch] = max(seen.end_offset, ends.get(seen.epoch, 0))
    found = set()
    for epoch, end_offset in ends.items():
        offset = end_offset - 1
        while alone.get(offset) == epoch:
            found.add(offset)
            offset -= 1
    return found


def _is_trusted(in_force: ValueInForce[T] | None) -> TypeGuard[ValueInForce[T]]:
    return in_force is not None and not in_force.is_doubted


def _binds(in_force: ValueInForce[VoterSet | None] | None) -> TypeGuard[ValueInForce[VoterSet | None]]:
    """Whether a set restricts the next one: static voters, and those of the bootstrap snapshot, do not."""
    return _is_trusted(in_force) and in_force.value is not None and in_force.offset > _BOOTSTRAP


def _change_problem(before: ValueInForce[VoterSet | None] | None, after: VoterSet) -> tuple[str, str] | None:
    """Return the rule and the reason why a set may not follow another, or None."""
    if not _binds(before) or before.value is None:
        return None
    difference = VoterDifference.between(before.value, after)
    change = f"voters {_named(before.value)} of offset {before.offset} become {_named(after)} ({difference})"
    apart = disjoint_majorities(before.value, after)
    if apart is None:
        safety = "each majority of one shares a voter with each of the other"
    else:
        safety = "majorities {} and {} have no common voter".format(*_majorities_text(*apart))
    if not before.value.passes_kafka_change_guard(after):
        return "voters-accepted", f"{change}: Kafka would refuse it, and {safety}"
    if apart is not None:
        return "voters-overlap", f"{change}: Kafka accepts it, but {safety}"
    return ("voters-one-change", f"{change}: more than one change at once") if len(difference) > 1 else None


def _snapshot_problems(snapshot: SnapshotStatement) -> Iterator[Finding]:
    """Report problems of a snapshot that need no comparison."""
    if snapshot.version is not None and snapshot.kraft_version not in _LEVELS:
        reason = f"kraft.version {snapshot.kraft_version}, but only 0 and 1 are known"
        yield snapshot.version.finding("kraft-version-known", reason)
    if snapshot.voters is not None and isinstance(snapshot.voters.value, VotersRecord):
        problem = voters_problem(snapshot.voters.value)
        if problem is not None:
            yield snapshot.voters.finding("voters-schema", problem)
        if snapshot.kraft_version < 1:
            yield snapshot.voters.finding("voters-version", "a Voters record in a snapshot of kraft.version 0")


def _majorities_text(one: Iterable[ReplicaKey], other: Iterable[ReplicaKey]) -> list[str]:
    """Return two majorities as text: their ids, with directory ids if only those distinguish them."""
    is_one_id = {key.id for key in one} & {key.id for key in other}
    names = ((str(key) if is_one_id else str(key.id) for key in majority) for majority in (one, other))
    return ["{" + ", ".join(each) + "}" for each in names]


def _ids(ids: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(ids)))


def _named(voters: VoterSet | None) -> str:
    return "{}" if voters is None else f"{{{_ids(voters.voter_ids)}}}"
