# SPDX-License-Identifier: Apache-2.0
"""The image of the cluster: at every offset it equals what a slow model makes of all records from scratch."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.messages.metadata import MetadataRecord, metadata_record, write_metadata_record
from raftlog.records.messages.schema import message_types
from raftlog.tools.image.cluster_image import ClusterImage, MetadataBatch, image_of_snapshot
from raftlog.tools.image.replay import REPLAYS
from tests.golden_files import GOLDEN, golden_id
from tests.tools.image.metadata_stories import metadata_stories
from tests.tools.image.naive_cluster import described, naive_state

DUMPS = sorted(GOLDEN.rglob("expected/*__cluster_metadata-0.*.metadata.txt"))
"""What Kafka's own tool printed of segments and snapshots."""
LOGS = [path for path in DUMPS if path.name.endswith("0.00000000000000000000.log.metadata.txt")]
SNAPSHOTS = [path for path in DUMPS if ".checkpoint." in path.name]
_PLACE = re.compile(r"(.+)\.__cluster_metadata-0\.(.+)\.metadata\.txt")


@given(metadata_stories())
def test_at_every_offset_the_image_equals_a_replay_from_scratch(
    story: tuple[list[MetadataBatch], list[list[MetadataRecord]]],
) -> None:
    """Batch by batch, the image has what the model makes of all committed records below its end, and no more."""
    image, batches, drawn = ClusterImage(), *story
    records = [record.to_object() for of_batch in drawn for record in of_batch]
    read = 0
    for batch, of_batch in zip(batches, drawn, strict=True):
        image.apply(batch)
        read += len(of_batch)
        assert described(image.tables) == naive_state(records[:read])
        assert image.read_to == batch.next_offset
        assert image.end_offset == (batch.next_offset if image.transaction is None else image.transaction.offset)


def test_every_type_of_record_is_replayed() -> None:
    """The table has each type that the schemas have."""
    assert REPLAYS.keys() == message_types("metadata-records").keys()


def dumped(dump: Path) -> list[tuple[int, list[Any]]]:
    """The batches that Kafka's tool printed: the offset after each, with its records."""
    found: list[tuple[int, list[Any]]] = []
    for line in dump.read_text().splitlines():
        if line.startswith("baseOffset: "):
            found.append((int(line.split()[3]) + 1, []))
        elif " payload: " in line:
            found[-1][1].append(json.loads(line.partition(" payload: ")[2]))
    return found


def data_file(dump: Path) -> Path:
    """The file that was dumped."""
    match = _PLACE.fullmatch(dump.name)
    assert match is not None
    folder = dump.parent.parent
    places = [folder / "data" / match[1], folder / match[1].replace(".", "/"), folder]
    paths = [place / "__cluster_metadata-0" / match[2] for place in places]
    return next(path for path in paths if path.exists())


def batches_of_file(path: Path) -> Iterator[MetadataBatch]:
    """The batches of a log or snapshot, read one by one."""
    for piece in split(BufferSource(path.read_bytes())):
        if isinstance(piece, RecordBatch):
            yield MetadataBatch(
                piece.base_offset,
                piece.next_offset,
                piece.partition_leader_epoch,
                piece.max_timestamp,
                [] if piece.is_control else [bytes(each.value or b"") for each in piece.records()],
            )


@pytest.mark.parametrize("dump", LOGS, ids=golden_id)
def test_images_of_kafkas_logs_are_what_its_dump_tool_says(dump: Path) -> None:
    """After each batch of each log, the image is what the model makes of the lines that Kafka's tool printed."""
    image, records = ClusterImage(), list[Any]()
    batches = list(batches_of_file(data_file(dump)))
    printed = dumped(dump)
    assert len(batches) == len(printed) > 3
    for batch, (end, of_batch) in zip(batches, printed, strict=True):
        image.apply(batch)
        records += of_batch
        assert image.read_to == end
        assert described(image.tables) == naive_state(records)
    assert not image.refusals


@pytest.mark.parametrize("dump", SNAPSHOTS, ids=golden_id)
def test_images_of_kafkas_snapshots_are_what_its_dump_tool_says(dump: Path) -> None:
    """A snapshot's image is what the model makes of the lines that Kafka's tool printed."""
    image = image_of_snapshot(batches_of_file(data_file(dump)), OffsetAndEpoch(7, 3), 5)
    assert described(image.tables) == naive_state([each for _, records in dumped(dump) for each in records])
    assert (image.end_offset, image.epoch, image.timestamp, image.refusals) == (7, 3, 5, [])


@pytest.mark.parametrize("dump", LOGS, ids=golden_id)
def test_kafkas_snapshots_say_what_the_log_says_at_their_ends(dump: Path) -> None:
    """Where a log from offset 0 reaches a snapshot's end, both make the same image."""
    path = data_file(dump)
    ends = {
        OffsetAndEpoch(int(each.name[:20]), int(each.name[21:31])): each for each in path.parent.glob("*.checkpoint")
    }
    image = ClusterImage()
    for batch in batches_of_file(path):
        image.apply(batch)
        for end, snapshot in ends.items():
            if end.offset == batch.next_offset:
                said = image_of_snapshot(batches_of_file(snapshot), end, image.timestamp)
                assert said.tables == image.tables
                assert (said.end_offset, said.epoch) == (image.end_offset, image.epoch)


def record(kind: str, /, **fields: Any) -> MetadataRecord:
    """A record in its highest version; fields that are not given have their defaults."""
    return metadata_record(kind, message_types("metadata-records")[kind].default() | fields)


def applied(*batches: Sequence[MetadataRecord | bytes]) -> ClusterImage:
    """The image after some batches; bytes stand for a record that was not written by us."""
    image, offset = ClusterImage(), 0
    for number, of_batch in enumerate(batches):
        values = [each if isinstance(each, bytes) else write_metadata_record(each) for each in of_batch]
        image.apply(MetadataBatch(offset, offset + len(values), 1, 100 + number, values))
        offset += len(values)
    return image


FEATURE = record("FeatureLevelRecord", name="metadata.version", featureLevel=7)
OTHER = record("FeatureLevelRecord", name="group.version", featureLevel=1)
BEGIN = record("BeginTransactionRecord", name="Bootstrap records")
END = record("EndTransactionRecord")
ABORT = record("AbortTransactionRecord", reason="no")


def test_records_before_a_transaction_in_its_batch_are_in_the_image() -> None:
    """The image inside a transaction is the one before its first record, even if that is not the first of its batch."""
    image = applied([FEATURE, BEGIN, OTHER])
    assert image.tables.features == {"metadata.version": 7}
    assert (image.end_offset, image.read_to, image.timestamp) == (1, 3, 100)
    assert image.transaction is not None
    assert (image.transaction.offset, image.transaction.name) == (1, "Bootstrap records")


def test_a_transaction_over_several_batches_has_effect_when_it_ends() -> None:
    """None of its records has effect before, all of them after, with the records that follow in that batch."""
    story = [BEGIN], [FEATURE], [OTHER, END, record("ProducerIdsRecord", nextProducerId=9)]
    assert (applied(*story[:2]).tables.features, applied(*story[:2]).end_offset) == ({}, 0)
    image = applied(*story)
    assert image.tables.features == {"metadata.version": 7, "group.version": 1}
    assert (image.tables.producer_ids, image.end_offset) == ({"next_producer_id": 9}, 5)


def test_an_aborted_transaction_has_no_effect() -> None:
    """Its records are dropped, and what follows has effect again."""
    image = applied([FEATURE], [BEGIN, OTHER], [ABORT, record("FeatureLevelRecord", name="x", featureLevel=2)])
    assert (image.tables.features, image.end_offset) == ({"metadata.version": 7, "x": 2}, 5)


@pytest.mark.parametrize(
    ("batches", "reason"),
    [
        (([BEGIN, BEGIN],), "BeginTransactionRecord: a transaction is open already"),
        (([FEATURE, END],), "EndTransactionRecord: no transaction is open"),
        (([FEATURE, ABORT],), "AbortTransactionRecord: no transaction is open"),
    ],
)
def test_wrong_bounds_of_transactions_are_refused(batches: tuple[list[MetadataRecord], ...], reason: str) -> None:
    """They have no effect, and are named with their offset and their index in the batch."""
    (refusal,) = applied(*batches).refusals
    assert (refusal.offset, refusal.record_index, refusal.reason) == (1, 1, reason)


def test_a_level_of_kraft_version_has_no_effect() -> None:
    """A control record sets it; Kafka's loader ignores such a record, and does not refuse it."""
    image = applied([FEATURE, record("FeatureLevelRecord", name="kraft.version", featureLevel=1), OTHER])
    assert image.tables.features == {"metadata.version": 7, "group.version": 1}
    assert not image.refusals


def test_an_unknown_type_or_version_is_a_mark_and_not_a_crash() -> None:
    """It names the offset and the index in the batch; the records around it have effect."""
    image = applied([FEATURE], [OTHER, b"\x01\x63\x00", b"\x01\x0c\x09\x02x\x00\x01\x00"])
    assert image.tables.features == {"metadata.version": 7, "group.version": 1}
    assert [(each.offset, each.record_index, each.is_unknown, each.is_unreadable) for each in image.refusals] == [
        (2, 1, True, False),
        (3, 2, True, False),
    ]
    assert "99" in image.refusals[0].reason
    assert "FEATURE_LEVEL_RECORD has no version 9" in image.refusals[1].reason


@pytest.mark.parametrize("value", [b"", b"\x00", b"\x01\x02", b"\x02\x02\x00", write_metadata_record(FEATURE) + b"x"])
def test_bad_bytes_are_a_mark(value: bytes) -> None:
    """A record that cannot be read, or has bytes left over, has no effect."""
    image = applied([value, OTHER])
    assert image.tables.features == {"group.version": 1}
    assert [(each.offset, each.record_index, each.is_unreadable) for each in image.refusals] == [(0, 0, True)]


def test_a_record_without_a_value_is_a_mark() -> None:
    """No metadata record is null."""
    image = ClusterImage()
    image.apply(MetadataBatch(5, 6, 1, 1, [None]))
    assert [(each.offset, each.is_unreadable) for each in image.refusals] == [(5, True)]
    assert image.end_offset == 6


def test_a_refusal_in_a_snapshot_says_so() -> None:
    """Its offset is one of the snapshot, not of the log."""
    values = [write_metadata_record(record("FenceBrokerRecord", id=4, epoch=1))]
    image = image_of_snapshot([MetadataBatch(3, 4, 1, 1, values)], OffsetAndEpoch(90, 2), 5)
    (refusal,) = image.refusals
    assert (refusal.offset, refusal.is_in_snapshot, refusal.is_unreadable) == (3, True, False)
    assert "broker 4 is not registered" in refusal.reason


def test_a_controller_with_an_unknown_security_protocol_is_refused() -> None:
    """Kafka knows 0 to 3; its loader lets a broker have another one, and its controllers do not."""
    for protocol in (-1, 0, 3, 4):
        endpoint = {"name": "L", "host": "h", "port": 9, "securityProtocol": protocol}
        image = applied([record("RegisterControllerRecord", controllerId=7, endPoints=[endpoint])])
        assert (7 in image.tables.controllers) is (0 <= protocol <= 3)
        assert [each.offset for each in image.refusals] == ([] if 0 <= protocol <= 3 else [0])
        assert not applied([record("RegisterBrokerRecord", brokerId=7, endPoints=[endpoint])]).refusals
