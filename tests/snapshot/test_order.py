# SPDX-License-Identifier: Apache-2.0
"""The order of a snapshot's contents, for callers that continue after a fault."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import DecodeError
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.batches.iterator import BufferSource, split_runs
from raftlog.snapshot.order import SnapshotOrder, read_header
from tests.snapshot.snapshot_bytes import FOOTER, HEADER, ID, control, data
from tests.strategies import TIMESTAMP


def faults(batches: Sequence[bytes]) -> list[tuple[str | None, int | None]]:
    """Return rule and place of all that is wrong."""
    found: list[DecodeError] = []
    order = SnapshotOrder(ID.epoch, found.append)
    position = 0
    for piece in split_runs(BufferSource(b"".join(batches))):
        assert isinstance(piece, BatchRun)
        order.follow(piece)
        position = piece.end
    order.end(position)
    return [(error.rule, error.position) for error in found]


def snapshot_batches(counts: Sequence[int]) -> list[bytes]:
    """Return the batches of a snapshot whose data batches have so many records."""
    batches, offset = [control(HEADER, 0)], len(HEADER)
    for count in counts:
        batches.append(data(offset, count))
        offset += count
    return [*batches, control(FOOTER, offset)]


counts = st.lists(st.integers(1, 4), min_size=2, max_size=6)


@given(counts)
def test_a_whole_snapshot_has_no_fault(counts: list[int]) -> None:
    """Nothing is reported of a snapshot as the writer writes it."""
    assert faults(snapshot_batches(counts)) == []


@pytest.mark.parametrize("fault", ["lost", "doubled", "swapped", "base offset", "epoch"])
@given(data=st.data(), counts=counts)
def test_one_fault_is_reported_once(fault: str, data: st.DataObject, counts: list[int]) -> None:
    """A batch that is lost, doubled, swapped with the next one or wrong is one fault, wherever it is."""
    batches = snapshot_batches(counts)
    last = len(batches) - (2 if fault == "swapped" else 1)
    index = data.draw(st.integers(0, last))
    batch = batches[index]
    match fault:
        case "lost":
            batches[index : index + 1] = []
        case "doubled":
            batches.insert(index, batch)
        case "swapped":
            batches[index : index + 2] = [batches[index + 1], batch]
        case "base offset":
            batches[index] = (RecordBatch(batch).base_offset + 1000).to_bytes(8, "big") + batch[8:]
        case "epoch":
            batches[index] = batch[:12] + (ID.epoch + 1).to_bytes(4, "big") + batch[16:]

    (found,) = faults(batches)

    # A swap is seen at the first of the two, a doubled batch at the second; what is lost at what follows.
    at = index + 1 if fault == "doubled" else index
    assert found[1] == sum(map(len, batches[:at]))


@given(counts, st.integers(0, 5))
def test_what_follows_damage_may_start_anywhere(counts: list[int], lost: int) -> None:
    """After bytes that are not a batch, any next offset is accepted, and no header is required."""
    batches = snapshot_batches(counts)
    found: list[DecodeError] = []
    order = SnapshotOrder(ID.epoch, found.append)
    order.skip()
    for batch in batches[min(lost, len(batches) - 1) :]:
        order.follow(BatchRun.of(RecordBatch(batch)))
    order.end(0)
    assert found == []


def test_the_header_is_read_when_it_is_asked_for() -> None:
    """The facts in the first batch are known once it has been read."""
    order = SnapshotOrder(ID.epoch, lambda error: None)
    assert order.header_batch is None
    order.follow(BatchRun.of(RecordBatch(control(HEADER, 0))))
    assert order.header_batch is not None
    assert read_header(order.header_batch).last_contained_log_timestamp == TIMESTAMP
    assert not order.has_footer
    order.follow(BatchRun.of(RecordBatch(control(FOOTER, 2))))
    assert order.has_footer


def test_what_follows_the_footer_is_reported_once() -> None:
    """A second snapshot after the first one is one fault."""
    batches = snapshot_batches([1, 2])
    assert faults(batches * 2) == [("snapshot-footer", sum(map(len, batches)))]


def _reasons(batches: Sequence[bytes]) -> list[str]:
    """Return in words what is wrong."""
    found: list[DecodeError] = []
    order = SnapshotOrder(ID.epoch, found.append)
    for batch in batches:
        order.follow(BatchRun.of(RecordBatch(batch)))
    return [str(error) for error in found]


def test_a_misplaced_batch_is_reported_with_its_predecessor() -> None:
    """The reason names the offsets of the batch and the last one before it."""
    header, offset = control(HEADER, 0), len(HEADER)
    (reason,) = _reasons([header, data(offset, 2), data(offset + 5, 3)])
    assert f"a batch of 3 records from offset {offset + 5} to {offset + 7}, after {offset + 1}" in reason


def test_control_records_in_between_are_named() -> None:
    """A second header after data is reported as such."""
    header, offset = control(HEADER, 0), len(HEADER)
    (reason,) = _reasons([header, data(offset, 2), control(HEADER, offset + 2)])
    assert "SNAPSHOT_HEADER and KRAFT_VERSION" in reason
    assert "between header and footer" in reason
