# SPDX-License-Identifier: Apache-2.0
"""Comparisons of ``raftlog state`` with Kafka's own loader of metadata."""

import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final
from uuid import UUID

from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.messages.metadata import metadata_record, write_metadata_record
from raftlog.records.messages.schema import message_types
from tests.benchmarks.measure import Comparison
from tests.benchmarks.programs import RAFTLOG, Command
from tests.kafka import dump_tool
from tests.kafka.kafka_images import NEWEST

_BATCH: Final = 100
_TIME_MS: Final = 1_780_000_000_000
_PARTITIONS_OF_A_TOPIC: Final = 300
_SHARE_OF_PARTITIONS: Final = 0.3
"""Of the records; of the rest, most change a partition."""


class StateFigures:
    """All comparisons of states.

    Args:
        folder: for the log and for outputs.
        records: how many the log has.
    """

    def __init__(self, folder: Path, records: int) -> None:
        self._folder = folder
        self._records = records

    def all(self) -> Iterator[tuple[str, Callable[[str], Comparison]]]:
        """Yield the start of the ids of their rows, and what makes a comparison, given that."""
        yield "state", partial(self._beside_kafka)

    def _beside_kafka(self, row: str) -> Comparison:
        directory = self._folder / f"state-{self._records}"
        segment = write_metadata_log(directory, self._records)
        ours = [RAFTLOG, "state", str(directory), "--path", "/features"]
        theirs = ["java", "-Xmx1g", "-cp", dump_tool.compiled("LoadImage", NEWEST), "LoadImage", str(segment)]
        amount, output = self._records / 1e6, self._folder / "state"
        name = f"Kafka's loader {NEWEST}, without its server"
        what = f"image of a metadata log of {self._records:,} records, whole process"
        state, loader = (Command(each, "compiled", amount, output) for each in (ours, theirs))
        return Comparison(row, what, "M records/s", {"compiled": state}, {name: loader}, {("compiled", name): 1})


def write_metadata_log(directory: Path, records: int) -> Path:
    """Write a metadata log of topics of many partitions, and of changes of these, unless it is there."""
    segment = directory / "__cluster_metadata-0" / "00000000000000000000.log"
    if not segment.exists():
        segment.parent.mkdir(parents=True)
        values = list(_values(records))
        with segment.open("wb") as file:
            for first in range(0, records, _BATCH):
                builder = RecordBatchBuilder(first, partition_leader_epoch=1)
                for value in values[first : first + _BATCH]:
                    builder.append(_TIME_MS + first, None, value)
                file.write(builder.build())
    return segment


def _values(count: int) -> Iterator[bytes]:
    draw = random.Random(5)
    topics = max(1, int(count * _SHARE_OF_PARTITIONS) // _PARTITIONS_OF_A_TOPIC)
    ids = [UUID(int=draw.getrandbits(128)) for _ in range(topics)]
    directories = [UUID(int=draw.getrandbits(128)) for _ in range(3)]
    yield _record("FeatureLevelRecord", name="metadata.version", featureLevel=25)
    for number, topic_id in enumerate(ids):
        yield _record("TopicRecord", name=f"topic-{number}", topicId=topic_id)
        yield _record("ConfigRecord", resourceType=2, resourceName=f"topic-{number}", name="retention.ms", value="1")
        for partition in range(_PARTITIONS_OF_A_TOPIC):
            yield _record(
                "PartitionRecord",
                partitionId=partition,
                topicId=topic_id,
                replicas=[1, 2, 3],
                isr=[1, 2, 3],
                leader=1,
                leaderEpoch=0,
                partitionEpoch=0,
                directories=directories,
            )
    for number in range(count - 1 - topics * (_PARTITIONS_OF_A_TOPIC + 2)):
        if number % 20 == 0:
            name = f"topic-{draw.randrange(topics)}"
            yield _record("ConfigRecord", resourceType=2, resourceName=name, name="retention.ms", value=str(number))
        elif number % 20 == 1:
            yield _record("NoOpRecord")
        else:
            yield _record(
                "PartitionChangeRecord",
                partitionId=draw.randrange(_PARTITIONS_OF_A_TOPIC),
                topicId=draw.choice(ids),
                isr=draw.choice([[1, 2], [2, 3], [1, 2, 3]]),
                leader=draw.choice([1, 2, 3]),
            )


def _record(kind: str, /, **fields: object) -> bytes:
    return write_metadata_record(metadata_record(kind, message_types("metadata-records")[kind].default() | fields))
