# SPDX-License-Identifier: Apache-2.0
"""Collects what one raft log says about its quorum: the control records of its segments, and its snapshots."""

import functools
from collections.abc import Iterator
from typing import Final

import attrs

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.messages.control import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotHeaderRecord,
    VotersRecord,
)
from raftlog.records.messages.voters import voter_set, voters_problem
from raftlog.records.rules import Severity
from raftlog.tools.auditing.evidence import ControlSeen, FileEvidence, PartitionEvidence
from raftlog.tools.catalogue.findings import Finding
from raftlog.voters.voter_set import VoterSet

_USUAL_SETS: Final = 64
_USUAL_VOTERS: Final = 20
_JUMP_RULES: Final = frozenset({"offset-gap", "segment-reach"})


@attrs.frozen
class Statement:
    """A control record about the quorum.

    Attributes:
        file: the file with the record.
        seen: the record's place in the file; in a snapshot, offsets are relative to the snapshot.
        value: the record.
    """

    file: FileEvidence
    seen: ControlSeen
    value: LeaderChangeMessage | KRaftVersionRecord | VotersRecord | SnapshotHeaderRecord

    def finding(self, rule: str, reason: str) -> Finding:
        """Return a finding about the batch of the record."""
        seen = self.seen
        return Finding(
            self.file.task.path, rule, reason, position=seen.position, offset=seen.batch_offset, epoch=seen.epoch
        )


@attrs.frozen
class SnapshotStatement:
    """A snapshot's statement about the quorum at its end.

    Attributes:
        file: the snapshot.
        snapshot_id: by its name.
        header: its first record.
        version, voters: its records of them; None if it has none.
    """

    file: FileEvidence
    snapshot_id: OffsetAndEpoch
    header: Statement
    version: Statement | None = None
    voters: Statement | None = None

    @property
    def offset(self) -> int:
        """The last offset that it covers, inclusive; -1 for the bootstrap snapshot."""
        return self.snapshot_id.offset - 1

    @property
    def timestamp(self) -> int:
        """The last contained timestamp, in ms."""
        value = self.header.value
        return value.last_contained_log_timestamp if isinstance(value, SnapshotHeaderRecord) else -1

    @property
    def kraft_version(self) -> int:
        """Its kraft.version; 0 if it names none."""
        value = self.version.value if self.version else None
        return value.kraft_version if isinstance(value, KRaftVersionRecord) else 0

    @property
    def voter_set(self) -> VoterSet | None:
        """Its voter set, or None."""
        return None if self.voters is None else voters_of(self.voters)


def voters_of(statement: Statement) -> VoterSet | None:
    """Return the voter set of a VotersRecord; None for other records, and for a set that is not valid."""
    record = statement.value
    if not isinstance(record, VotersRecord):
        return None
    return _valid_voter_set(record) if len(record.voters) > _USUAL_VOTERS else _usual_voter_set(record)


def _valid_voter_set(record: VotersRecord) -> VoterSet | None:
    return voter_set(record) if voters_problem(record) is None else None


_usual_voter_set: Final = functools.lru_cache(_USUAL_SETS)(_valid_voter_set)
"""Remembers the sets of a log, which each rule about voters asks for again; large ones would take too much memory."""


def log_statements(evidence: PartitionEvidence) -> list[Statement]:
    """Return the statements of a log's segments, by ascending offset; of two records at one offset, the first."""
    by_offset: dict[int, Statement] = {}
    for file in evidence.segments:
        for statement in _statements(file):
            by_offset.setdefault(statement.seen.offset, statement)
    return [by_offset[offset] for offset in sorted(by_offset)]


def snapshot_statements(evidence: PartitionEvidence) -> list[SnapshotStatement]:
    """Return the statements of a log's snapshots whose first batch is sound, by ascending id."""
    found = []
    for snapshot_id, file in evidence.snapshots_by_id.items():
        by_type = {type(statement.value): statement for statement in _statements(file)}
        header = by_type.get(SnapshotHeaderRecord)
        if header is not None and not is_damaged(header):
            version, voters = by_type.get(KRaftVersionRecord), by_type.get(VotersRecord)
            found.append(SnapshotStatement(file, snapshot_id, header, version, voters))
    return found


def _statements(file: FileEvidence) -> Iterator[Statement]:
    for seen, value in file.control_values():
        if isinstance(value, LeaderChangeMessage | KRaftVersionRecord | VotersRecord | SnapshotHeaderRecord):
            yield Statement(file, seen, value)


def gaps(evidence: PartitionEvidence) -> list[int]:
    """Return the offsets before which records may be missing, so that earlier statements no longer apply.

    A log that starts above 0 has one before its start, every log has one at its end, and each damaged range has two:
    its earliest possible start and its latest possible end.
    """
    found = {evidence.start_offset - 1} if evidence.start_offset > 0 else set()
    end_offset = evidence.start_offset
    for file in evidence.segments:
        base_offset = file.task.base_offset or 0
        if base_offset > end_offset:
            found |= {end_offset, base_offset}
        if file.extent is not None:
            end_offset = max(end_offset, file.extent.end_offset)
        for finding in _damage(file):
            before, after = _around(file, finding.position or 0)
            found |= {before if finding.offset is None else max(before, finding.offset), after}
    return sorted(found | {evidence.end_offset})


def cut_offset(evidence: PartitionEvidence) -> int | None:
    """Return the first offset whose bytes are damaged or cannot be read; None if there is none.

    At the next startup, Kafka truncates the log there, and raftlog does not let the replica vote.

    Source: LogLoader#recoverLog.
    """
    for file in evidence.segments:
        for finding in sorted(_damaged_bytes(file), key=lambda each: each.position or 0):
            before, _ = _around(file, finding.position or 0)
            return before if finding.offset is None else max(before, finding.offset)
    return None


def hole_offset(evidence: PartitionEvidence) -> int | None:
    """Return the first offset that is missing or misplaced without damaged bytes: unnoticed at startup; or None."""
    end_offset: int | None = None
    for file in evidence.segments:
        base_offset = file.task.base_offset or 0
        if end_offset is not None and base_offset > end_offset:
            return end_offset
        if file.misplaced_from is not None:
            return file.misplaced_from
        end_offset = max(end_offset or 0, base_offset if file.extent is None else file.extent.end_offset)
    return None


def has_jump(evidence: PartitionEvidence) -> bool:
    """Whether offsets jump within a segment: those after it may be rotten, unless records before them are missing."""
    return any(each.rule in _JUMP_RULES for file in evidence.segments for each in _damage(file))


def is_damaged(statement: Statement) -> bool:
    """Whether something else in its batch is damaged, so that a record may be missing there."""
    return any(statement.seen.position == (finding.position or 0) for finding in _damage(statement.file))


def _damage(file: FileEvidence) -> list[Finding]:
    return [each for each in file.findings if each.path == file.task.path and each.severity >= Severity.DAMAGED]


def _damaged_bytes(file: FileEvidence) -> list[Finding]:
    """Return the findings about ranges of bytes, except a torn or padded tail, which nothing follows."""
    serious = (*_damage(file), *(each for each in file.findings if each.rule == "file-unreadable"))
    return [each for each in serious if each.path == file.task.path and each.size_bytes]


def _around(file: FileEvidence, position: int) -> tuple[int, int]:
    """Return the end of the known offsets before a position of a segment, and the start of those after it."""
    known = [(seen.position, seen.offset) for seen in file.controls]
    known += [(epoch.position, epoch.start_offset) for epoch in file.epochs]
    known += [(block.position, block.start_offset) for block in file.blocks]
    base_offset = file.task.base_offset or 0
    end_offset = base_offset if file.extent is None else file.extent.end_offset
    before = max((offset + 1 for at, offset in known if at < position), default=base_offset)
    after = min((offset for at, offset in known if at > position), default=end_offset)
    return before, after
