# SPDX-License-Identifier: Apache-2.0
"""What came of each rule: whether there was anything to check."""

from collections import Counter

from raftlog.records.files.file_names import FileKind
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence, Place, SurveyTask
from raftlog.tools.auditing.judgement.judgement import Judged
from raftlog.tools.auditing.run import rule_status
from raftlog.tools.auditing.run.rule_status import Checks, CheckStatus
from raftlog.tools.auditing.run.run import Account
from raftlog.tools.catalogue.audit_rules import CATALOGUE
from raftlog.tools.input.coverage import Coverage


def segment(place: Place, *, is_raft: bool = False) -> PartitionEvidence:
    """A partition of one empty segment."""
    task = SurveyTask(place, f"{place.log_directory}/x.log", FileKind.LOG, is_raft=is_raft)
    return PartitionEvidence(place, (FileEvidence(task, coverage=Coverage()),))


def statuses(*partitions: PartitionEvidence, account: Account | None = None) -> dict[str, CheckStatus]:
    """What came of each rule where partitions were judged as replicas of one log."""
    found = Checks()
    found.add(Judged(partitions, (), {"": partitions}))
    return {check.rule.id: check.status for check in found.results(account or Account())}


def test_every_rule_is_about_something() -> None:
    """Each rule of the catalogue has its status, and no line of what rules are about is for none."""
    assert list(statuses()) == list(CATALOGUE)
    firsts = {next(start for start, _ in rule_status._SUBJECTS if rule.startswith(start)) for rule in CATALOGUE}
    assert firsts == {start for start, _ in rule_status._SUBJECTS}


def test_where_nothing_is_nothing_passes() -> None:
    """A rule that had nothing to check is skipped."""
    assert set(statuses().values()) == {CheckStatus.SKIPPED}


def test_rules_pass_that_have_something_to_check() -> None:
    """Those of batches do on any segment, those of raft on one of raft, and those of replicas where there are two."""
    topic, raft = Place("a", "orders", 0), Place("a", "__cluster_metadata", 0)
    for found, passed in (
        (statuses(segment(topic)), {"batch-crc"}),
        (statuses(segment(raft, is_raft=True)), {"batch-crc", "log-end"}),
        (statuses(segment(topic), segment(Place("b", "orders", 0))), {"batch-crc", "replica-behind"}),
    ):
        rules = {"batch-crc", "log-end", "replica-behind", "index-entry", "snapshot-id"}
        assert {rule for rule in rules if found[rule] is CheckStatus.PASS} == passed


def test_what_was_found_or_not_read() -> None:
    """A rule fails by its findings; where a file could not be read, nobody knows of the others."""
    account = Account(unreadable=1, by_rule=Counter({"batch-crc": 2}))

    found = statuses(segment(Place("a", "orders", 0)), account=account)

    assert (found["batch-crc"], found["offset-order"]) == (CheckStatus.FAIL, CheckStatus.ERROR)
