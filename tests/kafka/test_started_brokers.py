# SPDX-License-Identifier: Apache-2.0
"""What a comparison of directories with metadata says of Kafka is what its log manager does when a broker starts."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from raftlog.records.files.property_files import PartitionMetadata, write_partition_metadata
from raftlog.tools.beliefs.comparison import compare
from raftlog.tools.beliefs.given_files import GivenFiles
from raftlog.tools.image.tables import Tables
from raftlog.uuid_text import uuid_to_text
from tests.kafka import dump_tool
from tests.kafka.kafka_images import NEWEST
from tests.tools.beliefs.made_beliefs import DIRECTORY_IDS, TOPIC_IDS, broker, entry, tables
from tests.tools.made_logs import write_log

pytestmark = dump_tool.marks("Kafka's log manager")

NODE = 1
NAMES = ("a", "b", "c", "d")
STORIES = 60
STRAY = {"unknown-topic", "recreated-topic", "unknown-partition", "not-assigned", "no-topic-id"}
"""The differences after which Kafka renames the directory."""
KEPT = STRAY | {"swapped-name", "other-name"}
MISSING = {"replica-lost", "replica-aside", "replica-unclean", "replica-empty", "replica-behind"}
"""The differences of replicas that begin empty, unless their log is refused."""
Topics = dict[str, tuple[UUID, dict[int, tuple[int, ...]]]]


class Broker(NamedTuple):
    """A broker that starts.

    Attributes:
        topics: of the metadata: the id, and the replicas of each partition, by name.
        directories: the topic ids in the directories of its partitions, by name and number; None: there is no id.
    """

    topics: Topics
    directories: dict[tuple[str, int], UUID | None]

    @property
    def tables(self) -> Tables:
        """The state of the metadata."""
        made = {
            name: (topic_id, {number: entry(nodes, nodes) for number, nodes in partitions.items()})
            for name, (topic_id, partitions) in self.topics.items()
        }
        return tables(made, {NODE: broker(DIRECTORY_IDS[NODE])})


def brokers() -> Iterator[Broker]:
    """Topics that were recreated, renamed, moved, or whose directories changed their names."""
    one, two = TOPIC_IDS[:2]
    both: Topics = {"a": (one, {0: (NODE,)}), "b": (two, {0: (NODE,)})}
    yield Broker(both, {("a", 0): two, ("b", 0): one})
    yield Broker(both, {("a", 0): one, ("b", 0): one})
    yield Broker(both, {("a", 0): one, ("c", 0): two})
    drawn = random.Random(16234)
    for _ in range(STORIES):
        ids = drawn.sample(TOPIC_IDS, 3)
        topics: Topics = {
            name: (topic_id, {number: drawn.choice([(1,), (1, 2), (2,)]) for number in range(drawn.randint(1, 2))})
            for name, topic_id in zip(drawn.sample(NAMES, 3), ids, strict=True)
        }
        places = [(name, number) for name in NAMES for number in range(2)]
        found = {each: drawn.choice([*TOPIC_IDS, None]) for each in drawn.sample(places, drawn.randint(1, 6))}
        for (name, number), topic_id in list(found.items()):
            if name in topics and drawn.random() < 0.4:
                found[name, number] = topics[name][0] if topic_id is not None else None
        yield Broker(topics, found)


def written(home: Path, started: Broker) -> Path:
    """Write the log directory of a broker."""
    home.mkdir()
    (home / "meta.properties").write_text(
        f"version=1\ncluster.id=c\nnode.id={NODE}\ndirectory.id={uuid_to_text(DIRECTORY_IDS[NODE])}\n"
    )
    for (name, number), topic_id in started.directories.items():
        folder = write_log(home / f"{name}-{number}").parent
        if topic_id is not None:
            (folder / "partition.metadata").write_bytes(write_partition_metadata(PartitionMetadata(0, topic_id)))
    return home


def kafka_starts(homes: Sequence[Path], started: Sequence[Broker]) -> list[dict[str, str]]:
    """Let Kafka's log manager start with each directory; return what became of each replica, by partition."""
    lines = []
    for home, each in zip(homes, started, strict=True):
        lines.append(f"broker {home} {NODE}\n")
        for name, (topic_id, partitions) in each.topics.items():
            for number, nodes in partitions.items():
                lines.append(f"partition {name} {number} {uuid_to_text(topic_id)} {','.join(map(str, nodes))}\n")
        lines.append("end\n")
    found: list[dict[str, str]] = [{}]
    for line in dump_tool.answers("StartLogs", NEWEST, lines).splitlines():
        if line:
            name, result = line.split("\t")
            found[-1][name] = result
        else:
            found.append({})
    return found[:-1]


def test_kafka_sets_aside_and_refuses_what_the_comparison_says(tmp_path: Path) -> None:
    """Renamed directories, refused logs and empty replicas; and each difference there is."""
    started = list(brokers())
    homes = [written(tmp_path / str(number), each) for number, each in enumerate(started)]
    comparisons = []
    for home, each in zip(homes, started, strict=True):
        given = GivenFiles(lambda problem: None).read([str(home)])
        comparisons.append(compare(each.tables, "c", given))
    seen = set()
    for home, comparison, answer in zip(homes, comparisons, kafka_starts(homes, started), strict=True):
        kinds = {
            f"{one.topic}-{one.partition}": one.kind.name for one in comparison.differences if one.kind.name in KEPT
        }
        seen |= set(kinds.values())
        renamed = {path.name.split(".")[0] for path in home.iterdir() if path.name.endswith("-stray")}
        assert renamed == {name for name, kind in kinds.items() if kind in STRAY}
        refused = {name for name, result in answer.items() if result == "InconsistentTopicIdException"}
        assert refused == {name for name, kind in kinds.items() if kind == "swapped-name"}
        missing = {f"{one.topic}-{one.partition}" for one in comparison.differences if one.kind.name in MISSING}
        assert {name for name, result in answer.items() if result == "new"} == missing - refused
    assert seen == STRAY | {"swapped-name", "other-name"}
