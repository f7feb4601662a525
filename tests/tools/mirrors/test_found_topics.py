# SPDX-License-Identifier: Apache-2.0
"""The topics of log directories are found by names and small files."""

from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import StorageError
from raftlog.records.files.property_files import (
    MetaProperties,
    PartitionMetadata,
    write_meta_properties,
    write_partition_metadata,
)
from raftlog.tools.mirrors.found_topics import FoundTopics, find_topics
from raftlog.tools.mirrors.topic_lines import ranges
from tests.golden_files import GOLDEN

MIRROR = GOLDEN / "mirror"
ONE, TWO = UUID(int=1 << 70), UUID(int=2 << 70)


def log_directory(path: Path, cluster_id: str | None = "c1", node_id: int = 1) -> Path:
    """Make a log directory."""
    path.mkdir(parents=True)
    if cluster_id is not None:
        (path / "meta.properties").write_bytes(write_meta_properties(MetaProperties(1, cluster_id, node_id)))
    return path


def partition(directory: Path, name: str, topic_id: UUID | None = ONE) -> Path:
    """Make a partition's directory without records."""
    path = directory / name
    path.mkdir()
    if topic_id is None:
        (path / "leader-epoch-checkpoint").write_bytes(b"0\n0\n")
    else:
        (path / "partition.metadata").write_bytes(write_partition_metadata(PartitionMetadata(0, topic_id)))
    return path


def places(found: FoundTopics) -> list[tuple[str, UUID | None, list[tuple[int, int]]]]:
    """What was found: names, topic ids, and the partition and directory of each replica."""
    return [
        (each.name, each.topic_id, [(replica.partition, replica.directory) for replica in each.replicas])
        for each in found.topics
    ]


@pytest.mark.parametrize(("node", "listed"), [("n1", "topics-a.txt"), ("n2", "topics-b.txt")])
def test_the_topics_of_a_cluster_are_those_that_kafka_lists(node: str, listed: str) -> None:
    """All of kafka-topics, and the metadata log, which is no topic to clients."""
    found = find_topics([str(MIRROR / "data" / node)])
    expected = {*(MIRROR / "expected" / listed).read_text().split(), "__cluster_metadata"}
    assert [each.name for each in found.topics] == sorted(expected)
    assert (found.problems, found.unnamed) == ([], [])
    (directory,) = found.directories
    assert directory.node_id == int(node[1:])


def test_replicas_are_those_of_one_topic_by_cluster_name_and_id(tmp_path: Path) -> None:
    """Of several brokers' directories; another cluster, another id or none makes another topic."""
    first, second = (log_directory(tmp_path / f"n{node}", node_id=node) for node in (1, 2))
    other = log_directory(tmp_path / "other", "c2")
    partition(first, "orders-1")
    partition(first, "orders-0")
    partition(second, "orders-0")
    partition(second, "made-anew-0", TWO)
    partition(first, "made-anew-0", ONE)
    partition(second, "no-id-3", None)
    partition(other, "orders-0")
    found = find_topics([str(tmp_path)])
    assert places(found) == [
        ("made-anew", ONE, [(0, 1)]),
        ("made-anew", TWO, [(0, 2)]),
        ("no-id", None, [(3, 2)]),
        ("orders", ONE, [(0, 1), (0, 2), (1, 1)]),
        ("orders", ONE, [(0, 3)]),
    ]
    assert [each.cluster_id for each in found.topics] == ["c1"] * 4 + ["c2"]
    orders = found.topics[3]
    assert (orders.partitions, orders.directories) == ((0, 1), (1, 2))
    assert [(each.path, each.cluster_id, each.node_id) for each in found.directories] == [
        (str(first), "c1", 1),
        (str(second), "c1", 2),
        (str(other), "c2", 1),
    ]


def test_a_directory_is_read_once(tmp_path: Path) -> None:
    """However often it is named, and by a link."""
    directory = log_directory(tmp_path / "n1")
    partition(directory, "orders-0")
    (tmp_path / "link").symlink_to(directory)
    found = find_topics([str(directory), f"{directory}/", str(tmp_path / "link"), str(directory / "orders-0")])
    assert places(found) == [("orders", ONE, [(0, 1)])]


def test_a_partition_alone_has_the_cluster_of_its_log_directory(tmp_path: Path) -> None:
    """From the meta.properties beside it, if that is there."""
    with_meta, without = log_directory(tmp_path / "n1"), log_directory(tmp_path / "n2", None)
    paths = [str(partition(with_meta, "orders-0")), str(partition(without, "orders-0"))]
    found = find_topics(paths)
    assert [each.cluster_id for each in found.topics] == ["c1", None]
    assert [each.path for each in found.directories] == [str(with_meta), str(without)]


def test_directories_that_kafka_has_set_aside_are_left_out(tmp_path: Path) -> None:
    """Deleted, stray and future ones, whose names may be cut; others' names are told."""
    directory = log_directory(tmp_path / "n1")
    partition(directory, "orders-0")
    for state in ("delete", "stray", "future"):
        partition(directory, f"gone-0.{'a' * 32}-{state}")
    found = find_topics([str(directory)])
    assert [each.name for each in found.topics] == ["orders"]
    assert {each.rule for each in found.problems} == {"file-left-over"}
    odd = partition(directory, "kept by me")
    assert find_topics([str(odd)]).unnamed == [str(odd)]
    assert find_topics([str(odd)]).topics == []


def test_damaged_small_files_are_findings(tmp_path: Path) -> None:
    """With file and position; the topic is listed all the same."""
    directory = log_directory(tmp_path / "n1")
    (partition(directory, "orders-0") / "partition.metadata").write_bytes(b"version: 0\ntopic_id: ?\n")
    (directory / "meta.properties").write_bytes(b"version=7\n")
    found = find_topics([str(directory)])
    assert places(found) == [("orders", None, [(0, 1)])]
    assert found.topics[0].cluster_id is None
    by_name = {Path(each.path).name: each for each in found.problems}
    assert sorted(by_name) == ["meta.properties", "partition.metadata"]
    assert by_name["partition.metadata"].position is not None
    assert by_name["partition.metadata"].severity.value == "damaged"


def test_a_small_file_that_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    """Such as a directory in its place; one that is too large too."""
    directory = log_directory(tmp_path / "n1")
    (partition(directory, "orders-0", None) / "partition.metadata").mkdir()
    (partition(directory, "orders-1", None) / "partition.metadata").write_bytes(bytes(1 << 21))
    found = find_topics([str(directory)])
    assert places(found) == [("orders", None, [(0, 1), (1, 1)])]
    assert len(found.problems) == 2
    assert {each.rule for each in found.problems} <= {"file-unreadable", "file-format"}


def test_what_is_no_directory_is_refused(tmp_path: Path) -> None:
    """A file, a missing path and standard input."""
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "file", tmp_path / "missing", "-"):
        with pytest.raises(StorageError):
            find_topics([str(path)])


@given(st.sets(st.integers(0, 30)))
def test_ranges_say_each_number_once(numbers: set[int]) -> None:
    """What is printed names the same numbers, ascending, in as few ranges as there are gaps."""
    text = ranges(sorted(numbers))
    said: list[int] = []
    for part in text.split(", ") if text else []:
        first, _, last = part.partition("-")
        said += range(int(first), int(last or first) + 1)
    assert said == sorted(numbers)
    assert len(text.split(", ") if text else []) == sum(number - 1 not in numbers for number in numbers)
