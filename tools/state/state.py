# SPDX-License-Identifier: Apache-2.0
"""``raftlog state``: shows the cluster as the metadata records say, at any offset or time that the files reach."""

import argparse
import itertools
from collections.abc import Iterator, Sequence
from typing import Final

from raftlog.errors import DecodeError, RaftLogError, StateNotThereError
from raftlog.records.files.file_names import METADATA_TOPIC
from raftlog.tools.audit_verbs.quorum import settled
from raftlog.tools.audit_verbs.quorum_files import Log, read_quorum_files
from raftlog.tools.auditing.history.quorum_view import QuorumView
from raftlog.tools.auditing.history.verdict_words import name_lines
from raftlog.tools.catalogue.findings import Tally
from raftlog.tools.image.changes import Change
from raftlog.tools.loading.features import CHECKED_RELEASES
from raftlog.tools.state.against import compare_with_brokers
from raftlog.tools.state.coordinator_reading import COORDINATOR_TOPICS, topic_of
from raftlog.tools.state.coordinators import show_coordinators
from raftlog.tools.state.log_check import check_json, check_lines, checks
from raftlog.tools.state.positions import Position, parsed_position
from raftlog.tools.state.state_lines import (
    ShownChange,
    change_json,
    change_lines,
    head_lines,
    refusal_text,
    remarks,
    state_json,
    table_lines,
    thing_json,
    tree_lines,
)
from raftlog.tools.state.state_search import State, copies, earliest, find_changes, find_state, metadata_log
from raftlog.tools.state.things import Path, is_under, parse_path, path_text, thing_of, things
from raftlog.tools.terminal.argument_parser import Parser
from raftlog.tools.terminal.audit_options import LOG_PATHS_HELP, add_processes_option
from raftlog.tools.terminal.exit_codes import EXIT_CLEAN, EXIT_CODES_HELP, EXIT_DAMAGE, EXIT_SUSPICIOUS
from raftlog.tools.terminal.spool_option import add_spool_option
from raftlog.tools.terminal.standard_error import say
from raftlog.tools.terminal.text_width import fit_lines
from raftlog.tools.terminal.verb_output import write_lines, write_text

FORMATS: Final = ("table", "json", "tree")
_MOST_NAMED: Final = 20
"""How many records without effect are named on standard error."""
_END: Final = Position()


def run(arguments: Sequence[str]) -> int:
    """Run ``raftlog state`` with what follows it on the command line, and return the exit code."""
    parser = make_parser()
    given = parser.parse_args(arguments)
    if given.format == "tree" and (given.between or given.history):
        parser.error("changes have no tree: --format table or json")
    if given.between and given.history is not None:
        parser.error("--history goes from the beginning to --at: --path chooses among the changes --between two places")
    if given.against and (given.between or given.history is not None or given.path or given.format == "tree"):
        parser.error("--against compares all of one state: it goes with --at and with --format table or json")
    _refuse_with_check(parser, given)
    program, tally = parser.prog, Tally()
    try:
        topic = given.topic or topic_of(given.paths)
        if topic is not None:
            if given.against:
                parser.error(f"--against compares a state of {METADATA_TOPIC}, not of {topic}")
            return show_coordinators(given, topic, program)
        files = read_quorum_files(given, program)
        tally = files.tally
        if not files.logs:
            return tally.exit_code  # What is wrong was said.
        files.settle(settled)
        log, view = metadata_log(files)
        for line in name_lines(view.judgement):
            say(line, program)
        if given.against:
            is_damaged = tally.exit_code == EXIT_DAMAGE
            compared = compare_with_brokers(given, copies(log, view), view, program, is_damaged=is_damaged)
            return compared.exit_code(tally, _exit_code(tally, compared.state, program))
        shown = _Shown(given, log, view)
        if given.check:
            return EXIT_DAMAGE if not shown.show_check(tally, program) else tally.exit_code
        state = shown.show()
    except RaftLogError as error:
        say(str(error), program)
        tally.errors += 1
        return EXIT_DAMAGE if isinstance(error, DecodeError) else tally.exit_code
    return _exit_code(tally, state, program)


def make_parser() -> Parser:
    """Return the parser of the verb's arguments."""
    parser = Parser(
        prog="raftlog state",
        description="Show the cluster as its metadata records say, at any offset or time that log and snapshots reach:"
        " features, brokers and controllers, topics and partitions, configs, quotas, ACLs, SCRAM credentials and"
        " delegation tokens without their secrets, producer ids. Compare it with directories of brokers, or show the"
        " groups, offsets and transactions of the coordinators' topics.",
        epilog=f"Give the directories of all controllers: they say together what is proven to be committed."
        f" {EXIT_CODES_HELP} A record that cannot be read is damage; one that contradicts the state, or is of a later"
        " release, is suspicious: it has no effect.",
    )
    parser.add_argument("paths", nargs="+", metavar="DIR", help=LOG_PATHS_HELP)
    asked = parser.add_mutually_exclusive_group()
    asked.add_argument(
        "--at",
        type=parsed_position,
        default=_END,
        metavar="OFFSET|TIME|-N",
        help="where (default: the end). OFFSET: the records below it count, it is exclusive. TIME, in ISO 8601, UTC"
        " unless it says: the records count that come before the first batch that was appended after it, also where"
        " clocks went back later. -N: N offsets before the end. Inside a batch or a metadata transaction, the state is"
        " the one before it",
    )
    asked.add_argument(
        "--between",
        type=parsed_position,
        nargs=2,
        metavar=("A", "B"),
        help="show what changed between two places, with the record that made each change",
    )
    parser.add_argument(
        "--path", type=parse_path, default=(), metavar="PATH", help="only what is there, such as /topics/orders"
    )
    parser.add_argument(
        "--history", type=parse_path, metavar="PATH", help="show all changes there, up to --at or the end"
    )
    _add_other_questions(parser)
    parser.add_argument("--format", choices=FORMATS, default=FORMATS[0], help="how to print (default: %(default)s)")
    add_processes_option(parser)
    add_spool_option(parser)
    return parser


def _add_other_questions(parser: Parser) -> None:
    """Add the options that ask for something else than things and their changes."""
    parser.add_argument(
        "--topic",
        choices=COORDINATOR_TOPICS,
        help="show the state of this topic in log directories: groups and committed offsets, transactions, or share"
        " partitions. If all paths are of its partitions, it is shown anyway",
    )
    parser.add_argument(
        "--against",
        nargs="+",
        metavar="BROKER_DIR",
        help="compare with the log directories of brokers: what Kafka would set aside, what is missing, which of the"
        " two is older",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="show whether controllers of Kafka would start with the log: the first record that each release dies of,"
        " and the lowest release that starts",
    )
    parser.add_argument(
        "--kafka", choices=CHECKED_RELEASES, metavar="RELEASE", help=f"with --check: only {_listed(CHECKED_RELEASES)}"
    )


def _listed(releases: Sequence[str]) -> str:
    return f"{', '.join(releases[:-1])} or {releases[-1]}"


def _refuse_with_check(parser: Parser, given: argparse.Namespace) -> None:
    if given.kafka is not None and not given.check:
        parser.error("--kafka goes with --check")
    if given.check and (given.between or given.history is not None or given.path or given.against or given.topic):
        parser.error("--check is about a whole state: not with --between, --history, --path, --against or --topic")
    if given.check and given.format == "tree":
        parser.error("--check has no tree: --format table or json")


class _Shown:
    """Finds what was asked for, and prints it."""

    def __init__(self, given: argparse.Namespace, log: Log, view: QuorumView) -> None:
        self._given = given
        self._copies = copies(log, view)
        self._proven = view.high_watermark
        self._cluster_id = view.cluster_id
        self._json = given.format == "json"

    def show(self) -> State:
        """Print, and return the last state."""
        if self._given.history is not None:
            first = earliest(self._copies[0])
            return self._show_changes(first, self._given.at, self._given.history, begins_with_things=True)
        if self._given.between:
            first, last = self._given.between
            return self._show_changes(first, last, self._given.path, begins_with_things=False)
        state = find_state(self._copies, self._given.at)
        found = list(things(state.image.tables, self._given.path))
        if self._given.path and not found:
            where = path_text(self._given.path)
            raise StateNotThereError(f"there is nothing at {where} before offset {state.image.end_offset}")
        if self._json:
            write_text(self._state_json(state, self._given.at))
            write_text(map(thing_json, found))
            return state
        lines = table_lines if self._given.format == "table" else tree_lines
        write_lines(fit_lines(head_lines(state, self._proven, cluster_id=self._cluster_id)))
        write_lines(lines(found))
        return state

    def show_check(self, tally: Tally, program: str) -> bool:
        """Print which releases start with each replica, and return whether all are fine; say and count errors."""
        releases = CHECKED_RELEASES if self._given.kafka is None else (self._given.kafka,)
        found, problems = checks(self._copies, self._given.at, releases, self._proven)
        for number, each in enumerate(found):
            if self._json:
                write_text(check_json(each, self._given.at.text, cluster_id=self._cluster_id))
            else:
                lines = fit_lines(check_lines(each, cluster_id=self._cluster_id))
                write_lines(itertools.chain([""] if number else [], lines))
        for problem in problems:
            say(str(problem), program)
            tally.errors += 1
        return all(each.is_fine for each in found) and not any(isinstance(each, DecodeError) for each in problems)

    def _show_changes(self, first: Position, last: Position, root: Path, *, begins_with_things: bool) -> State:
        changes: list[ShownChange] = []

        def note(state: State, change: Change) -> None:
            shown = _shown(state, change)
            if shown is not None and is_under(shown.path, root):
                changes.append(shown)

        before, after = find_changes(self._copies, first, last, note)
        there = list(things(before.image.tables, root)) if begins_with_things else []
        if self._json:
            write_text(self._state_json(before, first))
            write_text(map(thing_json, there))
            write_text(map(change_json, changes))
            write_text(self._state_json(after, last))
            return after
        write_lines(fit_lines(self._between_lines(before, after)))
        if there:
            write_lines([f"At offset {before.image.end_offset} there were:", *table_lines(there), ""])
        write_lines(change_lines(changes))
        return after

    def _state_json(self, state: State, position: Position) -> Iterator[str]:
        return state_json(state, position.text, self._proven, cluster_id=self._cluster_id)

    def _between_lines(self, before: State, after: State) -> Iterator[str]:
        cluster = f"Cluster {self._cluster_id or '(id not known)'}"
        ends = f"from offset {before.image.end_offset} to offset {after.image.end_offset}"
        yield f"{cluster} {ends}, read from {after.copy.path}."
        yield from dict.fromkeys([*remarks(before, self._proven), *remarks(after, self._proven)])
        yield ""


def _shown(state: State, change: Change) -> ShownChange | None:
    before, after = (
        None if entry is None else thing_of(change.key, entry, state.image.tables)
        for entry in (change.before, change.after)
    )
    thing = after or before
    if thing is None:
        return None
    return ShownChange(
        change.offset, change.record_index, change.record, change.timestamp, thing.kind, thing.path, before, after
    )


def _exit_code(tally: Tally, state: State, program: str) -> int:
    refusals = state.image.refusals
    for refusal in refusals[:_MOST_NAMED]:
        say(f"{state.copy.path}: {refusal_text(refusal)}", program)
    if len(refusals) > _MOST_NAMED:
        say(f"{state.copy.path}: and {len(refusals) - _MOST_NAMED} more records", program)
    if any(each.is_unreadable for each in refusals):
        return EXIT_DAMAGE
    return tally.exit_code or (EXIT_SUSPICIOUS if refusals else EXIT_CLEAN)
