# SPDX-License-Identifier: Apache-2.0
"""What brokers' directories show that they acted on, on files that a real Kafka wrote, and beside them."""

import shutil
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from raftlog.offsets import EpochEntry, OffsetAndEpoch
from raftlog.records.files.checkpoint_files import write_leader_epoch_checkpoint
from raftlog.records.files.property_files import PartitionMetadata, write_partition_metadata
from raftlog.tools.auditing.acts.acted_on import BrokerDirectories
from tests.golden_files import GOLDEN
from tests.tools.auditing.acts.real_broker import check_acts
from tests.tools.auditing.contents.test_records_at_risk import raft_log

QUORUM = GOLDEN / "dynamic-quorum" / "data"
BROKERS = ("data-topics/data/n1", "groups/data/n1", "mirror/data/n1", "mirror/data/n2")
TOPIC, TOPIC_ID = "tmp-3", UUID("a444d38c-6d93-4f01-8369-7066fa447437")
CREATED, PARTITION_MADE, LED = OffsetAndEpoch(182, 4), OffsetAndEpoch(183, 4), OffsetAndEpoch(184, 4)
REGISTERED, BROKER_EPOCH = OffsetAndEpoch(22, 2), 21
END = 229


@pytest.mark.parametrize("name", BROKERS)
def test_a_real_broker_has_acted_on_its_log(name: str) -> None:
    """Each partition that it has, with each leader epoch, is of a record of the log beside it, and is found by it."""
    check_acts(GOLDEN / name, is_registered=False)  # Golden directories are of brokers that were killed.


@pytest.fixture
def broker(tmp_path: Path) -> Path:
    """The directory of broker 101 of a real quorum, without what it acted on."""
    shutil.copytree(QUORUM / "n101", tmp_path / "n101")
    return tmp_path / "n101"


def has_partition(broker: Path, name: str = f"{TOPIC}-0", *epochs: int, topic_id: UUID = TOPIC_ID) -> None:
    """Give a broker a partition's directory."""
    (broker / name).mkdir()
    (broker / name / "partition.metadata").write_bytes(write_partition_metadata(PartitionMetadata(0, topic_id)))
    entries = [EpochEntry(epoch, 10 * epoch) for epoch in epochs]
    (broker / name / "leader-epoch-checkpoint").write_bytes(write_leader_epoch_checkpoint(entries))


def was_registered(broker: Path, text: str = f'{{"version":0,"brokerEpoch":{BROKER_EPOCH}}}') -> None:
    """Give a broker what it writes at a clean shutdown."""
    (broker / ".kafka_cleanshutdown").write_text(text)


def last_of(log: Path, *directories: Path, start: int = 0, end: int = END) -> tuple[OffsetAndEpoch, str] | None:
    """Return the last record that was acted on, and the file that shows it, below the directories' parent."""
    found = BrokerDirectories(map(str, directories)).last_acted_on(raft_log(log), start, end)
    return None if found is None else (found.point, str(Path(found.path).relative_to(directories[0].parent)))


@pytest.mark.parametrize(
    ("make", "point", "file"),
    [
        (lambda broker: None, None, ""),
        (has_partition, CREATED, f"{TOPIC}-0/partition.metadata"),
        (lambda broker: has_partition(broker, f"{TOPIC}-0", 0), PARTITION_MADE, f"{TOPIC}-0/leader-epoch-checkpoint"),
        (lambda broker: has_partition(broker, f"{TOPIC}-0.{'a' * 32}-delete"), CREATED, None),
        (lambda broker: has_partition(broker, f"{TOPIC}-0.{'a' * 32}-stray"), CREATED, None),
        (lambda broker: has_partition(broker, f"{TOPIC}-0.{'a' * 32}-future"), CREATED, None),
        (lambda broker: has_partition(broker, f"{TOPIC}-7", 0), CREATED, f"{TOPIC}-7/partition.metadata"),
        (lambda broker: has_partition(broker, "other-0"), None, ""),
        (lambda broker: has_partition(broker, topic_id=UUID(int=1)), None, ""),
        (was_registered, REGISTERED, ".kafka_cleanshutdown"),
        (lambda broker: was_registered(broker, f'{{"version":0,"brokerEpoch":{BROKER_EPOCH - 1}}}'), None, ""),
        (lambda broker: was_registered(broker, f'{{"version":0,"brokerEpoch":{BROKER_EPOCH + 1}}}'), None, ""),
        (lambda broker: was_registered(broker, ""), None, ""),
        (lambda broker: was_registered(broker, "true"), None, ""),
        (lambda broker: was_registered(broker, '{"brokerEpoch":"21"}'), None, ""),
        (lambda broker: was_registered(broker, '{"brokerEpoch":21.0}'), None, ""),
        (lambda broker: was_registered(broker, "[" * 4096), None, ""),
        (lambda broker: was_registered(broker, '{"brokerEpoch":21}' + " " * 4078), REGISTERED, ".kafka_cleanshutdown"),
        (lambda broker: was_registered(broker, '{"brokerEpoch":21}' + " " * 4079), None, ""),
    ],
)
def test_what_a_directory_shows(
    broker: Path, make: Callable[[Path], None], point: OffsetAndEpoch | None, file: str | None
) -> None:
    """It shows a topic by its id, a leader epoch by its number, a registration by its broker epoch, or nothing."""
    make(broker)
    found = last_of(broker, broker)
    assert (found and found[0]) == point
    assert file is None or (found[1] if found else "") == (f"n101/{file}" if file else "")


def test_only_a_topic_is_shown_by_another_directory(broker: Path) -> None:
    """Another leader may give out the number of a broker epoch or leader epoch again: only its own log has that one."""
    shutil.copytree(QUORUM / "n1", broker.parent / "n1")
    was_registered(broker)
    assert last_of(broker.parent / "n1", broker, broker.parent / "n1") is None
    has_partition(broker, f"{TOPIC}-0", 0)
    assert last_of(broker, broker, broker.parent / "n1") == (PARTITION_MADE, f"n101/{TOPIC}-0/leader-epoch-checkpoint")
    assert last_of(broker.parent / "n1", broker) == (CREATED, f"n101/{TOPIC}-0/partition.metadata")


@pytest.mark.parametrize(
    ("start", "end", "is_found"),
    [(181, 182, True), (182, END, False), (0, 181, False), (0, 182, True), (181, 181, False)],
)
def test_a_part_of_the_log(broker: Path, start: int, end: int, *, is_found: bool) -> None:
    """The first offset is inclusive, and the end is not."""
    has_partition(broker)
    assert (last_of(broker, broker, start=start, end=end) is not None) == is_found


@pytest.mark.parametrize("name", ["partition.metadata", "meta.properties", ".kafka_cleanshutdown"])
def test_files_that_cannot_be_read_show_nothing(broker: Path, name: str) -> None:
    """Nothing is guessed of a file that breaks its format, or is gone."""
    has_partition(broker)
    was_registered(broker)
    paths = [broker / name if (broker / name).exists() else broker / f"{TOPIC}-0" / name]
    (paths[0]).write_bytes(b"\xff\xfe")
    expected = REGISTERED if name == "partition.metadata" else CREATED
    found = last_of(broker, broker)
    assert found is not None
    assert found[0] == expected
    shutil.rmtree(broker / f"{TOPIC}-0")
    assert (last_of(broker, broker) is not None) == (name == "partition.metadata")
    shutil.move(broker / "__cluster_metadata-0", broker.parent / "log" / "__cluster_metadata-0")
    shutil.rmtree(broker)
    assert last_of(broker.parent / "log", broker) is None
