# SPDX-License-Identifier: Apache-2.0
"""Arrow arrays, made many rows at a time, against the same made one by one."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.columns.columns import Chunk, read_columns
from raftlog.records.messages.java_text import decode_utf8
from raftlog.tools.spark.rows import arrays

KEYS = st.text(max_size=4).map(str.encode) | st.binary(max_size=3) | st.just(b"k" * 70)
HEADERS = st.lists(st.tuples(KEYS, st.none() | st.binary(max_size=3) | st.just(b"v" * 9000)), max_size=4)


@given(st.lists(HEADERS, min_size=1, max_size=6), st.sampled_from([0, 0, 100]))
def test_headers_are_those_of_the_records(headers: list[list[tuple[bytes, bytes | None]]], more: int) -> None:
    """Every header comes in its order, null values too; keys are text as Java shows it; no headers are null."""
    headers[0] = headers[0] + [(b"m", None)] * more
    builder = RecordBatchBuilder(0)
    builder.extend([(0, None, None, each) for each in headers])
    [chunk] = read_columns(builder.build())
    assert isinstance(chunk, Chunk)
    assert chunk.records is not None
    found = arrays.headers(chunk.records)
    found.validate(full=True)
    assert found.to_pylist() == [
        [{"key": decode_utf8(key), "value": value} for key, value in each] or None for each in headers
    ]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20))
def test_timestamps_are_microseconds_or_null(milliseconds: list[int]) -> None:
    """A timestamp that 64 bits of microseconds cannot hold is null, and all others are exact."""
    found = arrays.timestamps(np.array(milliseconds, dtype=np.int64))
    found.validate(full=True)
    assert found.cast(pa.int64()).to_pylist() == list(map(arrays.timestamp_us, milliseconds))
    assert all(each is None or each % 1000 == 0 for each in found.cast(pa.int64()).to_pylist())


@given(st.none() | st.text(max_size=3), st.integers(0, 3000))
def test_constants_have_their_length(value: str | None, count: int) -> None:
    """A constant column is one value as often as it is asked for."""
    assert arrays.constant(value, pa.string(), count).to_pylist() == [value] * count
