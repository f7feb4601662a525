# SPDX-License-Identifier: Apache-2.0
"""``raftlog diff``: where two or more replicas diverge, and how."""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs

from raftlog.errors import DecodeError, RaftLogError, StorageError
from raftlog.file_paths import directory_of
from raftlog.records.batches.batch import RecordBatch, read_batch
from raftlog.records.limits import BATCH_OVERHEAD, LOG_OVERHEAD
from raftlog.records.rules import Severity
from raftlog.storage.reading.file_source import open_source
from raftlog.tools.auditing.batch_reader import read_batches
from raftlog.tools.auditing.evidence import PartitionEvidence, group_by_place
from raftlog.tools.auditing.history.divergence import Divergence, DivergenceKind, Side, divergences
from raftlog.tools.auditing.history.lost_branches import proof_of_branch
from raftlog.tools.auditing.history.verdict_words import proof_text
from raftlog.tools.auditing.judgement.replica_rules import describe
from raftlog.tools.auditing.survey.tasks import find_tasks
from raftlog.tools.catalogue.audit_rules import UNREADABLE_RULES
from raftlog.tools.catalogue.findings import Finding, Tally
from raftlog.tools.terminal.annotated_bytes import HEADER_FIELDS
from raftlog.tools.terminal.argument_parser import Parser
from raftlog.tools.terminal.audit_options import add_processes_option, prepare_to_survey
from raftlog.tools.terminal.exit_codes import EXIT_CODES_HELP, EXIT_ERROR
from raftlog.tools.terminal.json_lines import path_member
from raftlog.tools.terminal.spool_option import add_spool_option
from raftlog.tools.terminal.standard_error import say
from raftlog.tools.terminal.verb_output import Fact, add_format_option, write_facts

_PROGRAM: Final = "raftlog diff"
_FIELDS: Final = (*((start, name) for start, _, name in HEADER_FIELDS), (BATCH_OVERHEAD, "records"))
"""Where each field of a batch starts, and its name."""
_LARGEST_COMPARED: Final = 16 * 1024 * 1024
"""In bytes; a differing byte of larger batches is not searched for."""

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
class ByteDifference:
    """The first byte that differs in two batches.

    Attributes:
        index: of the byte, from the start of the batch.
        field: the field of the batch that contains it.
        left, right: the byte in each batch; None if the batch ends before it.
    """

    index: int
    field: str
    left: int | None
    right: int | None

    def __str__(self) -> str:
        left, right = ("nothing" if byte is None else f"{byte:#04x}" for byte in (self.left, self.right))
        return f"first differing byte: {self.index} of the batch ({self.field}), {left} and {right}"


def run(arguments: Sequence[str]) -> int:
    """Run ``raftlog diff`` with what follows it on the command line, and return the exit code."""
    parser = make_parser()
    given = parser.parse_args(arguments)
    if len(given.paths) < 2:
        parser.error("at least two paths are needed")
    try:
        prepare_to_survey()
        return _run(given)
    except RaftLogError as error:
        say(str(error), _PROGRAM)
        return EXIT_ERROR


def make_parser() -> Parser:
    """Return the parser of the verb's arguments."""
    parser = Parser(
        prog=_PROGRAM,
        description="Show where replicas of a partition diverge: the first offset and epoch that differ, and how.",
        epilog=f"The first path is compared with each other path. {EXIT_CODES_HELP} "
        "If one log is a prefix of the other, or compaction explains the difference, the result is clean.",
    )
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="a segment, a partition's directory or a log directory"
    )
    parser.add_argument("--all", action="store_true", help="show every difference, not only the first")
    add_format_option(parser)
    add_processes_option(parser)
    add_spool_option(parser)
    return parser


def _run(given: argparse.Namespace) -> int:
    unread: list[Finding] = []
    replicas = [_partitions(path, given.processes, unread) for path in given.paths]
    if any(found is None for found in replicas):
        return EXIT_ERROR
    first, *others = (found for found in replicas if found is not None)
    worst = Severity.HARMLESS
    for other in others:
        pairs = list(_pairs(first, other))
        if not pairs:
            say("the paths have no partition in common", _PROGRAM)
            return EXIT_ERROR
        for left, right in pairs:
            worst = max(worst, _compare(left, right, given))
    return Tally(Counter({worst: 1}), len(unread)).exit_code


def _partitions(path: str, processes: int, unread: list[Finding]) -> list[PartitionEvidence] | None:
    """Survey a path and return the partitions that have a log there; None if it has none that can be compared.

    The reason for None goes to standard error. So do findings about files that cannot be read, which are also added to
    ``unread``; the other files are still compared.
    """
    from raftlog.tools.auditing.run.engine import survey_all  # Only now: numpy comes with it.

    tasks, problems = [], []
    for task in find_tasks([path]):
        if isinstance(task, Finding):
            problems.append(task)
        else:
            tasks.append(task)
    found = [evidence for evidence in group_by_place(survey_all(tasks, processes)) if evidence.segments]
    failed = [each for place in found for file in place.files for each in file.findings if each.rule == "audit-failed"]
    if failed:
        say(str(failed[0]), _PROGRAM)
        return None
    files = [file for place in found for file in place.files]
    lost = [each for file in files for each in file.findings if each.rule in UNREADABLE_RULES]
    for finding in lost:
        say(str(finding), _PROGRAM)
    unread += lost
    if lost and all(file.extent is None for file in files):
        return None
    if not found:
        reason = str(problems[0]) if problems else f"{path}: it has no segment of a log"
        say(reason, _PROGRAM)
        return None
    return found


def _pairs(
    left: Sequence[PartitionEvidence], right: Sequence[PartitionEvidence]
) -> Iterator[tuple[PartitionEvidence, PartitionEvidence]]:
    """Yield the pairs to compare: partitions of the same name; or, if each side has only one, these two."""
    if len(left) == len(right) == 1:
        yield left[0], right[0]
        return
    theirs = {evidence.place.topic_partition: evidence for evidence in right}
    for evidence in left:
        if evidence.place.topic_partition in theirs:
            yield evidence, theirs[evidence.place.topic_partition]


def _compare(left: PartitionEvidence, right: PartitionEvidence, given: argparse.Namespace) -> Severity:
    """Write how two replicas differ, and return the worst severity of the differences."""
    found = [_verdict(divergence, left, right) for divergence in divergences(left, right, read_batches)]
    write_facts(given.format, list(_facts(left, right, found, found if given.all else found[:1])))
    return max((each.severity for each in found), default=Severity.HARMLESS)


@attrs.frozen
class _Judged:
    """A difference, how serious it is, and its description."""

    of: Divergence
    severity: Severity
    reason: str


def _verdict(divergence: Divergence, left: PartitionEvidence, right: PartitionEvidence) -> _Judged:
    """Judge a difference: a fork is a loss if the side of the later epoch went on without what is proven."""
    severity, reason = SEVERITIES[divergence.kind], describe(divergence)
    if divergence.kind is DivergenceKind.CONFLICTING_EPOCH:
        is_left_later = left.last_epoch > right.last_epoch
        kept, newest = (right, divergence.left) if is_left_later else (left, divergence.right)
        proof = proof_of_branch(kept, divergence.offset, newest.epoch, [left, right])
        if proof is not None:
            severity = Severity.DATA_LOSS
            reason += f"; but {proof_text(proof)} proves that what {_directory(kept)} has was committed"
    return _Judged(divergence, severity, reason)


def _facts(
    left: PartitionEvidence, right: PartitionEvidence, found: Sequence[_Judged], shown: Sequence[_Judged]
) -> Iterator[Fact]:
    common = {
        **path_member("topic", left.place.topic),
        "partition": left.place.partition,
        **path_member("left", _directory(left)),
        **path_member("right", _directory(right)),
    }
    ends = [
        f"{_directory(side)}: offsets {side.start_offset} to {side.end_offset}, last epoch {side.last_epoch}"
        for side in (left, right)
    ]
    verdict = "equal" if not found else f"{len(found)} differences" if len(found) > 1 else "1 difference"
    more = "; --all shows the rest" if len(found) > len(shown) else ""
    yield Fact([*ends, f"  {verdict}{more}"], "comparison", {**common, "divergences": len(found)})
    for judged in shown:
        yield _fact(judged, common)


def _fact(judged: _Judged, common: dict[str, Any]) -> Fact:
    divergence = judged.of
    difference = _byte_difference(divergence)
    epoch = "" if divergence.epoch is None else f", epoch {divergence.epoch}"
    lines = [f"  {divergence.kind.value} at offset {divergence.offset}{epoch}: {judged.reason}"]
    for name, side in (("left", divergence.left), ("right", divergence.right)):
        if side.position is not None:
            lines.append(f"    {name}: position {side.position} of {side.path}")
    if difference is not None:
        lines.append(f"    {difference}")
    members = {
        **common,
        "divergence": divergence.kind.value,
        "severity": judged.severity.value,
        "offset": divergence.offset,
        "end_offset": divergence.end_offset,
        "epoch": divergence.epoch,
        "reason": judged.reason,
        "left_batch": _side_json(divergence.left),
        "right_batch": _side_json(divergence.right),
        "first_differing_byte": None if difference is None else attrs.asdict(difference),
    }
    return Fact(lines, "divergence", members)


def _side_json(side: Side) -> dict[str, Any] | None:
    if side.position is None:
        return None
    return path_member("path", side.path) | attrs.asdict(side, filter=attrs.filters.exclude("path"))


def _directory(evidence: PartitionEvidence) -> str:
    return directory_of(evidence.segments[0].task.path) or "."


def _byte_difference(divergence: Divergence) -> ByteDifference | None:
    """Return the first byte that differs in the two batches at a divergence; None if either log has no batch there."""
    batches = [_read(side) for side in (divergence.left, divergence.right)]
    if batches[0] is None or batches[1] is None:
        return None
    left, right = (bytes(batch.buffer) for batch in batches if batch is not None)
    size = min(len(left), len(right))
    index = next((index for index in range(size) if left[index] != right[index]), size)
    if index == len(left) == len(right):
        return None
    field = next(name for start, name in reversed(_FIELDS) if start <= index)
    return ByteDifference(index, field, *(data[index] if index < len(data) else None for data in (left, right)))


def _read(side: Side) -> RecordBatch | None:
    if side.position is None:
        return None
    try:
        with open_source(side.path) as source:
            size = int.from_bytes(source.read_at(side.position, LOG_OVERHEAD)[8:], "big") + LOG_OVERHEAD
            return read_batch(source.read_at(side.position, min(size, _LARGEST_COMPARED)))[0]
    except (StorageError, DecodeError):
        return None
