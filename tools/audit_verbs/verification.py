# SPDX-License-Identifier: Apache-2.0
"""The run of ``raftlog verify``: findings are written as they are found, then a summary of all bytes."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, BinaryIO

import attrs

from raftlog.records.rules import Severity
from raftlog.tools.auditing.judgement.judgement import Judged
from raftlog.tools.auditing.run.run import Account, audit
from raftlog.tools.auditing.run.run_progress import RunProgress
from raftlog.tools.catalogue.findings import Finding, finding_line
from raftlog.tools.terminal.text_width import fit_lines

if TYPE_CHECKING:
    from raftlog.tools.report.page import Report


@attrs.frozen
class Verification:
    """One run of ``raftlog verify``.

    Attributes:
        paths: what to verify.
        processes: number of processes that read files.
        output_format: ``text`` or ``jsonl``.
        min_severity: findings below it are counted, but not shown.
        fail_on: findings below it do not affect the exit code.
        output: where to write.
        findings_output: where to write all findings as JSON lines; or None.
        report: receives all evidence and findings; or None.
        label: name of the command, for the progress line.
        reads_messages: whether to decode the messages in records of the metadata log too.
    """

    paths: Sequence[str]
    processes: int
    output_format: str
    min_severity: Severity
    fail_on: Severity
    output: BinaryIO
    findings_output: BinaryIO | None
    report: "Report | None"
    label: str
    reads_messages: bool

    def run(self) -> int:
        """Verify all files, and return the exit code.

        Raises:
            RaftLogError: a package of an extra is missing.
            OSError: the output cannot be written.
        """
        account, hidden = Account(), 0
        with RunProgress(self.label, self.paths) as progress:
            found_so_far = audit(
                self.paths, self.processes, surveyed=progress.surveyed, reads_messages=self.reads_messages
            )
            for found in found_so_far:
                judged = found if self.report is None else self.report.add(found)
                account.add(judged)
                shown = [finding for finding in judged.findings if finding.severity >= self.min_severity]
                hidden += len(judged.findings) - len(shown)
                if self.findings_output is not None:
                    _write(self.findings_output, _finding_lines(judged.findings))
                progress.wipe()
                _write(self.output, self._lines(judged, shown))
        exit_code = account.exit_code(self.fail_on)
        _write(self.output, self._last_lines(account, exit_code, hidden))
        return exit_code

    def _lines(self, judged: Judged, findings: Iterable[Finding]) -> Iterable[str]:
        if self.output_format == "text":
            return (f"{line}\n" for line in fit_lines(map(str, findings)))
        from raftlog.tools.audit_verbs.audit_lines import file_line

        files = (file_line(file) for partition in judged.places for file in partition.files)
        return (*files, *_finding_lines(findings))

    def _last_lines(self, account: Account, exit_code: int, hidden: int) -> Iterable[str]:
        if self.output_format == "jsonl":
            from raftlog.tools.audit_verbs.audit_lines import summary_line

            return [summary_line(account, exit_code, hidden)]
        more = [f"{hidden} less severe findings are not shown; --all shows them"] if hidden else []
        return [f"{line}\n" for line in fit_lines([*more, account.coverage_line(), account.verdict_line()])]


def _finding_lines(findings: Iterable[Finding]) -> Iterable[str]:
    return map(finding_line, findings)


def _write(stream: BinaryIO, lines: Iterable[str]) -> None:
    """Write and flush lines; bytes of file names that are not UTF-8 are written unchanged."""
    if text := "".join(lines):
        stream.write(text.encode("utf-8", "surrogateescape"))
        stream.flush()
