# SPDX-License-Identifier: Apache-2.0
"""``raftlog snapshot``: writes a snapshot of the cluster at an offset, which Kafka loads."""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from raftlog.errors import DecodeError, RaftLogError, SnapshotError, StateNotThereError, fresh_copy, without_frames
from raftlog.snapshot.paths import snapshot_name
from raftlog.tools.audit_verbs.quorum import settled
from raftlog.tools.audit_verbs.quorum_files import read_quorum_files
from raftlog.tools.catalogue.findings import Tally
from raftlog.tools.image_snapshot.snapshot_lines import WrittenSnapshot, snapshot_facts
from raftlog.tools.image_snapshot.snapshot_writing import (
    SnapshotContent,
    snapshot_content,
    snapshot_folder,
    write_snapshot,
)
from raftlog.tools.loading.features import CHECKED_RELEASES
from raftlog.tools.own_file import check_outside
from raftlog.tools.repair.sources import check_not_locked, log_directory_of
from raftlog.tools.state.positions import Position, parsed_position
from raftlog.tools.state.state_search import Span, copies, metadata_log, with_span
from raftlog.tools.terminal.argument_parser import Parser
from raftlog.tools.terminal.audit_options import LOG_PATHS_HELP, add_processes_option
from raftlog.tools.terminal.exit_codes import EXIT_CLEAN, EXIT_CODES_HELP, EXIT_DAMAGE, EXIT_SUSPICIOUS
from raftlog.tools.terminal.spool_option import add_spool_option
from raftlog.tools.terminal.standard_error import say
from raftlog.tools.terminal.verb_output import add_format_option, write_facts

_END: Final = Position()


def run(arguments: Sequence[str]) -> int:
    """Run ``raftlog snapshot`` with what follows it on the command line, and return the exit code."""
    parser = make_parser()
    given = parser.parse_args(arguments)
    program, tally = parser.prog, Tally()
    try:
        _check_output(given)
        files = read_quorum_files(given, program)
        tally = files.tally
        if not files.logs:
            return tally.exit_code  # What is wrong was said.
        files.settle(settled)
        log, view = metadata_log(files)
        span, content = with_span(copies(log, view), given.at, lambda found: (found, _content_or_refusal(found, given)))
        if isinstance(content, SnapshotError):
            raise fresh_copy(content)
        proven = _proven(span, view.high_watermark)
        _check_proof(span, proven, is_forced=given.force)
        folder = snapshot_folder(given.out, content.snapshot_id)
        size_bytes = write_snapshot(content, folder, time.time_ns() // 1_000_000)
    except RaftLogError as error:
        say(str(error), program)
        tally.errors += 1
        return EXIT_DAMAGE if isinstance(error, DecodeError) else tally.exit_code
    result = WrittenSnapshot(span, content, str(Path(folder, snapshot_name(content.snapshot_id))), size_bytes, proven)
    write_facts(given.format, snapshot_facts(result))
    is_odd = content.skipped or given.kafka in content.effect.faults
    if content.effect.damage is not None:
        return EXIT_DAMAGE
    return tally.exit_code or (EXIT_SUSPICIOUS if is_odd else EXIT_CLEAN)


def make_parser() -> Parser:
    """Return the parser of the verb's arguments."""
    parser = Parser(
        prog="raftlog snapshot",
        description="Write a snapshot of the cluster at an offset that log and snapshots reach, as controllers of Kafka"
        " write it. A record that they die of has no effect, and is named.",
        epilog=f"Give the directories of all controllers: they say together what is proven to be committed."
        f" {EXIT_CODES_HELP} A record without effect is suspicious,"
        " and so is a later record of the log that controllers die of all the same.",
    )
    parser.add_argument("paths", nargs="+", metavar="DIR", help=LOG_PATHS_HELP)
    parser.add_argument(
        "--at",
        type=parsed_position,
        default=_END,
        metavar="OFFSET|TIME|-N",
        help="its end, exclusive, as for 'raftlog state' (default: the end of the log); outside of batches and"
        " transactions",
    )
    parser.add_argument(
        "--out",
        required=True,
        metavar="FILE",
        help="where to write it: a directory that exists, or the file; its name is OFFSET-EPOCH.checkpoint with 20 and"
        " 10 digits",
    )
    parser.add_argument(
        "--kafka",
        choices=CHECKED_RELEASES,
        default=CHECKED_RELEASES[-1],
        metavar="RELEASE",
        help=f"whose rules say which records have no effect: {', '.join(CHECKED_RELEASES)} (default: %(default)s)",
    )
    parser.add_argument(
        "--skip-unknown",
        action="store_true",
        help="records that are only for newer releases have no effect; without it, they are refused",
    )
    parser.add_argument("--force", action="store_true", help="even if the state is not proven to be committed")
    add_format_option(parser)
    add_processes_option(parser)
    add_spool_option(parser)
    return parser


def _check_output(given: argparse.Namespace) -> None:
    """Check that the snapshot will be written to no directory that is read, nor to that of a running node.

    Raises:
        LogDirectoryError: it would be.
        DirectoryLockedError: the node of the log directory that it would be in is running.
        StorageError: a lock's file cannot be read.
    """
    if given.out:
        check_outside(given.out, given.paths)
        folder = given.out if Path(given.out).is_dir() else str(Path(given.out).parent)
        check_not_locked(log_directory_of(folder))


def _content_or_refusal(span: Span, given: argparse.Namespace) -> SnapshotContent | SnapshotError:
    """Return what the snapshot says, or why it is refused: no other replica is asked then, which might end earlier."""
    try:
        return snapshot_content(span, given.kafka, skips_unknown=given.skip_unknown)
    except SnapshotError as error:
        if type(error) is not SnapshotError:
            raise  # A file is damaged.
        return without_frames(error)


def _proven(span: Span, proven_offset: int) -> int:
    """Return the offset up to which the log of a state is proven to be committed, exclusive."""
    fork = span.copy.forks_at
    return proven_offset if fork is None else min(fork, proven_offset)


def _check_proof(span: Span, proven: int, *, is_forced: bool) -> None:
    if span.asked_offset > proven and not is_forced:
        problem = f"records from offset {proven} on are not proven to be committed by the given files"
        raise StateNotThereError(f"{span.copy.path}: {problem}: give all directories, a lower --at, or --force")
