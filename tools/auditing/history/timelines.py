# SPDX-License-Identifier: Apache-2.0
"""Timelines of voters and leaders by offset, merged over the logs and snapshots of all given replicas.

A replica may have deleted the records before its newest snapshot, but an older snapshot or another replica may still
have them. A fact that replicas agree on is one row; if they disagree, each version is a row.
"""

import bisect
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs

from raftlog.file_paths import name_of
from raftlog.records.files.file_names import FileKind
from raftlog.records.files.quorum_state import UNKNOWN_ID
from raftlog.records.messages.control import KRaftVersionRecord, LeaderChangeMessage
from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.history.quorum_statements import (
    SnapshotStatement,
    Statement,
    log_statements,
    snapshot_statements,
    voters_of,
)
from raftlog.tools.auditing.history.replicas import log_end, quorum_state_of, static_voters
from raftlog.tools.auditing.history.voter_changes import VoterDifference
from raftlog.uuid_text import uuid_to_text
from raftlog.voters.history import BOOTSTRAP_OFFSET
from raftlog.voters.voter_set import VoterSet


@attrs.frozen
class VoterChange:
    """A voter set, and what it changed.

    Attributes:
        offset: of its record, from which on it is in force; of a set that only snapshots know, the last offset that
            the oldest of them covers: it is in force since then at the latest. -1 for the bootstrap snapshot.
        epoch: of that record.
        timestamp: of that record, in ms.
        kraft_version: in force at the offset.
        voters: the whole set. Of static voters, whom no record names, only the ids are known.
        added, removed, updated: ids, against the set before. A voter with another directory is removed and added, one
            with other endpoints or versions is updated. The first set adds all, unless what came before is forgotten.
        seen_in: paths of the files that say so, segments first.
    """

    offset: int
    epoch: int
    timestamp: int
    kraft_version: int
    voters: VoterSet
    added: tuple[int, ...]
    removed: tuple[int, ...]
    updated: tuple[int, ...]
    seen_in: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values by name, without ``seen_in``: how paths are written depends on the output."""
        numbers = attrs.asdict(self, recurse=False, filter=attrs.filters.include(int))
        return numbers | {
            "voters": voters_json(self.voters),
            "added": list(self.added),
            "removed": list(self.removed),
            "updated": list(self.updated),
        }


def voters_json(voters: VoterSet) -> list[dict[str, Any]]:
    """Return a voter set as JSON has it: an object a voter, by ascending id."""
    return [
        {
            "id": voter_id,
            "directory_id": node.voter_key.directory_id and uuid_to_text(node.voter_key.directory_id),
            "endpoints": [
                {"name": name, "host": address.host, "port": address.port}
                for name, address in node.listeners.listeners.items()
            ],
            "min_supported_version": node.supported_kraft_versions.minimum,
            "max_supported_version": node.supported_kraft_versions.maximum,
        }
        for voter_id, node in voters.voters.items()
    ]


@attrs.frozen
class EpochLead:
    """An epoch, and who led it.

    Attributes:
        epoch: the epoch.
        leader_id: who led it; None where neither its LeaderChange nor a quorum-state of that epoch is there.
        start_offset: of its first record, inclusive; where its LeaderChange is not there, of the first that is.
        end_offset: after its last record, exclusive.
        start_timestamp: of its first record that is there, in ms.
        duration_ms: until the next epoch began; of the last one, until its last record.
        record_count: how many records it has, from ``start_offset`` on; None of a log that may be compacted.
        voters: ids of the voters that its leader named.
        granting_voters: ids of those that voted for its leader.
        seen_in: paths of the files that have some of it.
    """

    epoch: int
    leader_id: int | None
    start_offset: int
    end_offset: int
    start_timestamp: int
    duration_ms: int
    record_count: int | None
    voters: tuple[int, ...]
    granting_voters: tuple[int, ...]
    seen_in: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values by name, without ``seen_in``: how paths are written depends on the output."""
        fields = attrs.asdict(self, recurse=False, filter=attrs.filters.exclude("seen_in"))
        return fields | {name: list(fields[name]) for name in ("voters", "granting_voters")}


# Voters


@attrs.define
class _Row:
    """A voter set that is being merged."""

    offset: int
    epoch: int
    timestamp: int
    kraft_version: int
    voters: VoterSet
    paths: list[str] = attrs.field(factory=list)

    def see(self, path: str) -> None:
        if path not in self.paths:
            self.paths.append(path)

    def change(self, before: VoterSet) -> VoterChange:
        difference = VoterDifference.between(before, self.voters)
        return VoterChange(
            self.offset,
            self.epoch,
            self.timestamp,
            self.kraft_version,
            self.voters,
            difference.added,
            difference.removed,
            difference.updated,
            _in_order(self.paths),
        )


def voter_timeline(replicas: Sequence[PartitionEvidence]) -> list[VoterChange]:
    """Return the voter sets of a log in the order of (epoch, offset); the last is the set in force.

    The set in force is that of the most up-to-date replica. A set that occurs only in a log that lost an election may
    come before it although its offset is higher.
    """
    rows = _VoterRows(replicas).merged()
    if not rows:
        return []
    is_known = rows[0].offset <= BOOTSTRAP_OFFSET or any(_starts_at_zero(replica) for replica in replicas)
    before = [VoterSet() if is_known else rows[0].voters, *(row.voters for row in rows)]
    return [row.change(voters) for voters, row in zip(before, rows, strict=False)]


class _VoterRows:
    """Merges the statements of replicas."""

    def __init__(self, replicas: Sequence[PartitionEvidence]) -> None:
        self._replicas = sorted(replicas, key=log_end, reverse=True)
        self._logs = {replica.place: log_statements(replica) for replica in self._replicas}
        self._snapshots = {replica.place: snapshot_statements(replica) for replica in self._replicas}
        self._levels = sorted(self._known_levels())
        self._records: dict[tuple[int, int, VoterSet], _Row] = {}
        self._others: list[_Row] = []
        self._row_of_path: dict[str, _Row] = {}

    def merged(self) -> list[_Row]:
        """Return the rows, in order."""
        for statement in self._in_logs():
            if (voters := voters_of(statement)) is not None:
                self._add_record(statement, voters)
        for snapshot in sorted(itertools.chain(*self._snapshots.values()), key=lambda each: each.snapshot_id.offset):
            if (voters := snapshot.voter_set) is not None:
                self._add_snapshot(snapshot, voters)
        self._add_static_voters()
        rows = sorted([*self._records.values(), *self._others], key=_row_order)
        last = next(filter(None, map(self._in_force, self._replicas)), None)
        return rows if last is None else [*(row for row in rows if row is not last), last]

    def _in_logs(self) -> Iterator[Statement]:
        return itertools.chain(*self._logs.values())

    def _known_levels(self) -> Iterator[tuple[int, int]]:
        """Yield offsets, each with the kraft.version in force from there on."""
        if any(map(_starts_at_zero, self._replicas)):
            yield BOOTSTRAP_OFFSET - 1, 0
        for statement in self._in_logs():
            if isinstance(statement.value, KRaftVersionRecord):
                yield statement.seen.offset, statement.value.kraft_version
        for snapshot in itertools.chain(*self._snapshots.values()):
            yield snapshot.offset, snapshot.kraft_version

    def _level_at(self, offset: int) -> int | None:
        index = bisect.bisect_left(self._levels, (offset + 1, -1 << 15))
        return self._levels[index - 1][1] if index else None

    def _add_record(self, statement: Statement, voters: VoterSet) -> None:
        seen = statement.seen
        # Only kraft.version 1 has such records, so it is 1 if nothing says otherwise.
        level = self._level_at(seen.offset)
        row = _Row(seen.offset, seen.epoch, seen.timestamp, 1 if level is None else level, voters)
        self._records.setdefault((seen.offset, seen.epoch, voters), row).see(statement.file.task.path)

    def _add_snapshot(self, snapshot: SnapshotStatement, voters: VoterSet) -> None:
        """Add a snapshot's voters: as another witness of a known set, or as a new row."""
        end = snapshot.snapshot_id
        earlier = [row for row in self._records.values() if row.offset < end.offset and row.epoch <= end.epoch]
        in_log = max(earlier, key=_row_order, default=None)
        known = max([*earlier, *self._others], key=_row_order, default=None)
        if known is None or known.voters != voters:
            known = in_log if in_log is not None and self._is_in_one_log(in_log.offset, end.offset) else None
        if known is None or known.voters != voters:
            known = _Row(snapshot.offset, end.epoch, snapshot.timestamp, snapshot.kraft_version, voters)
            self._others.append(known)
        known.see(snapshot.file.task.path)
        self._row_of_path[snapshot.file.task.path] = known

    def _is_in_one_log(self, offset: int, end_offset: int) -> bool:
        """Whether a log has all records from an offset up to an end."""
        return any(log.start_offset <= offset + 1 and end_offset <= log.end_offset for log in self._replicas)

    def _add_static_voters(self) -> None:
        """Add the voters in LeaderChanges as long as no record names voters, since nothing else does."""
        first = min((row.offset for row in (*self._records.values(), *self._others)), default=None)
        beside = {each.seen.batch_offset for each in self._in_logs() if voters_of(each) is not None}
        newest: _Row | None = None
        for statement in sorted(self._in_logs(), key=lambda each: (each.seen.epoch, each.seen.offset)):
            change, seen = statement.value, statement.seen
            if not isinstance(change, LeaderChangeMessage) or self._level_at(seen.offset) != 0:
                continue
            if seen.batch_offset in beside or (first is not None and first <= seen.offset):
                continue
            voters = static_voters(voter.id for voter in change.voters)
            if newest is None or newest.voters != voters:
                newest = _Row(seen.offset, seen.epoch, seen.timestamp, 0, voters)
                self._others.append(newest)
            newest.see(statement.file.task.path)

    def _in_force(self, replica: PartitionEvidence) -> _Row | None:
        """Return the row of the last set that a replica names, or None if it names none."""
        named = [(statement.seen, voters_of(statement)) for statement in self._logs[replica.place]]
        found = [
            (seen.offset, self._records[seen.offset, seen.epoch, voters])
            for seen, voters in named
            if voters is not None
        ]
        paths = [(snapshot.offset, snapshot.file.task.path) for snapshot in self._snapshots[replica.place]]
        found += [(offset, self._row_of_path[path]) for offset, path in paths if path in self._row_of_path]
        if not found:
            return None
        return max(found, key=lambda each: each[0])[1]


def _starts_at_zero(replica: PartitionEvidence) -> bool:
    return bool(replica.segments) and replica.start_offset == 0


def _in_order(paths: Iterable[str]) -> tuple[str, ...]:
    """Sort key that puts segments, which have the records themselves, before snapshots."""
    return tuple(sorted(paths, key=lambda path: (name_of(path).endswith(FileKind.SNAPSHOT.value), path)))


def _row_order(row: _Row) -> tuple[int, int]:
    return row.epoch, row.offset


# Epochs


@attrs.define
class _Lead:
    """An epoch that is being merged.

    Attributes:
        is_whole: whether its first record is known.
    """

    epoch: int
    start_offset: int
    end_offset: int
    start_timestamp: int
    last_timestamp: int
    is_whole: bool
    is_dense: bool
    leader_id: int | None = None
    voters: tuple[int, ...] = ()
    granting_voters: tuple[int, ...] = ()
    paths: list[str] = attrs.field(factory=list)

    def agrees(self, other: "_Lead") -> bool:
        """Whether two rows of one epoch may be the same."""
        is_one_leader = None in {self.leader_id, other.leader_id} or self.leader_id == other.leader_id
        both_whole = self.is_whole and other.is_whole
        return is_one_leader and (self.start_offset == other.start_offset or not both_whole)

    def merge(self, other: "_Lead") -> None:
        """Add what another row of the same epoch knows."""
        if (other.is_whole, -other.start_offset) > (self.is_whole, -self.start_offset):
            self.start_offset, self.start_timestamp = other.start_offset, other.start_timestamp
        if self.leader_id is None or not self.voters:
            self.leader_id = other.leader_id if self.leader_id is None else self.leader_id
            self.voters, self.granting_voters = other.voters, other.granting_voters
        self.is_whole |= other.is_whole
        self.end_offset = max(self.end_offset, other.end_offset)
        self.last_timestamp = max(self.last_timestamp, other.last_timestamp)
        self.paths += (path for path in other.paths if path not in self.paths)


def epoch_timeline(replicas: Sequence[PartitionEvidence]) -> list[EpochLead]:
    """Return the epochs of a log in order, merged over replicas; if two contradict each other, both."""
    by_epoch: dict[int, list[_Lead]] = {}
    for replica in replicas:
        for lead in _leads(replica):
            rows = by_epoch.setdefault(lead.epoch, [])
            same = next((row for row in rows if row.agrees(lead)), None)
            if same is None:
                rows.append(lead)
            else:
                same.merge(lead)
    epochs = sorted(by_epoch)
    starts = (by_epoch[epoch][0].start_timestamp for epoch in epochs[1:])
    return [
        _epoch_lead(row, next_start)
        for epoch, next_start in itertools.zip_longest(epochs, starts)
        for row in sorted(by_epoch[epoch], key=lambda row: row.start_offset)
    ]


def _epoch_lead(row: _Lead, next_start: int | None) -> EpochLead:
    ended = row.last_timestamp if next_start is None else next_start
    return EpochLead(
        row.epoch,
        row.leader_id,
        row.start_offset,
        row.end_offset,
        row.start_timestamp,
        max(0, ended - row.start_timestamp),
        row.end_offset - row.start_offset if row.is_dense else None,
        row.voters,
        row.granting_voters,
        _in_order(row.paths),
    )


def _leads(replica: PartitionEvidence) -> list[_Lead]:
    """Return the epochs that one replica's log has."""
    leads: dict[int, _Lead] = {}
    for file in replica.segments:
        last_timestamp = -1 if file.extent is None else file.extent.max_timestamp
        for seen in file.epochs:
            start, times = seen.start_offset, (seen.timestamp, max(seen.timestamp, last_timestamp))
            is_whole = seen.opens_with_leader
            lead = _Lead(seen.epoch, start, seen.end_offset, *times, is_whole, replica.is_raft, paths=[file.task.path])
            leads.setdefault(seen.epoch, lead).merge(lead)
    for statement in log_statements(replica):
        change, found = statement.value, leads.get(statement.seen.epoch)
        if isinstance(change, LeaderChangeMessage) and found is not None and found.leader_id is None:
            found.leader_id = change.leader_id
            found.voters = tuple(voter.id for voter in change.voters)
            found.granting_voters = tuple(voter.id for voter in change.granting_voters)
    state = quorum_state_of(replica.small_file(FileKind.QUORUM_STATE))
    if state is not None and state.leader_id != UNKNOWN_ID and state.leader_epoch in leads:
        lead = leads[state.leader_epoch]
        lead.leader_id = state.leader_id if lead.leader_id is None else lead.leader_id
    return list(leads.values())
