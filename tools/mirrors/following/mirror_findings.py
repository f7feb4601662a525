# SPDX-License-Identifier: Apache-2.0
"""Findings about what depends on a pair of clusters and not on one file, with the place on both sides."""

import attrs

from raftlog.records.rules import Severity
from raftlog.tools.mirrors.comparing.differences import OffsetRange


@attrs.frozen
class MirrorFinding:
    """One broken rule of a pair of clusters.

    Attributes:
        rule: id of the rule (``raftlog.tools.catalogue.mirror_rules``).
        subject: what it is about: a group, a flow (``A -> B``) or a topic.
        reason: what is wrong, in words.
        source: where on the source; None if it is about no offset there. Start and end are equal for a place between
            two records.
        target: likewise, on the target.
        evidence: offset of the record that shows it, in its own topic; -1 if none does alone.
        since_ms, until_ms: from when to when it lasted, in ms since the Unix epoch; None if it has no time.
    """

    rule: str
    subject: str
    reason: str
    source: OffsetRange | None = None
    target: OffsetRange | None = None
    evidence: int = -1
    since_ms: int | None = None
    until_ms: int | None = None

    @property
    def severity(self) -> Severity:
        """The severity of the broken rule."""
        from raftlog.tools.catalogue.audit_rules import CATALOGUE  # Slow to import, and sound mirrors need none of it.

        return CATALOGUE[self.rule].severity
