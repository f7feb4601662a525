# SPDX-License-Identifier: Apache-2.0
"""A check stops at the record at which the controller and the loader of each release stop."""

from collections.abc import Iterator

import pytest

from raftlog.tools.image.cluster_image import MetadataBatch
from raftlog.tools.loading.features import CHECKED_RELEASES, supported_levels
from raftlog.tools.loading.load_check import LoadCheck, LoadFault
from tests.kafka import dump_tool
from tests.kafka.kafka_controls import kafka_controls
from tests.kafka.kafka_images import SNAPSHOT_OFFSET
from tests.kafka.kafka_replays import KafkaReplay, Story, kafka_replays
from tests.kafka.test_metadata_image import generated
from tests.tools.loading.control_logs import CONTROL_LOGS
from tests.tools.loading.enum_logs import ENUM_LOGS
from tests.tools.loading.poisoned_logs import POISONED, Poisoned
from tests.tools.loading.test_snapshot_and_log import snapshots

pytestmark = dump_tool.marks("Kafka's controller")

STORIES = 100
SNAPSHOT_END = 1000


def fault_of(story: Story, release: str) -> LoadFault | None:
    """What we say."""
    check = LoadCheck((release,))
    for batch in story:
        check.apply(batch)
    return check.finish().get(release)


def agrees(fault: LoadFault | None, replayed: KafkaReplay) -> bool:
    """Whether the same record is to blame, or else the same end of the log.

    A loader without ``metadata.version`` stops when it publishes, which is not replayed here.
    """
    if fault is not None and fault.record_index is not None:
        return fault.offset == replayed.first
    is_refused = fault is not None and fault.rule != "no-metadata-version"
    return replayed.first is None and (replayed.activation is not None) == is_refused


@pytest.mark.parametrize("release", CHECKED_RELEASES)
def test_every_release_stops_where_we_say(release: str) -> None:
    """In each poisoned log, with each number of an enum, in logs that load and generated ones; features too."""
    named = [*POISONED.values(), *ENUM_LOGS.values()]
    stories = [log.story for log in named] + list(generated(STORIES))
    said = kafka_replays(release, stories)
    assert said.levels == supported_levels(release)
    faults = [fault_of(story, release) for story in stories]
    found = [
        (fault, replayed, story)
        for fault, replayed, story in zip(faults, said.replayed, stories, strict=True)
        if not agrees(fault, replayed)
    ]
    assert not found, found[:3]
    poisoned = faults[: len(named)]
    assert sum(fault is not None for fault in poisoned) > 60
    assert sum(fault is None for fault in poisoned) >= 60


def beside_snapshots(log: Poisoned) -> Iterator[Story]:
    """All records of a log in a snapshot; and the newest snapshot before its fault, with the rest of the log."""
    values = [value for batch in log.story for value in batch.values]
    yield [MetadataBatch(SNAPSHOT_OFFSET, SNAPSHOT_END, 1, 1000, values)]
    for offset, _, of_state in snapshots(log.story)[-2:]:
        shift = SNAPSHOT_END - offset
        rest = [each for each in log.story if each.base_offset >= offset]
        moved = [
            each._replace(base_offset=each.base_offset + shift, next_offset=each.next_offset + shift) for each in rest
        ]
        yield [MetadataBatch(SNAPSHOT_OFFSET, SNAPSHOT_END, 1, 1000, of_state), *moved]


@pytest.mark.parametrize("release", CHECKED_RELEASES)
def test_every_release_stops_where_we_say_in_a_snapshot_and_after_it(release: str) -> None:
    """Offsets of the log begin at the end of the snapshot, which has fewer records.

    From 4.1 on, a controller begins a transaction if no record has set a level, and dies of it right after a snapshot.
    """
    stories = [
        story for log in (*POISONED.values(), *ENUM_LOGS.values()) for story in beside_snapshots(log) if story[0].values
    ]
    said = kafka_replays(release, stories)
    found = []
    for story, replayed in zip(stories, said.replayed, strict=True):
        check = LoadCheck((release,), in_snapshot=True)
        check.apply(story[0]._replace(base_offset=0))
        check.begin_log(SNAPSHOT_END)
        for batch in story[1:]:
            check.apply(batch)
        fault = check.finish().get(release)
        begins_anew = fault is not None and fault.rule == "no-metadata-version" and replayed.first is None
        if not agrees(fault, replayed) and not begins_anew:
            found.append((fault, replayed, story))
    assert not found, (len(found), found[:3])


@pytest.mark.parametrize("release", CHECKED_RELEASES)
def test_the_raft_client_of_every_release_stops_where_we_say(release: str) -> None:
    """At the batch with the control record of the table, or in the snapshot; other tests hold us to it."""
    said = kafka_controls(release, CONTROL_LOGS.values())
    for (name, log), kafka in zip(CONTROL_LOGS.items(), said, strict=True):
        is_in_snapshot = log.offset < len(log.snapshot)
        batch = next((each for each in log.story if each.base_offset <= log.offset < each.next_offset), None)
        place = "snapshot" if is_in_snapshot or batch is None else str(batch.base_offset)
        assert kafka.stopped == (place if log.rule else "-"), (name, kafka)
