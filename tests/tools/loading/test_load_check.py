# SPDX-License-Identifier: Apache-2.0
"""A check finds the record at which Kafka's controllers stop, for each release, and nothing in a log that loads."""

from pathlib import Path

import pytest
from hypothesis import given, settings

from raftlog.records.messages.metadata import MetadataRecord
from raftlog.tools.image.cluster_image import ClusterImage, MetadataBatch
from raftlog.tools.image.replay import REPLAYS
from raftlog.tools.loading.controller import RULES
from raftlog.tools.loading.features import CHECKED_RELEASES
from raftlog.tools.loading.load_check import LoadCheck, LoadFault
from tests.golden_files import golden_id
from tests.tools.image.metadata_stories import metadata_stories
from tests.tools.image.test_cluster_image import LOGS, batches_of_file, data_file
from tests.tools.loading.enum_logs import ENUM_LOGS
from tests.tools.loading.poisoned_logs import BEGIN, END, POISONED, Poisoned, V, topic

OTHER_FAULTS = {
    "ELRs of no topic": {"3.9"},
    "ELRs of a topic whose id another name took": {"3.9"},
    "a version in a transaction that is open": {"3.9"},
    "no metadata.version": {"3.9"},
}
"""The releases that a log stops by another rule than its own."""
DECODING = {"unknown-record", "unknown-version", "unreadable-record"}
Drawn = tuple[list[MetadataBatch], list[list[MetadataRecord]]]


def checked(story: list[MetadataBatch], releases: tuple[str, ...] = CHECKED_RELEASES) -> dict[str, LoadFault]:
    """The faults of a log that begins at offset 0."""
    check = LoadCheck(releases)
    for batch in story:
        check.apply(batch)
    return check.finish()


@pytest.mark.parametrize("name", POISONED)
def test_each_poisoned_log_stops_the_releases_that_it_should(name: str) -> None:
    """At the offset and by the rule of the table; what the others make of it is not of this rule, or nothing."""
    log = POISONED[name]
    faults = checked(log.story)
    by_rule = {release for release, fault in faults.items() if (fault.rule, fault.offset) == (log.rule, log.offset)}
    assert by_rule == (set(log.releases) if log.rule else set()), faults
    others = {release: fault for release, fault in faults.items() if release not in by_rule}
    assert all(fault.offset <= log.offset for fault in others.values())
    assert not others or name in {
        "a controller unregistered",
        "ELRs of no topic",
        "ELRs of a topic whose id another name took",
        "a version in a transaction that is open",
    }


@pytest.mark.parametrize("name", ENUM_LOGS)
def test_a_number_that_an_enum_does_not_know_stops_who_refuses_it(name: str) -> None:
    """The others load the log."""
    log = ENUM_LOGS[name]
    found = {release: (fault.rule, fault.offset) for release, fault in checked(log.story).items()}
    assert found == (dict.fromkeys(log.releases, (log.rule, log.offset)) if log.rule else {})


@pytest.mark.parametrize("name", [name for name, log in POISONED.items() if log.rule])
def test_a_log_that_ends_before_the_poison_has_no_record_to_blame(name: str) -> None:
    """The records before it load; with it, and with any number after it, the fault is the same."""
    log = POISONED[name]
    story = log.story
    before = [batch for batch in story if batch.next_offset <= log.offset]
    assert all(fault.record_index is None for fault in checked(before).values())
    last = story[-1].next_offset
    fault = checked([*story, MetadataBatch(last, last + 1, 1, 9000, topic_values())])[log.releases[-1]]
    if fault.record_index is not None:
        assert (fault.offset, fault.rule) == (log.offset, log.rule)


def topic_values() -> list[bytes | None]:
    """A record that changes nothing of the others."""
    return list(Poisoned([[topic("last", 99)]]).story[1].values)


@settings(max_examples=40, deadline=None)
@given(metadata_stories())
def test_no_release_goes_on_after_the_batch_of_the_loaders_first_refusal(story: Drawn) -> None:
    """A controller stops at each record without effect in the image; what it cannot decode may follow in the batch."""
    image = ClusterImage()
    faults = checked(story[0])
    for batch in story[0]:
        image.apply(batch)
    if image.refusals:
        first = min(image.refusals).offset
        assert faults.keys() == set(CHECKED_RELEASES)
        end = min(batch.next_offset for batch in story[0] if batch.next_offset > first)
        assert all(fault.offset <= first or fault.rule in DECODING for fault in faults.values())
        assert all(fault.offset < end for fault in faults.values())


@settings(max_examples=30, deadline=None)
@given(metadata_stories())
def test_each_release_alone_has_the_fault_that_it_has_among_all(story: Drawn) -> None:
    """One state serves all releases that go on, whatever the others refuse."""
    together = checked(story[0])
    for release in CHECKED_RELEASES:
        assert checked(story[0], (release,)) == {name: each for name, each in together.items() if name == release}


@settings(max_examples=40, deadline=None)
@given(metadata_stories())
def test_what_precedes_a_fault_has_none(story: Drawn) -> None:
    """A log that is cut before the batch of the first fault of a release has no record that it refuses."""
    for release, fault in checked(story[0]).items():
        before = [batch for batch in story[0] if batch.next_offset <= fault.offset]
        assert all(each.record_index is None for each in checked(before, (release,)).values())


@pytest.mark.parametrize("dump", LOGS, ids=golden_id)
def test_logs_that_kafka_wrote_load(dump: Path) -> None:
    """By the newest releases at least; the others lack what the log uses."""
    story = list(batches_of_file(data_file(dump)))
    faults = checked(story)
    assert not faults.keys() & {"4.3", "4.4"}
    assert all(fault.rule in DECODING | {"feature-level"} for fault in faults.values())


def test_a_snapshot_has_no_transactions() -> None:
    """Their bounds are refused there, with their offsets in the file."""
    for records in ([V, BEGIN], [V, END]):
        check = LoadCheck(in_snapshot=True)
        check.apply(Poisoned([records]).story[1])
        check.begin_log(40)
        (fault,) = set(check.finish().values())
        assert (fault.rule, fault.offset, fault.is_in_snapshot) == ("transaction-bounds", 2, True)


def test_the_log_goes_on_where_the_snapshot_ends() -> None:
    """What the snapshot says is there, and the end of the log is that of the snapshot if nothing follows."""
    check = LoadCheck(in_snapshot=True)
    check.apply(Poisoned([[topic("a", 1)]]).story[1])
    check.begin_log(40)
    assert check.end_offset == 40
    check.apply(MetadataBatch(40, 41, 1, 1, Poisoned([[topic("a", 2)]]).story[1].values))
    (fault,) = set(check.finish().values())
    assert (fault.rule, fault.offset, fault.is_in_snapshot) == ("duplicate-topic", 40, False)


def test_each_rule_has_a_log_and_each_type_of_it_is_known() -> None:
    """The table of rules, and the logs here."""
    assert RULES.keys() <= REPLAYS.keys()
    names = {rule.name for rules in RULES.values() for rule in rules} - {"controller-id"}
    assert names <= {log.rule for log in (*POISONED.values(), *ENUM_LOGS.values())}


def test_a_controller_that_is_not_registered_cannot_be_removed() -> None:
    """4.4 refuses that; the others do not know the record."""
    story = Poisoned([[V], list(POISONED["a controller unregistered"].batches[2])]).story
    assert {release: fault.rule for release, fault in checked(story).items()} == {
        **dict.fromkeys(CHECKED_RELEASES[:-1], "unknown-record"),
        "4.4": "controller-id",
    }
