# SPDX-License-Identifier: Apache-2.0
"""What Kafka's own controllers and loaders make of metadata records, for each release."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from raftlog.tools.image.cluster_image import MetadataBatch
from tests.kafka import dump_tool
from tests.kafka.kafka_images import SNAPSHOT_OFFSET

Story = Sequence[MetadataBatch]
"""Batches of a log. One with base offset -1 at the beginning is a snapshot, which ends at its next offset."""
_RANGE = re.compile(r"([\w.]+)=(\d+)-(\d+)")


class KafkaReplay(NamedTuple):
    """What became of a story.

    Attributes:
        controller, loader: the offset of the record at which each of them stopped; None if none did.
        activation: the fault of the controller when it became active; None if it did, or had stopped before.
        reasons: the messages of all three, empty where there was no fault.
    """

    controller: int | None
    loader: int | None
    activation: str | None
    reasons: tuple[str, str, str]

    @property
    def first(self) -> int | None:
        """The offset of the first record at which the process ends."""
        return min((each for each in (self.controller, self.loader) if each is not None), default=None)


class ReleaseAnswer(NamedTuple):
    """What one release said: the levels of features that its controllers support, and a result for each story."""

    levels: dict[str, tuple[int, int]]
    replayed: list[KafkaReplay]


def kafka_replays(release: str, stories: Iterable[Story]) -> ReleaseAnswer:
    """Let the controller and the loader of a release replay stories."""
    said = dump_tool.answers("ReplayCheck", release, (line for story in stories for line in _lines(story)))
    head, *answers = said.splitlines()
    levels = {name: (int(lowest), int(highest)) for name, lowest, highest in _RANGE.findall(head)}
    return ReleaseAnswer(levels, [_replayed(answer.split("\t")) for answer in answers])


def _lines(story: Story) -> Iterable[str]:
    yield "story\n"
    for batch in story:
        values = " ".join((value or b"").hex() for value in batch.values)
        is_snapshot = batch.base_offset == SNAPSHOT_OFFSET
        head = f"snapshot {batch.next_offset}" if is_snapshot else f"batch {batch.base_offset}"
        yield f"{head} {batch.epoch} {batch.timestamp} {values}".rstrip() + "\n"
    yield "end\n"


def _replayed(words: Sequence[str]) -> KafkaReplay:
    controller, loader = (None if word == "-1" else int(word) for word in (words[0], words[2]))
    activation = None if words[4] == "-1" else words[5]
    return KafkaReplay(controller, loader, activation, (words[1], words[3], words[5]))
