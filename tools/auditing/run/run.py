# SPDX-License-Identifier: Apache-2.0
"""One audit from paths to findings: tasks, surveys, judgements, and the account of all bytes."""

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing

import attrs

from raftlog.records.rules import Severity
from raftlog.tools.auditing.evidence import FileEvidence, SurveyTask, in_partitions
from raftlog.tools.auditing.judgement.judgement import Judged
from raftlog.tools.auditing.run.engine import survey_all
from raftlog.tools.auditing.run.second_look import settle_groups
from raftlog.tools.auditing.survey.survey import survey as survey_file
from raftlog.tools.auditing.survey.tasks import find_tasks
from raftlog.tools.catalogue.audit_rules import UNREAD_RULES, UNREADABLE_RULES
from raftlog.tools.catalogue.findings import Finding, Tally
from raftlog.tools.input.inputs import LARGEST_SMALL_FILE_BYTES


def audit(
    paths: Iterable[str],
    processes: int,
    survey: Callable[[SurveyTask], FileEvidence] = survey_file,
    surveyed: Callable[[FileEvidence], None] | None = None,
    *,
    reads_messages: bool = False,
) -> Iterator[Judged]:
    """Yield judged evidence, one partition with all its replicas at a time; findings about directories come last.

    Args:
        paths: as for ``find_tasks``.
        processes: number of processes that read files.
        survey: the function that surveys a file; must be picklable.
        surveyed: called with each file's evidence as soon as it is available, in order.
        reads_messages: whether to read the messages in records of the metadata log too.

    Raises:
        MissingExtraError: a package of an extra is not installed.
    """
    paths, problems = list(paths), list[Finding]()
    with closing(survey_all(tasks_of(paths, problems, reads_messages=reads_messages), processes, survey)) as files:
        reported = files if surveyed is None else _reporting_each(files, surveyed)
        list_again = functools.partial(tasks_of, paths, reads_messages=reads_messages)
        yield from settle_groups(in_partitions(reported), survey, problems, list_again)


def tasks_of(paths: Iterable[str], problems: list[Finding], *, reads_messages: bool = False) -> Iterator[SurveyTask]:
    """Yield the tasks, and collect the problems of directories separately."""
    for task in find_tasks(paths):
        if isinstance(task, Finding):
            problems.append(task)
        else:
            yield attrs.evolve(task, reads_messages=True) if reads_messages else task


def _reporting_each(files: Iterable[FileEvidence], surveyed: Callable[[FileEvidence], None]) -> Iterator[FileEvidence]:
    for file in files:
        surveyed(file)
        yield file


@attrs.define
class Account:
    """Accounts for all bytes and findings.

    Attributes:
        files: number of files, indexes included.
        explained_bytes: in batches whose CRC holds.
        damaged_bytes: in corruption and torn tails.
        padding_bytes: zeros at the end of files of batches.
        small_file_bytes: in indexes and other files without batches, which were read.
        unread_bytes: in files that do not belong to the log, are being deleted, or could not be read, and in the part
            of small files beyond the greatest size of such files.
        unreadable: number of files or directories that could not be read, or not be judged because of a bug.
        by_severity: number of findings per severity.
        by_rule: number of findings per rule.
    """

    files: int = 0
    explained_bytes: int = 0
    damaged_bytes: int = 0
    padding_bytes: int = 0
    small_file_bytes: int = 0
    unread_bytes: int = 0
    unreadable: int = 0
    by_severity: Counter[Severity] = attrs.field(factory=Counter)
    by_rule: Counter[str] = attrs.field(factory=Counter)

    @property
    def bytes(self) -> int:
        """The number of all bytes."""
        return (
            self.explained_bytes + self.damaged_bytes + self.padding_bytes + self.small_file_bytes + self.unread_bytes
        )

    def add(self, judged: Judged) -> None:
        """Count judged evidence."""
        for partition in judged.places:
            for file in partition.files:
                self._add_file(file)
        for finding in judged.findings:
            self.by_severity[finding.severity] += 1
            self.by_rule[finding.rule] += 1
            self.unreadable += finding.rule in UNREADABLE_RULES

    def merge(self, other: "Account") -> None:
        """Add the counts of another account, of other files and findings."""
        for field in attrs.fields(Account):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    def _add_file(self, file: FileEvidence) -> None:
        task, coverage = file.task, file.coverage
        self.files += 1 + len(task.indexes)
        if coverage is not None:
            self.explained_bytes += coverage.explained_bytes
            self.damaged_bytes += coverage.damaged_bytes
            self.padding_bytes += coverage.padding_bytes
            unread_bytes = _unread_index_bytes(file)
            self.small_file_bytes += task.indexes_size_bytes - unread_bytes
            self.unread_bytes += unread_bytes
        elif is_read(file):
            read_bytes = min(task.size_bytes, LARGEST_SMALL_FILE_BYTES)
            self.small_file_bytes += read_bytes
            self.unread_bytes += task.size_bytes - read_bytes
        else:
            self.unread_bytes += task.size_bytes + task.indexes_size_bytes

    @property
    def verdict(self) -> str:
        """The worst severity above harmless; ``unreadable`` if that is not damage and something was not read."""
        found = {severity for severity, count in self.by_severity.items() if count}
        worst = max(found, default=Severity.HARMLESS)
        if self.unreadable and worst < Severity.DAMAGED:
            return "unreadable"
        return "clean" if worst is Severity.HARMLESS else worst.value

    def exit_code(self, fail_on: Severity) -> int:
        """Return the exit code. Findings below the given severity do not count; unreadable files always do."""
        tally = Tally(errors=self.unreadable)
        for severity, count in self.by_severity.items():
            if severity >= fail_on:
                tally.by_severity[max(severity, Severity.SUSPICIOUS)] += count
        return tally.exit_code

    def coverage_line(self) -> str:
        """Return a line that accounts for all bytes."""
        return (
            f"{self.files} files, {self.bytes} bytes = {self.explained_bytes} in sound batches"
            f" + {self.damaged_bytes} damaged + {self.padding_bytes} of padding"
            f" + {self.small_file_bytes} in indexes and small files + {self.unread_bytes} not read"
        )

    def verdict_line(self) -> str:
        """Return a line with the verdict and the number of findings per severity."""
        counts = ", ".join(f"{self.by_severity[severity]} {severity.value}" for severity in reversed(Severity))
        unread = f"; {self.unreadable} files or directories could not be read or judged" if self.unreadable else ""
        return f"{self.verdict}: findings: {counts}{unread}"


def is_read(file: FileEvidence) -> bool:
    """Whether the bytes of a file were read."""
    task = file.task
    if any(finding.rule in UNREAD_RULES and finding.path == task.path for finding in file.findings):
        return False
    if file.coverage is not None:
        return True
    from raftlog.tools.auditing.survey.small_file_survey import (
        has_contents,
    )  # Imported as late as a survey does, only for such a file.

    return has_contents(task)


def _unread_index_bytes(file: FileEvidence) -> int:
    unread = {finding.path for finding in file.findings if finding.rule in UNREAD_RULES}
    return sum(file.task.index_sizes_bytes.get(kind, 0) for kind, path in file.task.indexes.items() if path in unread)
