# SPDX-License-Identifier: Apache-2.0
"""Output of verbs that report facts: lines of text, or JSON lines with a ``kind``."""

import sys
from argparse import ArgumentParser
from collections.abc import Iterable
from typing import Any, Final

import attrs

from raftlog.tools.terminal.json_lines import json_line
from raftlog.tools.terminal.text_width import fit_lines

FORMATS: Final = ("text", "jsonl")
_OUTPUT_CHUNK_SIZE: Final = 64 * 1024


def add_format_option(parser: ArgumentParser) -> None:
    """Add the option that selects one of the two formats."""
    parser.add_argument("--format", choices=FORMATS, default=FORMATS[0], help="how to print (default: %(default)s)")


def _lines(text: str | Iterable[str]) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else tuple(text)


@attrs.frozen
class Fact:
    """One thing to report.

    Attributes:
        lines: for people: one line, or several.
        kind: for programs: what sort of fact it is.
        members: for programs: the fact's JSON values by name.
    """

    lines: tuple[str, ...] = attrs.field(converter=_lines)
    kind: str
    members: dict[str, Any]


def write_facts(output_format: str, facts: Iterable[Fact]) -> None:
    """Print facts on standard output one by one, so that they need not fit in memory; text lines by ``fit_lines``."""
    if output_format == "text":
        write_lines(fit_lines(line for fact in facts for line in fact.lines))
    else:
        write_text(json_line(fact.kind, None, **fact.members) for fact in facts)


def write_lines(lines: Iterable[str]) -> None:
    """Print lines, given without their ends, on standard output, as ``write_text`` does."""
    write_text(f"{line}\n" for line in lines)


def write_text(texts: Iterable[str]) -> None:
    """Print texts on standard output, many at a time; bytes of a file's name that are not UTF-8 are written unchanged.

    If producing a text raises an error, the texts before it are still printed.
    """
    waiting, size = [], 0
    try:
        for text in texts:
            waiting.append(text)
            size += len(text)
            if size >= _OUTPUT_CHUNK_SIZE:
                sys.stdout.buffer.write("".join(waiting).encode("utf-8", "surrogateescape"))
                waiting, size = [], 0
    finally:
        sys.stdout.buffer.write("".join(waiting).encode("utf-8", "surrogateescape"))
        sys.stdout.buffer.flush()
