# SPDX-License-Identifier: Apache-2.0
"""A last batch that a power loss cut in two, and batches that are damaged otherwise."""

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from raftlog.errors import StorageError
from raftlog.records.batches.iterator import Corruption, ZeroPadding
from raftlog.storage.reading.readable_bytes import ReadableBytes
from raftlog.tools.auditing.survey.zeroed_tail import _LEAST_BEFORE_PADDING, join_zeroed_tail
from tests.tools.auditing.made_segments import data_batch, places, raft_log, survey

_LOG = raft_log([1, 5, 5, 5, 5, 5], batches_per_epoch=100)
_ENDS = [sum(map(len, _LOG[: index + 1])) for index in range(len(_LOG))]


@example(_ENDS[-1] - (_ENDS[0] - 4), 0)
@given(st.integers(16, _ENDS[-1] - 40), st.integers(0, 5000))
def test_zeros_up_to_the_end_are_one_torn_tail(zeroed: int, padding: int) -> None:
    """However much of a log's end is zeros, in place of batches and after them, it is one suspicious finding.

    Except for a batch that ends in one to three zeros: it may end so, and be damaged elsewhere.
    """
    assume(not any(0 < end - (_ENDS[-1] - zeroed) < _LEAST_BEFORE_PADDING for end in _ENDS))
    log = b"".join(_LOG)[:-zeroed] + bytes(zeroed + padding)
    evidence = survey(log)
    ((rule, position, offset),) = places(evidence)
    assert rule in {"tail-torn", "tail-zero"}
    starts = [0, *_ENDS]
    data_end = len(log.rstrip(b"\0"))
    assert position in {max(start for start in starts if start <= data_end), min(e for e in starts if e >= data_end)}
    assert offset is None
    (finding,) = evidence.findings
    assert finding.size_bytes == len(log) - (position or 0)
    assert "zeros" in finding.reason


def test_a_batch_that_only_ends_in_zeros_is_damaged() -> None:
    """A bit that flips in the last batch is damage, though its last record ends in a zero; padding changes nothing."""
    flipped = bytearray(b"".join(_LOG))
    flipped[-20] ^= 1
    assert [rule for rule, _, _ in places(survey(bytes(flipped)))] == ["batch-crc"]
    assert [rule for rule, _, _ in places(survey(bytes(flipped) + bytes(4096)))] == ["batch-crc", "tail-zero"]


@pytest.mark.parametrize("behind", [data_batch(26), data_batch(26)[:30], b"\x01" * 200])
def test_bytes_after_the_zeros_make_them_damage(behind: bytes) -> None:
    """Where anything but zeros follows, nothing was cut."""
    log = b"".join(_LOG)[:-30] + bytes(30) + behind
    assert "batch-crc" in {rule for rule, _, _ in places(survey(log))} or b"\x01" in behind


class _Lost:
    """A file whose last block the disk does not give back."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def size(self) -> int:
        return len(self._data)

    def read_at(self, position: int, size: int) -> memoryview:
        if position + size > 4096:
            raise StorageError("read", "a.log", "I/O error")
        return memoryview(self._data)[position : position + size]


def test_bytes_that_cannot_be_read_are_no_zeros() -> None:
    """Unreadable bytes stay damage, before zeros too."""
    source = ReadableBytes(_Lost(bytes(9000)))
    source.read_at(0, 9000)
    corruption, padding = Corruption(4000, 1000, "broken", "batch-crc"), ZeroPadding(5000, 4000)
    assert list(join_zeroed_tail([corruption, padding], source)) == [corruption, padding]
    corruption = Corruption(0, 4000, "broken", "batch-crc")
    assert list(join_zeroed_tail([corruption, padding], source)) == [corruption, padding]
