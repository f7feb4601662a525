# SPDX-License-Identifier: Apache-2.0
"""``raftlog log truncate``: remove the end of the log.

It also ends a quarantine: damaged bytes are set aside, under a name that nothing reads, and the log ends before them.
This may give up acknowledged records, which is why it needs ``--yes``.
"""

import argparse
from contextlib import closing

from raftlog.errors import OffsetOutOfRangeError, TruncationBelowHighWatermarkError
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.storage.log.file_log import FileLog
from raftlog.tools.log.opened_log import OpenedLog, opened_local_log, opened_log
from raftlog.tools.log.overlay_file_system import OverlayFileSystem
from raftlog.tools.terminal.exit_codes import EXIT_CLEAN, EXIT_ERROR
from raftlog.tools.terminal.standard_error import say
from raftlog.tools.terminal.verb_output import Fact, add_format_option, write_facts


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``raftlog log truncate``."""
    parser.epilog = (
        "A batch is dropped whole, so that the log may end below OFFSET. In a damaged log, bytes that cannot be trusted"
        f" are kept beside it, as SEGMENT.damaged-POSITION. {parser.epilog}"
    )
    parser.add_argument(
        "--to", type=int, required=True, metavar="OFFSET", help="the new log end: the first offset to drop"
    )
    parser.add_argument("--yes", action="store_true", help="do it: without this, only show what would be dropped")
    parser.add_argument("--force", action="store_true", help="drop records even if there are other voters")
    add_format_option(parser)


def run(given: argparse.Namespace, now_ms: int) -> int:
    """Truncate the log, or report what would be dropped, and return the exit code.

    Raises:
        TruncationBelowHighWatermarkError: the offset is below the log start, or below the end of a snapshot of this
            log: records below these are committed. Nothing was changed.
        OffsetOutOfRangeError: the offset is above the log end. Nothing was changed.
        VoterSetError: there are other voters, who may have committed the records. Nothing was changed.
        RaftLogError: as for ``opened_local_log`` and ``FileLog.truncate_to``.

    Without ``--yes`` nothing is written, and no lock is taken.
    """
    if not given.yes:
        return _print_preview(given)
    with opened_local_log(given.directory) as opened:
        log, end_offset = opened.log, opened.log.end_offset.offset
        _check(opened, given)
        was_quarantined = log.quarantine is not None
        log.truncate_to(given.to)
        write_facts(given.format, [_fact(log, end_offset, was_quarantined=was_quarantined)])
    return EXIT_CLEAN


def _print_preview(given: argparse.Namespace) -> int:
    """Try it without writing anything: opening a log repairs it, so an overlay keeps all writes in memory."""
    with (
        closing(OverlayFileSystem(LocalFileSystem())) as file_system,
        opened_log(file_system, given.directory) as opened,
    ):
        _check(opened, given)
        damage = " and what is damaged" if opened.log.quarantine is not None else ""
        end_offset = opened.log.end_offset.offset
        say(f"offsets {given.to} to {end_offset} (exclusive){damage} would go: only with --yes", "raftlog log truncate")
    return EXIT_ERROR


def _check(opened: OpenedLog, given: argparse.Namespace) -> None:
    least, end_offset = opened.log.high_watermark.offset, opened.log.end_offset.offset
    if not least <= given.to <= end_offset:
        kind = OffsetOutOfRangeError if given.to > end_offset else TruncationBelowHighWatermarkError
        raise kind(f"offset {given.to}: the log can be cut at offsets {least} to {end_offset}")
    opened.check_is_only_voter(is_forced=given.force)


def _fact(log: FileLog, former_end_offset: int, *, was_quarantined: bool) -> Fact:
    end_offset = log.end_offset.offset
    text = f"the log ends at offset {end_offset}: {former_end_offset - end_offset} offsets were removed"
    if was_quarantined:
        text += "; what was damaged is set aside, and the quarantine is over"
    members = {
        "end_offset": end_offset,
        "former_end_offset": former_end_offset,
        "was_quarantined": was_quarantined,
    }
    return Fact(text, "truncated", members)
