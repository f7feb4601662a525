# SPDX-License-Identifier: Apache-2.0
"""Planting a fault in a clean copy, and judging what an audit says of it."""

import functools
from pathlib import Path
from typing import Final

import attrs
import pytest

from raftlog.records.checksum import crc32c
from raftlog.records.files.file_names import FileKind, parse_file_name
from raftlog.records.rules import Severity, Subject
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence, SurveyTask
from raftlog.tools.auditing.judgement import judgement
from raftlog.tools.auditing.judgement.judgement import Judged, Judges
from raftlog.tools.auditing.run.rule_status import KINDS_OF_SUBJECTS
from raftlog.tools.auditing.run.run import audit
from raftlog.tools.auditing.survey.survey import survey
from raftlog.tools.catalogue.audit_rules import CATALOGUE
from raftlog.tools.catalogue.findings import Finding
from tests.planted.fault import Fault, Spot
from tests.planted.ground import METADATA, CleanCopy, Ground

_JUDGE: Final = Judges().partition


@attrs.frozen
class Planted:
    """The findings of an audit about a fault.

    Attributes:
        fault: the kind.
        place: number of the place.
        ground: the ground in which it was planted.
        spot: its place.
        found: the finding that reports it; None if there is none.
        false_alarms: other findings that are not harmless.
        judged: all that the audit says.
    """

    fault: Fault
    place: int
    ground: str
    spot: Spot
    found: Finding | None
    false_alarms: tuple[Finding, ...]
    judged: tuple[Judged, ...]

    @property
    def is_right(self) -> bool:
        """Whether it was found by a rule about such a file, and nothing else was said."""
        return self.found is not None and is_of_its_subject(self.found) and not self.false_alarms

    def __str__(self) -> str:
        lines = [f"{self.fault.name}, place {self.place} on {self.ground}: {self.fault.what}"]
        if self.found is None:
            lines.append(f"  not found: one of {', '.join(self.fault.rules)} at {self.spot}")
        elif not is_of_its_subject(self.found):
            subject = CATALOGUE[self.found.rule].subject
            lines.append(
                f"  the subject of rule {self.found.rule} is {subject.value!r}, and it was found in {self.found.path}"
            )
        lines += [f"  false alarm: {finding}" for finding in self.false_alarms]
        return "\n".join(lines)


FOLLOWS: Final = frozenset({"committed-lost"})
"""Rules of the verdict on a whole quorum, which follows from a fault of one file; it is compared in ``facts``."""


def is_alarm(finding: Finding) -> bool:
    """Whether a finding beside that of a fault is a false alarm."""
    return finding.severity is not Severity.HARMLESS and finding.rule not in FOLLOWS


NAMED_ELSEWHERE: Final = frozenset({"segment-twice", "epochs-missing", "partition-missing", "election-copies"})
"""Rules whose findings name another file, or a directory, than the files that the rule is checked on."""


def is_of_its_subject(finding: Finding) -> bool:
    """Whether an input with the file of a finding is one that its rule is checked on, as far as the file shows it."""
    subject = CATALOGUE[finding.rule].subject
    name = parse_file_name(Path(finding.path).name)
    kind = None if name is None else name.kind
    match subject:
        case Subject.NOTHING:
            return False
        case Subject.RAFT:
            return is_of_raft(finding)
        case Subject.RAFT_REPLICAS:
            return is_of_raft(finding) or kind is not FileKind.LOG  # It may name the directories' meta.properties.
        case Subject.TOPICS | Subject.TOPIC_REPLICAS:
            return not is_of_raft(finding)
    return kind in KINDS_OF_SUBJECTS.get(subject, {kind}) or finding.rule in NAMED_ELSEWHERE


def is_of_raft(finding: Finding) -> bool:
    """Whether a finding names the metadata log's directory, or a file in it."""
    return METADATA in Path(finding.path).parts


class Field:
    """Where faults are planted, one at a time, and audited in this process.

    A file that is as it was in an earlier audit is not surveyed again: a survey is a function of a task and of bytes.
    Nor is a partition judged again by itself if all of its files are as they were.

    Args:
        directory: to make copies in.
    """

    def __init__(self, directory: Path) -> None:
        self.directory: Final = directory
        self._surveyed: dict[tuple[object, ...], FileEvidence] = {}
        self._judged: dict[tuple[int, ...], tuple[PartitionEvidence, tuple[Finding, ...]]] = {}
        self._found: dict[tuple[str, int], Finding | None] = {}
        self._copies: dict[str, CleanCopy] = {}
        self._clean: dict[str, frozenset[Finding]] = {}

    def plant(self, fault: Fault, place: int) -> Planted:
        """Plant a kind of fault at a place, by number, in a clean copy, and audit that."""
        name = fault.grounds[place % len(fault.grounds)]
        clean = self.clean(name)
        root = self.directory / name
        spot = fault.plant(Ground(root, f"{fault.name} {place}"))
        judged = tuple(self.judged(root))
        said = [finding for each in judged for finding in each.findings if finding not in clean]
        found = next((each for each in said if each.rule in fault.rules and spot.is_named_by(each)), None)
        alarms = (each for each in said if each is not found and is_alarm(each))
        self._found[fault.name, place] = found
        return Planted(fault, place, name, spot, found, tuple(alarms), judged)

    def found(self, fault: Fault, place: int) -> Finding | None:
        """Return the finding that reports a fault; plant it, unless this process has done that before."""
        key = fault.name, place
        return self._found[key] if key in self._found else self.plant(fault, place).found

    def clean(self, name: str) -> frozenset[Finding]:
        """Make a ground clean, and return what an audit says of it."""
        if name not in self._copies:
            self._copies[name] = CleanCopy(name, self.directory / name)
            self._clean[name] = frozenset(self.audit(self.directory / name))
        else:
            self._copies[name].restore()
        return self._clean[name]

    def audit(self, root: Path, *, reads_messages: bool = True) -> list[Finding]:
        """Return what an audit says of a directory, by default with the messages in records."""
        return [finding for judged in self.judged(root, reads_messages=reads_messages) for finding in judged.findings]

    def judged(self, root: Path, *, reads_messages: bool = True) -> list[Judged]:
        """Return what an audit of a directory judges, likewise."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(judgement, "Judges", functools.partial(judgement.Judges, partition=self._judge))
            return list(audit([str(root)], 1, self._survey, reads_messages=reads_messages))

    def _judge(self, evidence: PartitionEvidence) -> tuple[Finding, ...]:
        key = tuple(map(id, evidence.files))  # They live as long as the field: no other evidence has their ids.
        if key not in self._judged:
            self._judged[key] = evidence, tuple(_JUDGE(evidence))
        return self._judged[key][1]

    def _survey(self, task: SurveyTask) -> FileEvidence:
        stored = attrs.evolve(task, fingerprint="")
        paths = [Path(path) for path in (task.path, *task.indexes.values())]
        if not all(path.is_file() for path in paths):
            return survey(task)
        key = (str(stored), *((crc32c(path.read_bytes()), path.stat().st_size) for path in paths))
        if key not in self._surveyed:
            self._surveyed[key] = survey(stored)
        return self._surveyed[key]
