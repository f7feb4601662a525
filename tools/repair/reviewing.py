# SPDX-License-Identifier: Apache-2.0
"""Audits what a repair has made, before it gets its name."""

from collections.abc import Callable, Iterator, Sequence

from raftlog.errors import RepairRefusedError
from raftlog.records.rules import Severity
from raftlog.storage.state.log_directory import METADATA_DIRECTORY_NAME
from raftlog.tools.auditing.run.run import audit
from raftlog.tools.catalogue.audit_rules import UNREADABLE_RULES
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.repair.sources import Source


def review(
    directory: str, sources: Sequence[Source], is_excused: Callable[[str], bool] = lambda _: True
) -> tuple[Finding, ...]:
    """Audit a new log directory as ``raftlog verify`` does, and return what is not harmless.

    Damage that a source shows too is not a fault of the repair: an old set of voters that no leader has written, for
    example, is in the log for ever.

    Args:
        directory: that was made.
        sources: whose log it holds.
        is_excused: whether a rule, by name, may be broken in the result if it is in a source.

    Raises:
        RepairRefusedError: the audit finds damage that no source has, or that is not excused.
        MissingExtraError: a package of an extra is not installed.
    """
    findings = tuple(findings_of(directory))
    serious = [each for each in findings if is_serious(each)]
    if serious:
        known = {
            each.rule
            for source in sources
            for each in findings_of(source.path(METADATA_DIRECTORY_NAME))
            if is_excused(each.rule)
        }
        for finding in serious:
            if finding.rule not in known:
                raise RepairRefusedError(f"the result is not sound, and was removed: {finding}")
    return findings


def findings_of(path: str) -> Iterator[Finding]:
    """Audit a directory, and yield what is not harmless."""
    found = (finding for judged in audit([path], 1) for finding in judged.findings)
    return (finding for finding in found if finding.severity > Severity.HARMLESS)


def is_serious(finding: Finding) -> bool:
    """Whether a finding is damage, or says that a file could not be read."""
    return finding.severity >= Severity.DAMAGED or finding.rule in UNREADABLE_RULES
