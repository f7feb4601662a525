# SPDX-License-Identifier: Apache-2.0
"""A run's account: bytes add up, findings decide verdict and exit code, and a terminal sees how far it is."""

import functools
import io
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.rules import Severity
from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.judgement import judgement
from raftlog.tools.auditing.judgement.judgement import Judged
from raftlog.tools.auditing.judgement.partition_rules import judge_partition
from raftlog.tools.auditing.run.run import Account, audit
from raftlog.tools.auditing.run.run_progress import RunProgress
from raftlog.tools.catalogue.audit_rules import CATALOGUE, UNREADABLE_RULES
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.input.inputs import LARGEST_SMALL_FILE_BYTES
from tests.golden_files import GOLDEN
from tests.tools.made_logs import batch, write_log

ORDER = list(Severity)


def account_of(*rules: str) -> Account:
    """An account of findings alone."""
    account = Account()
    account.add(Judged((), tuple(Finding("a.log", rule, "reason") for rule in rules)))
    return account


@given(rules=st.lists(st.sampled_from(sorted(CATALOGUE)), max_size=6), fail_on=st.sampled_from(Severity))
def test_the_exit_code_is_that_of_the_worst_finding_that_counts(rules: list[str], fail_on: Severity) -> None:
    """Damage outranks what could not be read, which outranks suspicion; findings below the limit count for nothing."""
    account = account_of(*rules)
    counting = [
        CATALOGUE[rule].severity for rule in rules if ORDER.index(CATALOGUE[rule].severity) >= ORDER.index(fail_on)
    ]
    if {Severity.DAMAGED, Severity.DATA_LOSS} & set(counting):
        expected = 2
    elif UNREADABLE_RULES & set(rules):
        expected = 1
    else:
        expected = 3 if counting else 0

    assert account.exit_code(fail_on) == expected
    assert sum(account.by_severity.values()) == sum(account.by_rule.values()) == len(rules)


@pytest.mark.parametrize(
    ("rules", "verdict"),
    [
        ((), "clean"),
        (("file-left-over",), "clean"),
        (("tail-torn",), "suspicious"),
        (("tail-torn", "file-unreadable"), "unreadable"),
        (("batch-crc", "file-unreadable"), "damaged"),
        (("batch-crc", "offset-gap"), "data-loss"),
    ],
)
def test_the_verdict_is_the_worst_that_is_known(rules: tuple[str, ...], verdict: str) -> None:
    """An unreadable file may hide damage, so it is worse than suspicion; harmless findings leave a run clean."""
    account = account_of(*rules)

    assert account.verdict == verdict
    assert account.verdict_line().startswith(f"{verdict}: findings: ")


def unread_bytes(path: Path) -> tuple[int, int]:
    """Which bytes of a directory were not read, and all."""
    account = Account()
    for judged in audit([str(path)], 1):
        account.add(judged)
    return account.unread_bytes, account.bytes


def test_unread_bytes_are_reported(tmp_path: Path) -> None:
    """An index above all sense is not read, and the end of a small file that is huge: their bytes count as unread."""
    log = write_log(tmp_path / "orders-0", batch())
    log.with_suffix(".index").write_bytes(bytes(8))
    os.truncate(write_log(log.parent, b"", name=f"{log.stem}.timeindex"), 100 << 20)
    assert unread_bytes(tmp_path) == (100 << 20, len(batch()) + 8 + (100 << 20))

    log.with_suffix(".timeindex").unlink()
    os.truncate(write_log(log.parent, b"", name="partition.metadata"), 1 << 40)
    assert unread_bytes(tmp_path)[0] == (1 << 40) - LARGEST_SMALL_FILE_BYTES


def test_an_emptied_voter_is_one_finding(tmp_path: Path) -> None:
    """A voter whose metadata log is missing forgets its votes; its empty directory is not reported too."""
    data = Path(shutil.copytree(GOLDEN / "dynamic-quorum/data", tmp_path / "data"))
    emptied = data / "n2" / "__cluster_metadata-0"
    shutil.rmtree(emptied)
    emptied.mkdir()

    def serious(*paths: Path) -> list[tuple[str, str]]:
        found = [finding for judged in audit(map(str, paths), 1) for finding in judged.findings]
        return [(each.rule, each.path) for each in found if each.severity is not Severity.HARMLESS]

    assert serious(data) == [("election-missing", f"{data}/n2/meta.properties")]
    assert serious(data / "n2") == [("directory-empty", str(emptied))]


def test_a_judge_that_fails_costs_its_partition_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug in a judgement is one finding at the partition, which leaves the run unreadable; others are judged."""
    for number in range(3):
        write_log(tmp_path / f"orders-{number}", batch(), bytes(5))

    def judge(evidence: PartitionEvidence) -> Iterator[Finding]:
        if evidence.place.partition == 1:
            raise ZeroDivisionError("a bug")
        yield from judge_partition(evidence)

    monkeypatch.setattr(judgement, "Judges", functools.partial(judgement.Judges, partition=judge))
    account, found = Account(), []
    for judged in audit([str(tmp_path)], 1):
        account.add(judged)
        found += [(finding.rule, Path(finding.path).relative_to(tmp_path).parts[0]) for finding in judged.findings]

    assert sorted(found) == [
        ("audit-failed", "orders-1"),
        ("epochs-missing", "orders-0"),
        ("epochs-missing", "orders-2"),
        *(("tail-zero", f"orders-{number}") for number in range(3)),
    ]
    assert (account.verdict, account.exit_code(Severity.DATA_LOSS)) == ("unreadable", 1)


def test_evidence_is_passed_on_in_order(tmp_path: Path) -> None:
    """The callback gets each file once, before it is judged; findings of directories come at the end."""
    for number in range(3):
        write_log(tmp_path / f"orders-{number}", batch())
    (tmp_path / "empty-0").mkdir()
    told: list[str] = []
    judged = list(audit([str(tmp_path)], 1, surveyed=lambda file: told.append(file.task.path)))

    assert told == [file.task.path for group in judged for place in group.places for file in place.files]
    assert len(told) == 3
    assert "directory-empty" in {finding.rule for finding in judged[-1].findings}
    assert judged[-1].places == ()


def test_progress_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal, the share of all bytes is shown, hidden for output, and removed at the end; otherwise nothing."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("raftlog.tools.terminal.progress._LONG_FILE_SIZE", 1)
    for number in range(4):
        write_log(tmp_path / f"orders-{number}", batch())

    def shown(stream: io.StringIO) -> str:
        monkeypatch.setattr(sys, "stderr", stream)
        with RunProgress("raftlog verify", [str(tmp_path)]) as progress:
            for _ in audit([str(tmp_path)], 1, surveyed=progress.surveyed):
                progress.wipe()
        return stream.getvalue()

    text = shown(Terminal())
    assert " 25%\r\x1b[K" in text or "  25%" in text
    assert text.endswith("\r\x1b[K")
    assert shown(io.StringIO()) == ""
