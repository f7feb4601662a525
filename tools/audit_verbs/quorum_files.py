# SPDX-License-Identifier: Apache-2.0
"""Input and output shared by ``voters``, ``epochs`` and ``quorum``: they read replicas, and write lines per log."""

import argparse
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence

import attrs

from raftlog.errors import RaftLogError
from raftlog.records.files.file_names import FileKind
from raftlog.records.rules import Severity
from raftlog.tools.audit_verbs.two_looks import Looks, Reading, look_twice
from raftlog.tools.auditing.crash_isolation import attempted, report_faults
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence, SurveyTask, group_by_place
from raftlog.tools.auditing.history.histories import by_history
from raftlog.tools.auditing.history.log_directories import by_cluster, log_directories
from raftlog.tools.auditing.history.replicas import replicas
from raftlog.tools.auditing.survey.quorum_tasks import quorum_task
from raftlog.tools.auditing.survey.tasks import find_tasks
from raftlog.tools.catalogue.audit_rules import UNREADABLE_RULES
from raftlog.tools.catalogue.findings import Finding, Tally
from raftlog.tools.input.inputs import check_names_segments
from raftlog.tools.terminal.argument_parser import Parser
from raftlog.tools.terminal.audit_options import LOG_PATHS_HELP, add_processes_option, prepare_to_survey
from raftlog.tools.terminal.exit_codes import EXIT_CODES_HELP, EXIT_ERROR
from raftlog.tools.terminal.spool_option import add_spool_option
from raftlog.tools.terminal.standard_error import say
from raftlog.tools.terminal.text_width import fit_lines
from raftlog.tools.terminal.verb_output import add_format_option, write_lines, write_text

Log = Sequence[PartitionEvidence]
"""The replicas of a log, with their log directories."""

LinesOfLog = Callable[[Sequence[PartitionEvidence], str, Reading], Iterable[str] | None]
"""Returns a verb's lines about one log, from its replicas and their log directories, in an output format.

The last argument is how they were read. None means that the verb does not apply to this log: it is not a raft log.
"""


def show_logs(
    parser: argparse.ArgumentParser,
    lines: LinesOfLog,
    arguments: Sequence[str],
    exit_code: Callable[[Tally], int] = lambda tally: tally.exit_code,
    settled: Callable[[Log, Log], Log] = lambda _, last: last,
) -> int:
    """Run a verb that writes lines about each log, and return the exit code.

    Args:
        parser: of the verb's arguments.
        lines: returns the lines about one log.
        arguments: what follows the verb on the command line.
        exit_code: returns the exit code, once all lines are there; by default it follows from the findings.
        settled: returns which of two looks at a log that changed meanwhile is shown; by default the last.
    """
    program = parser.prog
    given = parser.parse_args(arguments)
    try:
        files = read_quorum_files(given, program)
    except RaftLogError as error:
        say(str(error), program)
        return EXIT_ERROR
    files.settle(settled)
    texts, faults = _quorum_texts(files, lines, given.format, program)
    if files.logs and not texts and not faults:
        say("the paths have no raft log", program)
        return EXIT_ERROR
    for number, (log, text) in enumerate(texts):
        has_title = given.format == "text" and len(texts) > 1
        title = [*([""] if number else []), _title(log)] if has_title else []
        if given.format == "text":
            write_lines(fit_lines([*title, *text]))
        else:
            write_text(text)
    return report_faults(faults, exit_code(files.tally), program)


_QuorumTexts = list[tuple[Log, list[str]]]


def _quorum_texts(
    files: "QuorumFiles", lines: LinesOfLog, output_format: str, program: str
) -> tuple[_QuorumTexts, list[Finding]]:
    """Return the lines about each log, and a finding for each log that makes raftlog fail."""
    texts: _QuorumTexts = []
    faults: list[Finding] = []

    def all_lines(log: Sequence[PartitionEvidence]) -> list[str] | None:
        found = lines(log, output_format, files.looks.reading(log))
        _report_lost_records(log, files.tally, program)
        return None if found is None else list(found)

    for log in files.logs:
        text = attempted(log[-1].place.log_directory, all_lines, log)
        if isinstance(text, Finding):
            faults.append(text)
        elif text is not None:
            texts.append((log, text))
    return texts, faults


@attrs.define
class QuorumFiles:
    """The given files that have facts about voters and leaders.

    Attributes:
        looks: how they were read.
        logs: the replicas of each log, with their log directories. Logs of the same name are
            distinguished by the cluster ids of their directories.
        tally: of the findings; damage was reported on standard error, one line per file.
    """

    looks: Looks
    logs: list[Log] = attrs.field(factory=list)
    tally: Tally = attrs.field(factory=Tally)

    def settle(self, settled: Callable[[Log, Log], Log]) -> None:
        """Choose between the looks at each log, if files changed meanwhile and both looks saw the same logs."""
        if not self.looks.changed:
            return
        path = self.logs[0][-1].place.log_directory if self.logs else ""
        before = attempted(path, lambda: list(_by_log(group_by_place(self.looks.first.files))))
        if not isinstance(before, Finding) and len(before) == len(self.logs):
            chosen = attempted(path, lambda: [settled(*looks) for looks in zip(before, self.logs, strict=True)])
            self.logs = self.logs if isinstance(chosen, Finding) else chosen


def make_quorum_parser(verb: str, description: str, exit_codes_help: str = EXIT_CODES_HELP) -> Parser:
    """Return the parser of the arguments of a verb that writes lines about each log.

    Args:
        verb: its name.
        description: for its help.
        exit_codes_help: what its exit codes mean.
    """
    parser = Parser(
        prog=f"raftlog {verb}",
        description=description,
        epilog=f"Give the directories of all replicas: they complement each other. {exit_codes_help}",
    )
    parser.add_argument("paths", nargs="+", metavar="PATH", help=LOG_PATHS_HELP)
    add_processes_option(parser)
    add_format_option(parser)
    add_spool_option(parser)
    return parser


def read_quorum_files(given: argparse.Namespace, program: str) -> QuorumFiles:
    """Survey the files under the paths of a command line, and report damage on standard error.

    Args:
        given: has the paths and the number of processes.
        program: says what is reported.

    Raises:
        RaftLogError: a path is that of an index; or a package of an extra is not installed.
    """
    prepare_to_survey()
    check_names_segments(given.paths)
    from raftlog.tools.auditing.run.engine import survey_all  # Only now: numpy comes with it.

    looks = look_twice(functools.partial(_tasks, given.paths), lambda tasks: survey_all(tasks, given.processes))
    files = QuorumFiles(looks)
    for problem in looks.problems:
        if problem.severity is not Severity.HARMLESS:
            say(str(problem), program)
            files.tally.add(problem)
            files.tally.errors += problem.rule in UNREADABLE_RULES
    for evidence in looks.last.files:
        _report_damage(evidence, files.tally, program)
    logs = attempted(given.paths[0], lambda: list[Log](_by_log(group_by_place(looks.last.files))))
    if isinstance(logs, Finding):
        say(str(logs), program)
        files.tally.errors += 1
        return files
    files.logs = logs
    if not files.logs:
        if not files.tally.by_severity.total():
            say("the paths have no log or snapshot", program)
        files.tally.errors += 1
    return files


def _tasks(paths: Sequence[str]) -> Iterator[SurveyTask | Finding]:
    """Yield what there is to read: where a file belongs to a raft log, no other logs; and the problems of listing."""
    found = list(find_tasks(paths))
    wanted = (quorum_task(each) for each in found if isinstance(each, SurveyTask))
    tasks = [task for task in wanted if task is not None]
    raft = [task for task in tasks if task.is_raft or task.kind is not FileKind.LOG]
    is_raft = any(task.kind is not FileKind.META_PROPERTIES for task in raft)
    yield from (each for each in found if isinstance(each, Finding))
    yield from raft if is_raft else tasks


def _report_damage(evidence: FileEvidence, tally: Tally, program: str) -> None:
    """Count the findings of a file, and report them in one line. What can be read of the file is still used."""
    serious = [finding for finding in evidence.findings if finding.severity is not Severity.HARMLESS]
    for finding in evidence.findings:
        tally.add(finding)
        tally.errors += finding.rule in UNREADABLE_RULES
    if serious:
        more = f", and {len(serious) - 1} more: raftlog verify shows them" if len(serious) > 1 else ""
        say(f"{serious[0]}{more}", program)


def _report_lost_records(log: Sequence[PartitionEvidence], tally: Tally, program: str) -> None:
    """Count and report replicas that have lost durable records although no file of theirs has damaged bytes."""
    for replica in replicas(log):
        findings = (finding for file in replica.evidence.files for finding in file.findings)
        if replica.quarantined_from is not None and not any(each.severity >= Severity.DAMAGED for each in findings):
            tally.by_severity[Severity.DATA_LOSS] += 1
            lost = f"the log has lost durable records from offset {replica.quarantined_from} on"
            say(f"{replica.path}: {lost}: raftlog verify shows more", program)


def _by_log(places: Sequence[PartitionEvidence]) -> Iterator[list[PartitionEvidence]]:
    """Group replicas by log and cluster, and yield each group with its log directories."""
    directories = log_directories(places)
    by_name: dict[tuple[str, int], list[PartitionEvidence]] = {}
    for place in places:
        if any(file.task.kind is not FileKind.META_PROPERTIES for file in place.files):
            by_name.setdefault(place.place.topic_partition, []).append(place)
    for _, of_one_name in sorted(by_name.items()):
        clusters = by_cluster(of_one_name, lambda partition: directories[partition.place.log_directory].cluster_id)
        histories = (each for _, found in sorted(clusters.items()) for each in by_history(found, lambda place: place))
        for partitions in histories:
            inside = {partition.place.log_directory for partition in partitions}
            beside = [place for place in places if not place.place.topic and place.place.log_directory in inside]
            yield [*(place for place in beside if place not in partitions), *partitions]


def _title(log: Sequence[PartitionEvidence]) -> str:
    """Return the line that precedes each log if there are several."""
    place = log[-1].place
    cluster_ids = {each.cluster_id for each in log_directories(log).values() if each.cluster_id}
    cluster = f" of cluster {', '.join(sorted(cluster_ids))}" if cluster_ids else ""
    return f"{place.topic}-{place.partition}{cluster}" if place.topic else place.log_directory
