# SPDX-License-Identifier: Apache-2.0
"""``raftlog snapshot``: writes a snapshot of the cluster at an offset, which Kafka loads."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from raftlog.errors import DecodeError, RaftLogError, StateNotThereError
from raftlog.snapshot.paths import snapshot_name
from raftlog.tools.audit_verbs.quorum import settled
from raftlog.tools.audit_verbs.quorum_files import read_quorum_files
from raftlog.tools.catalogue.findings import Tally
from raftlog.tools.loading.features import CHECKED_RELEASES
from raftlog.tools.loading.load_check import LoadFault
from raftlog.tools.state.positions import Position, parsed_position
from raftlog.tools.state.snapshot_writing import SnapshotContent, snapshot_content, snapshot_folder, write_snapshot
from raftlog.tools.state.state_search import Span, copies, metadata_log, with_span
from raftlog.tools.terminal.argument_parser import Parser
from raftlog.tools.terminal.audit_options import add_processes_option
from raftlog.tools.terminal.exit_codes import EXIT_CLEAN, EXIT_CODES_HELP, EXIT_DAMAGE, EXIT_SUSPICIOUS
from raftlog.tools.terminal.json_lines import path_member
from raftlog.tools.terminal.spool_option import add_spool_option
from raftlog.tools.terminal.standard_error import say
from raftlog.tools.terminal.verb_output import Fact, add_format_option, write_facts

_END: Final = Position()


def run(arguments: Sequence[str]) -> int:
    """Run ``raftlog snapshot`` with what follows it on the command line, and return the exit code."""
    parser = make_parser()
    given = parser.parse_args(arguments)
    program, tally = parser.prog, Tally()
    try:
        files = read_quorum_files(given, program)
        tally = files.tally
        if not files.logs:
            return tally.exit_code  # What is wrong was said.
        files.settle(settled)
        log, view = metadata_log(files)
        span, content = with_span(
            copies(log, view), given.at, lambda found: (found, snapshot_content(found, given.kafka))
        )
        _check_proof(span, view.high_watermark, is_forced=given.force)
        folder = snapshot_folder(given.out, content.snapshot_id)
        size_bytes = write_snapshot(content, folder, time.time_ns() // 1_000_000)
    except RaftLogError as error:
        say(str(error), program)
        tally.errors += 1
        return EXIT_DAMAGE if isinstance(error, DecodeError) else tally.exit_code
    write_facts(given.format, _facts(span, content, folder, size_bytes))
    return tally.exit_code or (EXIT_SUSPICIOUS if content.skipped else EXIT_CLEAN)


def make_parser() -> Parser:
    """Return the parser of the verb's arguments."""
    parser = Parser(
        prog="raftlog snapshot",
        description="Write a snapshot of the cluster at an offset that log and snapshots reach, as controllers of Kafka"
        " write it. A record that they die of has no effect, and is named.",
        epilog=f"Give the directories of all controllers: they say together what is proven to be committed."
        f" {EXIT_CODES_HELP} A record without effect is suspicious.",
    )
    what = "a log directory, a directory of log directories, a partition's directory, a segment or a snapshot"
    parser.add_argument("paths", nargs="+", metavar="DIR", help=what)
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
    parser.add_argument("--force", action="store_true", help="even if the state is not proven to be committed")
    add_format_option(parser)
    add_processes_option(parser)
    add_spool_option(parser)
    return parser


def _check_proof(span: Span, proven_offset: int, *, is_forced: bool) -> None:
    fork = span.copy.forks_at
    proven = proven_offset if fork is None else min(fork, proven_offset)
    if span.asked_offset > proven and not is_forced:
        problem = f"records from offset {proven} on are not proven to be committed by the given files"
        raise StateNotThereError(f"{span.copy.path}: {problem}: give all directories, a lower --at, or --force")


def _facts(span: Span, content: SnapshotContent, folder: str, size_bytes: int) -> Iterator[Fact]:
    end = content.snapshot_id
    path = str(Path(folder, snapshot_name(end)))
    text = f"{path}: the cluster before offset {end.offset}, epoch {end.epoch}: {len(content.values)} records"
    members = {
        **path_member("file", path),
        **path_member("directory", span.copy.path),
        "end_offset": end.offset,
        "epoch": end.epoch,
        "timestamp": content.timestamp,
        "kraft_version": int(content.kraft_version),
        "voter_ids": [] if content.voters is None else sorted(content.voters.voters),
        "record_count": len(content.values),
        "size_bytes": size_bytes,
        "skipped_count": len(content.skipped),
        "loaded_by": list(content.loaded_by),
    }
    lines = [text, f"Controllers of {', '.join(content.loaded_by)} load it."]
    yield Fact(lines, "snapshot", members)
    for fault in content.skipped:
        yield Fact(_skipped_text(fault), "skipped_record", fault._asdict())


def _skipped_text(fault: LoadFault) -> str:
    where = "of the snapshot " if fault.is_in_snapshot else ""
    record = fault.record or "record of an unknown type"
    place = f"the {record} at offset {fault.offset} {where}(index {fault.record_index})"
    return f"Kafka's own stops at {place}, which has no effect here: {fault.rule}: {fault.reason}"
