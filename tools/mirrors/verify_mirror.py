# SPDX-License-Identifier: Apache-2.0
"""``raftlog verify-mirror``: does a mirror hold what its source holds?"""

import argparse
import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs

from raftlog.errors import MirrorFlowError, NamingPolicyError, RaftLogError
from raftlog.records.files.file_names import METADATA_TOPIC
from raftlog.records.rules import Severity
from raftlog.tools.catalogue.findings import Finding, Tally
from raftlog.tools.mirrors.mirror_lines import flow_fact, flow_finding_facts, move_facts, pair_facts, total_fact
from raftlog.tools.mirrors.naming import IdentityPolicy, configured_policy
from raftlog.tools.mirrors.naming_options import SAME_OFFSETS, add_policy_options, policy_properties
from raftlog.tools.mirrors.on_spark.engine import log_summer
from raftlog.tools.mirrors.pair_report import FlowReport, MirrorOutcome, PairReport
from raftlog.tools.mirrors.pairing import is_own
from raftlog.tools.mirrors.reading.clusters import Cluster
from raftlog.tools.mirrors.reading.flow import FoundConfig, check_clusters, find_configs, find_syncs, said
from raftlog.tools.mirrors.reading.log_reading import LogSummer
from raftlog.tools.mirrors.reading.metadata import ClusterMetadata, metadata_state, read_metadata
from raftlog.tools.mirrors.verification import MirrorVerification
from raftlog.tools.own_file import check_outside
from raftlog.tools.terminal.argument_parser import Parser
from raftlog.tools.terminal.audit_options import add_engine_options
from raftlog.tools.terminal.exit_codes import EXIT_CODES_HELP, EXIT_ERROR
from raftlog.tools.terminal.standard_error import say
from raftlog.tools.terminal.verb_output import Fact, add_format_option, write_facts

_PROGRAM: Final = "raftlog verify-mirror"
_PLACES: Final = {"source": False, "target": True}


def run(arguments: Sequence[str]) -> int:
    """Run ``raftlog verify-mirror`` with what follows it on the command line, and return the exit code."""
    given = make_parser().parse_args(arguments)
    tally = Tally()
    try:
        with log_summer(given, _PROGRAM) as summer:
            write_facts(given.format, _facts(given, tally, summer))
    except RaftLogError as error:
        say(str(error), _PROGRAM)
        return EXIT_ERROR
    return tally.exit_code


def make_parser() -> Parser:
    """Return the parser of the verb's arguments."""
    parser = Parser(
        prog=_PROGRAM,
        description="Compare topics with their mirrors in another cluster, record by record, as MirrorMaker's offset"
        " syncs pair their offsets: what is lost, changed, reordered, doubled, or written by others.",
        epilog="What the target's Connect topics say of the flow is taken from there; options count more. Files are"
        f" only read, and must not change meanwhile. {EXIT_CODES_HELP}",
    )
    what = "a log directory of the cluster that {}, or a directory of some; repeatable"
    parser.add_argument("--source", action="append", required=True, metavar="DIR", help=what.format("is mirrored"))
    parser.add_argument("--target", action="append", required=True, metavar="DIR", help=what.format("has the mirror"))
    parser.add_argument("--source-alias", metavar="A", help="the name of the first cluster, for MirrorMaker")
    parser.add_argument("--target-alias", metavar="B", help="the name of the second one")
    parser.add_argument("--syncs", choices=tuple(_PLACES), help="the cluster that has the offset syncs")
    parser.add_argument(
        "--isolation",
        choices=("read_committed", "read_uncommitted"),
        help="whether MirrorMaker leaves out records of aborted transactions",
    )
    add_policy_options(parser, has_same_offsets=True)
    add_engine_options(parser, "DIR")
    add_format_option(parser)
    parser.add_argument(
        "--report",
        metavar="FILE",
        help="also write a self-contained HTML page for the operator who fails over; an older report is replaced",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="also write the results as Parquet tables (runs, pairs, findings, syncs, moves), a summary and the page:"
        " to a new directory, that of an earlier run, or a URI such as s3://BUCKET/KEY",
    )
    return parser


def _facts(given: argparse.Namespace, tally: Tally, summer: LogSummer) -> Iterator[Fact]:
    with _opened_results(given) as leave:
        metadata = read_metadata(given.source), read_metadata(given.target)
        source, target = (_cluster(*each) for each in zip((given.source, given.target), metadata, strict=True))
        check_clusters(source, target, () if given.policy == SAME_OFFSETS else metadata)
        flow, problems = _flow(given, source, target)
        states = (
            metadata_state(each, is_there=METADATA_TOPIC in cluster.topics)
            for each, cluster in zip(metadata, (source, target), strict=True)
        )
        flow = attrs.evolve(flow, metadata=(next(states), next(states)))
        yield flow_fact(flow)
        verification = MirrorVerification(source, target, flow, *metadata, summer)
        reports: list[PairReport] = []
        for report in verification.pairs():
            reports.append(report)
            yield from pair_facts(report, has_syncs=flow.syncs is not None)
        found = list(verification.flow_findings())
        yield from flow_finding_facts(found)
        yield from move_facts(flow, reports)
        all_problems = (*problems, *verification.problems)
        for problem in all_problems:
            if problem.severity is not Severity.HARMLESS:
                say(str(problem), _PROGRAM)
        outcome = MirrorOutcome(given.source, given.target, flow, reports, found, verification.spans, all_problems)
        tally.by_severity.update(outcome.severities)
        yield total_fact(outcome)
        leave(outcome)


@contextlib.contextmanager
def _opened_results(given: argparse.Namespace) -> Iterator[Callable[[MirrorOutcome], None]]:
    """Check that results can be written where they are wanted, before work begins; what is returned writes them."""
    paths = [*given.source, *given.target]
    with contextlib.ExitStack() as stack:
        wanted: list[Callable[[MirrorOutcome], None]] = []
        if given.report is not None:
            from raftlog.tools.mirrors.reporting.mirror_page import mirror_page
            from raftlog.tools.report.report_file import check_report_path, write_report

            check_outside(given.report, paths)
            check_report_path(given.report)
            wanted.append(lambda outcome: write_report(given.report, mirror_page(outcome)))
        if given.out is not None:
            from raftlog.tools.auditing.run.object_store_output import checked_output
            from raftlog.tools.mirrors.reporting.mirror_tables import opened_results

            wanted.append(stack.enter_context(opened_results(checked_output(given.out, paths))))

        def leave(outcome: MirrorOutcome) -> None:
            for write in wanted:
                write(outcome)

        yield leave


def _flow(given: argparse.Namespace, source: Cluster, target: Cluster) -> tuple[FlowReport, Sequence[Finding]]:
    """Return the flow, and findings about what its topics have."""
    if given.policy == SAME_OFFSETS:
        for option in ("syncs", "isolation", "separator"):
            if getattr(given, option) is not None:
                raise MirrorFlowError(f"--{option} says nothing of mirrors with the offsets of their sources")
        aliases = given.source_alias or "source", given.target_alias or "target"
        names = IdentityPolicy(aliases[0], kafka_level=given.kafka_level)
        left_out = tuple(sorted(filter(is_own, {*source.topics, *target.topics})))
        return FlowReport(aliases, names, None, None, False, left_out=left_out), ()
    configs, problems = find_configs(target)
    config = _config(given, configs)
    aliases = _aliases(given, config)
    properties = dict(config.properties if config else {}) | policy_properties(given)
    policy = configured_policy(properties, given.kafka_level, aliases)
    is_on_target = config.has_syncs_on_target if config else None
    is_on_target = _PLACES[given.syncs] if given.syncs else is_on_target
    syncs = find_syncs(source, target, policy, aliases, is_on_target=is_on_target)
    return FlowReport(aliases, policy, config, syncs, _reads_committed(given, config)), problems


def _cluster(paths: Sequence[str], metadata: ClusterMetadata | None) -> Cluster:
    return Cluster(paths, {} if metadata is None else metadata.tables.topic_ids)


def _config(given: argparse.Namespace, configs: Sequence[FoundConfig]) -> FoundConfig | None:
    """Return the configuration of the wanted flow; None if the target has none of it."""
    wanted = [
        each
        for each in configs
        if given.source_alias in (None, each.source_alias) and given.target_alias in (None, each.target_alias)
    ]
    if len(wanted) > 1:
        flows = ", ".join(said(wanted))
        raise MirrorFlowError(f"the target has several flows: {flows}; say which with --source-alias")
    return wanted[0] if wanted else None


def _aliases(given: argparse.Namespace, config: FoundConfig | None) -> tuple[str, str]:
    source, target = given.source_alias, given.target_alias
    if config is not None:
        source = config.source_alias if source is None else source
        target = config.target_alias if target is None else target
    if "" in (source, target):
        raise NamingPolicyError("an alias is empty")
    if source is None or target is None:
        raise MirrorFlowError(
            "the target has no configuration of MirrorMaker (mm2-configs.*.internal): say --source-alias and"
            " --target-alias"
        )
    if source == target:
        raise NamingPolicyError(f"both clusters have the alias {source!r}")
    return source, target


def _reads_committed(given: argparse.Namespace, config: FoundConfig | None) -> bool | None:
    if given.isolation is not None:
        return bool(given.isolation == "read_committed")
    return config.reads_committed if config else None
