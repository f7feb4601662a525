# SPDX-License-Identifier: Apache-2.0
"""Tells one fault once: what several replicas share, and what is the same at many places of one log."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs

from raftlog.file_paths import directory_of, name_of
from raftlog.records.files.file_names import FileKind
from raftlog.records.rules import Subject
from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.finding_limit import count_of_more
from raftlog.tools.catalogue.audit_rules import CATALOGUE, TAIL_RULES, UNREAD_RULES
from raftlog.tools.catalogue.findings import Finding

MOST_ALIKE: Final = 3
"""Up to so many findings of one log that say the same are told one by one."""

_NAMED: Final = 4
"""So many of the replicas that share a fault are named."""
_OF_ONE_DISK: Final = TAIL_RULES | UNREAD_RULES | {"batch-length", "batch-overrun", "batch-magic"}
"""Rules of faults that another replica has by chance, since what was written there is not known."""
_OF_SEVERAL: Final = frozenset(
    {Subject.REPLICAS, Subject.RAFT_REPLICAS, Subject.TOPIC_REPLICAS, Subject.LOG_DIRECTORIES}
)


def told_once(findings: Sequence[Finding], replicas: Iterable[Sequence[PartitionEvidence]]) -> list[Finding]:
    """Return findings without repetitions, in any order.

    A fault of a sound batch that several replicas have was written once, by the leader: one finding names them all. So
    does one for a fault of a snapshot that they have under the same name. Findings of one log that say the same at more
    than ``MOST_ALIKE`` places are one, with their number.

    Args:
        findings: about one partition.
        replicas: its replicas, by cluster.
    """
    found = list(findings)
    for of_one_cluster in replicas:
        if len(of_one_cluster) > 1:
            found = list(_shared(found, of_one_cluster))
    return list(_alike(found)) if len(found) > MOST_ALIKE else found


def _shared(findings: Iterable[Finding], replicas: Sequence[PartitionEvidence]) -> Iterator[Finding]:
    names = _names_of_contents(replicas)
    by_fault: dict[object, list[Finding]] = {}
    for finding in findings:
        name = names.get(finding.path)
        if name is None or not _is_of_contents(finding):
            yield finding
            continue
        fault = (name, finding.rule, finding.offset, finding.epoch, finding.reason)
        by_fault.setdefault(fault, []).append(finding)
    for same in by_fault.values():
        first, *others = sorted(same, key=lambda finding: (finding.path, finding.position))
        elsewhere = [finding for finding in others if directory_of(finding.path) != directory_of(first.path)]
        if len(elsewhere) == len({directory_of(finding.path) for finding in elsewhere}) == len(others) > 0:
            named = ", ".join(finding.path for finding in others[:_NAMED])
            more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
            yield attrs.evolve(first, reason=f"{first.reason}; {named}{more} {_has(others)} the same")
        else:
            yield from same


def _has(others: Sequence[Finding]) -> str:
    return "has" if len(others) == 1 else "have"


def _names_of_contents(replicas: Iterable[PartitionEvidence]) -> dict[str, str]:
    """Return, by path, a name that is equal for files that may have the same contents: segments, or one snapshot."""
    names = {}
    for file in (file for replica in replicas for file in replica.files):
        if file.task.kind is FileKind.LOG:
            names[file.task.path] = ""
        elif file.task.kind is FileKind.SNAPSHOT:
            names[file.task.path] = name_of(file.task.path)
    return names


def _is_of_contents(finding: Finding) -> bool:
    is_placed = finding.position is not None and finding.offset is not None
    return is_placed and finding.rule not in _OF_ONE_DISK and CATALOGUE[finding.rule].subject not in _OF_SEVERAL


def _alike(findings: Iterable[Finding]) -> Iterator[Finding]:
    by_log: dict[tuple[str, str, str], list[Finding]] = {}
    more: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        if finding.rule in UNREAD_RULES:
            yield finding
        elif count_of_more(finding):
            more[finding.path, finding.rule] = finding
        else:
            by_log.setdefault((directory_of(finding.path), finding.rule, finding.reason), []).append(finding)
    reasons: dict[tuple[str, str], set[str]] = {}
    for (_, rule, reason), same in by_log.items():
        for finding in same:
            reasons.setdefault((finding.path, rule), set()).add(reason)
    for same in by_log.values():
        if len(same) > MOST_ALIKE:
            beyond = [more.pop(key) for key in _places(same) if key in more and len(reasons[key]) == 1]
            yield _one_of_many(same, beyond)
        else:
            yield from same
    yield from more.values()


def _places(findings: Iterable[Finding]) -> Mapping[tuple[str, str], None]:
    """Return the files and rules of findings, each once, in order."""
    return dict.fromkeys((finding.path, finding.rule) for finding in findings)


def _one_of_many(same: Sequence[Finding], beyond: Iterable[Finding]) -> Finding:
    first, *_, last = sorted(same, key=lambda finding: (finding.path, finding.position or 0))
    uncounted = sum(map(count_of_more, beyond))
    count = len(same) - 1 + uncounted
    where = "" if uncounted or last.offset is None else f", the last at offset {last.offset}"
    reason = f"{first.reason}; so it is at {count} more places{where}"
    return attrs.evolve(first, reason=reason, size_bytes=sum(finding.size_bytes for finding in same))
