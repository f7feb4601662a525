# SPDX-License-Identifier: Apache-2.0
"""The images that Kafka's own loader makes of metadata records."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from raftlog.records.messages.releases import RELEASES
from raftlog.tools.image.cluster_image import MetadataBatch
from raftlog.tools.image.tables import Tables
from tests.kafka import dump_tool
from tests.tools.image.naive_cluster import described

NEWEST = RELEASES[-1].name
"""The release whose loader is asked."""

Story = Sequence[MetadataBatch]
"""Batches of a log. One with base offset -1 at the beginning has all records of a snapshot."""
SNAPSHOT_OFFSET = -1


def kafka_images(stories: Iterable[Story]) -> list[list[dict[str, Any]]]:
    """Return what Kafka's loader makes of each batch of each story: an image, or the first record that it refuses.

    Images are in the form of ``naive_state``; ``{"fault": offset}`` names a record, and ends the story.
    """
    stories = list(stories)
    said = dump_tool.answers("ImageDump", NEWEST, (line for story in stories for line in _lines(story)))
    answers = iter([json.loads(line) for line in said.splitlines()])
    return [[next(answers) for _ in story] for story in stories]


def _lines(story: Story) -> Iterable[str]:
    yield "story\n"
    for batch in story:
        values = " ".join((value or b"").hex() for value in batch.values)
        head = f"batch {batch.base_offset} {batch.epoch} {batch.timestamp}"
        yield f"{'snapshot' if batch.base_offset == SNAPSHOT_OFFSET else head} {values}".rstrip() + "\n"


def comparable(tables: Tables) -> dict[str, Any]:
    """Return an image of ours with what Kafka's has: 4.x drops that a broker was one of ZooKeeper's."""
    found = described(tables)
    for broker in found["brokers"].values():
        del broker["zk"]
    return found
