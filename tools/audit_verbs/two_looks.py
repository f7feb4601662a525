# SPDX-License-Identifier: Apache-2.0
"""Reads the files of quorums, and those that changed meanwhile once more, as files of running nodes do."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import attrs

from raftlog.records.rules import Severity
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence, Place, SurveyTask
from raftlog.tools.catalogue.audit_rules import UNREADABLE_RULES
from raftlog.tools.catalogue.findings import Finding

ListFiles = Callable[[], Iterable[SurveyTask | Finding]]
"""Lists all files that are to be read, and the problems of listing them."""
SurveyFiles = Callable[[Iterable[SurveyTask]], Iterable[FileEvidence]]
"""Yields the evidence of files, in their order."""


@attrs.frozen
class Look:
    """What was seen of all files once.

    Attributes:
        files: the evidence, in order.
        listed: when each directory was first listed, by place, in seconds of a clock without a meaning of its own. A
            file of batches is read up to its size then.
        read: when the last of its files had been read.
    """

    files: Sequence[FileEvidence]
    listed: Mapping[Place, float]
    read: Mapping[Place, float]


@attrs.frozen
class Looks:
    """What was seen of all files before and after.

    Attributes:
        first, last: the looks; they are the same if nothing had changed.
        problems: findings of listing directories.
        changed: the places that had changed.
    """

    first: Look
    last: Look
    problems: Sequence[Finding]
    changed: frozenset[Place] = frozenset()

    def reading(self, log: Iterable[PartitionEvidence]) -> "Reading":
        """Return how the replicas of a log were read."""
        places = {each.place for each in log}
        changed = places & self.changed
        if not changed:
            return Reading()
        begin = min(self.last.listed[place] for place in places)
        end = max(self.last.read[place] for place in places)
        return Reading(round((end - begin) * 1000), frozenset(place.log_directory for place in changed))


@attrs.frozen
class Reading:
    """How the replicas of a log were read.

    Attributes:
        within_ms: the time within which all were read, if some changed meanwhile; otherwise it does not matter: None.
        changed: the log directories that changed.
    """

    within_ms: int | None = None
    changed: frozenset[str] = frozenset()


def look_twice(list_files: ListFiles, survey: SurveyFiles) -> Looks:
    """Read all files, list them again, and read what has changed once more.

    Of the findings above harmless in files that changed, the last look has those that the first has too. A second look
    that fails takes nothing back: then the first counts, and what failed is a problem.

    Args:
        list_files: lists the files.
        survey: reads some of them.

    Raises:
        MissingExtraError: a package of an extra is not installed.
    """
    from raftlog.tools.auditing.run.second_look import is_read_once  # Only now: numpy comes with it.

    problems: list[Finding] = []
    tasks, listed = _listed(list_files, problems)
    first = _read(tasks, {}, listed, survey)
    if any(map(is_read_once, tasks)):
        return Looks(first, first, problems)
    more: list[Finding] = []
    now, listed = _listed(list_files, more)
    changed = frozenset(_changed(tasks, now))
    if not changed:
        return Looks(first, first, problems)
    before = {file.task.path: file for file in first.files}
    last = _settled(_read(now, before, listed, survey), first)
    failures = [each for each in more if each.rule in UNREADABLE_RULES and each not in problems]
    failures += _unread(last.files, first.files)
    failures += _missing({task.place for task in tasks} - {task.place for task in now}, failures)
    if failures:
        return Looks(first, first, [*problems, *failures])
    return Looks(first, last, problems, changed)


def _listed(list_files: ListFiles, problems: list[Finding]) -> tuple[list[SurveyTask], dict[Place, float]]:
    tasks: list[SurveyTask] = []
    listed: dict[Place, float] = {}
    for found in list_files():
        if isinstance(found, Finding):
            problems.append(found)
        else:
            tasks.append(found)
            listed.setdefault(found.place, time.monotonic())
    return tasks, listed


def _changed(tasks: Iterable[SurveyTask], now: Iterable[SurveyTask]) -> Iterator[Place]:
    """Yield the places of files that are new, gone, or not as they were."""
    before, after = ({task.path: task for task in each} for each in (tasks, now))
    for path in before.keys() | after.keys():
        if before.get(path) != after.get(path):
            yield (before.get(path) or after[path]).place


def _read(
    tasks: Sequence[SurveyTask],
    known: Mapping[str, FileEvidence],
    listed: Mapping[Place, float],
    survey: SurveyFiles,
) -> Look:
    """Read all files but those that are known and have not changed."""
    files, read = dict(known), dict(listed)
    for file in survey([task for task in tasks if task.path not in known or known[task.path].task != task]):
        files[file.task.path] = file
        read[file.task.place] = time.monotonic()
    return Look([files[task.path] for task in tasks], listed, read)


def _settled(last: Look, first: Look) -> Look:
    """Take from a second look the findings above harmless that the first does not have."""
    known = {finding for file in first.files for finding in file.findings}
    return attrs.evolve(last, files=[_with_known(file, known) for file in last.files])


def _with_known(file: FileEvidence, known: set[Finding]) -> FileEvidence:
    def is_told(finding: Finding) -> bool:
        return finding in known or finding.severity is Severity.HARMLESS or finding.rule in UNREADABLE_RULES

    return attrs.evolve(file, findings=tuple(filter(is_told, file.findings)))


def _missing(places: Iterable[Place], said: Sequence[Finding]) -> Iterator[Finding]:
    """Yield a finding for each log directory that has lost all of its files or those of a log, unless one is said."""
    paths = {place.log_directory for place in places}
    for path in sorted(paths - {finding.path for finding in said}):
        yield Finding(path, "file-unreadable", "files that it had are gone, at the second look at it; the first counts")


def _unread(files: Iterable[FileEvidence], before: Iterable[FileEvidence]) -> Iterator[Finding]:
    known = {finding for file in before for finding in file.findings}
    found = (finding for file in files for finding in file.findings)
    return (finding for finding in found if finding.rule in UNREADABLE_RULES and finding not in known)
