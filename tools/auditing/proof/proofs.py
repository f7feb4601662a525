# SPDX-License-Identifier: Apache-2.0
"""Which records are proven to be committed, and by which files. ``docs/what-proves-what.md`` explains each rule."""

import enum
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import attrs

from raftlog.offsets import OffsetAndEpoch
from raftlog.tools.auditing.proof.copies import Copy, VotersFrom, latest_epoch, of_voters
from raftlog.tools.auditing.proof.lineage import Lineage, completed, parting
from raftlog.voters.voter_set import ReplicaKey, VoterSet

_REWRITTEN: Final = 2
"""So many voters that come or go at once; a leader adds or removes one."""


class ProofKind(enum.Enum):
    """Why records are proven to be committed."""

    SNAPSHOT = "snapshot"
    MAJORITY = "majority"
    VOTERS_RECORD = "voters-record"
    BROKER = "broker"


@attrs.frozen
class Proof:
    """All records below a point are proven to be committed.

    Attributes:
        point: end of the proven records, exclusive, with the epoch of the last one.
        kind: why.
        paths: of the files that prove it: a snapshot, the log with the next voter set, the log directories of a
            majority, or a file of a broker that acted on the last of the records.
        lineage: of the proven records, as far as it is known.
        voters: of whom a majority has the records, for ``MAJORITY``; else empty.
        holders: how many of them have the records.
    """

    point: OffsetAndEpoch
    kind: ProofKind
    paths: tuple[str, ...]
    lineage: Lineage
    voters: VoterSet = attrs.field(factory=VoterSet)
    holders: int = 0


def proofs(copies: Sequence[Copy]) -> list[Proof]:
    """Return what is proven to be committed, by the most advanced proof first: by epoch, then by offset.

    Args:
        copies: directories of stopped nodes of one quorum.
    """
    known = [copy.lineage for copy in copies]
    found = [*_by_snapshots(copies), *_by_voters_records(copies), *_by_majorities(copies), *_by_brokers(copies)]
    completions: dict[Lineage, Lineage] = {}
    for proof in found:
        if proof.lineage not in completions:
            completions[proof.lineage] = completed(proof.lineage, known)
    whole = (attrs.evolve(proof, lineage=completions[proof.lineage]) for proof in found)
    kinds = list(ProofKind)
    return sorted(whole, key=lambda each: (each.point, -kinds.index(each.kind), each.paths), reverse=True)


def conflicting(found: Sequence[Proof]) -> tuple[Proof, Proof] | None:
    """Return the most advanced proof, with the most advanced one of another lineage; None if all are of one.

    That a leader dropped what was committed is the state after a rewrite of the voters by hand. What is of the first
    one's lineage is of one lineage with all that is.
    """
    seen: set[Lineage] = set()
    for other in found[1:]:
        if other.lineage not in seen and parting(found[0].lineage, other.lineage) is not None:
            return found[0], other
        seen.add(other.lineage)
    return None


def _by_snapshots(copies: Iterable[Copy]) -> Iterator[Proof]:
    """A snapshot is made of committed records only; the bootstrap snapshot stands for none.

    A snapshot proves nothing if the log beside it has another epoch at its last record: one of both is wrong.
    """
    for copy in copies:
        for snapshot_id, path in copy.snapshots.items():
            beside = copy.lineage.epoch_at(snapshot_id.offset - 1)
            if snapshot_id.offset > 0 and beside in {None, snapshot_id.epoch}:
                yield Proof(snapshot_id, ProofKind.SNAPSHOT, (path,), Lineage.of_point(snapshot_id))


def _by_voters_records(copies: Iterable[Copy]) -> Iterator[Proof]:
    """A leader adds or removes a voter only after the voter set before is committed."""
    for copy in copies:
        records = [each for each in copy.voters if each.is_record and each.offset >= 0]
        for before, after in itertools.pairwise(records):
            epoch = copy.lineage.epoch_at(before.offset)
            if _is_one_change(before, after) and epoch is not None:
                point = OffsetAndEpoch(before.offset + 1, epoch)
                yield Proof(point, ProofKind.VOTERS_RECORD, (after.path,), copy.lineage.cut(point.offset))


def _is_one_change(before: VotersFrom, after: VotersFrom) -> bool:
    """Whether a leader has added or removed one voter, which waits; an update or a rewrite by hand does not."""
    return not after.may_be_forced and len(before.voters.voter_keys ^ after.voters.voter_keys) == 1


def _by_majorities(copies: Sequence[Copy]) -> Iterator[Proof]:
    """What a majority of the voters in force has, up to a record of the latest epoch, no later leader lacks.

    Where voters were rewritten, later leaders were elected by others: their epochs say nothing of what those had who
    know nothing of it.
    """
    yield from _by_majorities_of(copies)
    for end, keys in sorted(set(_rewritings(copies)), key=lambda each: each[0]):
        yield from _by_majorities_of([copy for copy in copies if not _follows(copy, end, keys)])


def _follows(copy: Copy, end: OffsetAndEpoch, keys: frozenset[ReplicaKey]) -> bool:
    """Whether a log has the record before an end, by which voters were rewritten, or continues after it.

    A record of the same epoch may be another one: a tool writes in the last epoch of the log that it has.
    """
    if copy.lineage.start_offset >= end.offset:
        return copy.lineage.contains(end)
    return any(
        each.is_record and each.offset == end.offset - 1 and each.voters.voter_keys == keys for each in copy.voters
    )


def _rewritings(copies: Iterable[Copy]) -> Iterator[tuple[OffsetAndEpoch, frozenset[ReplicaKey]]]:
    """Yield the ends of records that name voters as no leader may, and whom: two or more come or go at once."""
    for copy in copies:
        for before, after in itertools.pairwise(copy.voters):
            one, other = before.voters.voter_keys, after.voters.voter_keys
            epoch = copy.lineage.epoch_at(after.offset)
            is_by_leader = not after.is_record or after.may_be_forced or len(one ^ other) < _REWRITTEN
            is_known = len(one) > 0 and all(key.directory_id is not None for key in one)
            has_gap = copy.lineage.start_offset > before.offset + 1
            if is_known and epoch is not None and not (is_by_leader or has_gap):
                yield OffsetAndEpoch(after.offset + 1, epoch), other


def _by_majorities_of(copies: Sequence[Copy]) -> Iterator[Proof]:
    latest = latest_epoch(copies)
    for copy in copies:
        lineage = copy.lineage
        if lineage.end.epoch != latest:
            continue
        ends = {each.offset for each in copy.voters if each.is_record}
        ends |= {other.lineage.end_offset for other in copies}
        for end_offset in sorted(ends, reverse=True):
            proof = _majority_at(end_offset, latest, copy, copies)
            if proof is not None:
                yield proof  # It proves what is below, too.
                break


def _majority_at(end_offset: int, latest: int, copy: Copy, copies: Sequence[Copy]) -> Proof | None:
    """Return the proof by the voters in force below an offset of a log; None if no majority of them has it."""
    point = OffsetAndEpoch(end_offset, latest)
    if end_offset <= 0 or copy.lineage.epoch_at(end_offset - 1) != latest:
        return None
    named = copy.voters_before(end_offset)
    if named is None or not len(named.voters):
        return None
    holders = [each for each in of_voters(copies, named.voters) if each.lineage.contains(point)]
    if len(holders) < len(named.voters):  # An absent voter may have led later, by a vote that its file has forgotten.
        holders = [each for each in holders if each.state_epoch is not None]
    if len(holders) < named.voters.majority_size:
        return None
    paths = tuple(sorted(each.path for each in holders))
    return Proof(point, ProofKind.MAJORITY, paths, copy.lineage.cut(end_offset), named.voters, len(holders))


def _by_brokers(copies: Iterable[Copy]) -> Iterator[Proof]:
    """A broker acts on a record only after it is committed."""
    for copy in copies:
        if copy.acted_on is not None:
            point = copy.acted_on.point
            yield Proof(point, ProofKind.BROKER, (copy.acted_on.path,), copy.lineage.cut(point.offset))
