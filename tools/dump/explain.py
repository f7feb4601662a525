# SPDX-License-Identifier: Apache-2.0
"""``raftlog explain``: explain a rule, or show the bytes of one batch, field by field."""

import argparse
import base64
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from raftlog.errors import RaftLogError, fresh_copy
from raftlog.file_paths import is_remote
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import Corruption, Piece, TornTail, ZeroPadding, split
from raftlog.records.batches.legacy import LegacyBatch
from raftlog.records.batches.record import Record
from raftlog.records.batches.window import ByteSource
from raftlog.records.rules import RULES, Rule
from raftlog.storage.reading.file_source import open_source
from raftlog.storage.reading.index_seek import IndexSeek
from raftlog.tools.catalogue.audit_rules import ASKED_FOR, CATALOGUE
from raftlog.tools.input.inputs import InputFile, find_files
from raftlog.tools.terminal.annotated_bytes import AnnotatedField, DescribeRecord, Description, annotate_batch
from raftlog.tools.terminal.argument_parser import Parser
from raftlog.tools.terminal.exit_codes import EXIT_CLEAN, EXIT_CODES_HELP, EXIT_DAMAGE, EXIT_ERROR, EXIT_SUSPICIOUS
from raftlog.tools.terminal.json_lines import path_member
from raftlog.tools.terminal.spool_option import add_spool_option
from raftlog.tools.terminal.standard_error import say
from raftlog.tools.terminal.verb_output import Fact, add_format_option, write_facts

_PROGRAM: Final = "raftlog explain"
_BYTES_IN_LINE: Final = 8
_SHOWN_BYTES: Final = 64
"""How many bytes of a long field are shown without ``--all``."""
_SHOWN_TEXT: Final = 400
_LARGEST_SHOWN: Final = 16 * 1024 * 1024
"""How many bytes are read of a possible batch whose CRC does not match."""


def run(arguments: Sequence[str]) -> int:
    """Run ``raftlog explain`` with what follows it on the command line, and return the exit code."""
    given = make_parser().parse_args(arguments)
    if given.offset is None and given.position is None:
        return _explain_rule(given)
    try:
        return _explain_place(given)
    except RaftLogError as error:
        say(str(error), _PROGRAM)
        return EXIT_ERROR


def make_parser() -> Parser:
    """Return the parser of the verb's arguments."""
    parser = Parser(
        prog=_PROGRAM,
        description="Explain a rule, or show the bytes of one batch, field by field.",
        epilog=f"Bytes that the batch's CRC covers are marked with a bar. {EXIT_CODES_HELP}",
    )
    parser.add_argument("what", metavar="RULE|FILE", help="a rule's id, as findings cite it; or a segment or snapshot")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--offset", type=int, metavar="O", help="show the batch that holds this offset")
    place.add_argument("--position", type=int, metavar="P", help="show the batch or damage at this byte position")
    parser.add_argument("--all", action="store_true", help="show all bytes, and all of long texts")
    parser.add_argument("--no-redact", action="store_true", help="show secrets of metadata and of Connect")
    add_format_option(parser)
    add_spool_option(parser)
    return parser


def _explain_rule(given: argparse.Namespace) -> int:
    rule = CATALOGUE.get(given.what)
    if rule is None:
        is_file = is_remote(given.what) or os.path.exists(given.what)  # noqa: PTH110
        hint = "use --offset or --position to select what to show of a file" if is_file else _nearest(given.what)
        say(f"no rule is called {given.what}; {hint}", _PROGRAM)
        return EXIT_ERROR
    write_facts(given.format, [_rule_fact(rule)])
    return EXIT_CLEAN


def _nearest(name: str) -> str:
    import difflib  # Rarely needed.

    near = difflib.get_close_matches(name, CATALOGUE, n=3)
    return f"there are {', '.join(near)}" if near else "'raftlog verify --rules' lists them"


def _rule_fact(rule: Rule) -> Fact:
    scope = "what bytes must keep" if rule.id in RULES else "what files must say together"
    lines = [
        f"{rule.id}: {rule.claim}",
        f"  severity  {rule.severity.value}",
        f"  broken by {rule.example}",
        f"  source    {rule.source} ({scope})",
        *([f"  only by   {ASKED_FOR[rule.id]}"] if rule.id in ASKED_FOR else []),
    ]
    members = {
        "id": rule.id,
        "severity": rule.severity.value,
        "claim": rule.claim,
        "example": rule.example,
        "source": rule.source,
        "only_by": ASKED_FOR.get(rule.id),
    }
    return Fact(lines, "rule", members)


def _explain_place(given: argparse.Namespace) -> int:
    file = next(iter(find_files([given.what], all_kinds=True)))
    if not isinstance(file, InputFile):
        raise fresh_copy(file)
    with open_source(file.path) as source:
        piece = _find(file, source, given)
        if piece is None:
            place = f"offset {given.offset}" if given.position is None else f"position {given.position}"
            say(f"{file.path}: no batch has {place}", _PROGRAM)
            return EXIT_ERROR
        damaged: set[str] = set()
        write_facts(given.format, _facts(file, source, piece, given, damaged.add))
    match piece:
        case TornTail() | ZeroPadding():
            return EXIT_SUSPICIOUS
        case Corruption():
            return EXIT_DAMAGE
    return EXIT_DAMAGE if damaged else EXIT_CLEAN


def _find(file: InputFile, source: ByteSource, given: argparse.Namespace) -> Piece | None:
    """Return the batch, or the damage, at the requested place."""
    if given.position is not None:
        return next((piece for piece in split(source) if 0 <= given.position - piece.position < piece.size_bytes), None)
    start = IndexSeek(file.path, file.base_offset).position_before(source, given.offset)
    for piece in split(source, start=start):
        batch = _batch_of(piece)
        if batch is not None and batch.base_offset <= given.offset <= batch.last_offset:
            return piece
    return None


def _batch_of(piece: Piece) -> RecordBatch | LegacyBatch | None:
    if isinstance(piece, Corruption):
        return piece.batch
    return piece if isinstance(piece, RecordBatch | LegacyBatch) else None


def _facts(
    file: InputFile, source: ByteSource, piece: Piece, given: argparse.Namespace, note_damage: Callable[[str], None]
) -> Iterator[Fact]:
    """Yield the facts about a piece, and pass the names of damaged fields to ``note_damage``."""
    yield _heading(file, piece)
    if isinstance(piece, ZeroPadding):
        return
    if isinstance(piece, LegacyBatch):
        yield _field_fact(
            AnnotatedField(piece.position, bytes(piece.buffer), "bytes", f"magic {piece.magic} message"), given
        )
        return
    data = bytes(source.read_at(piece.position, min(piece.size_bytes, _LARGEST_SHOWN)))
    describe = _describer(file, piece, redact=not given.no_redact)
    for field in annotate_batch(data, piece.position, describe):
        if field.is_damage:
            note_damage(field.name)
        yield _field_fact(field, given)


def _heading(file: InputFile, piece: Piece) -> Fact:
    batch = _batch_of(piece)
    what = {
        "position": piece.position,
        "size": piece.size_bytes,
        "base_offset": None if batch is None else batch.base_offset,
        "last_offset": None if batch is None else batch.last_offset,
        "problem": None if isinstance(piece, RecordBatch | LegacyBatch) else _problem(piece),
    }
    offsets = "" if batch is None else f", offsets {batch.base_offset} to {batch.last_offset}"
    problem = f": {what['problem']}" if what["problem"] else ""
    text = f"{file.path}, position {piece.position}, {piece.size_bytes} bytes{offsets}{problem}"
    return Fact(text, "batch", {**path_member("file", file.path), **what})


def _problem(piece: Corruption | TornTail | ZeroPadding) -> str:
    reason = "zeros to the end of the file" if isinstance(piece, ZeroPadding) else piece.reason
    return f"{reason} [{piece.rule}]"


def _describer(file: InputFile, piece: Piece, *, redact: bool) -> DescribeRecord:
    """Return the function that describes the messages in records of this file."""
    from raftlog.records.messages.releases import NEWEST_DIALECT
    from raftlog.tools.payloads.message_payloads import control_payload
    from raftlog.tools.payloads.topic_decoders import topic_decoder

    batch = _batch_of(piece)
    is_control = isinstance(batch, RecordBatch) and batch.is_control
    decoder = topic_decoder(file.topic, NEWEST_DIALECT, None, redact=redact)

    def describe(record: Record) -> Description:
        payload = control_payload(record) if is_control else decoder.decode(record)
        if payload.problem is not None:
            problem = f"undecodable: {payload.problem.reason}"
            return Description(problem, is_secret=payload.is_redacted, is_damage=True)
        head = "" if payload.type_name is None else f"{payload.type_name} "
        text = None if payload.value_json is None else f"{head}{payload.value_json}"
        return Description(text, is_secret=payload.is_redacted or (redact and payload.has_secret))

    return describe


def _field_fact(field: AnnotatedField, given: argparse.Namespace) -> Fact:
    shown = "(hidden: it holds a secret)" if field.is_secret else _hexadecimal(field.data, whole=given.all)
    meaning = field.meaning if given.all or len(field.meaning) <= _SHOWN_TEXT else f"{field.meaning[:_SHOWN_TEXT]} …"
    members = {
        "position": field.position,
        "size": len(field.data),
        "type": field.type,
        "name": field.name,
        "meaning": field.meaning,
        "depth": field.depth,
        "is_in_crc": field.is_in_crc,
        "is_decompressed": field.is_decompressed,
        "bytes_base64": None if field.is_secret else base64.b64encode(field.data).decode(),
    }
    return Fact(_lines(field, shown, meaning), "field", members)


def _lines(field: AnnotatedField, shown: str, meaning: str) -> Iterator[str]:
    bar = "│" if field.is_in_crc else " "
    place = f"{'+' if field.is_decompressed else ''}{field.position}"
    first, *rest = shown.split("\n")
    name = "  " * field.depth + field.name
    width = 3 * _BYTES_IN_LINE
    yield f"{place:>10} {bar} {first:{width}} {field.type:7} {name:26} {meaning}".rstrip()
    for line in rest:
        yield f"{'':10} {bar} {line}".rstrip()


def _hexadecimal(data: bytes, *, whole: bool) -> str:
    shown = data if whole or len(data) <= _SHOWN_BYTES else data[:_SHOWN_BYTES]
    lines = [shown[start : start + _BYTES_IN_LINE].hex(" ") for start in range(0, len(shown), _BYTES_IN_LINE)]
    if len(shown) < len(data):
        lines.append(f"… {len(data) - len(shown)} more bytes")
    return "\n".join(lines) or ""
