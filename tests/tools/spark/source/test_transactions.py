# SPDX-License-Identifier: Apache-2.0
"""The records that read_committed leaves out, from the log itself or from the files beside it."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.files.index_entries import TRANSACTION_INDEX, AbortedTransaction
from raftlog.records.files.producer_snapshot import ProducerStateEntry, write_producer_snapshot
from raftlog.records.messages.control import EndTxnMarker, write_control_record
from raftlog.tools.spark.source.planning import list_partitions
from raftlog.tools.spark.source.transactions import TransactionFollower
from tests.tools.made_logs import batch, write_log
from tests.tools.spark.source_reads import rows, source_options

Step = tuple[str, int]
"""What a producer does: write in no transaction, write in one, commit, abort."""

STEPS = st.lists(
    st.tuples(st.sampled_from(["plain", "write", "write", "commit", "abort"]), st.integers(1, 3)), max_size=14
)
READ_COMMITTED: dict[str, Any] = {"kafka_isolation_level": "read_committed"}


def _batch(step: Step, offset: int) -> bytes:
    kind, producer = step
    if kind == "plain":
        return batch(offset, [b"a", b"b"])
    options: dict[str, Any] = {"producer_id": producer, "producer_epoch": 0, "is_transactional": True}
    if kind == "write":
        return batch(offset, [b"a", b"b"], base_sequence=0, **options)
    key, value = write_control_record(EndTxnMarker(kind == "commit", 0))
    return batch(offset, [value], key=key, is_control=True, **options)


class _Model:
    """A log, and what a consumer of committed records sees of it, worked out naively."""

    def __init__(self, steps: list[Step]) -> None:
        self.batches: list[bytes] = []
        self.open_at: list[dict[int, int]] = []
        self.aborted: list[AbortedTransaction] = []
        dropped: set[int] = set()
        written: list[tuple[int, int | None]] = []
        offset, active = 0, dict[int, int]()
        for step in steps:
            kind, producer = step
            self.open_at.append(dict(active))
            self.batches.append(_batch(step, offset))
            if kind == "write":
                active.setdefault(producer, offset)
            if kind in {"plain", "write"}:
                written += [(offset + each, producer if kind == "write" else None) for each in range(2)]
            elif producer in active:
                first = active.pop(producer)
                if kind == "abort":
                    dropped |= {each for each, by in written if by == producer and each >= first}
                    self.aborted.append(AbortedTransaction(0, producer, first, offset, 0))
            offset += RecordBatch(self.batches[-1]).last_offset_delta + 1
        stable_end = min(active.values(), default=offset)
        self.committed = [each for each, _ in written if each < stable_end and each not in dropped]
        self.written = [each for each, _ in written]


@given(STEPS, st.integers(1, 400))
def test_committed_records_alone_are_read(steps: list[Step], size: int) -> None:
    """Records of aborted transactions are left out, and all from the first open one on, in any split size."""
    model = _Model(steps)
    with TemporaryDirectory() as folder:
        write_log(Path(folder) / "orders-0", *model.batches)
        assert [row["offset"] for row in rows(folder, splitSize=size, **READ_COMMITTED)] == model.committed
        assert [row["offset"] for row in rows(folder, splitSize=size)] == model.written


@given(STEPS, st.integers(0, 14), st.integers(1, 400), st.booleans())
def test_segments_and_their_indexes_agree(steps: list[Step], roll: int, size: int, has_files: bool) -> None:
    """A transaction may begin in one segment and end in another, and indexes spare the scan without a difference."""
    model = _Model(steps)
    roll = min(roll, max(0, len(steps) - 1))
    starts = [RecordBatch(each).base_offset for each in model.batches]
    with TemporaryDirectory() as folder:
        partition = Path(folder) / "orders-0"
        for first, last in ((0, roll), (roll, len(steps))):
            if first < last:
                write_log(partition, *model.batches[first:last], name=f"{starts[first]:020}.log")
        if has_files and 0 < roll < len(steps):
            _write_files(partition, model, starts[roll], model.open_at[roll])
        found = rows(folder, splitSize=size, **READ_COMMITTED)
    assert [row["offset"] for row in found] == model.committed


@settings(max_examples=40)
@given(STEPS, st.lists(st.integers(0, 14), max_size=2), st.integers(1, 14), STEPS)
def test_a_log_that_grows_is_followed(steps: list[Step], counts: list[int], roll: int, others: list[Step]) -> None:
    """A search from the end of an earlier one finds the same as a new one, also in a log rewritten in a later epoch."""
    follower = TransactionFollower()
    with TemporaryDirectory() as folder:
        later = [each[:12] + (2).to_bytes(4, "big") + each[16:] for each in _Model(others).batches]
        first = _Model(steps).batches
        for batches in [*(first[:count] for count in sorted(counts)), first, later]:
            for old in Path(folder).glob("orders-0/*.log"):
                old.unlink()
            write_log(Path(folder) / "orders-0", *batches[:roll])
            if len(batches) > roll:
                name = f"{RecordBatch(batches[roll]).base_offset:020}.log"
                write_log(Path(folder) / "orders-0", *batches[roll:], name=name)
            [partition] = list_partitions(source_options(folder)).partitions
            found = follower.find(partition.segments, partition.producer_snapshots)
            assert found == TransactionFollower().find(partition.segments, partition.producer_snapshots)


def _write_files(partition: Path, model: _Model, newest: int, active: dict[int, int]) -> None:
    """Write what Kafka has beside two segments."""
    for start in (0, newest):
        (partition / f"{start:020}.index").write_bytes(b"")
        end = newest if start == 0 else 10**9
        entries = [each for each in model.aborted if start <= each.last_offset < end]
        if entries:
            (partition / f"{start:020}.txnindex").write_bytes(TRANSACTION_INDEX.encode(entries))
    states = [ProducerStateEntry(producer, 0, 0, 0, 0, 0, 0, first) for producer, first in active.items()]
    (partition / f"{newest:020}.snapshot").write_bytes(write_producer_snapshot(states))


def test_markers_stay_where_control_records_are_shown(tmp_path: Path) -> None:
    """The view records_ext keeps markers, and the view of control records says who committed and who aborted."""
    steps = [("write", 1), ("abort", 1), ("write", 2), ("commit", 2)]
    write_log(tmp_path / "orders-0", *_Model(steps).batches)
    found = rows(tmp_path, view="records_ext", **READ_COMMITTED)
    assert [(row["offset"], row["isControl"]) for row in found] == [(2, True), (3, False), (4, False), (5, True)]
    markers = rows(tmp_path, view="control")
    assert [(row["type"], row["committed"], row["producerId"]) for row in markers] == [
        ("ABORT", False, 1),
        ("COMMIT", True, 2),
    ]
