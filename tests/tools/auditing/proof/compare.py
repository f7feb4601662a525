# SPDX-License-Identifier: Apache-2.0
"""Compares the audit's judgement with the oracle's answer, and with what really happened."""

from collections.abc import Iterator, Sequence

import attrs

from raftlog.offsets import OffsetAndEpoch
from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.history.quorum_copies import copies_of
from raftlog.tools.auditing.history.replicas import replicas
from raftlog.tools.auditing.proof.copies import ActedOn
from raftlog.tools.auditing.proof.elections import electable
from raftlog.tools.auditing.proof.judging import Judgement, judge_quorum
from raftlog.tools.auditing.proof.verdict import QuorumVerdict
from tests.tools.auditing.proof.as_evidence import evidence_of
from tests.tools.auditing.proof.oracle import Log, answer, is_voter, of_voters, read
from tests.tools.auditing.proof.past import Files, Past, Record


def judged(past: Past) -> Judgement:
    """The judgement on what is left of a past."""
    evidence = [place for files in past.given for place in evidence_of(files)]
    return judge_quorum(copies_of(replicas(evidence), _Acts(past.given)), past.leader)


@attrs.frozen
class _Acts:
    """What the brokers of some directories have acted on, as their files would show it."""

    given: Sequence[Files]

    def __call__(self, log: PartitionEvidence, start: int, end: int) -> ActedOn | None:
        """Return the last record that was acted on."""
        files = next(each for each in self.given if each.path == log.place.log_directory)
        topics = frozenset[int]().union(*(each.topics for each in self.given))
        for offset in range(end - 1, max(start, files.start) - 1, -1):
            record = files.log[offset] if offset < len(files.log) else None
            if record is not None and (
                record.number in topics or (record.number % 2 and offset in files.registrations)
            ):
                return ActedOn(OffsetAndEpoch(offset + 1, record.epoch), files.path)
        return None


def disagreements(past: Past) -> Iterator[str]:
    """Where the audit and the oracle say different things about the same directories."""
    found, expected = judged(past), answer(past.given, past.leader)
    top = found.proven.epoch, found.proven.offset
    if top != expected.top:
        yield f"proven up to {top}, but {expected.top} by brute force"
    points = {(proof.point.epoch, proof.point.offset) for proof in found.proofs}
    if not points <= expected.proven:
        yield f"{points - expected.proven} are not proven"
    if (found.conflict is not None) != expected.is_conflict:
        yield f"two lineages: {found.conflict is not None}, but {expected.is_conflict} by brute force"
    able = {path for path, chance in found.chances.items() if chance is not None and chance.by_present}
    if able != expected.electable:
        yield f"electable {able}, but {expected.electable} by brute force"
    seed_end = None if found.seed is None else (found.seed.lineage.end.epoch, found.seed.lineage.end_offset)
    if seed_end != expected.seed_ends:
        yield f"the seed ends at {seed_end}, but at {expected.seed_ends} by brute force"
    if found.ruling.verdict.value != expected.verdict:
        yield f"{found.ruling.verdict.value} ({found.ruling.reason.value}), but {expected.verdict} by brute force"


def contradictions(past: Past) -> Iterator[str]:
    """Where the judgement contradicts what really happened, in a past in which all kept to the rules."""
    found = judged(past)
    if found.start:
        for each in electable(found.start, found.voters):
            if not each.lineage.contains(found.ruling.must_hold):
                yield f"{each.path} could be elected without {found.ruling.must_hold}"
    if not any(files.renamed for files in past.given):
        yield from (f"{name} is a true name" for copy in found.copies for name in copy.doubted.values())
    if not past.is_honest:
        return
    real = {files.path: files for files in past.final}
    everything = [read(files) for files in past.final]
    for proof in found.proofs:
        holders = [files for files in real.values() if _has(files.log, proof.point.epoch, proof.point.offset)]
        numbers = {each.number for files in holders[:1] for each in files.log[: proof.point.offset]}
        safe = numbers <= past.committed | past.cut_off or _always_elected_with(everything, numbers)
        if holders and not safe:
            yield f"{proof} is neither committed, nor on all that could be elected"
    ruling = found.ruling
    if ruling.verdict is QuorumVerdict.NOTHING_MISSING and found.seed is not None:
        kept = {each.number for each in real[found.seed.path].log}
        lost = past.committed - past.cut_off - kept
        if lost and not (ruling.rests_on_flush or ruling.rests_on_voters):
            yield f"records {sorted(lost)} were committed, and the seed {found.seed.path} lacks them"


def _has(log: Sequence[Record], epoch: int, end: int) -> bool:
    return len(log) >= end > 0 and log[end - 1].epoch == epoch


def _always_elected_with(everything: Sequence[Log], numbers: set[int]) -> bool:
    for candidate in everything:
        voters = candidate.voters_now()
        there = of_voters(everything, voters)
        votes = [each for each in there if candidate.end >= each.end]
        is_able = is_voter(candidate.files.key, voters) and 2 * len(votes) > len(voters)
        if is_able and not numbers <= {each.number for each in candidate.files.log}:
            return False
    return True
