# SPDX-License-Identifier: Apache-2.0
"""``raftlog salvage``: makes, from one or more damaged replicas, the longest log that can be vouched for.

The log is that of the metadata, or with ``--partition`` that of a topic's partition.
Two steps: a plan, which is printed and written to a file, and a new directory that is made from it. No file that is
there is changed.
"""

import argparse
from collections.abc import Sequence
from typing import Final

import attrs

from raftlog.records.files.file_names import METADATA_TOPIC, DirectoryState, parse_directory_name
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.tools.repair.applying import check_is_outside, check_target, make_directory
from raftlog.tools.repair.plan import RepairPlan, load_plan
from raftlog.tools.repair.repair_verb import check_sources, check_step, finding_members, run_step, source_members
from raftlog.tools.repair.sources import (
    check_is_stopped,
    check_unchanged,
    distinct_directories,
    log_directory_of,
    read_source,
)
from raftlog.tools.salvage.salvage_plan import Salvage
from raftlog.tools.salvage.salvage_words import VERB, made_words, plan_words
from raftlog.tools.terminal.argument_parser import Parser
from raftlog.tools.terminal.audit_options import add_processes_option
from raftlog.tools.terminal.json_lines import path_member
from raftlog.tools.terminal.verb_output import Fact, add_format_option

_PROGRAM: Final = f"raftlog {VERB}"
_EXIT_CODES: Final = (
    "Exit codes: 0 planned or made, 1 usage, I/O or refused, 2 no log can be made, 130 interrupted. Nothing is written"
    " but the plan, and NEW: completely, or not at all."
)


def run(arguments: Sequence[str]) -> int:
    """Run ``raftlog salvage`` with what follows it on the command line, and return the exit code."""
    parser = make_parser()
    given = parser.parse_args(arguments)
    _check_options(parser, given)
    return run_step(_PROGRAM, given, _plan, _apply)


def make_parser() -> Parser:
    """Return the parser of the verb's arguments."""
    parser = Parser(
        prog=_PROGRAM,
        description=(
            "For damaged replicas of a metadata log: plan, and then make, a log directory with the longest log that can"
            " be vouched for. What is bad in one replica is taken from another; a hole is never stepped over. With"
            " --partition, the same for a topic's partition: there the metadata say whose copy is right."
        ),
        usage=(
            f"{_PROGRAM} SRC [SRC...] --plan FILE [--node-id N] [--replace OFFSET]\n"
            f"       {_PROGRAM} SRC [SRC...] --plan FILE --partition NAME [--metadata DIR] [--step-over]\n"
            "           [--assume-topic-id]\n"
            f"       {_PROGRAM} --apply FILE --out NEW"
        ),
        epilog=(
            "Give the directories of all nodes that can be read, brokers' too: each may have what the others lack, a"
            f" snapshot for example. Stop all nodes first. {_EXIT_CODES}"
        ),
    )
    parser.add_argument(
        "directories", nargs="*", metavar="SRC", help="log directories of controllers and brokers, in any order"
    )
    parser.add_argument("--plan", metavar="FILE", help="write the plan to this file")
    parser.add_argument(
        "--node-id",
        type=int,
        metavar="N",
        help="give the directory to this node, with its own quorum-state if that is here (default: only the log)",
    )
    parser.add_argument(
        "--replace",
        type=int,
        action="append",
        default=[],
        metavar="OFFSET",
        help="take this record out, which nodes die of: by a snapshot, or a no-op in its place (may be given again)",
    )
    _add_partition_options(parser)
    parser.add_argument("--apply", metavar="FILE", help="make a directory from the plan in this file")
    parser.add_argument("--out", metavar="NEW", help="the log directory to make; it must not exist")
    add_processes_option(parser)
    add_format_option(parser)
    return parser


def _add_partition_options(parser: Parser) -> None:
    parser.add_argument(
        "--partition",
        metavar="NAME",
        help="salvage this partition of a topic, such as orders-3; SRC are log directories of its brokers, or this"
        " directory in them",
    )
    parser.add_argument(
        "--metadata",
        action="append",
        default=[],
        metavar="DIR",
        help="log directory of a controller, or of a broker that holds the metadata: leader and ISR say whose copy is"
        " right, and without it the choice is unproven (may be given again)",
    )
    parser.add_argument(
        "--assume-topic-id",
        action="store_true",
        help="take replicas without a partition.metadata for the metadata's topic, and give the result one; the choice"
        " is unproven then (default: they are left out)",
    )
    parser.add_argument(
        "--step-over",
        action="store_true",
        help="let the log of the partition go on after a hole of lost records (default: it ends before the first hole)",
    )


def _check_options(parser: Parser, given: argparse.Namespace) -> None:
    """Refuse options that do not go together, or are missing."""
    if given.apply is None:
        needed, foreign = {"SRC": given.directories, "--plan": given.plan}, {"--out": given.out}
    else:
        needed = {"--out": given.out}
        foreign = {"SRC": given.directories or None, "--plan": given.plan, "--node-id": given.node_id}
        foreign["--replace"] = given.replace or None
        foreign |= {"--partition": given.partition, "--metadata": given.metadata or None}
        foreign |= {"--step-over": given.step_over or None, "--assume-topic-id": given.assume_topic_id or None}
    check_step(parser, given, needed, foreign)
    _check_partition_options(parser, given)
    if given.node_id is not None and not 0 <= given.node_id < 1 << 31:
        parser.error(f"--node-id {given.node_id}: a node id is from 0 to 2147483647")
    for offset in given.replace:
        if offset < 0:
            parser.error(f"--replace {offset}: an offset is 0 or more")


def _check_partition_options(parser: Parser, given: argparse.Namespace) -> None:
    """Refuse options of the metadata log with ``--partition``, and those of a partition without."""
    if given.assume_topic_id and not given.metadata:
        parser.error("--assume-topic-id goes with --metadata")
    if given.partition is None:
        if given.metadata or given.step_over:
            parser.error(f"{'--metadata' if given.metadata else '--step-over'} goes with --partition")
        return
    if given.node_id is not None or given.replace:
        parser.error(f"{'--node-id' if given.node_id is not None else '--replace'} is for the metadata log")
    name = parse_directory_name(given.partition)
    if name is None or name.state is not DirectoryState.CURRENT:
        parser.error(f"--partition {given.partition}: no partition has this name: TOPIC-NUMBER, such as orders-3")
    if name.topic == METADATA_TOPIC:
        parser.error(f"--partition {given.partition}: this log is salvaged without --partition")


def _plan(given: argparse.Namespace) -> Fact:
    if given.partition is not None:
        from raftlog.tools.salvage.partitions.partition_steps import plan_partition_step

        return plan_partition_step(given)
    directories = distinct_directories(map(log_directory_of, given.directories))
    sources = tuple(read_source(each, needs_owner=False) for each in directories)
    check_is_outside(given.plan, sources)
    for source in sources:
        check_is_stopped(source)
    from raftlog.tools.repair.evidence_of_sources import evidence_of  # Slow to import: numpy comes with it.
    from raftlog.tools.salvage.planning import SMALL_FILES, SalvageRequest, plan_salvage

    evidence = evidence_of(sources, given.processes, SMALL_FILES)
    request = SalvageRequest(given.node_id, frozenset(given.replace))
    salvage = plan_salvage(LocalFileSystem(), sources, evidence, request)
    for source in sources:
        check_unchanged(source, reads=False)
    RepairPlan.of(VERB, sources, salvage).save(given.plan)
    members = {**path_member("plan", given.plan), "sources": source_members(sources), **attrs.asdict(salvage)}
    return Fact(plan_words(salvage, sources, given.plan), "salvage_plan", members)


def _apply(given: argparse.Namespace) -> Fact:
    plan = load_plan(given.apply, VERB)
    if "partition" in plan.content:
        from raftlog.tools.salvage.partitions.partition_steps import apply_partition_step

        return apply_partition_step(given, plan)
    salvage = plan.content_as(Salvage)
    target = check_target(given.out, plan.sources)
    check_sources(plan.sources)
    from raftlog.tools.salvage.building import build_salvaged  # Slow to import: numpy comes with it.
    from raftlog.tools.salvage.salvage_review import review_salvaged

    file_system = LocalFileSystem()
    findings = make_directory(
        file_system,
        target,
        lambda directory: build_salvaged(file_system, plan.sources, salvage, directory),
        lambda directory: review_salvaged(directory, plan.sources, has_owner=salvage.owner is not None),
    )
    members = {
        **path_member("directory", target),
        "start_offset": salvage.start_offset,
        "end_offset": salvage.end_offset,
        "node_id": None if salvage.owner is None else salvage.owner.node_id,
        "directory_id": None if salvage.owner is None else salvage.owner.directory_id,
        "findings": finding_members(findings),
    }
    return Fact(made_words(salvage, plan.sources, target, findings), "log_salvaged", members)
