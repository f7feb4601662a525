# SPDX-License-Identifier: Apache-2.0
"""Kafka's loader makes of the records of a snapshot what it makes of the log."""

from raftlog.tools.image.cluster_image import ClusterImage, MetadataBatch
from raftlog.tools.image.image_records import image_records
from tests.kafka import dump_tool
from tests.kafka.kafka_images import SNAPSHOT_OFFSET, Story, comparable, kafka_images
from tests.kafka.test_metadata_image import NODES, story_of
from tests.tools.state.made_metadata import found_copies

pytestmark = dump_tool.marks("Kafka's loader")

MOST_OFFSETS = 8
"""Of each node's log, spread over it."""


def snapshots_of(story: Story) -> list[tuple[int, Story]]:
    """The number of a batch of a log, and the story of a snapshot after it, at some places outside of transactions."""
    image = ClusterImage()
    found: list[tuple[int, Story]] = []
    for number, batch in enumerate(story):
        is_snapshot = batch.base_offset == SNAPSHOT_OFFSET
        image.apply(MetadataBatch(0, 0, 1, 1, batch.values) if is_snapshot else batch)
        if image.transaction is None and "metadata.version" in image.tables.features:
            values = list(image_records(image.tables))
            found.append((number, [MetadataBatch(SNAPSHOT_OFFSET, 0, 1, 1, values)]))
    return found[:: max(1, len(found) // MOST_OFFSETS)]


def test_a_snapshot_of_ours_is_loaded_by_kafka_as_its_log_is() -> None:
    """At several offsets of each node of each corpus."""
    logs = [story_of(found_copies(node)[0][0]) for node in NODES]
    of_logs = kafka_images(logs)
    expected = [
        (answers[number], story)
        for log, answers in zip(logs, of_logs, strict=True)
        for number, story in snapshots_of(log)
    ]
    said = kafka_images(story for _, story in expected)
    assert len(expected) > 4 * len(NODES)
    for (of_log, story), (of_snapshot,) in zip(expected, said, strict=True):
        assert of_snapshot == of_log
        image = ClusterImage()
        image.apply(MetadataBatch(0, 0, 1, 1, story[0].values))
        assert comparable(image.tables) == of_log
