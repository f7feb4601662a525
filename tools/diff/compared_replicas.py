# SPDX-License-Identifier: Apache-2.0
"""The replicas that ``raftlog diff`` compares, one side for each path; once more if a node has written meanwhile."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import attrs

from raftlog.errors import RaftLogError
from raftlog.file_paths import directory_of
from raftlog.records.rules import Severity
from raftlog.tools.audit_verbs.two_looks import Look, look_twice
from raftlog.tools.auditing.batch_reader import read_batches
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence, Place, SurveyTask, group_by_place
from raftlog.tools.auditing.history.divergence import Divergence, DivergenceKind, divergences, first_differing_block
from raftlog.tools.auditing.history.lost_branches import proof_of_branch, proofs_of
from raftlog.tools.auditing.history.verdict_words import proof_text
from raftlog.tools.auditing.judgement.replica_rules import describe
from raftlog.tools.auditing.run.looks import SurveyFiles, standing
from raftlog.tools.auditing.survey.tasks import find_tasks
from raftlog.tools.catalogue.audit_rules import UNREADABLE_RULES
from raftlog.tools.catalogue.findings import Finding

if TYPE_CHECKING:
    from raftlog.tools.diff.record_comparison import RecordComparison

_CHANGED: Final = "files changed while they were read"

SEVERITIES: Final = {
    DivergenceKind.PREFIX: Severity.HARMLESS,
    DivergenceKind.COMPACTION: Severity.HARMLESS,
    DivergenceKind.APART: Severity.SUSPICIOUS,
    DivergenceKind.TRUNCATED_TAIL: Severity.SUSPICIOUS,
    DivergenceKind.CONFLICTING_EPOCH: Severity.SUSPICIOUS,
    DivergenceKind.CONFLICTING_BATCH: Severity.DAMAGED,
    DivergenceKind.BIT_ROT: Severity.DAMAGED,
    DivergenceKind.HEADER_ROT: Severity.DAMAGED,
    DivergenceKind.LOST_RECORDS: Severity.DATA_LOSS,
}
"""The severity of each kind of difference, which determines the exit code."""


@attrs.frozen
class JudgedDivergence:
    """A difference of two replicas.

    Attributes:
        of: where they differ.
        severity: how serious it is.
        reason: its description.
    """

    of: Divergence
    severity: Severity
    reason: str

    @property
    def place(self) -> object:
        """What is the same when it is seen again: logs that grow differ up to another offset."""
        return self.severity, attrs.evolve(self.of, end_offset=0)


@attrs.frozen
class Pair:
    """Two replicas of a partition, and how they differ.

    Attributes:
        left, right: the replicas.
        differences: of their batches, by offset.
        records: which records differ; None if that was not asked, or could not be answered.
        unanswered: why that could not be answered; empty if it was not asked, or was answered.
    """

    left: PartitionEvidence
    right: PartitionEvidence
    differences: Sequence[JudgedDivergence]
    records: "RecordComparison | None" = None
    unanswered: str = ""

    @property
    def places(self) -> tuple[Place, Place]:
        """The directories of both."""
        return self.left.place, self.right.place

    @property
    def severity(self) -> Severity:
        """How serious the worst difference is. Records that differ in batches that do not are suspicious."""
        is_odd = not self.differences and self.records is not None and bool(self.records.differences)
        found = [*(each.severity for each in self.differences), *[Severity.SUSPICIOUS] * is_odd]
        return max(found, default=Severity.HARMLESS)

    @property
    def first_record_offset(self) -> int | None:
        """The first offset from which on records should be compared; None if there is none.

        There is none if nothing but compaction makes batches differ, or if both logs have no offset in common.
        """
        kinds = {each.of.kind for each in self.differences}
        if not kinds:
            return first_differing_block(self.left, self.right)
        if kinds == {DivergenceKind.COMPACTION} or DivergenceKind.APART in kinds:
            return None
        first = min(each.of.offset for each in self.differences)
        return max(first, self.left.start_offset, self.right.start_offset)

    def with_records(self) -> "Pair":
        """Return it with the records that differ, if these should be compared."""
        start = self.first_record_offset
        if start is None:
            return self
        from raftlog.tools.diff.record_comparison import compare_records  # Only now: numpy comes with it.

        try:
            return attrs.evolve(self, records=compare_records(self.left, self.right, start))
        except RaftLogError as error:
            return attrs.evolve(self, unanswered=str(error))

    def standing_since(self, before: Iterable["Pair"], changed: frozenset[Place]) -> "Pair":
        """Return it with only those differences above harmless that an earlier comparison found too.

        Args:
            before: what was compared earlier, with records.
            changed: directories that have changed since. Of these, nothing is said about records.
        """
        same = [pair for pair in before if pair.places == self.places]
        found = [each for pair in same for each in pair.differences]
        now = attrs.evolve(self, differences=standing(found, self.differences, lambda each: each.place))
        if changed.isdisjoint(self.places) and same:
            return attrs.evolve(now, records=same[0].records, unanswered=same[0].unanswered)
        is_asked = bool(now.differences) and now.first_record_offset is not None
        return attrs.evolve(now, unanswered=_CHANGED * is_asked)


@attrs.frozen
class ComparedPath:
    """What there is below one path.

    Attributes:
        partitions: those that have a log there.
        unread: findings about files that could not be read.
        problem: why nothing can be compared; None if something can.
    """

    partitions: Sequence[PartitionEvidence]
    unread: Sequence[Finding] = ()
    problem: str | None = None


@attrs.frozen
class Comparison:
    """The partitions below the first path, compared with those below each other path.

    Attributes:
        sides: the paths, in order.
        pairs: for each path but the first, what was compared; empty if a path has a problem.
        failures: findings about what could not be read a second time, so that the first comparison counts.
    """

    sides: Sequence[ComparedPath]
    pairs: Sequence[Sequence[Pair]]
    failures: Sequence[Finding] = ()


def compare_twice(paths: Sequence[str], survey: SurveyFiles) -> Comparison:
    """Compare the partitions below some paths; if files changed meanwhile, once more.

    Of differences above harmless, those are told that both comparisons have.

    Args:
        paths: at least two.
        survey: surveys files.

    Raises:
        MissingExtraError: a package of an extra is not installed.
    """
    listings: list[list[list[SurveyTask | Finding]]] = []
    compared: list[Comparison] = []

    def listed() -> Iterator[SurveyTask | Finding]:
        listings.append([list(find_tasks([path])) for path in paths])
        once = {_key(found): found for listing in listings[-1] for found in listing}  # Two paths may lead to one file.
        yield from once.values()

    def compare(look: Look) -> None:
        found = _comparison(paths, listings[-1], look)
        compared.append(attrs.evolve(found, pairs=[[pair.with_records() for pair in pairs] for pairs in found.pairs]))

    looks = look_twice(listed, survey, compare)
    problems = {found for listing in listings[0] for found in listing if isinstance(found, Finding)}
    failures = [problem for problem in looks.problems if problem not in problems]
    if not looks.changed:
        return attrs.evolve(compared[0], failures=failures)
    before, now = compared[0], _comparison(paths, listings[-1], looks.last)
    earlier = before.pairs or [()] * len(now.pairs)
    pairs = [
        [pair.standing_since(first, looks.changed) for pair in last]
        for first, last in zip(earlier, now.pairs, strict=False)
    ]
    return attrs.evolve(now, pairs=pairs)


def _key(found: SurveyTask | Finding) -> object:
    return found if isinstance(found, Finding) else found.path


def _comparison(paths: Sequence[str], listings: Sequence[Sequence[SurveyTask | Finding]], look: Look) -> Comparison:
    """Compare what a look has seen of each listing."""
    files = {file.task.path: file for file in look.files}
    sides = []
    for path, listing in zip(paths, listings, strict=True):
        seen = [files[found.path] for found in listing if isinstance(found, SurveyTask)]
        sides.append(_side(path, [found for found in listing if isinstance(found, Finding)], seen))
    if any(side.problem is not None for side in sides):
        return Comparison(sides, ())
    first, *others = sides
    return Comparison(sides, [list(_pairs(first.partitions, other.partitions)) for other in others])


def _side(path: str, problems: Sequence[Finding], files: Sequence[FileEvidence]) -> ComparedPath:
    partitions = [place for place in group_by_place(files) if place.segments]
    findings = [finding for place in partitions for file in place.files for finding in file.findings]
    failed = next((finding for finding in findings if finding.rule == "audit-failed"), None)
    if failed is not None:
        return ComparedPath((), problem=str(failed))
    unread = [finding for finding in findings if finding.rule in UNREADABLE_RULES]
    if unread and all(file.extent is None for place in partitions for file in place.files):
        return ComparedPath((), unread[1:], str(unread[0]))
    if not partitions:
        return ComparedPath((), (), str(problems[0]) if problems else f"{path}: it has no segment of a log")
    return ComparedPath(partitions, unread)


def _pairs(left: Sequence[PartitionEvidence], right: Sequence[PartitionEvidence]) -> Iterator[Pair]:
    """Yield what is compared: partitions of the same name; or, if each side has only one, these two."""
    if len(left) == len(right) == 1:
        yield _compared(left[0], right[0])
        return
    theirs = {evidence.place.topic_partition: evidence for evidence in right}
    for evidence in left:
        if evidence.place.topic_partition in theirs:
            yield _compared(evidence, theirs[evidence.place.topic_partition])


def _compared(left: PartitionEvidence, right: PartitionEvidence) -> Pair:
    return Pair(left, right, [_judged(each, left, right) for each in divergences(left, right, read_batches)])


def _judged(divergence: Divergence, left: PartitionEvidence, right: PartitionEvidence) -> JudgedDivergence:
    """Judge a difference: a fork is a loss if the side of the later epoch went on without what is proven."""
    severity, reason = SEVERITIES[divergence.kind], describe(divergence)
    if divergence.kind is DivergenceKind.CONFLICTING_EPOCH:
        is_left_later = left.last_epoch > right.last_epoch
        kept, newest = (right, divergence.left) if is_left_later else (left, divergence.right)
        proof = proof_of_branch(kept, divergence.offset, newest.epoch, proofs_of([left, right]))
        if proof is not None:
            severity = Severity.DATA_LOSS
            reason += f"; but {proof_text(proof)} proves that what {directory_of_log(kept)} has was committed"
    return JudgedDivergence(divergence, severity, reason)


def directory_of_log(evidence: PartitionEvidence) -> str:
    """Return the path of the directory of a log."""
    return directory_of(evidence.segments[0].task.path) or "."
