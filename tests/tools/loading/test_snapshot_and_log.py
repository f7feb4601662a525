# SPDX-License-Identifier: Apache-2.0
"""A check that begins with a snapshot finds in the rest of the log what a check of the whole log finds there."""

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.records.messages.metadata import MetadataRecord, write_metadata_record
from raftlog.tools.image.cluster_image import BatchPlace, MetadataBatch
from raftlog.tools.image.image_records import image_records
from raftlog.tools.loading.features import CHECKED_RELEASES
from raftlog.tools.loading.load_check import LoadCheck, LoadFault
from tests.tools.image.metadata_stories import batches_of, metadata_stories
from tests.tools.loading.enum_logs import acl_of, removed_acl
from tests.tools.loading.poisoned_logs import ALL, BEGIN, END, POISONED, Poisoned, V, made, topic, version

LEVELS = ("4.3-IV0", "4.4-IV0")
"""They have a field for everything that a story says; older releases do not know them."""
Story = list[MetadataBatch]


def whole(story: Story) -> dict[str, LoadFault]:
    """What a check of the log from its start says."""
    check = LoadCheck()
    for batch in story:
        check.apply(batch)
    return check.finish()


def snapshots(story: Story) -> list[tuple[int, tuple[str, ...], list[bytes]]]:
    """The states after batches that have a snapshot: their offset, the releases that have not stopped, the records.

    There are none after two topics of one id, or two ACLs that say the same. A controller that begins with a snapshot
    forgets the first topic's name, and that one of the ACLs was removed, and so dies of less.
    """
    check, found, is_whole = LoadCheck(), [], True
    for batch in story:
        check.apply(batch)
        tables = check.tables
        is_whole = is_whole and len(tables.topic_ids) == len(tables.topics)
        is_whole = is_whole and len(set(tables.acls.values())) == len(tables.acls)
        if check.going_on and is_whole and not check.is_in_transaction and "metadata.version" in tables.features:
            found.append((batch.next_offset, check.going_on, list(image_records(tables))))
    return found


def begins_transaction(story: Story, offset: int) -> bool:
    """Whether the record at an offset begins a transaction: a controller cannot read it right after a snapshot."""
    first = [batch.values[0] or b"" for batch in story if batch.base_offset == offset and batch.values]
    return any(value[:2] == write_metadata_record(BEGIN)[:2] for value in first)


def resumed(story: Story, offset: int, values: Sequence[bytes]) -> LoadCheck:
    """A check of a snapshot at an offset, and of the batches after it."""
    check = LoadCheck(in_snapshot=True)
    check.apply(MetadataBatch(0, len(values), 1, 1, values))
    check.begin_log(offset)
    for batch in story:
        if batch.base_offset >= offset:
            check.apply(batch)
    return check


@st.composite
def loading_stories(draw: st.DrawFn) -> Story:
    """A log that loads for a while: up to a drawn place, the records that the newest release refuses are left out."""
    drawn = list(itertools.chain.from_iterable(draw(metadata_stories())[1]))
    place = draw(st.integers(0, len(drawn)))
    level = version(draw(st.sampled_from(LEVELS)))
    newest = LoadCheck(CHECKED_RELEASES[-1:], skips=True)
    kept = [level]
    for number, record in enumerate(drawn):
        before = len(newest.skipped)
        newest.apply(batches_of([[record]])[0])
        if number >= place or len(newest.skipped) == before:
            kept.append(record)
    sizes = draw(st.lists(st.integers(1, 3), min_size=len(kept), max_size=len(kept)))
    batches: list[list[MetadataRecord]] = []
    for size in sizes:
        batches.append(kept[:size])
        kept = kept[size:]
    return batches_of([each for each in batches if each])


@settings(max_examples=40, deadline=None)
@given(loading_stories())
def test_a_fault_after_a_snapshot_is_that_of_the_whole_log(story: Story) -> None:
    """For each offset that has a snapshot, and each release that has not stopped before it."""
    expected = whole(story)
    for offset, releases, values in snapshots(story):
        found = resumed(story, offset, values).finish()
        if begins_transaction(story, offset):
            continue
        assert {each: found.get(each) for each in releases} == {each: expected.get(each) for each in releases}


@pytest.mark.parametrize("name", POISONED)
def test_a_poisoned_log_stops_the_same_releases_beside_each_snapshot(name: str) -> None:
    """At the same record by the same rule; for the releases that do not stop before the snapshot."""
    story = POISONED[name].story
    expected = whole(story)
    for offset, releases, values in snapshots(story):
        if name.startswith("ZooKeeper migration") or begins_transaction(story, offset):
            continue  # The snapshot is one of 4.4, which has nothing of a migration.
        found = resumed(story, offset, values).finish()
        assert {each: found.get(each) for each in releases} == {each: expected.get(each) for each in releases}


@pytest.mark.parametrize("name", [name for name, log in POISONED.items() if log.rule and log.offset > 0])
def test_a_fault_in_a_snapshot_is_told_with_its_place(name: str) -> None:
    """All records in one: the releases that stop at a record of the log stop there, at its offset in the snapshot."""
    log = POISONED[name]
    values = [value for batch in log.story for value in batch.values]
    check = LoadCheck(in_snapshot=True)
    place = BatchPlace("a.checkpoint", 83)
    check.apply(MetadataBatch(0, len(values), 1, 1, values, place=place))
    check.begin_log(40)
    found = check.finish()
    alone = whole([MetadataBatch(0, len(values), 1, 1, values)])
    for release, fault in alone.items():
        if fault.record_index is None or fault.record in {"BeginTransactionRecord", "EndTransactionRecord"}:
            continue
        there = found[release]
        if there.rule != "transaction-bounds":
            assert there == fault._replace(is_in_snapshot=True, place=place)
    assert all(fault.is_in_snapshot == (fault.record_index is not None) for fault in found.values())


@pytest.mark.parametrize("bounds", [[BEGIN], [END], [BEGIN, END]])
def test_a_transaction_that_a_log_may_have_stops_all_releases_in_a_snapshot(bounds: list[MetadataRecord]) -> None:
    """The same records after it are those of the log."""
    (_, first) = Poisoned([[V, *bounds]]).story
    check = LoadCheck(in_snapshot=True)
    check.apply(first._replace(base_offset=0, next_offset=len(first.values)))
    check.begin_log(9)
    assert {(fault.rule, fault.offset, fault.is_in_snapshot) for fault in check.finish().values()} == {
        ("transaction-bounds", 1, True)
    }
    values = Poisoned([[V]]).story[1].values
    (_, bounded) = Poisoned([[made("NoOpRecord"), BEGIN, topic("a", 1), END]]).story
    story = [bounded._replace(base_offset=9, next_offset=13)]
    assert resumed(story, 9, [value for value in values if value]).finish() == {}


@pytest.mark.parametrize(("first", "has_fault"), [(0, True), (1, False), (2, False)])
def test_a_transaction_that_begins_where_the_snapshot_ends_stops_all_releases(first: int, *, has_fault: bool) -> None:
    """At its offset; one record later, or without a snapshot, it does not. A replay that skips goes on with it."""
    values = [value for value in Poisoned([[V]]).story[1].values if value]
    (_, bounded) = Poisoned([[*[made("NoOpRecord")] * first, BEGIN, topic("a", 1), END]]).story
    story = [bounded._replace(base_offset=9, next_offset=12 + first)]
    found = {(fault.rule, fault.offset, fault.is_in_snapshot) for fault in resumed(story, 9, values).finish().values()}
    assert found == ({("snapshot-end", 9, False)} if has_fault else set())
    assert whole([bounded._replace(base_offset=0), *Poisoned([[V]]).story[1:]]) == {}
    skipping = LoadCheck(("4.4",), in_snapshot=True, skips=True)
    skipping.apply(MetadataBatch(0, 1, 1, 1, values))
    skipping.begin_log(9)
    skipping.apply(story[0])
    assert (skipping.skipped, skipping.is_in_transaction, len(skipping.tables.topics)) == ([], False, 1)


def test_a_broker_epoch_of_a_snapshot_is_that_of_later_changes() -> None:
    """A change of another epoch stops all, whichever side of the snapshot the registration is on."""
    log = POISONED["a change of another epoch"]
    offset, releases, values = snapshots(log.story)[-1]
    assert (offset, releases) == (log.offset, ALL)
    assert {fault.rule for fault in resumed(log.story, offset, values).finish().values()} == {"contradiction"}


def test_a_snapshot_forgets_that_one_of_two_equal_acls_was_removed() -> None:
    """So a node with the snapshot removes the other one, as a controller does; a node with the log alone dies of it."""
    story = Poisoned([[V], [acl_of(1), acl_of(2)], [removed_acl(1)], [removed_acl(2)]]).story
    assert {fault.offset for fault in whole(story).values()} == {5}
    check = LoadCheck()
    for batch in story[:4]:
        check.apply(batch)
    assert resumed(story, 5, list(image_records(check.tables))).finish() == {}


def test_an_end_of_the_log_without_a_level_is_one_beside_a_snapshot_too() -> None:
    """A snapshot without metadata.version stops the releases that a log without it stops."""
    values = [value for value in Poisoned([[topic("a", 1), made("NoOpRecord")]]).story[1].values if value]
    found = resumed([], 7, values).finish()
    assert {release: (fault.rule, fault.offset) for release, fault in found.items()} == dict.fromkeys(
        ALL[1:], ("no-metadata-version", 7)
    )
