# SPDX-License-Identifier: Apache-2.0
"""``raftlog diff``: where two or more replicas diverge, how, and which records differ."""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs

from raftlog.errors import DecodeError, RaftLogError, StorageError
from raftlog.records.batches.batch import RecordBatch, read_batch
from raftlog.records.limits import BATCH_OVERHEAD, LOG_OVERHEAD
from raftlog.records.rules import Severity
from raftlog.storage.reading.file_source import open_source
from raftlog.tools.auditing.history.divergence import Divergence, Side
from raftlog.tools.catalogue.findings import Tally
from raftlog.tools.diff.compared_replicas import JudgedDivergence, Pair, compare_twice, directory_of_log
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
        description="Show where replicas of a partition diverge: the first offset and epoch that differ, and how, and"
        " which records differ.",
        epilog=f"The first path is compared with each other path. {EXIT_CODES_HELP} "
        "If one log is a prefix of the other, or compaction explains the difference, the result is clean.",
    )
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="a segment, a partition's directory or a log directory"
    )
    parser.add_argument(
        "--all", action="store_true", help="show every difference, not only the first one; and every range of records"
    )
    add_format_option(parser)
    add_processes_option(parser)
    add_spool_option(parser)
    return parser


def _run(given: argparse.Namespace) -> int:
    from raftlog.tools.auditing.run.engine import survey_all  # Only now: numpy comes with it.

    compared = compare_twice(given.paths, lambda tasks: survey_all(tasks, given.processes))
    unread = [*compared.failures, *(finding for side in compared.sides for finding in side.unread)]
    for reason in (*unread, *(side.problem for side in compared.sides if side.problem is not None)):
        say(str(reason), _PROGRAM)
    if any(side.problem is not None for side in compared.sides):
        return EXIT_ERROR
    worst = Severity.HARMLESS
    for pairs in compared.pairs:
        if not pairs:
            say("the paths have no partition in common", _PROGRAM)
            return EXIT_ERROR
        for pair in pairs:
            write_facts(given.format, list(_facts(pair, shows_all=given.all)))
            worst = max(worst, pair.severity)
    return Tally(Counter({worst: 1}), len(unread)).exit_code


def _facts(pair: Pair, *, shows_all: bool) -> Iterator[Fact]:
    left, right, found = pair.left, pair.right, pair.differences
    common = {
        **path_member("topic", left.place.topic),
        "partition": left.place.partition,
        **path_member("left", directory_of_log(left)),
        **path_member("right", directory_of_log(right)),
    }
    ends = [
        f"{directory_of_log(side)}: offsets {side.start_offset} to {side.end_offset}, last epoch {side.last_epoch}"
        for side in (left, right)
    ]
    shown = found if shows_all else found[:1]
    verdict = "equal" if not found else f"{len(found)} differences" if len(found) > 1 else "1 difference"
    more = "; --all shows the rest" if len(found) > len(shown) else ""
    yield Fact([*ends, f"  {verdict}{more}"], "comparison", {**common, "divergences": len(found)})
    for judged in shown:
        yield _fact(judged, common)
    if pair.records is not None or pair.unanswered:
        from raftlog.tools.diff.record_lines import record_facts

        yield from record_facts(pair, common, shows_all=shows_all)


def _fact(judged: JudgedDivergence, common: dict[str, Any]) -> Fact:
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
