# SPDX-License-Identifier: Apache-2.0
"""Planting a fault in a clean copy, and judging what an audit says of it."""

from pathlib import Path
from typing import Final

import attrs

from raftlog.records.checksum import crc32c
from raftlog.records.files.file_names import FileKind, parse_file_name
from raftlog.records.rules import Severity, Subject
from raftlog.tools.auditing.evidence import FileEvidence, SurveyTask
from raftlog.tools.auditing.run.rule_status import KINDS_OF_SUBJECTS
from raftlog.tools.auditing.run.run import audit
from raftlog.tools.auditing.survey.survey import survey
from raftlog.tools.catalogue.audit_rules import CATALOGUE
from raftlog.tools.catalogue.findings import Finding
from tests.planted.fault import Fault, Spot
from tests.planted.ground import CleanCopy, Ground


@attrs.frozen
class Planted:
    """What an audit has said of a fault.

    Attributes:
        fault: the kind.
        place: its number.
        ground: where it was planted.
        spot: where it is.
        found: what tells of it; None where nothing does.
        false_alarms: what else is said, and is not harmless.
    """

    fault: Fault
    place: int
    ground: str
    spot: Spot
    found: Finding | None
    false_alarms: tuple[Finding, ...]

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


def is_of_its_subject(finding: Finding) -> bool:
    """Whether a finding in a segment is of a rule that is checked wherever there is a segment.

    Findings in other files tell nothing of this: a rule of segments may name an index.
    """
    subject = CATALOGUE[finding.rule].subject
    name = parse_file_name(Path(finding.path).name)
    if name is None or name.kind is not FileKind.LOG:
        return subject is not Subject.NOTHING
    return subject is not Subject.NOTHING and FileKind.LOG in KINDS_OF_SUBJECTS.get(subject, {FileKind.LOG})


class Field:
    """Where faults are planted, one at a time, and audited in this process.

    A file that is as it was in an earlier audit is not surveyed again: a survey is a function of a task and of bytes.

    Args:
        directory: to make copies in.
    """

    def __init__(self, directory: Path) -> None:
        self._directory: Final = directory
        self._surveyed: dict[tuple[object, ...], FileEvidence] = {}
        self._copies: dict[str, CleanCopy] = {}
        self._clean: dict[str, frozenset[Finding]] = {}

    def plant(self, fault: Fault, place: int) -> Planted:
        """Plant a kind of fault at a place, by number, in a clean copy, and audit that."""
        name = fault.grounds[place % len(fault.grounds)]
        clean = self.clean(name)
        root = self._directory / name
        spot = fault.plant(Ground(root, f"{fault.name} {place}"))
        said = [finding for finding in self.audit(root) if finding not in clean]
        found = next((each for each in said if each.rule in fault.rules and spot.is_named_by(each)), None)
        alarms = (each for each in said if each is not found and each.severity is not Severity.HARMLESS)
        return Planted(fault, place, name, spot, found, tuple(alarms))

    def clean(self, name: str) -> frozenset[Finding]:
        """Make a ground clean, and return what an audit says of it."""
        if name not in self._copies:
            self._copies[name] = CleanCopy(name, self._directory / name)
            self._clean[name] = frozenset(self.audit(self._directory / name))
        else:
            self._copies[name].restore()
        return self._clean[name]

    def audit(self, root: Path) -> list[Finding]:
        """Return what an audit says of a directory, the messages in records included."""
        return [
            finding
            for judged in audit([str(root)], 1, self._survey, reads_messages=True)
            for finding in judged.findings
        ]

    def _survey(self, task: SurveyTask) -> FileEvidence:
        stored = attrs.evolve(task, fingerprint="")
        paths = [Path(path) for path in (task.path, *task.indexes.values())]
        if not all(path.is_file() for path in paths):
            return survey(task)
        key = (str(stored), *((crc32c(path.read_bytes()), path.stat().st_size) for path in paths))
        if key not in self._surveyed:
            self._surveyed[key] = survey(stored)
        return self._surveyed[key]
