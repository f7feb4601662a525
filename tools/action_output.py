# SPDX-License-Identifier: Apache-2.0
"""What ``raftlog log`` prints: lines of text, or JSON lines with a ``kind``."""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any, Final

import attrs

FORMATS: Final = ("text", "jsonl")


def add_format_option(parser: ArgumentParser) -> None:
    """Let the user choose between the two forms."""
    parser.add_argument("--format", choices=FORMATS, default=FORMATS[0], help="how to print (default: %(default)s)")


@attrs.frozen
class Fact:
    """One thing to tell.

    Attributes:
        text: for people.
        kind: what sort of thing it is, for programs.
        members: the thing itself, for programs: JSON values by name.
    """

    text: str
    kind: str
    members: dict[str, Any]


def tell(output_format: str, facts: Sequence[Fact]) -> None:
    """Print facts on standard output, a line each."""
    lines = [fact.text if output_format == "text" else _json_line(fact) for fact in facts]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def _json_line(fact: Fact) -> str:
    # A name of a file that is no Unicode is escaped, like all that is not ASCII.
    return json.dumps({"kind": fact.kind, **fact.members}, separators=(",", ":"))
