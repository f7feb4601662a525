# SPDX-License-Identifier: Apache-2.0
"""Reads the files of quorums, and those that changed meanwhile once more, as files of running nodes do."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import attrs

from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence, Place, SurveyTask
from raftlog.tools.auditing.run.looks import (
    SurveyFiles,
    changed_places,
    is_read_once,
    newly_unread,
    seen_again,
    told_twice,
    unlisted,
)
from raftlog.tools.catalogue.audit_rules import UNREADABLE_RULES
from raftlog.tools.catalogue.findings import Finding

ListFiles = Callable[[], Iterable[SurveyTask | Finding]]
"""Lists all files that are to be read, and the problems of listing them."""


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


def look_twice(
    list_files: ListFiles, survey: SurveyFiles, after_first: Callable[[Look], object] = lambda _: None
) -> Looks:
    """Read all files, list them again, and read what has changed once more.

    Of the findings above harmless in files that changed, the last look has those that the first has too. A second look
    that fails takes nothing back: then the first counts, and what failed is a problem.

    Args:
        list_files: lists the files.
        survey: reads some of them.
        after_first: is called with the first look before the files are listed again. What it reads of them is of the
            same moment then, unless they turn out to have changed.

    Raises:
        MissingExtraError: a package of an extra is not installed.
    """
    problems: list[Finding] = []
    tasks, listed = _listed(list_files, problems)
    first = _read(tasks, {}, listed, survey)
    after_first(first)
    if any(map(is_read_once, tasks)):
        return Looks(first, first, problems)
    more: list[Finding] = []
    now, listed = _listed(list_files, more)
    changed = changed_places(tasks, now)
    if not changed:
        return Looks(first, first, problems)
    before = {file.task.path: file for file in first.files}
    last = _read(now, before, listed, survey)
    failures = [each for each in more if each.rule in UNREADABLE_RULES and each not in problems]
    failures += newly_unread(_findings(first), _findings(last))
    failures += unlisted(_by_place(tasks), {task.place for task in now}, failures)
    if failures:
        return Looks(first, first, [*problems, *failures])
    return Looks(first, _settled(last, before), problems, changed)


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


def _by_place(tasks: Iterable[SurveyTask]) -> dict[Place, list[SurveyTask]]:
    found: dict[Place, list[SurveyTask]] = {}
    for task in tasks:
        found.setdefault(task.place, []).append(task)
    return found


def _read(
    tasks: Sequence[SurveyTask],
    known: Mapping[str, FileEvidence],
    listed: Mapping[Place, float],
    survey: SurveyFiles,
) -> Look:
    """Read all files but those that are known and have not changed."""
    read = dict(listed)

    def noted(changed: Iterable[SurveyTask]) -> Iterator[FileEvidence]:
        for file in survey(changed):
            read[file.task.place] = time.monotonic()
            yield file

    return Look(seen_again(tasks, known, noted), listed, read)


def _settled(last: Look, before: Mapping[str, FileEvidence]) -> Look:
    """Take from a second look the findings that ``told_twice`` does not tell."""
    return attrs.evolve(last, files=[_told(file, before.get(file.task.path)) for file in last.files])


def _told(file: FileEvidence, before: FileEvidence | None) -> FileEvidence:
    if file is before:
        return file
    return attrs.evolve(file, findings=told_twice(() if before is None else before.findings, file.findings))


def _findings(look: Look) -> Iterator[Finding]:
    return (finding for file in look.files for finding in file.findings)
