# SPDX-License-Identifier: Apache-2.0
"""The status of each rule: whether there was anything to check."""

from collections import Counter

import attrs
import pytest

from raftlog.records.files.file_names import FileKind
from raftlog.records.rules import Subject
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence, Place, SurveyTask
from raftlog.tools.auditing.judgement.judgement import Judged
from raftlog.tools.auditing.run.rule_status import Checks, CheckStatus
from raftlog.tools.auditing.run.run import Account
from raftlog.tools.catalogue.audit_rules import CATALOGUE
from raftlog.tools.input.coverage import Coverage


def segment(
    place: Place, *, is_raft: bool = False, kind: FileKind = FileKind.LOG, log_directory: str | None = None
) -> PartitionEvidence:
    """A partition of one empty file, a segment if nothing else is said; of raft with messages that are read."""
    place = attrs.evolve(place, log_directory=log_directory or place.log_directory)
    task = SurveyTask(place, f"{place.log_directory}/x.log", kind, is_raft=is_raft, reads_messages=is_raft)
    return PartitionEvidence(place, (FileEvidence(task, coverage=Coverage()),))


def statuses(*partitions: PartitionEvidence, account: Account | None = None) -> dict[str, CheckStatus]:
    """The status of each rule if partitions were judged as replicas of one log."""
    found = Checks()
    found.add(Judged(partitions, (), {"": partitions}))
    return {check.rule.id: check.status for check in found.results(account or Account())}


def test_every_rule_has_a_status() -> None:
    """Each rule of the catalogue has its status, and each subject is one of a rule."""
    assert list(statuses()) == list(CATALOGUE)
    assert {rule.subject for rule in CATALOGUE.values()} == set(Subject)


@pytest.mark.parametrize("subject", [each for each in Subject if each is not Subject.NOTHING], ids=str)
def test_every_subject_can_be_there(subject: Subject) -> None:
    """For each subject there are files with which its rules pass, and none of these files passes all rules."""
    raft, topic = Place("a", "__cluster_metadata", 0), Place("b", "orders", 0)
    partitions = [
        segment(raft, is_raft=True, kind=kind, log_directory=log_directory)
        for log_directory in ("a", "b")
        for kind in FileKind
    ]
    topics = [segment(topic, log_directory=log_directory) for log_directory in ("a", "b")]
    found = statuses(*partitions, *topics)
    assert {found[rule.id] for rule in CATALOGUE.values() if rule.subject is subject} == {CheckStatus.PASS}
    assert {found[rule.id] for rule in CATALOGUE.values() if rule.subject is Subject.NOTHING} == {CheckStatus.SKIPPED}


def test_a_topics_segment_skips_rules_of_clusters_and_raft() -> None:
    """For one segment of a topic, only rules of topics, segments, batches and files pass."""
    found = statuses(segment(Place("a", "orders", 0)))
    passed = {CATALOGUE[rule].subject for rule, status in found.items() if status is CheckStatus.PASS}
    assert passed == {Subject.ANYTHING, Subject.BATCHES, Subject.LOGS, Subject.TOPICS}
    assert found["cluster-twice"] is CheckStatus.SKIPPED


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


def test_found_or_unread() -> None:
    """A rule fails by its findings; if a file could not be read, the status of the others is not known."""
    account = Account(unreadable=1, by_rule=Counter({"batch-crc": 2}))

    found = statuses(segment(Place("a", "orders", 0)), account=account)

    assert (found["batch-crc"], found["offset-order"]) == (CheckStatus.FAIL, CheckStatus.ERROR)
