# SPDX-License-Identifier: Apache-2.0
"""Reading and writing single records."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import DecodeError, InvalidRecordError
from raftlog.records import reference
from raftlog.records.batches.record import Header, RawRecord, encode_record, read_record
from raftlog.records.varint import varint
from tests.strategies import headers, nullable_bytes

int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
raw_records = st.builds(
    RawRecord, st.integers(0, 255), int64, int32, nullable_bytes, nullable_bytes, headers.map(tuple)
)


@settings(deadline=None, max_examples=50)
@given(raw_records, st.binary(max_size=20), st.binary(max_size=20))
def test_encoded_values_are_decoded(record: RawRecord, before: bytes, after: bytes) -> None:
    """Any record reads back the same from anywhere in a buffer, and ends where it ends."""
    encoded = encode_record(record)
    assert read_record(before + encoded + after, len(before)) == (record, len(before) + len(encoded))


@settings(deadline=None, max_examples=50)
@given(raw_records, st.data())
def test_a_record_that_is_cut_is_refused(record: RawRecord, data: st.DataObject) -> None:
    """No proper prefix of a record is one."""
    encoded = encode_record(record)
    with pytest.raises(InvalidRecordError):
        read_record(encoded[: data.draw(st.integers(0, len(encoded) - 1))], 0)


@settings(deadline=None, max_examples=80)
@given(st.binary(max_size=40), st.integers(0, 3))
def test_arbitrary_bytes_read_as_the_reference_says(data: bytes, position: int) -> None:
    """On any bytes the reader gives the reference's record or breaks the same rule, at a position inside the bytes."""
    data = data[:position].ljust(position, b"\0") + varint(max(0, len(data) - 3)) + data
    cursor = reference.Cursor(data)
    cursor.position = position
    try:
        expected: object = reference.read_record(cursor)
    except DecodeError as error:
        expected = error.rule
    try:
        raw, end = read_record(data, position)
        found: object = (*raw[1:5], [tuple(header) for header in raw.headers])
        assert end == cursor.position
    except DecodeError as error:
        found = error.rule
        assert position <= (error.position or 0) <= len(data)  # noqa: PT017 - the error is one of two outcomes
    assert found == expected


@pytest.mark.parametrize(
    ("encoded", "rule"),
    [
        ("", "varint-length"),
        ("01", "record-length"),
        ("0e000000010100", "record-length"),
        ("ffffffff0f", "record-length"),
        ("00", "record-end"),
        ("0a0000000101", "varint-length"),
        ("0e00000001010000", "record-end"),
        ("0c000000010102", "record-headers"),
        ("0c000000010101", "record-headers"),
        ("0c000000030100", "record-field"),
        ("0c000000010400", "record-field"),
        ("0c000000feffffff0f", "record-field"),
        ("1000000001010201", "record-length"),
        ("1000000001010201 01", "record-header-key"),
        ("1000000001010204 01", "record-header-key"),
        ("1000000001010200 03", "record-field"),
        ("80808080800000", "varint-length"),
        ("8080808010", "varint-range"),
        ("1e00ffffffffffffffffff7f 00010100", "varint-range"),
        ("1e00ffffffffffffffffffff 00010100", "varint-length"),
        ("1400008080808010 010100", "varint-range"),
    ],
)
def test_each_rule_is_enforced(encoded: str, rule: str) -> None:
    """A record that breaks one rule is refused for that rule, by the reader and by the reference."""
    data = bytes.fromhex(encoded)
    with pytest.raises(DecodeError) as caught:
        read_record(data, 0)
    assert caught.value.rule == rule
    with pytest.raises(DecodeError) as caught:
        reference.read_record(reference.Cursor(data))
    assert caught.value.rule == rule


def test_varints_longer_than_need_be_are_read() -> None:
    """Kafka reads non-minimal varints, and so do we; what we write is minimal."""
    record, end = read_record(bytes.fromhex("908000 00 8000 8000 0101 00".replace(" ", "")), 0)
    assert (record.timestamp_delta, record.offset_delta, end) == (0, 0, 11)


def test_empty_and_null_are_not_the_same() -> None:
    """An empty key, value or header value is kept apart from none."""
    record = RawRecord(0, 0, 0, b"", None, (Header(b"", None), Header(b"", b"")))
    assert encode_record(record).hex() == "1400000000 01 04 0001 0000".replace(" ", "")
    assert read_record(encode_record(record), 0)[0] == record


@pytest.mark.parametrize(
    "record", [RawRecord(0, 2**63, 0, None, None, ()), RawRecord(0, 0, 2**31, None, None, ())], ids=["time", "offset"]
)
def test_a_delta_that_does_not_fit_is_refused(record: RawRecord) -> None:
    """Deltas beyond 64 and 32 bits cannot be written."""
    with pytest.raises(ValueError, match="bit value"):
        encode_record(record)
