# SPDX-License-Identifier: Apache-2.0
"""``raftlog rewrite-voters``: makes a log directory with other voters, for a quorum whose majority is gone for good.

Two steps: a plan, which is printed and written to a file, and a new directory that is made from it. No file that is
there is changed.
"""

import argparse
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import attrs

from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.tools.repair.applying import check_is_outside, check_target, make_directory
from raftlog.tools.repair.plan import RepairPlan, load_plan
from raftlog.tools.repair.repair_verb import check_sources, check_step, finding_members, run_step, source_members
from raftlog.tools.repair.sources import check_is_stopped, check_unchanged, log_directory_of, read_source
from raftlog.tools.repair.voter_request import parse_lost, parse_new_voters
from raftlog.tools.repair.voter_rewrite import PlannedVoter, VoterRewrite
from raftlog.tools.repair.voter_words import VERB, made_words, plan_words
from raftlog.tools.terminal.argument_parser import Parser
from raftlog.tools.terminal.audit_options import add_processes_option
from raftlog.tools.terminal.json_lines import path_member
from raftlog.tools.terminal.verb_output import Fact, add_format_option

if TYPE_CHECKING:
    from raftlog.tools.repair.kept_log import KeptLog

_PROGRAM: Final = f"raftlog {VERB}"
_DEFAULT_LISTENER: Final = "CONTROLLER"
_EXIT_CODES: Final = (
    "Exit codes: 0 planned or made, 1 usage, I/O or refused, 2 the log is damaged, 130 interrupted. Nothing is written"
    " but the plan, and NEW: completely, or not at all."
)


def run(arguments: Sequence[str]) -> int:
    """Run ``raftlog rewrite-voters`` with what follows it on the command line, and return the exit code."""
    parser = make_parser()
    given = parser.parse_args(arguments)
    _check_options(parser, given)
    return run_step(_PROGRAM, given, _plan, _apply)


def make_parser() -> Parser:
    """Return the parser of the verb's arguments."""
    parser = Parser(
        prog=_PROGRAM,
        description=(
            "For a quorum whose majority is gone for good: plan, and then make, a log directory in which others are the"
            " voters. Records that only the lost voters have are given up."
        ),
        usage=(
            f"{_PROGRAM} DIR [DIR...] --initial-controllers VOTER,... --lost VOTER... --plan FILE\n"
            f"       {_PROGRAM} --apply FILE --out NEW [--node-id N]"
        ),
        epilog=(
            "Give the directories of all nodes that can be read, brokers' too: each is evidence of what was committed,"
            f" and of what would be lost. Stop all nodes first. {_EXIT_CODES}"
        ),
    )
    parser.add_argument(
        "directories",
        nargs="*",
        metavar="DIR",
        help="log directories; the log of the first is kept, of a controller or a broker, and the others are evidence",
    )
    parser.add_argument(
        "--initial-controllers",
        metavar="ID@HOST:PORT:DIRECTORY-ID,...",
        help="the new voters, as kafka-storage format has them; at kraft.version 0 without directory ids",
    )
    parser.add_argument(
        "--lost",
        action="append",
        default=[],
        metavar="ID[:DIRECTORY_ID]",
        help="a voter that is given up for good; name each, and its disk must never start again",
    )
    parser.add_argument(
        "--listener", metavar="NAME", help="name of the new voters' listener (default: that of the last voters)"
    )
    parser.add_argument("--plan", metavar="FILE", help="write the plan to this file")
    parser.add_argument("--apply", metavar="FILE", help="make a directory from the plan in this file")
    parser.add_argument("--out", metavar="NEW", help="the log directory to make; it must not exist")
    parser.add_argument(
        "--node-id", type=int, metavar="N", help="which of the new voters it is for (default: the only one)"
    )
    add_processes_option(parser)
    add_format_option(parser)
    return parser


def _check_options(parser: Parser, given: argparse.Namespace) -> None:
    """Refuse options that do not go together, or are missing."""
    if given.apply is None:
        needed = {"DIR": given.directories, "--initial-controllers": given.initial_controllers, "--plan": given.plan}
        foreign = {"--out": given.out, "--node-id": given.node_id}
    else:
        needed = {"--out": given.out}
        foreign = {
            "DIR": given.directories or None,
            "--initial-controllers": given.initial_controllers,
            "--lost": given.lost or None,
            "--listener": given.listener,
            "--plan": given.plan,
        }
    check_step(parser, given, needed, foreign)


# The plan


def _plan(given: argparse.Namespace) -> Fact:
    directories = list(dict.fromkeys(map(log_directory_of, given.directories)))
    lost = parse_lost(given.lost)
    sources = tuple(map(read_source, directories))
    check_is_outside(given.plan, sources)
    for source in sources:
        check_is_stopped(source)
    from raftlog.tools.repair.contradictions import check_agreement
    from raftlog.tools.repair.evidence_of_sources import evidence_of  # Slow to import: numpy comes with it.
    from raftlog.tools.repair.kept_log import read_kept_log, snapshots_inside_batches, without_files
    from raftlog.tools.repair.voter_planning import RewriteRequest, plan_rewrite

    evidence = evidence_of(sources, given.processes)
    left_out = snapshots_inside_batches(sources[0], evidence)
    evidence = without_files(evidence, sources[0], left_out)
    for each in evidence:
        if each.is_raft and each.place.log_directory == sources[0].directory:
            check_agreement(each)  # Before the voters are read: their form depends on kraft.version.
    kept = read_kept_log(sources[0], left_out)
    request = RewriteRequest(_voters(kept, given), lost, time.time_ns() // 1_000_000, left_out)
    rewrite = plan_rewrite(LocalFileSystem(), sources, evidence, kept, request)
    for source in sources:
        check_unchanged(source, reads=False)
    RepairPlan.of(VERB, sources, rewrite).save(given.plan)
    members = {**path_member("plan", given.plan), "sources": source_members(sources), **attrs.asdict(rewrite)}
    return Fact(plan_words(rewrite, sources, given.plan), "voter_rewrite_plan", members)


def _voters(kept: "KeptLog", given: argparse.Namespace) -> tuple[PlannedVoter, ...]:
    listener = _listener(kept) if given.listener is None else given.listener
    is_static = not kept.kraft_version.is_reconfiguration_supported
    return parse_new_voters(given.initial_controllers, listener, is_static=is_static)


def _listener(kept: "KeptLog") -> str:
    """Return the name of the listener by which the last voters are known.

    Raises:
        ValueError: they have several names.
    """
    names = {next(iter(node.listeners.listeners), None) for node in kept.voters.voters.values()} - {None}
    if len(names) > 1:
        raise ValueError(
            f"the last voters have listeners of several names, {', '.join(sorted(map(str, names)))}: give --listener"
        )
    return next(filter(None, names), _DEFAULT_LISTENER)


# Carrying it out


def _apply(given: argparse.Namespace) -> Fact:
    plan = load_plan(given.apply, VERB)
    rewrite = plan.content_as(VoterRewrite)
    voter = _voter(rewrite, given.node_id)
    target = check_target(given.out, plan.sources)
    check_sources(plan.sources)
    from raftlog.tools.repair.contradictions import is_excused
    from raftlog.tools.repair.reviewing import review  # Slow to import: numpy comes with it.
    from raftlog.tools.repair.voter_building import build_rewritten

    file_system = LocalFileSystem()
    findings = make_directory(
        file_system,
        target,
        lambda directory: build_rewritten(file_system, plan.sources[0], rewrite, voter, directory),
        lambda directory: review(directory, plan.sources[:1], is_excused),
    )
    members = {
        **path_member("directory", target),
        "node_id": voter.id,
        "directory_id": voter.directory_id,
        "end_offset": rewrite.end_offset + rewrite.writes_record,
        "quorum_epoch": rewrite.quorum_epoch,
        "findings": finding_members(findings),
    }
    return Fact(made_words(rewrite, plan.sources, target, voter, findings), "voters_rewritten", members)


def _voter(rewrite: VoterRewrite, node_id: int | None) -> PlannedVoter:
    found = rewrite.voter(node_id)
    if found is None:
        ids = ", ".join(str(voter.id) for voter in rewrite.voters)
        raise ValueError(f"--node-id: the new directory is for one of the new voters, {ids}")
    return found
