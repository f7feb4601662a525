# SPDX-License-Identifier: Apache-2.0
"""Where two replicas part: against a list-of-batches model, and each kind once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.tools.auditing.history.divergence import Divergence, DivergenceKind, divergences
from tests.tools.auditing.made_replicas import BASE, Batch, Replicas, encode, log_of


@st.composite
def histories(draw: st.DrawFn) -> list[Batch]:
    """Draw a log whose offsets have no gaps and whose epochs do not go back; some batches are long."""
    batches: list[Batch] = []
    offset = epoch = 0
    for _ in range(draw(st.integers(1, 8))):
        epoch += draw(st.sampled_from([0, 0, 1]))
        count = draw(st.sampled_from([1, 2, 3000]))
        batches.append(Batch(range(offset, offset + count), epoch, draw(st.sampled_from([b"a", b"b"]))))
        offset += count
    return batches


@st.composite
def related_histories(draw: st.DrawFn) -> tuple[list[Batch], list[Batch]]:
    """Draw two logs that start alike; what follows may be cut or of another epoch."""
    left = draw(histories())
    shared = draw(st.integers(0, len(left)))
    right = left[:shared]
    if draw(st.booleans()):
        offset = right[-1].offsets.stop if right else 0
        last_epoch = max((batch.epoch for batch in left), default=0)
        for _ in range(draw(st.integers(0, 3))):
            last_epoch += 1
            right.append(Batch(range(offset, offset + 2), last_epoch, b"c"))
            offset += 2
    return left, right


def _model(left: list[Batch], right: list[Batch]) -> tuple[DivergenceKind, int] | None:
    """Say where two related logs part first, batch by batch."""
    for mine, other in zip(left, right, strict=False):
        if mine != other:
            return DivergenceKind.CONFLICTING_EPOCH, mine.offsets.start
    if len(left) == len(right):
        return None
    longer, shorter = (left, right) if len(left) > len(right) else (right, left)
    return DivergenceKind.PREFIX, longer[len(shorter)].offsets.start


def _segments(batches: list[Batch], cut: int) -> dict[int, bytes]:
    parts = [part for part in (batches[:cut], batches[cut:]) if part]
    return {part[0].offsets.start: log_of(part) for part in parts} or {0: b""}


@given(logs=related_histories(), left_cut=st.integers(1, 8), right_cut=st.integers(1, 8))
def test_first_divergence_equals_the_models(
    logs: tuple[list[Batch], list[Batch]], left_cut: int, right_cut: int
) -> None:
    """Whatever two logs have in common, and wherever their segments roll, the first difference is the model's."""
    replicas = Replicas()
    left = replicas.add("a", _segments(logs[0], left_cut))
    right = replicas.add("b", _segments(logs[1], right_cut))
    found = next(divergences(left, right, replicas.read), None)
    assert (None if found is None else (found.kind, found.offset)) == _model(*logs)
    mirrored = next(divergences(right, left, replicas.read), None)
    assert (mirrored is None) == (found is None)
    if found is not None and mirrored is not None:
        assert (mirrored.kind, mirrored.offset) == (found.kind, found.offset)


def _only(left: bytes, right: bytes, *, topic: str = "__cluster_metadata") -> list[Divergence]:
    replicas = Replicas(topic=topic)
    return list(divergences(replicas.add("a", {0: left}), replicas.add("b", {0: right}), replicas.read))


def test_equal_replicas_do_not_differ() -> None:
    """Two logs of the same batches have no divergence, wherever they roll."""
    replicas = Replicas()
    left = replicas.add("a", {0: log_of(BASE[:1]), 10: log_of(BASE[1:])})
    right = replicas.add("b", {0: log_of(BASE[:3]), 30: log_of(BASE[3:])})
    assert list(divergences(left, right, replicas.read)) == []


def test_a_torn_tail_is_no_plain_prefix() -> None:
    """A log that ends in a write that was cut is a truncated tail."""
    (found,) = _only(log_of(BASE), log_of(BASE)[:-5])
    assert (found.kind, found.offset, found.end_offset) == (DivergenceKind.TRUNCATED_TAIL, 30, 40)


def test_bit_rot_differs_from_a_conflict() -> None:
    """A batch whose CRC does not hold is damaged on that side; one whose CRC holds but differs is a conflict."""
    log = bytearray(log_of(BASE))
    log[len(encode(BASE[0])) + 70] ^= 4
    (found,) = _only(log_of(BASE), bytes(log))
    assert (found.kind, found.offset, found.right.epoch) == (DivergenceKind.BIT_ROT, 10, None)
    assert found.left.position == found.right.position == len(encode(BASE[0]))
    (found,) = _only(log_of(BASE), log_of([BASE[0], Batch(range(10, 20), epoch=0, value=b"x"), *BASE[2:]]))
    assert (found.kind, found.offset, found.end_offset) == (DivergenceKind.CONFLICTING_BATCH, 10, 20)
    assert found.left.crc != found.right.crc


def test_a_changed_epoch_under_the_same_crc_is_header_rot() -> None:
    """The epoch is outside of the CRC: where it alone differs, a header was changed, and the logs do not fork."""
    log = bytearray(log_of(BASE))
    position = sum(len(encode(batch)) for batch in BASE[:3])
    log[position + 15] ^= 4
    (found,) = _only(log_of(BASE), bytes(log))
    assert (found.kind, found.offset) == (DivergenceKind.HEADER_ROT, 30)
    assert (found.left.epoch, found.right.epoch) == (1, 5)


def test_a_missing_batch_in_the_middle() -> None:
    """A batch that is not there, in a log of raft whose gap is reported, is damage on that side."""
    (found,) = _only(log_of(BASE), log_of([BASE[0], *BASE[2:]]))
    assert (found.kind, found.offset, found.end_offset) == (DivergenceKind.BIT_ROT, 10, 20)


@pytest.mark.parametrize(("key", "kind"), [(b"k", DivergenceKind.COMPACTION), (None, DivergenceKind.LOST_RECORDS)])
def test_compaction_explains_only_records_with_keys(key: bytes | None, kind: DivergenceKind) -> None:
    """Outside of raft a missing batch is compaction, unless a record of it has no key and so cannot be compacted."""
    parts = [encode(batch, key=key) for batch in BASE]
    (found,) = _only(b"".join(parts), b"".join([parts[0], *parts[2:]]), topic="orders")
    assert (found.kind, found.offset) == (kind, 10)


def test_records_that_compaction_left_must_be_equal() -> None:
    """A rewritten batch with fewer records is compaction if those that are left are the same, a conflict if not."""
    builder = RecordBatchBuilder(10, partition_leader_epoch=0)
    builder.append(1_700_000_000_010, b"k", b"b")
    parts = [encode(batch, key=b"k") for batch in BASE]
    (found,) = _only(b"".join(parts), b"".join([parts[0], builder.build(), *parts[2:]]), topic="orders")
    assert found.kind is DivergenceKind.COMPACTION
    changed = encode(Batch(range(10, 20), epoch=0, value=b"other"), key=b"k")
    (found,) = _only(b"".join(parts), b"".join([parts[0], changed, *parts[2:]]), topic="orders")
    assert found.kind is DivergenceKind.CONFLICTING_BATCH


@pytest.mark.parametrize(
    ("timestamp", "headers", "kind"),
    [
        (1_700_000_000_010, [], DivergenceKind.COMPACTION),
        (1_700_000_000_011, [], DivergenceKind.CONFLICTING_BATCH),
        (1_700_000_000_010, [(b"name", b"value")], DivergenceKind.CONFLICTING_BATCH),
    ],
)
def test_compaction_keeps_timestamps_and_headers(
    timestamp: int, headers: list[tuple[bytes, bytes]], kind: DivergenceKind
) -> None:
    """A record that has another timestamp or header is a conflict, though its key and value are the same."""
    builder = RecordBatchBuilder(10, partition_leader_epoch=0)
    builder.append(timestamp, b"k", b"b", headers)
    parts = [encode(batch, key=b"k") for batch in BASE]
    (found,) = _only(b"".join(parts), b"".join([parts[0], builder.build(), *parts[2:]]), topic="orders")
    assert found.kind is kind


def test_logs_without_a_common_offset() -> None:
    """A log that starts after the other one's end cannot be compared, and that is reported."""
    replicas = Replicas()
    left = replicas.add("a", {0: log_of(BASE[:1])})
    right = replicas.add("b", {30: log_of(BASE[3:])})
    (found,) = divergences(left, right, replicas.read)
    assert (found.kind, found.offset) == (DivergenceKind.APART, 30)


def test_a_fork_is_the_last_that_is_compared() -> None:
    """Damage before a fork is reported first, then the fork, and nothing after it."""
    left = bytearray(log_of(BASE))
    left[70] ^= 1
    right = log_of([*BASE[:2], Batch(range(20, 30), epoch=2, value=b"z"), Batch(range(30, 40), epoch=3, value=b"z")])
    kinds = [(found.kind, found.offset) for found in _only(bytes(left), right)]
    assert kinds == [(DivergenceKind.BIT_ROT, 0), (DivergenceKind.CONFLICTING_EPOCH, 20)]


@pytest.mark.parametrize("base_offset", [12, 25, 31])
def test_a_batch_that_is_out_of_order_does_not_count_at_its_offset(base_offset: int) -> None:
    """The log with a renumbered batch has none at that offset, and lacks the one that it should be."""
    parts = [encode(batch) for batch in BASE]
    renumbered = [parts[0], base_offset.to_bytes(8, "big") + parts[1][8:], *parts[2:]]
    for found in (_only(b"".join(renumbered), b"".join(parts)), _only(b"".join(parts), b"".join(renumbered))):
        assert {each.kind for each in found} <= {DivergenceKind.BIT_ROT}


def test_a_batch_that_comes_twice_counts_once() -> None:
    """What follows a batch that is there twice is compared; it is the same in both logs."""
    parts = [encode(batch) for batch in BASE]
    assert _only(b"".join([*parts[:2], parts[1], *parts[2:]]), b"".join(parts)) == []
