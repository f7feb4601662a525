# SPDX-License-Identifier: Apache-2.0
"""Audits a salvaged log before it gets its name."""

from collections.abc import Sequence
from typing import Final

from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.repair.reviewing import review
from raftlog.tools.repair.sources import Source, check_unchanged

_OF_THE_PAST: Final = frozenset(
    {
        "batch-bare",
        "control-place",
        "controller-caps",
        "epoch-leader",
        "frame-empty",
        "kraft-version-voters",
        "leader-elected",
        "leader-voted",
        "leader-voters",
        "raft-frame",
        "raft-record",
        "record-attributes",
        "voters-accepted",
        "voters-one-change",
        "voters-overlap",
        "voters-range",
        "voters-rewritten",
        "voters-schema",
        "voters-uncommitted",
        "voters-version",
    }
)
"""What leaders have written cannot be undone: a source may show it. Damage of bytes, files and order must be gone."""


def review_salvaged(directory: str, sources: Sequence[Source], *, has_owner: bool) -> tuple[Finding, ...]:
    """Audit a new log directory, and return what is not harmless.

    Args:
        directory: that was made.
        sources: that its log is from.
        has_owner: whether it has an identity. Otherwise it has no election state either, which is no fault.

    Raises:
        RepairRefusedError: there is damage in it, other than what a leader of the past has written.
        SourceChangedError: a source has changed while it was read.
        MissingExtraError: a package of an extra is not installed.
    """
    findings = review(directory, sources, _OF_THE_PAST.__contains__)
    for source in sources:
        check_unchanged(source, reads=False)
    return tuple(each for each in findings if has_owner or each.rule != "election-missing")
