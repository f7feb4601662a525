# SPDX-License-Identifier: Apache-2.0
"""Every snapshot that a real Kafka wrote is read, verified, and written again."""

from pathlib import Path

import attrs
import pytest

from raftlog.errors import DecodeError
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource
from raftlog.snapshot.memory_raw import MemoryRawSnapshotWriter
from raftlog.snapshot.paths import BOOTSTRAP_SNAPSHOT_ID, parse_snapshot_name
from raftlog.snapshot.reader import ControlBatch, RecordsSnapshotReader, verify_snapshot
from raftlog.snapshot.writer import RecordsSnapshotWriter
from tests.golden_files import GOLDEN, golden_id, record_files

SNAPSHOTS = [path for path in record_files() if path.suffix == ".checkpoint"]
SHUFFLED_VOTERS = 6
"""How many of them have voters that Java's HashMap did not give in the order of their ids."""


def snapshot_id(path: Path) -> OffsetAndEpoch:
    """Return a file's snapshot id; what format tools write as ``bootstrap.checkpoint`` has that of no records."""
    name = parse_snapshot_name(path.name)
    return BOOTSTRAP_SNAPSHOT_ID if name is None else name.snapshot_id


def rewritten(data: bytes, id_: OffsetAndEpoch) -> bytes:
    """Write a snapshot again, from its values and times."""
    reader = RecordsSnapshotReader(BufferSource(data), id_)
    header, *batches, footer = reader
    assert isinstance(header, ControlBatch)
    assert isinstance(footer, ControlBatch)
    snapshots: dict[OffsetAndEpoch, bytes] = {}
    with RecordsSnapshotWriter(
        MemoryRawSnapshotWriter(snapshots, id_),
        header.batch.max_timestamp,
        last_contained_log_timestamp=reader.last_contained_log_timestamp,
        kraft_version=reader.kraft_version,
        voter_set=reader.voter_set,
    ) as writer:
        for batch in batches:
            assert isinstance(batch, RecordBatch)
            writer.append([record.value or b"" for record in batch.records()], batch.max_timestamp)
        writer.freeze(footer.batch.max_timestamp)
    return snapshots[id_]


def without_order_of_voters(data: bytes, id_: OffsetAndEpoch) -> list[object]:
    """Return all of a snapshot but the order of its voters, and the CRC of the batch that has them."""
    header, *others = RecordsSnapshotReader(BufferSource(data), id_)
    assert isinstance(header, ControlBatch)
    first, version, voters = (record.value for record in header.records)
    in_order = sorted(attrs.asdict(voters)["voters"], key=lambda voter: int(voter["id"]))  # type: ignore[arg-type]
    return [first, version, in_order, header.batch.size_bytes, header.batch.max_timestamp, others]


def test_there_are_many() -> None:
    """The golden files have snapshots of static and dynamic quorums, and bootstrap files."""
    assert len(SNAPSHOTS) > 90


@pytest.mark.parametrize("path", SNAPSHOTS, ids=golden_id)
def test_it_verifies(path: Path) -> None:
    """Verifying takes every byte of it into account."""
    summary = verify_snapshot(BufferSource(path.read_bytes()), snapshot_id(path), path=str(path))
    assert summary.size_bytes == path.stat().st_size
    assert summary.header.last_contained_log_timestamp >= 0


def test_they_are_written_again_byte_for_byte() -> None:
    """The same records at the same times give the same bytes; of some, all but the order of the voters.

    Kafka writes voters in the order of a HashMap, which it does not specify, raftlog in the order of their ids.
    """
    shuffled = 0
    for path in SNAPSHOTS:
        data, id_ = path.read_bytes(), snapshot_id(path)
        again = rewritten(data, id_)
        if again != data:
            assert without_order_of_voters(again, id_) == without_order_of_voters(data, id_), golden_id(path)
            shuffled += 1
    assert shuffled == SHUFFLED_VOTERS


@pytest.mark.parametrize("path", sorted((GOLDEN / "damaged").rglob("*.checkpoint")), ids=golden_id)
def test_a_damaged_one_is_refused(path: Path) -> None:
    """No snapshot that was broken on purpose is taken for whole."""
    with pytest.raises(DecodeError):
        verify_snapshot(BufferSource(path.read_bytes()), snapshot_id(path))
