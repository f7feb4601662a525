# SPDX-License-Identifier: Apache-2.0
"""``raftlog epochs``: who led from which offset on, by the logs of all given replicas."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from raftlog.tools.audit_verbs.quorum_files import make_quorum_parser, show_logs
from raftlog.tools.audit_verbs.two_looks import Reading
from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.history.timelines import EpochLead, epoch_timeline
from raftlog.tools.terminal.argument_parser import Parser
from raftlog.tools.terminal.json_lines import json_line, path_list_member
from raftlog.tools.terminal.table_lines import table, table_width
from raftlog.tools.terminal.text_width import output_width
from raftlog.tools.terminal.value_text import duration_text, ids_text, seen_text, time_text

_COLUMNS: Final = ("EPOCH", "LEADER", "FROM", "TO", "RECORDS", "START", "LASTED", "GRANTED BY", "OF VOTERS", "SEEN IN")
_NUMERIC: Final = frozenset({0, 1, 2, 3, 4, 6})
_BAR_WIDTH: Final = 20
_BLOCKS: Final = " ▏▎▍▌▋▊▉█"


def run(arguments: Sequence[str]) -> int:
    """Run ``raftlog epochs`` with what follows it on the command line, and return the exit code."""
    return show_logs(make_parser(), _lines, arguments)


def make_parser() -> Parser:
    """Return the parser of the verb's arguments."""
    return make_quorum_parser(
        "epochs", "Show who led from which offset on, for how long, who voted for it, and which files say so."
    )


def _lines(log: Sequence[PartitionEvidence], output_format: str, _: Reading) -> Iterable[str]:
    leads = epoch_timeline(log)
    if output_format == "text":
        return epoch_lines(leads, with_bars=sys.stdout.isatty())
    return (json_line("epoch", None, **lead.to_json(), **path_list_member("seen_in", lead.seen_in)) for lead in leads)


def epoch_lines(leads: Sequence[EpochLead], *, with_bars: bool) -> Iterator[str]:
    """Yield epochs as a table for the terminal.

    Args:
        leads: the epochs.
        with_bars: whether to draw the duration of each as a bar relative to the longest, if there is room.
    """
    if not leads:
        yield "The given files have no batch of a log."
        return
    longest = max(lead.duration_ms for lead in leads)
    rows = [_COLUMNS, *map(_row, leads)]
    drawn = [(*_COLUMNS, ""), *((*_row(lead), bar(lead.duration_ms, longest)) for lead in leads)]
    width = output_width()
    has_room = width is None or table_width(drawn) <= width
    yield from table(drawn if with_bars and has_room else rows, _NUMERIC)


def _row(lead: EpochLead) -> tuple[object, ...]:
    return (
        lead.epoch,
        "?" if lead.leader_id is None else lead.leader_id,
        lead.start_offset,
        lead.end_offset,
        "?" if lead.record_count is None else lead.record_count,
        time_text(lead.start_timestamp),
        duration_text(lead.duration_ms),
        ids_text(lead.granting_voters) or "?",
        ids_text(lead.voters) or "?",
        seen_text(lead.seen_in),
    )


def bar(value: int, greatest: int) -> str:
    """Draw a value as a bar of blocks, in eighths of a character; the greatest takes the full width.

    Args:
        value: from 0 to ``greatest``.
        greatest: 0 or more; 0 gives no bar.
    """
    eighths = value * _BAR_WIDTH * 8 // greatest if greatest else 0
    return (_BLOCKS[8] * (eighths // 8) + _BLOCKS[eighths % 8]).rstrip()
