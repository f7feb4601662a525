# SPDX-License-Identifier: Apache-2.0
"""Findings about the input of a tool, and the exit code that follows from them."""

from collections import Counter

import attrs

from raftlog.errors import DecodeError
from raftlog.records.rules import Severity
from raftlog.tools.terminal.exit_codes import EXIT_CLEAN, EXIT_DAMAGE, EXIT_ERROR, EXIT_SUSPICIOUS


@attrs.frozen
class Finding:
    """One place in the input where a rule is broken.

    Attributes:
        path: the file.
        rule: id of the rule that is broken (``raftlog.tools.catalogue.audit_rules``).
        reason: what is wrong.
        position: byte position in the file where the problem starts, or None.
        size_bytes: how many bytes are lost to the problem, or 0.
        offset: base offset of the batch, or offset of the record, or None.
        epoch: leader epoch of the batch if it matters, else None.
    """

    path: str
    rule: str
    reason: str
    position: int | None = None
    size_bytes: int = 0
    offset: int | None = None
    epoch: int | None = None

    @property
    def severity(self) -> Severity:
        """The severity of the broken rule."""
        from raftlog.tools.catalogue.audit_rules import CATALOGUE  # Slow to import, and sound input needs none of it.

        return CATALOGUE[self.rule].severity

    @classmethod
    def of_error(cls, error: DecodeError, path: str, *, offset: int | None = None) -> "Finding":
        """Turn a decoding error into a finding; ``offset`` replaces the error's base offset."""
        return cls(
            path,
            error.rule or "message-field",
            error.reason,
            position=error.position,
            offset=error.base_offset if offset is None else offset,
        )

    def __str__(self) -> str:
        place = [self.path]
        if self.position is not None:
            place.append(f"position {self.position}")
        if self.offset is not None:
            place.append(f"offset {self.offset}")
        if self.epoch is not None:
            place.append(f"epoch {self.epoch}")
        lost = f", {self.size_bytes} bytes" if self.size_bytes else ""
        return f"{', '.join(place)}: {self.severity.value}: {self.reason}{lost} [{self.rule}]"


def finding_line(finding: Finding) -> str:
    """Return a finding as the JSON line that every verb writes for it."""
    from raftlog.tools.terminal.json_lines import json_line  # Slow to import, and text output needs none of it.

    return json_line(
        "finding",
        finding.path,
        rule=finding.rule,
        severity=finding.severity.value,
        position=finding.position,
        size=finding.size_bytes,
        offset=finding.offset,
        epoch=finding.epoch,
        reason=finding.reason,
    )


@attrs.define
class Tally:
    """Counts findings and failures."""

    by_severity: Counter[Severity] = attrs.field(factory=Counter)
    errors: int = 0

    def add(self, finding: Finding) -> None:
        """Count a finding."""
        self.by_severity[finding.severity] += 1

    @property
    def exit_code(self) -> int:
        """The exit code: damage outranks an unreadable file, which outranks a suspicion (DECISIONS.md, 10)."""
        if self.by_severity[Severity.DAMAGED] or self.by_severity[Severity.DATA_LOSS]:
            return EXIT_DAMAGE
        if self.errors:
            return EXIT_ERROR
        return EXIT_SUSPICIOUS if self.by_severity[Severity.SUSPICIOUS] else EXIT_CLEAN
