# SPDX-License-Identifier: Apache-2.0
"""Reading a snapshot: what is in it, and what is refused."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import (
    CorruptFileError,
    DecodeError,
    IncompleteSnapshotError,
    InvalidRecordError,
    InvalidSnapshotIdError,
    SnapshotError,
    UnsupportedMagicError,
    UnsupportedVersionError,
)
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.control_batch import write_control_batch
from raftlog.records.batches.iterator import BufferSource
from raftlog.records.limits import MAX_BATCH_SIZE
from raftlog.records.messages.control import (
    ControlRecordType,
    EndTxnMarker,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotHeaderRecord,
    VotersRecord,
    VotersRecordEndpoint,
    VotersRecordVoter,
    control_key,
)
from raftlog.snapshot.memory_raw import MemoryRawSnapshotReader
from raftlog.snapshot.paths import BOOTSTRAP_SNAPSHOT_ID, snapshot_name
from raftlog.snapshot.reader import ControlBatch, RecordsSnapshotReader, SnapshotSummary, verify_snapshot
from raftlog.voters.kraft_version import KRaftVersion
from tests.records import vectors
from tests.snapshot.snapshot_bytes import FOOTER, HEADER, ID, control, data, written
from tests.strategies import TIMESTAMP, batch_bytes, legacy_message, mutated, with_crc

SMALL = control(HEADER, 0) + data(2) + control(FOOTER, 4)
"""A small snapshot that is whole."""
AFTER_HEADER = len(control(HEADER, 0))
AFTER_DATA = AFTER_HEADER + len(data(2))
END = len(SMALL)


def verified(snapshot: bytes, snapshot_id: OffsetAndEpoch = ID) -> SnapshotSummary:
    """Verify bytes."""
    return verify_snapshot(BufferSource(snapshot), snapshot_id)


def test_a_snapshot_of_kafka_is_read_in_order() -> None:
    """The worked example has its header, KRaftVersion and Voters, then a data batch, then its footer."""
    reader = RecordsSnapshotReader(BufferSource(vectors.SNAPSHOT), BOOTSTRAP_SNAPSHOT_ID)
    header, records, footer = reader
    assert isinstance(header, ControlBatch)
    assert isinstance(records, RecordBatch)
    assert isinstance(footer, ControlBatch)
    assert [record.type.name for record in header.records if isinstance(record.type, ControlRecordType)] == [
        "SNAPSHOT_HEADER",
        "KRAFT_VERSION",
        "KRAFT_VOTERS",
    ]
    assert [record.offset for record in records.records()] == [3]
    assert footer.records[0].type is ControlRecordType.SNAPSHOT_FOOTER
    assert [header.batch.position, records.position, footer.batch.position] == [0, 166, 257]


def test_contradictions_of_the_header() -> None:
    """Offset and epoch come from the id; timestamp, kraft.version and voters from the first batch."""
    reader = RecordsSnapshotReader(BufferSource(vectors.SNAPSHOT), BOOTSTRAP_SNAPSHOT_ID)
    assert reader.last_contained_log_offset == -1
    assert reader.last_contained_log_epoch == 0
    assert reader.last_contained_log_timestamp == 1_699_999_999_000
    assert reader.kraft_version is KRaftVersion.KRAFT_VERSION_1
    assert reader.voter_set is not None
    assert reader.voter_set.voter_ids == {1}
    summary = verify_snapshot(BufferSource(vectors.SNAPSHOT), BOOTSTRAP_SNAPSHOT_ID)
    assert summary == SnapshotSummary(BOOTSTRAP_SNAPSHOT_ID, reader.header, 332, 3, 1)


def test_a_snapshot_with_only_a_header_has_static_voters() -> None:
    """Without a KRaftVersionRecord the level is 0, and no voters are named."""
    snapshot = control([SnapshotHeaderRecord(7)], 0) + control(FOOTER, 1)
    header = verified(snapshot).header
    assert (header.last_contained_log_timestamp, header.kraft_version, header.voter_set) == (7, 0, None)


def test_it_can_be_read_again() -> None:
    """Each iteration starts at the first batch; a raw reader will do as source."""
    raw = MemoryRawSnapshotReader(ID, SMALL)
    reader = RecordsSnapshotReader.of(raw)
    assert list(reader) == list(reader)
    assert len(list(reader)) == 3
    assert reader.snapshot_id == ID


def test_the_header_is_read_without_the_rest() -> None:
    """The facts in the header are known although the snapshot ends in the middle."""
    reader = RecordsSnapshotReader(BufferSource(SMALL[:-10]), ID)
    assert reader.last_contained_log_timestamp == TIMESTAMP
    with pytest.raises(IncompleteSnapshotError):
        list(reader)


def test_every_flipped_bit_is_found() -> None:
    """No snapshot with one bit changed, wherever it is, is taken for sound."""
    for bit in range(8 * len(vectors.SNAPSHOT)):
        changed = bytearray(vectors.SNAPSHOT)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DecodeError) as caught:
            verified(bytes(changed), BOOTSTRAP_SNAPSHOT_ID)
        assert caught.value.path == snapshot_name(BOOTSTRAP_SNAPSHOT_ID)
        assert caught.value.position is not None
        assert caught.value.rule is not None


def test_every_cut_is_found() -> None:
    """A snapshot that ends early, wherever that is, between batches too, is incomplete."""
    for snapshot, snapshot_id in ((SMALL, ID), (vectors.SNAPSHOT, BOOTSTRAP_SNAPSHOT_ID)):
        for end in range(len(snapshot)):
            with pytest.raises(IncompleteSnapshotError):
                verified(snapshot[:end], snapshot_id)


@given(st.data())
def test_changed_bytes_are_refused_or_sound(draw: st.DataObject) -> None:
    """Whatever is done to a snapshot, it verifies and reads from end to end, or raises a DecodeError."""
    changed = draw.draw(mutated(SMALL))
    try:
        summary = verified(changed)
    except DecodeError:
        return
    assert summary.size_bytes == len(changed)
    assert list(RecordsSnapshotReader(BufferSource(changed), ID))


@given(st.binary(max_size=300))
def test_any_bytes_are_refused(noise: bytes) -> None:
    """Bytes that are not a snapshot raise a DecodeError, also before and after one."""
    for snapshot in (noise, SMALL + noise, noise + SMALL):
        if snapshot != SMALL:
            with pytest.raises(DecodeError):
                verified(snapshot)


WRONG = {
    "no batch at all": (b"", IncompleteSnapshotError, "snapshot-header", 0),
    "no footer": (control(HEADER, 0) + data(2), IncompleteSnapshotError, "snapshot-footer", AFTER_DATA),
    "a header alone": (control(HEADER, 0), IncompleteSnapshotError, "snapshot-footer", AFTER_HEADER),
    "data before the header": (
        data(0) + control(HEADER, 2) + control(FOOTER, 4),
        IncompleteSnapshotError,
        "snapshot-header",
        0,
    ),
    "a footer alone": (control(FOOTER, 0), IncompleteSnapshotError, "snapshot-header", 0),
    "a version before the header": (
        control(HEADER[::-1], 0) + control(FOOTER, 2),
        IncompleteSnapshotError,
        "snapshot-header",
        0,
    ),
    "voters without a version": (
        control([HEADER[0], VotersRecord()], 0) + control(FOOTER, 2),
        IncompleteSnapshotError,
        "snapshot-header",
        0,
    ),
    "a header twice": (
        control(HEADER, 0) + control(HEADER, 2) + control(FOOTER, 4),
        CorruptFileError,
        "snapshot-control",
        AFTER_HEADER,
    ),
    "a header twice in one batch": (
        control([HEADER[0], HEADER[0]], 0) + control(FOOTER, 2),
        IncompleteSnapshotError,
        "snapshot-header",
        0,
    ),
    "voters in a later batch": (
        control(HEADER, 0) + control([VotersRecord()], 2) + control(FOOTER, 3),
        CorruptFileError,
        "snapshot-control",
        AFTER_HEADER,
    ),
    "a leader change": (
        control(HEADER, 0) + control([LeaderChangeMessage(1)], 2) + control(FOOTER, 3),
        CorruptFileError,
        "snapshot-control",
        AFTER_HEADER,
    ),
    "an end of a transaction": (
        control(HEADER, 0) + control([EndTxnMarker(committed=True, coordinator_epoch=1)], 2) + control(FOOTER, 3),
        CorruptFileError,
        "snapshot-control",
        AFTER_HEADER,
    ),
    "data after the footer": (SMALL + data(5), CorruptFileError, "snapshot-footer", END),
    "a footer twice": (SMALL + control(FOOTER, 5), CorruptFileError, "snapshot-footer", END),
    "a footer that is not alone": (
        control(HEADER, 0) + control([*FOOTER, *FOOTER], 2),
        CorruptFileError,
        "snapshot-control",
        AFTER_HEADER,
    ),
    "a footer behind a header": (
        control([HEADER[0], *FOOTER], 0),
        IncompleteSnapshotError,
        "snapshot-header",
        0,
    ),
    "more control records than there can be": (
        control([HEADER[0]] * 4, 0) + control(FOOTER, 4),
        CorruptFileError,
        "snapshot-control",
        0,
    ),
    "an epoch of another log": (
        control(HEADER, 0) + data(2, epoch=4) + control(FOOTER, 4),
        CorruptFileError,
        "snapshot-epoch",
        AFTER_HEADER,
    ),
    "all of another epoch": (
        control(HEADER, 0, 2) + data(2, epoch=2) + control(FOOTER, 4, 2),
        CorruptFileError,
        "snapshot-epoch",
        0,
    ),
    "offsets of the log": (control(HEADER, 40) + control(FOOTER, 42), CorruptFileError, "snapshot-offset", 0),
    "a gap": (control(HEADER, 0) + data(3) + control(FOOTER, 5), CorruptFileError, "snapshot-offset", AFTER_HEADER),
    "a batch twice": (
        control(HEADER, 0) + data(2) + data(2) + control(FOOTER, 4),
        CorruptFileError,
        "snapshot-offset",
        AFTER_DATA,
    ),
    "an empty batch": (
        control(HEADER, 0) + batch_bytes(base_offset=2, epoch=3) + control(FOOTER, 3),
        CorruptFileError,
        "snapshot-offset",
        AFTER_HEADER,
    ),
    "a batch of no records and no offsets": (
        control(HEADER, 0) + batch_bytes(base_offset=2, epoch=3, last_offset_delta=-1) + control(FOOTER, 2),
        CorruptFileError,
        "snapshot-offset",
        AFTER_HEADER,
    ),
    "a span that is not the count": (
        control(HEADER, 0) + with_crc(data(2)[:23] + b"\0\0\0\7" + data(2)[27:]) + control(FOOTER, 10),
        CorruptFileError,
        "snapshot-offset",
        AFTER_HEADER,
    ),
    "a control batch without keys": (
        control(HEADER, 0) + data(2, 1, is_control=True) + control(FOOTER, 3),
        InvalidRecordError,
        "control-key",
        AFTER_HEADER,
    ),
    "a footer that is cut off": (
        control(HEADER, 0)
        + data(2, 1, is_control=True, key=control_key(ControlRecordType.SNAPSHOT_FOOTER), value=b"\0"),
        InvalidRecordError,
        "control-value",
        AFTER_HEADER,
    ),
    "a message of old": (legacy_message(1, 0, None, b"old"), UnsupportedMagicError, "batch-magic", 0),
    "zeros at the end": (SMALL + bytes(100), IncompleteSnapshotError, "tail-zero", END),
    "zeros alone": (bytes(100), IncompleteSnapshotError, "tail-zero", 0),
    "a level that is not known": (
        control([HEADER[0], KRaftVersionRecord(9)], 0) + control(FOOTER, 2),
        UnsupportedVersionError,
        None,
        0,
    ),
    "a listener without a name": (
        control(
            [*HEADER, VotersRecord((VotersRecordVoter(1, None, (VotersRecordEndpoint(" ", "host", 1),), 0, 1),))], 0
        )
        + control(FOOTER, 3),
        InvalidRecordError,
        "control-value",
        0,
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_snapshot_is_refused(case: str) -> None:
    """Each fault has a type, a rule and a place, whether the snapshot is verified or read."""
    snapshot, kind, rule, position = WRONG[case]
    with pytest.raises(kind) as caught:
        verified(snapshot)
    assert type(caught.value) is kind
    assert isinstance(caught.value, DecodeError)
    assert (caught.value.rule, caught.value.position) == (rule, position)
    assert caught.value.path == snapshot_name(ID)
    with pytest.raises(kind):
        list(RecordsSnapshotReader(BufferSource(snapshot), ID))


def test_an_incomplete_snapshot_is_both_kinds_of_error() -> None:
    """Handlers of refused snapshots and of bad bytes both catch the error, and it can be copied with its place."""
    error = IncompleteSnapshotError("no footer", "snapshot-footer").located(path="x", position=7)
    assert isinstance(error, SnapshotError)
    assert str(error) == "x, position 7: no footer [snapshot-footer]"
    assert attrs.asdict(error)["position"] == 7


def test_an_error_names_the_path_that_was_given() -> None:
    """The caller's path is used where it gives one."""
    with pytest.raises(IncompleteSnapshotError, match=r"^a/b, position 0: "):
        verify_snapshot(BufferSource(b""), ID, path="a/b")


def test_an_id_without_a_name_is_refused() -> None:
    """No snapshot has a negative epoch."""
    with pytest.raises(InvalidSnapshotIdError):
        verified(SMALL, OffsetAndEpoch(42, -1))


@pytest.mark.parametrize("codec", CompressionType)
def test_control_batches_may_be_compressed(codec: CompressionType) -> None:
    """A header is read with any codec of its batch."""
    header = write_control_batch(HEADER, base_offset=0, epoch=3, timestamp=TIMESTAMP, compression_type=codec)
    assert verified(header + control(FOOTER, 2)).header.kraft_version == 1


def test_a_control_batch_is_not_unpacked_without_limit() -> None:
    """A control batch that decompresses to more than any batch has is refused."""
    builder = RecordBatchBuilder(0, partition_leader_epoch=3, is_control=True, compression_type=CompressionType.GZIP)
    builder.append(TIMESTAMP, control_key(ControlRecordType.SNAPSHOT_HEADER), bytes(MAX_BATCH_SIZE))
    with pytest.raises(DecodeError, match="codec-size"):
        verified(builder.build() + control(FOOTER, 1))


def test_many_batches_are_read_through_many_windows() -> None:
    """A snapshot larger than what is read at once is verified, and counted, in full."""
    values = [[b"x" * 700] * 90] * 60
    summary = verified(written(*values, max_batch_size_bytes=70_000))
    assert summary.record_count == 90 * 60
    assert summary.size_bytes > 3 * 1024 * 1024
