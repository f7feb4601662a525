# SPDX-License-Identifier: Apache-2.0
"""Tells only what stands still: a directory that changed while it was read is read, and judged, once more.

A running node appends, rolls, compacts, deletes and truncates at any time, so that files of one directory were read at
different moments, and may seem to contradict each other. When places have been judged, their directories are listed
again. If nothing has changed, all was read as it stood at one moment. Otherwise the files that changed are surveyed
again, all is judged again, and of what is above harmless, only what both judgements say in the same words is told: a
fault that stands still is the same twice, and one that is made up by a log that moves has other numbers, or is gone.
A second look that fails takes nothing back: the first judgement is told, and what failed.
"""

import datetime
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import attrs

from raftlog.errors import MissingExtraError, fresh_copy
from raftlog.file_paths import directory_of
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence, Place, SurveyTask
from raftlog.tools.auditing.judgement.judgement import (
    Judged,
    Judges,
    by_path,
    in_groups,
    judge_group,
    judge_together,
    kept_of,
)
from raftlog.tools.auditing.run.directory_problems import with_problems
from raftlog.tools.auditing.run.engine import Survey, attempt
from raftlog.tools.auditing.run.looks import (
    changed_places,
    is_grave,
    is_read_once,
    listed_again,
    listing_failures,
    newly_unread,
    seen_again,
    told_twice,
    unlisted,
)
from raftlog.tools.auditing.survey.found_directories import has_entries
from raftlog.tools.catalogue.audit_rules import UNREADABLE_RULES
from raftlog.tools.catalogue.findings import Finding

ListAgain = Callable[[list[Finding]], Iterable[SurveyTask]]
"""Lists all that is audited once more: returns the tasks, in order, and adds to the problems of directories."""


@attrs.frozen
class SecondLook:
    """The second look at a place.

    Attributes:
        evidence: of the place as it was then; None if the node had deleted its directory.
        changes: findings, all of them harmless, which say that it changed; empty if it did not.
        failures: findings which say that it could not be looked at again, so that the first look counts.
    """

    evidence: PartitionEvidence | None
    changes: tuple[Finding, ...] = ()
    failures: tuple[Finding, ...] = ()


def look_again(place: PartitionEvidence, survey: Survey) -> SecondLook:
    """List the directory of a place again, and survey the files that changed since they were listed before.

    Remote directories, pipes and standard input are not read again.

    Args:
        place: the evidence of all its files, from the first look.
        survey: surveys a file.

    Raises:
        MissingExtraError: a package of an extra is not installed.
    """
    tasks = [file.task for file in place.files]
    if any(map(is_read_once, tasks)):
        return SecondLook(place)
    moment = datetime.datetime.now(datetime.UTC)
    listed = listed_again(tasks)
    now = [found for found in listed if isinstance(found, SurveyTask)]
    if not changed_places(tasks, now):
        return SecondLook(place)
    failures = tuple(listing_failures(listed, tasks))
    if failures:
        return SecondLook(place, failures=failures)
    path = directory_of(tasks[0].path)
    if not now:
        return SecondLook(None, (Finding(path, "file-gone", "all its files were deleted while they were read"),))
    seen = _seen_again(place.place, now, _by_file([place]), survey)
    reason = f"changed while it was read: judged as it was at {moment:%Y-%m-%d %H:%M:%S} UTC; nothing newer is judged"
    return SecondLook(seen, (Finding(path, "directory-changed", reason),))


def judge_settled(
    places: tuple[PartitionEvidence, ...],
    directories: Mapping[str, PartitionEvidence],
    survey: Survey,
    judges: Judges | None = None,
) -> Judged:
    """Judge places together, as ``judge_group`` does, and once more if one of their directories changed meanwhile.

    Args:
        places: all places of one topic and partition, in order, as they were surveyed.
        directories: log directories by path, at least those of the places.
        survey: surveys a file that changed.
        judges: the judgements to run; None for all.

    Returns:
        The judgement of what was seen last; of what is above harmless, only what was found each time. If a second look
        failed, the first judgement, and what failed.
    """
    first = judge_group(places, directories, judges)
    looks = [look_again(place, survey) for place in places]
    failures = [finding for look in looks for finding in look.failures]
    changes = [finding for look in looks for finding in look.changes]
    if not changes or failures:
        return first.with_findings(failures) if failures else first
    seen = tuple(look.evidence for look in looks if look.evidence is not None)
    if not seen:
        return attrs.evolve(first, findings=told_twice(first.findings, ()), of_each_file=()).with_findings(changes)
    second = judge_group(seen, {**directories, **by_path(seen)}, judges)
    unread = newly_unread((*first.findings, *first.of_each_file), second.of_each_file)
    failures = [*unread, *itertools.chain.from_iterable(map(_failures_now, seen))]
    return first.with_findings(failures) if failures else both(first, second).with_findings(changes)


def settle_groups(
    partitions: Iterable[PartitionEvidence],
    survey: Survey,
    problems: list[Finding],
    list_again: ListAgain,
) -> Iterator[Judged]:
    """Yield the judgements of all places, and at the end the comparison of log directories, each settled.

    Args:
        partitions: ordered by topic and partition, so that log directories come first.
        survey: surveys a file that changed.
        problems: of listing; complete once the partitions are.
        list_again: lists all that is audited once more.
    """
    kept: list[PartitionEvidence] = []
    directories: Mapping[str, PartitionEvidence] = {}
    for places in in_groups(partitions):
        judged = judge_settled(places, by_path(places) or directories, survey)
        directories = by_path(judged.places) or directories
        kept += map(kept_of, judged.places)
        yield judged
    yield settle_together(kept, problems, survey, list_again)


def settle_together(
    kept: Sequence[PartitionEvidence], problems: Iterable[Finding], survey: Survey, list_again: ListAgain
) -> Judged:
    """Compare log directories with each other. If there is anything to tell, list all of them again before.

    Logs are read one after the other: a checkpoint may be older than the log that it speaks of, and a topic may be
    made or deleted between.

    Args:
        kept: the results of ``kept_of`` for all places, in order.
        problems: found by listing directories; they are told with the comparison.
        survey: surveys a file that changed.
        list_again: lists all that is audited once more.
    """
    problems = list(problems)
    first = with_problems(judge_together(kept), problems)
    if not any(map(is_grave, first.findings)):
        return first
    said: list[Finding] = []
    tasks = list(list_again(said))
    now = list(_kept_again(kept, tasks, survey))
    failures = [finding for finding in said if finding.rule in UNREADABLE_RULES and finding not in problems]
    failures += unlisted(
        {place.place: [file.task for file in place.files] for place in kept}, {place.place for place in now}, failures
    )
    failures += newly_unread(_unread_files(kept), _unread_files(now))
    return with_problems(first, failures) if failures else both(first, with_problems(judge_together(now), said))


def both(first: Judged, second: Judged) -> Judged:
    """Return the second judgement, with those findings above harmless that the first has too."""
    return attrs.evolve(
        second,
        findings=told_twice(first.findings, second.findings),
        of_each_file=told_twice(first.of_each_file, second.of_each_file),
    )


def surveyed(survey: Survey, task: SurveyTask) -> FileEvidence:
    """Survey a file in this process; a bug in raftlog becomes a finding.

    Raises:
        MissingExtraError: a package of an extra is not installed.
    """
    outcome = attempt(survey, task)
    if isinstance(outcome, MissingExtraError):
        raise fresh_copy(outcome)
    return outcome


def _failures_now(place: PartitionEvidence) -> Iterator[Finding]:
    """Yield a failure if the directory of a place went away meanwhile, and no node has deleted it."""
    tasks = [file.task for file in place.files]
    if not has_entries(directory_of(tasks[0].path) or "."):
        yield from listing_failures(listed_again(tasks), tasks)


def _unread_files(places: Iterable[PartitionEvidence]) -> Iterator[Finding]:
    return (finding for place in places for file in place.files for finding in file.findings)


def _kept_again(
    kept: Iterable[PartitionEvidence], tasks: Iterable[SurveyTask], survey: Survey
) -> Iterator[PartitionEvidence]:
    """Yield what log directories are compared by, as it is now: only files that changed are surveyed."""
    before = _by_file(kept)
    for place, group in itertools.groupby(tasks, key=lambda task: task.place):
        listed = PartitionEvidence(place, tuple(FileEvidence(task) for task in group))
        yield kept_of(_seen_again(place, [file.task for file in kept_of(listed).files], before, survey))


def _seen_again(
    place: Place, tasks: Sequence[SurveyTask], before: Mapping[str, FileEvidence], survey: Survey
) -> PartitionEvidence:
    files = seen_again(tasks, before, functools.partial(map, functools.partial(surveyed, survey)))
    return PartitionEvidence(place, tuple(sorted(files, key=lambda file: file.task.path)))


def _by_file(places: Iterable[PartitionEvidence]) -> dict[str, FileEvidence]:
    return {file.task.path: file for place in places for file in place.files}
