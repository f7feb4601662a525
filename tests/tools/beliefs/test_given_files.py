# SPDX-License-Identifier: Apache-2.0
"""Log directories of brokers are read: names, small files, and the leader epochs of the last batches."""

from pathlib import Path
from uuid import UUID

import pytest

from raftlog.errors import DecodeError, StorageError
from raftlog.offsets import EpochEntry
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.files.checkpoint_files import write_leader_epoch_checkpoint
from raftlog.records.files.file_names import DirectoryState
from raftlog.records.files.index_entries import OFFSET_INDEX, OffsetIndexEntry
from raftlog.records.files.property_files import PartitionMetadata, write_partition_metadata
from raftlog.tools.beliefs.given import GivenDirectory
from raftlog.tools.beliefs.given_files import GivenFiles
from raftlog.uuid_text import uuid_from_text
from tests.golden_files import GOLDEN
from tests.tools.made_logs import write_log

TOPIC_ID = UUID(int=77)
META = "version=1\ncluster.id=c\nnode.id=1\ndirectory.id=AAAAAAAAAAAAAAAAAAABQQ\n"


def read(*paths: Path) -> list[GivenDirectory]:
    """The directories, of which all files can be read."""
    problems: list[DecodeError | StorageError] = []
    found = GivenFiles(problems.append).read([str(path) for path in paths])
    assert problems == []
    return found


def epoch_batch(base_offset: int, epoch: int) -> bytes:
    """A batch of one record."""
    builder = RecordBatchBuilder(base_offset, partition_leader_epoch=epoch)
    builder.append(1_000, None, b"v")
    return builder.build()


@pytest.fixture
def broker(tmp_path: Path) -> Path:
    """A log directory with one partition, whose checkpoint and batch have leader epoch 1."""
    home = tmp_path / "b1"
    write_log(home / "orders-0", epoch_batch(0, 1))
    (home / "meta.properties").write_text(META)
    (home / "orders-0/partition.metadata").write_bytes(write_partition_metadata(PartitionMetadata(0, TOPIC_ID)))
    (home / "orders-0/leader-epoch-checkpoint").write_bytes(write_leader_epoch_checkpoint([EpochEntry(1, 0)]))
    return home


def epoch_of(home: Path) -> tuple[int, str]:
    """The leader epoch of the one partition, and the name of the file that has it."""
    ((partition,),) = (each.partitions for each in read(home))
    unconfirmed = partition.unconfirmed_epoch, partition.unconfirmed_path.rpartition("/")[2]
    return max(unconfirmed, (partition.leader_epoch, partition.epoch_path.rpartition("/")[2]))


def test_the_directory_of_a_real_broker_is_read() -> None:
    """Who it belongs to, and each partition with its topic's id and its leader epoch; not the metadata log."""
    home = GOLDEN / "groups/data/n1"
    (found,) = read(home)
    assert (found.node_id, found.cluster_id) == (1, "MkU3OEVBNTcwNTJENDM2Qg")
    assert found.directory_id == uuid_from_text("68i-PGMIShCqlhOAsrO7NQ")
    assert [str(each.name) for each in found.partitions] == sorted(
        path.name for path in home.iterdir() if path.is_dir() and path.name != "__cluster_metadata-0"
    )
    for each in found.partitions:
        text = (Path(each.path) / "partition.metadata").read_text()
        assert each.topic_id == uuid_from_text(text.rpartition(" ")[2])
        assert each.is_current is not each.path.endswith("-delete")
        assert each.leader_epoch == (0 if each.is_current else -1)


def test_leader_epochs_are_in_the_checkpoint_and_in_batches(broker: Path) -> None:
    """The higher one counts; of equal ones the checkpoint is named."""
    assert epoch_of(broker) == (1, "leader-epoch-checkpoint")
    write_log(broker / "orders-0", epoch_batch(0, 1), epoch_batch(1, 3))
    assert epoch_of(broker) == (3, "00000000000000000000.log")
    (broker / "orders-0/leader-epoch-checkpoint").write_bytes(write_leader_epoch_checkpoint([EpochEntry(4, 0)]))
    assert epoch_of(broker) == (4, "leader-epoch-checkpoint")
    (broker / "orders-0/leader-epoch-checkpoint").unlink()
    assert epoch_of(broker) == (3, "00000000000000000000.log")


def test_a_partition_without_batches_has_no_leader_epoch(broker: Path) -> None:
    """Neither has one without files."""
    for path in (broker / "orders-0").iterdir():
        path.unlink()
    assert epoch_of(broker) == (-1, "")
    write_log(broker / "orders-0")
    assert epoch_of(broker) == (-1, "")


def test_a_torn_batch_and_zeros_do_not_count(broker: Path) -> None:
    """Only batches that are complete: one byte less, and the batch before it is the last."""
    last = epoch_batch(1, 3)
    write_log(broker / "orders-0", epoch_batch(0, 1), last[:-1])
    assert epoch_of(broker)[0] == 1
    write_log(broker / "orders-0", epoch_batch(0, 1), last, bytes(4096))
    assert epoch_of(broker)[0] == 3


@pytest.mark.parametrize("damaged", [0, 1])
def test_only_batches_whose_crc_holds_count(damaged: int, broker: Path) -> None:
    """A damaged one is reported, also if it is the last one or leads to no next one; and the file is named."""
    batches = [epoch_batch(0, 5), epoch_batch(1, 7), epoch_batch(2, 6)]
    for position in (len(batches[0]) - 1, 8):
        broken = [bytearray(each) for each in batches]
        broken[damaged][position] ^= 1
        write_log(broker / "orders-0", *map(bytes, broken))
        problems: list[DecodeError | StorageError] = []
        (found,) = GivenFiles(problems.append).read([str(broker)])
        (partition,) = found.partitions
        assert partition.unconfirmed_epoch == (7 if damaged == 0 else 6)
        assert partition.unread_files == (f"{0:020}.log",)
        assert [type(each) for each in problems] == [DecodeError]


def test_the_end_of_its_own_metadata_log_is_read(broker: Path) -> None:
    """After the last sound batch, or where the last segment begins."""
    assert read(broker)[0].metadata_end == -1
    log = broker / "__cluster_metadata-0"
    write_log(log, epoch_batch(0, 1), epoch_batch(1, 1), epoch_batch(2, 1)[:-1])
    assert read(broker)[0].metadata_end == 2
    write_log(log, name=f"{7:020}.log")
    assert read(broker)[0].metadata_end == 7


def test_the_newest_segment_with_batches_counts(broker: Path) -> None:
    """An empty one after it does not, nor one that was deleted."""
    folder = broker / "orders-0"
    write_log(folder, epoch_batch(1, 2), name=f"{1:020}.log")
    write_log(folder, name=f"{2:020}.log")
    write_log(folder, epoch_batch(3, 9), name=f"{3:020}.log.deleted")
    assert epoch_of(broker) == (2, f"{1:020}.log")


def test_an_index_shortens_the_way_and_a_wrong_one_does_not_mislead(broker: Path) -> None:
    """What precedes its last entry is not read; an entry that leads to no batch is ignored."""
    first, second = epoch_batch(0, 9), epoch_batch(1, 3)
    path = write_log(broker / "orders-0", first, second).with_suffix(".index")
    assert epoch_of(broker)[0] == 9
    path.write_bytes(OFFSET_INDEX.encode([OffsetIndexEntry(1, len(first))]))
    assert epoch_of(broker)[0] == 3
    path.write_bytes(OFFSET_INDEX.encode([OffsetIndexEntry(1, len(first) + 1)]))
    assert epoch_of(broker)[0] == 9


def test_damage_where_the_index_leads_hides_nothing(broker: Path) -> None:
    """The last sound batch is before it: its epoch counts, and the end of the metadata log."""
    first, second = epoch_batch(0, 9), epoch_batch(1, 3)
    for partition in ("orders-0", "__cluster_metadata-0"):
        path = write_log(broker / partition, first, second[:-1] + b"x")
        path.with_suffix(".index").write_bytes(OFFSET_INDEX.encode([OffsetIndexEntry(1, len(first))]))
    (found,) = GivenFiles(lambda _: None).read([str(broker)])
    assert found.metadata_end == 1
    assert [each.unconfirmed_epoch for each in found.partitions if each.name.topic == "orders"] == [9]


@pytest.mark.parametrize(
    ("name", "topic", "state"),
    [
        ("orders-0", "orders", DirectoryState.CURRENT),
        (f"orders-0.{'a' * 32}-future", "orders", DirectoryState.FUTURE),
        (f"orders-0.{'a' * 32}-delete", "orders", DirectoryState.DELETE),
        (f"orders-0.{'a' * 32}-stray", "orders", DirectoryState.STRAY),
    ],
)
def test_the_name_has_the_stage_of_life(name: str, topic: str, state: DirectoryState, broker: Path) -> None:
    """As Kafka writes it."""
    (broker / "orders-0").rename(broker / name)
    ((partition,),) = (each.partitions for each in read(broker))
    assert (partition.name.topic, partition.name.state, partition.topic_id) == (topic, state, TOPIC_ID)


@pytest.mark.parametrize(
    ("text", "epoch"), [('{"version":0,"brokerEpoch":13}', 13), ("", None), ("{", None), ('{"brokerEpoch":"1"}', None)]
)
def test_the_broker_epoch_of_a_clean_shutdown(text: str, epoch: int | None, broker: Path) -> None:
    """Older releases write an empty file."""
    (broker / ".kafka_cleanshutdown").write_text(text)
    assert read(broker)[0].broker_epoch == epoch


def test_what_is_damaged_is_reported_with_file_and_position(broker: Path) -> None:
    """And the rest is read: the partition is there, and of an unknown topic."""
    (broker / "orders-0/partition.metadata").write_bytes(b"version: 0\ntopic: x")
    (broker / "orders-0/leader-epoch-checkpoint").write_bytes(b"0\n1\nx 0\n")
    (broker / "meta.properties").write_text("version=9\n")
    problems: list[DecodeError | StorageError] = []
    (found,) = GivenFiles(problems.append).read([str(broker)])
    assert sorted(str(each).replace(str(broker), "") for each in problems) == [
        "/meta.properties, position 0: unknown meta.properties version 9 [file-format]",
        r"/orders-0/leader-epoch-checkpoint, position 4: a malformed line (not a number): b'x 0\n' [file-format]",
        "/orders-0/partition.metadata, position 11: not a line of topic_id: b'topic: x' [file-format]",
    ]
    (partition,) = found.partitions
    assert (found.node_id, partition.topic_id, partition.is_unread, partition.unconfirmed_epoch) == (
        None,
        None,
        True,
        1,
    )
    assert set(partition.unread_files) == {"leader-epoch-checkpoint", "partition.metadata"}
    assert found.unread_files == ("meta.properties",)


def test_a_missing_partition_metadata_is_not_damage(broker: Path) -> None:
    """The topic has no id."""
    (broker / "orders-0/partition.metadata").unlink()
    ((partition,),) = (each.partitions for each in read(broker))
    assert (partition.topic_id, partition.is_unread) == (None, False)


def test_directories_are_found_below_and_read_once(broker: Path, tmp_path: Path) -> None:
    """However often and by whatever name they are given."""
    link = tmp_path / "link"
    link.symlink_to(broker)
    assert [each.path for each in read(tmp_path)] == [each.path for each in read(broker)] == [str(broker)]
    assert len(read(broker, broker, link, tmp_path)) == 1


def test_a_path_without_a_log_directory_is_an_error(broker: Path, tmp_path: Path) -> None:
    """A name that is not there, an empty directory, a partition, and a file, each by name."""
    empty = tmp_path / "empty"
    empty.mkdir()
    for path in (tmp_path / "none", empty, broker / "orders-0", broker / "orders-0/partition.metadata"):
        with pytest.raises(StorageError, match=str(path)):
            GivenFiles(lambda _: None).read([str(path)])
        with pytest.raises(StorageError, match=str(path)):
            GivenFiles(lambda _: None).read([str(broker), str(path)])
