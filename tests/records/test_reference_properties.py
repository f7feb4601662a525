# SPDX-License-Identifier: Apache-2.0
"""The readers that raftlog uses say what the reference says."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import DecodeError
from raftlog.records import reference
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource, Corruption, Piece, TornTail, ZeroPadding, split
from raftlog.records.batches.legacy import LegacyBatch
from raftlog.records.checksum import crc32c
from raftlog.records.rules import RULES
from tests.strategies import batch_bytes, batches, mutated, with_mutated_area

# What stands behind a batch decides what a broken rule means: the splitter may say one of these instead.
_SAID_BY_CONTEXT = {
    "tail-torn": {"tail-torn", "tail-zero", "batch-overrun"},
    "batch-length": {"batch-length", "tail-zero"},
    "batch-magic": {"batch-magic"},
    "batch-crc": {"batch-crc", "tail-torn"},
}


def _rule_of(piece: Piece) -> str | None:
    return piece.rule if isinstance(piece, TornTail | ZeroPadding | Corruption) else None


def _read_fast(data: bytes) -> list[reference.ReferenceRecord] | str | None:
    """The records, or the rule that they break."""
    try:
        return [
            reference.ReferenceRecord(r.offset, r.timestamp, r.key, r.value, [(h.key, h.value) for h in r.headers])
            for r in RecordBatch(data).records(check_crc=False)
        ]
    except DecodeError as error:
        return error.rule


def _read_plainly(data: bytes) -> list[reference.ReferenceRecord] | str | None:
    try:
        return reference.read_records(data)
    except DecodeError as error:
        return error.rule


def _check_agreement(data: bytes) -> None:
    first = next(split(BufferSource(data)), None)
    broken = reference.rule_broken_by_header(data)
    if first is None:
        assert data == b""
    elif broken is None:
        assert isinstance(first, RecordBatch) or data[16] < 2
    else:
        assert _rule_of(first) in _SAID_BY_CONTEXT[broken] or isinstance(first, LegacyBatch)
    if len(data) >= 61:
        fast = _read_fast(data)
        assert fast == _read_plainly(data)
        assert isinstance(fast, list) or fast in RULES


@settings(deadline=None, max_examples=40)
@given(batches())
def test_valid_batches_read_the_same(data: bytes) -> None:
    """On every batch that a builder writes, reader and reference give the same records, and there are some."""
    _check_agreement(data)
    assert isinstance(_read_fast(data), list)


@settings(deadline=None, max_examples=50)
@given(batches().flatmap(mutated))
def test_mutated_batches_read_the_same(data: bytes) -> None:
    """On every mutated batch, CRC repaired or not, reader and reference give the same records or the same rule."""
    _check_agreement(data)


@settings(deadline=None, max_examples=50)
@given(with_mutated_area())
def test_mutated_records_read_the_same(data: bytes) -> None:
    """On every batch that is sound except for its records, compressed ones too, both give the same records or rule."""
    assert reference.rule_broken_by_header(data) is None
    _check_agreement(data)


@settings(deadline=None, max_examples=50)
@given(st.binary(max_size=60).map(lambda area: batch_bytes(area, count=3, last_offset_delta=2)))
def test_arbitrary_records_read_the_same(data: bytes) -> None:
    """On arbitrary bytes where records should be, both give the same rule."""
    _check_agreement(data)


@settings(deadline=None, max_examples=30)
@given(st.binary(max_size=300), st.integers(0, 300))
def test_the_checksum_is_the_one_computed_a_bit_at_a_time(data: bytes, cut: int) -> None:
    """The package's CRC-32C is the reference's, in one piece and in two."""
    assert crc32c(data) == reference.crc32c(data)
    assert crc32c(data[cut:], crc32c(data[:cut])) == crc32c(data)


@pytest.mark.slow
def test_many_mutated_batches_read_the_same_and_break_most_rules() -> None:
    """As above, on many more, which break every rule that a reader of records has but the rarest, ``varint-range``."""
    reached: set[str | None] = set()

    @settings(deadline=None, max_examples=2000)
    @given(batches().flatmap(mutated) | with_mutated_area())
    def check(data: bytes) -> None:
        _check_agreement(data)
        outcome = _read_fast(data) if len(data) >= 61 else None
        reached.add("records" if isinstance(outcome, list) else outcome)

    check()
    record_rules = {rule for rule in RULES if rule.startswith("record-")}
    assert {"records", "batch-count", "batch-missing", "batch-trailing", "varint-length", *record_rules} <= reached
