# SPDX-License-Identifier: Apache-2.0
"""The annotated bytes of a batch: every byte once, in order, whatever the bytes are."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.batches.batch import CRC_START, RecordBatch
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.batches.record import Record
from raftlog.tools.terminal.annotated_bytes import AnnotatedField, Description, annotate_batch
from tests.golden_files import GOLDEN, golden_id, record_files
from tests.strategies import batches


def _annotate(data: bytes, position: int = 0) -> list[AnnotatedField]:
    return list(annotate_batch(data, position, lambda record: Description()))


def _assert_covers(fields: list[AnnotatedField], data: bytes, position: int) -> None:
    """Check that fields are adjacent and are the bytes of a batch, and that the CRC covers all from byte 21 on."""
    stored = [field for field in fields if not field.is_decompressed]
    assert b"".join(field.data for field in stored) == data
    at = position
    for field in stored:
        assert field.position == at
        assert not field.data or field.is_in_crc == (at - position >= CRC_START)
        at += len(field.data)


@given(batch=batches(), position=st.integers(0, 2**40))
def test_fields_are_all_bytes_of_a_batch(batch: bytes, position: int) -> None:
    """The fields of a batch are adjacent, from its position on, and are its bytes."""
    _assert_covers(_annotate(batch, position), batch, position)


@given(batch=batches(), data=st.data())
def test_any_bytes_are_annotated(batch: bytes, data: st.DataObject) -> None:
    """Bytes that were cut or changed at any place are annotated without an error, and every byte once."""
    broken = bytearray(batch[: data.draw(st.integers(0, len(batch)), "size")])
    if broken:
        broken[data.draw(st.integers(0, len(broken) - 1), "index")] ^= data.draw(st.integers(1, 255), "bits")
    fields = _annotate(bytes(broken))
    if len(broken) >= 61:
        _assert_covers(fields, bytes(broken), 0)
    else:
        assert b"".join(field.data for field in fields) == broken[: sum(len(field.data) for field in fields)]


@pytest.mark.parametrize("path", [path for path in record_files() if path.stat().st_size < 20_000][::7], ids=golden_id)
def test_values_of_golden_records_are_found(path: Path) -> None:
    """Of what a real Kafka wrote, each record's key and value is a field."""
    for batch in split(BufferSource(memoryview(path.read_bytes()))):
        if isinstance(batch, RecordBatch):
            fields = _annotate(bytes(batch.buffer), batch.position)
            _assert_covers(fields, bytes(batch.buffer), batch.position)
            named = {name: [each.data for each in fields if each.name == name] for name in ("key", "value")}
            records = list(batch.records())
            assert named["key"] == [record.key for record in records if record.key]
            assert named["value"] == [record.value for record in records if record.value]
            assert not any("unreadable" in field.meaning for field in fields)


def test_meanings_of_a_golden_batch() -> None:
    """The header's fields say what they mean: offsets, sizes, times, the codec and what the CRC covers."""
    path = GOLDEN / "data-topics/data/n1/c-zstd-0/00000000000000000000.log"
    batch = next(iter(split(BufferSource(memoryview(path.read_bytes())))))
    assert isinstance(batch, RecordBatch)
    fields = {field.name: field for field in reversed(_annotate(bytes(batch.buffer)))}
    assert fields["length"].meaning == f"{batch.size_bytes - 12}: the batch has {batch.size_bytes} bytes"
    assert fields["attributes"].meaning == "0x0004: zstd, CreateTime"
    assert fields["CRC-32C"].meaning.endswith(f"holds for bytes 21 to {batch.size_bytes - 1} of the batch")
    assert fields["producer id"].meaning == "-1: none"
    assert "(2025-06-15T" in fields["max timestamp"].meaning
    assert fields["records"].meaning.startswith(f"{batch.size_bytes - 61} bytes of zstd, decompressed ")
    assert batch.compression_type is CompressionType.ZSTD
    assert fields["value"].is_decompressed


def test_a_secret_is_marked() -> None:
    """A record whose description says that it is secret has a value field that says so, and no other field does."""
    path = GOLDEN / "data-topics/data/n1/c-none-0/00000000000000000000.log"
    batch = next(iter(split(BufferSource(memoryview(path.read_bytes())))))
    assert isinstance(batch, RecordBatch)

    def describe(record: Record) -> Description:
        return Description("hidden", is_secret=record.offset == batch.base_offset)

    fields = list(annotate_batch(bytes(batch.buffer), 0, describe))
    assert [field.name for field in fields if field.is_secret] == ["value"]
