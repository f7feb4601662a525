# SPDX-License-Identifier: Apache-2.0
"""The messages of the newest Kafka, whose dump tool cannot be run yet, beside that Kafka's own classes."""

import json

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from raftlog.records.messages.releases import RELEASES
from raftlog.records.messages.schema import Message, MessageType
from tests.kafka import dump_tool
from tests.records.schema_strategies import ALL_VERSIONS, messages

pytestmark = dump_tool.marks("Kafka's code")

NEWEST = RELEASES[-1].name
CLASSES = {
    "metadata": "org.apache.kafka.common.metadata.{}",
    "rpc": "org.apache.kafka.common.message.{}Data",
    "header": "org.apache.kafka.common.message.{}Data",
    "data": "org.apache.kafka.common.message.{}",
}
"""Kafka's class for a message, by the kind of its schema. The jars with the coordinators' classes are not published."""
HAVE_DOUBLES = {"ClientQuotaRecord"}
COMPARED = [(kind, version) for kind, version in ALL_VERSIONS if kind.schema.kind in CLASSES]
SAMPLES = 12


def samples(strategy: st.SearchStrategy[Message]) -> list[Message]:
    """Return the same messages each time."""
    found: list[Message] = []

    @settings(
        max_examples=SAMPLES,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(message: Message) -> None:
        found.append(message)

    collect()
    return found


def converted(lines: list[str]) -> list[str]:
    """Return what Kafka's classes write for messages."""
    return dump_tool.answers("ConvertMessages", NEWEST, ["\n".join(lines)]).split("\n")[:-1]


def test_the_newest_release_is_the_one_without_a_dump_tool() -> None:
    """Once its tools can be run, its goldens take this test's place."""
    assert not RELEASES[-1].has_dump_tool
    assert {"metadata", "rpc", "data"} <= {kind.schema.kind for kind, _ in COMPARED}


def test_every_message_is_read_and_written_as_the_newest_kafka_does() -> None:
    """Kafka reads our bytes, leaves none over, writes the same bytes again, and prints the same JSON."""
    asked: list[tuple[MessageType, int, bytes]] = [
        (kind, version, kind.write(message, version=version))
        for kind, version in COMPARED
        for message in samples(messages(kind, version, plain=True))
    ]
    lines = [
        f"{CLASSES[kind.schema.kind].format(kind.name)} {version} {data.hex() or '-'}" for kind, version, data in asked
    ]

    answers = converted(lines)

    for (kind, version, data), answer in zip(asked, answers, strict=True):
        again, _, theirs = answer.partition(" ")
        name = f"{kind.name} {version} {data.hex()}"
        assert again == (data.hex() or "-"), name
        ours = kind.to_json(kind.read(data, version=version)[0], version=version)
        # Before Java 19, some doubles were written with more digits than they need.
        is_equal = json.loads(ours) == json.loads(theirs) if kind.name in HAVE_DOUBLES else ours == theirs
        assert is_equal, f"{name}\n{ours}\n{theirs}"
