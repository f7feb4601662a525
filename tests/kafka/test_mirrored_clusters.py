# SPDX-License-Identifier: Apache-2.0
"""What a real MirrorMaker mirrors is found to be sound, whatever its settings, also if it was killed and restarted."""

import signal
from collections.abc import Iterator
from typing import Any, Final

import pytest

from raftlog.tools.mirrors.naming.configured import (
    CLASS_PROPERTY,
    IDENTITY_CLASS,
    INTERNAL_SEPARATOR_PROPERTY,
    SEPARATOR_PROPERTY,
)
from raftlog.tools.mirrors.reading.clusters import Cluster
from tests.kafka import dump_tool
from tests.kafka.mirrored_clusters import SOURCE, TARGET, MirroredClusters, target_alias
from tests.tools.console import Outcome
from tests.tools.mirrors.verb_runs import found, of_flow, verified

pytestmark = dump_tool.marks("Kafka's MirrorMaker")

FLOWS: Final = {
    "S": {SEPARATOR_PROPERTY: "_"},
    "M": {SEPARATOR_PROPERTY: "_", INTERNAL_SEPARATOR_PROPERTY: "false", "offset-syncs.topic.location": "target"},
    "I": {CLASS_PROPERTY: IDENTITY_CLASS},
    "C": {"source.consumer.isolation.level": "read_committed"},
    "T": {"offset-syncs.topic.location": "target"},
}
PREFIXES: Final = {"S": "S_", "M": "M_", "I": "", "C": "C.", "T": "T."}
FIRST, SECOND = 150, 33
"""How many records a partition of orders gets before MirrorMaker is killed, and after that."""
COMMITTED: Final = 53
TRANSACTIONS: Final = 60
ABORTED: Final = 10
OTHERS: Final = 10


def sizes(alias: str, loads: int, orders: int) -> dict[tuple[str, int], int]:
    """How many records a flow mirrors of each partition, after so many loads with so many orders in all."""
    of_transactions = (TRANSACTIONS - ABORTED if alias == "C" else TRANSACTIONS) * loads
    return {
        ("orders", 0): orders,
        ("orders", 1): orders,
        ("tx.orders", 0): of_transactions,
        ("internal-looking", 0): OTHERS * loads,
    }


class Mirrored:
    """Asks the target's files whether all is there."""

    def __init__(self, clusters: MirroredClusters, loads: int, orders: int, again: dict[str, dict[Any, int]]) -> None:
        self._target = clusters.directory(TARGET)
        self._expected = {
            (f"{PREFIXES[alias]}{topic}", partition): count + again.get(alias, {}).get((topic, partition), 0)
            for alias in FLOWS
            for (topic, partition), count in sizes(alias, loads, orders).items()
        }

    def is_there(self) -> bool:
        """Whether each mirror has so many records, and each flow a checkpoint."""
        if not all((self._target / f"{topic}-{partition}").is_dir() for topic, partition in self._expected):
            return False
        cluster = Cluster([str(self._target)])
        counts = {(topic, number): _end_of(cluster, topic, number) for topic, number in self._expected}
        checkpoints = [topic for topic in cluster.topics if "checkpoints" in topic and _end_of(cluster, topic, 0)]
        return counts == self._expected and len(checkpoints) == len(FLOWS)


def _end_of(cluster: Cluster, topic: str, partition: int) -> int:
    log = cluster.log(topic, partition)
    return 0 if log is None else log.end.offset


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MirroredClusters]:
    """Two clusters, with records in the source that a MirrorMaker has mirrored until it was killed."""
    made = MirroredClusters(tmp_path_factory.mktemp("clusters"), FLOWS)
    with made.running():
        made.load(FIRST, COMMITTED)
        made.start_mirror_maker()
        made.wait_until(Mirrored(made, 1, FIRST, {}).is_there, "mirror")
        made.end("mirror-maker", signal.SIGKILL)
        yield made


def outcome_of(clusters: MirroredClusters, alias: str) -> Outcome:
    """What is found of a flow."""
    directories = clusters.directory(SOURCE), clusters.directory(TARGET)
    return verified(*directories, "--source-alias", alias, "--target-alias", target_alias(alias))


def copies(outcome: Outcome) -> dict[tuple[str, int], int]:
    """How many offsets of each partition of the source were mirrored again."""
    return {
        (line["source"]["topic"], line["source"]["partition"]): line["target"]["end_offset"]
        - line["target"]["start_offset"]
        for line in outcome.of_kind("finding")
        if line["rule"] == "mirror.copied-again"
    }


def check(clusters: MirroredClusters, alias: str, loads: int, orders: int, again: dict[Any, int]) -> None:
    """All that a flow has mirrored is sound, and what it has mirrored again is counted."""
    outcome = outcome_of(clusters, alias)
    assert (outcome.exit_code, found(outcome), of_flow(outcome), outcome.messages) == (0, [], [], "")
    assert copies(outcome) == again
    pairs = {(line["source"]["topic"], line["source"]["partition"]): line for line in outcome.of_kind("pair")}
    assert pairs.keys() <= sizes(alias, loads, orders).keys()
    if PREFIXES[alias] or loads > 1:  # Only syncs say which topic is a mirror, if names are the same.
        assert len(pairs) == len(sizes(alias, loads, orders))
    synced = {place: line for place, line in pairs.items() if line["anchors_equal"]}
    assert len(synced) >= (2 if loads == 1 else 4)  # A commit sends what is left of them, and a kill is before that.
    assert {place: line["compared"] for place, line in synced.items()}.items() <= sizes(alias, loads, orders).items()
    assert all(line["anchors_wrong"] == line["lag"] == 0 for line in pairs.values())
    if ("tx.orders", 0) in synced:
        assert pairs["tx.orders", 0]["aborted"] == (ABORTED * loads if alias == "C" else 0)
    assert [line["origin"] for line in outcome.of_kind("move")] != []


def test_each_flow_is_sound_also_after_a_kill(clusters: MirroredClusters) -> None:
    """Separators, the identity policy, read committed and syncs on the target; then all is mirrored again."""
    for alias in FLOWS:
        check(clusters, alias, 1, FIRST, {})
    again = {alias: sizes(alias, 1, FIRST) for alias in FLOWS}
    clusters.start_mirror_maker()
    clusters.load(SECOND, FIRST)
    clusters.wait_until(Mirrored(clusters, 2, FIRST + SECOND, again).is_there, "mirror of all")
    clusters.end("mirror-maker", signal.SIGTERM)
    for alias in FLOWS:
        check(clusters, alias, 2, FIRST + SECOND, again[alias])
