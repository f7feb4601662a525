# SPDX-License-Identifier: Apache-2.0
"""Hypothesis strategies for the parts of a raft log: offsets, voters, records, batches, and small complete logs.

They yield only what raftlog accepts, so your tests need no filter. Shrinking leads to offset 0, epoch 0, one voter, one
record.

Raises:
    MissingExtraError: on import, if Hypothesis is not installed.
"""

from typing import Any, Final

import attrs

from raftlog.errors import MissingExtraError
from raftlog.offsets import EpochEntry, OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.control_batch import write_control_batch
from raftlog.records.batches.record import Header
from raftlog.records.messages.control import (
    ControlValue,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    Voter,
)
from raftlog.records.messages.voters import voters_record
from raftlog.voters.voter_set import Endpoints, ReplicaKey, SupportedVersionRange, VoterNode, VoterSet

try:
    from hypothesis import strategies as st
except ImportError as error:
    raise MissingExtraError("testing", "raftlog.testing.strategies") from error

_INT32_MAX: Final = 2**31 - 1
_MAX_OFFSET: Final = 2**48
"""Low enough that no batch ends above the largest offset."""
_TIMESTAMP_MS: Final = 1_700_000_000_000
_LISTENERS: list[str] = ["CONTROLLER", "CONTROLLER_SSL", "REPLICATION"]

Row = tuple[int, bytes | None, bytes | None, list[Header]]
"""Timestamp in ms, key, value and headers: what ``RecordBatchBuilder.extend`` takes."""


def offsets(max_offset: int = _MAX_OFFSET) -> st.SearchStrategy[int]:
    """Offsets from 0 to ``max_offset``, inclusive; small ones often."""
    return st.integers(0, min(100, max_offset)) | st.integers(0, max_offset)


def epochs(max_epoch: int = _INT32_MAX) -> st.SearchStrategy[int]:
    """Leader epochs from 0 to ``max_epoch``, inclusive; small ones often."""
    return st.integers(0, min(10, max_epoch)) | st.integers(0, max_epoch)


def offsets_and_epochs() -> st.SearchStrategy[OffsetAndEpoch]:
    """An offset with an epoch; a snapshot id, too."""
    return st.builds(OffsetAndEpoch, offsets(), epochs())


def replica_keys(*, max_id: int = _INT32_MAX, with_directory_id: bool | None = None) -> st.SearchStrategy[ReplicaKey]:
    """Replicas.

    Args:
        max_id: the largest node id, inclusive.
        with_directory_id: whether they have a directory id; None: some have.
    """
    directory_ids: st.SearchStrategy[Any] = st.uuids(allow_nil=False)
    if with_directory_id is not True:
        directory_ids = st.none() if with_directory_id is False else st.none() | directory_ids
    return st.builds(ReplicaKey, st.integers(0, max_id), directory_ids)


def endpoints(*, min_size: int = 1) -> st.SearchStrategy[Endpoints]:
    """The addresses of a voter: up to three listeners."""
    hosts = st.sampled_from(["localhost", "192.0.2.1", "2001:db8::1", "b\u00fccher.example"])
    addresses = st.tuples(hosts, st.integers(0, 65535))
    return st.dictionaries(st.sampled_from(_LISTENERS), addresses, min_size=min_size).map(Endpoints.of)


def supported_versions() -> st.SearchStrategy[SupportedVersionRange]:
    """Ranges of ``kraft.version``: those of today's nodes."""
    return st.builds(SupportedVersionRange, st.just(0), st.integers(0, 1))


def voter_nodes(keys: st.SearchStrategy[ReplicaKey] | None = None) -> st.SearchStrategy[VoterNode]:
    """Voters, with arbitrary keys or the given ones."""
    return st.builds(VoterNode, replica_keys() if keys is None else keys, endpoints(), supported_versions())


def voter_sets(
    *, min_size: int = 1, max_size: int = 5, with_directory_ids: bool | None = None
) -> st.SearchStrategy[VoterSet]:
    """Voter sets, whose ids differ and are mostly small.

    Args:
        min_size: of voters.
        max_size: of voters.
        with_directory_ids: whether the voters have directory ids; None: some have.
    """
    small = replica_keys(max_id=9, with_directory_id=with_directory_ids)
    nodes = voter_nodes(small | replica_keys(with_directory_id=with_directory_ids))
    unique = st.lists(nodes, min_size=min_size, max_size=max_size, unique_by=lambda node: node.voter_key.id)
    return unique.map(VoterSet.of)


def field_bytes() -> st.SearchStrategy[bytes | None]:
    """A key or a value: null, short, long, or around the size at which its length takes one more byte (63 and 64)."""
    return st.none() | st.binary(max_size=12) | st.sampled_from([b"", b"\0" * 63, b"\xff" * 64, b"a" * 700])


def headers() -> st.SearchStrategy[list[Header]]:
    """Up to three headers; a name may come twice."""
    return st.lists(st.builds(Header, st.text(max_size=5).map(str.encode), field_bytes()), max_size=3)


def timestamps() -> st.SearchStrategy[int]:
    """Record timestamps in ms: mostly close together; also no timestamp (-1), zero and very large ones."""
    return st.integers(_TIMESTAMP_MS - 200, _TIMESTAMP_MS + 200) | st.sampled_from([-1, 0, 2**61])


def rows() -> st.SearchStrategy[Row]:
    """Records before they have an offset, as ``RecordBatchBuilder.extend`` takes them."""
    return st.tuples(timestamps(), field_bytes(), field_bytes(), headers())


def record_batches(
    base_offset: int | None = None, epoch: int | None = None, *, max_records: int = 4
) -> st.SearchStrategy[bytes]:
    """Batches of data records as a leader writes them: no gaps, no producer; uncompressed or with gzip.

    Args:
        base_offset: of the first record; None: any.
        epoch: of the leader; None: any.
        max_records: at least 1.
    """
    return st.builds(
        _batch,
        offsets() if base_offset is None else st.just(base_offset),
        epochs() if epoch is None else st.just(epoch),
        _contents(max_records),
    )


def _contents(max_records: int) -> st.SearchStrategy[tuple[CompressionType, list[Row]]]:
    codecs = st.sampled_from([CompressionType.NONE, CompressionType.NONE, CompressionType.GZIP])
    return st.tuples(codecs, st.lists(rows(), min_size=1, max_size=max_records))


def _batch(base_offset: int, epoch: int, contents: tuple[CompressionType, list[Row]]) -> bytes:
    codec, some_rows = contents
    builder = RecordBatchBuilder(base_offset, partition_leader_epoch=epoch, compression_type=codec)
    builder.extend(some_rows)
    return builder.build()


def leader_changes(voters: VoterSet | None = None) -> st.SearchStrategy[LeaderChangeMessage]:
    """The first record of an epoch: a leader among the voters, all of whom voted for it.

    Args:
        voters: None: any.
    """
    return (voter_sets() if voters is None else st.just(voters)).flatmap(
        lambda known: st.sampled_from(sorted(known.voter_ids)).map(lambda leader: _leader_change(leader, known))
    )


def _leader_change(leader_id: int, voters: VoterSet) -> LeaderChangeMessage:
    everyone = tuple(Voter(voter_id) for voter_id in sorted(voters.voter_ids))
    return LeaderChangeMessage(leader_id, everyone, everyone)


def control_values() -> st.SearchStrategy[ControlValue]:
    """Control records of every kind in a raft log and its snapshots."""
    return st.one_of(
        leader_changes(),
        st.builds(KRaftVersionRecord, st.integers(0, 1)),
        voter_sets(with_directory_ids=True).map(voters_record),
        st.builds(SnapshotHeaderRecord, timestamps()),
        st.just(SnapshotFooterRecord()),
    )


def control_batches(
    base_offset: int | None = None, epoch: int | None = None, *, max_records: int = 3
) -> st.SearchStrategy[bytes]:
    """Batches of control records, each well-formed.

    Args:
        base_offset: of the first record; None: any.
        epoch: of the leader; None: any.
        max_records: at least 1.
    """
    return st.builds(
        lambda at, by, values, timestamp: write_control_batch(values, base_offset=at, epoch=by, timestamp=timestamp),
        offsets() if base_offset is None else st.just(base_offset),
        epochs() if epoch is None else st.just(epoch),
        st.lists(control_values(), min_size=1, max_size=max_records),
        timestamps(),
    )


@attrs.frozen
class SmallLog:
    """A complete log as leaders of increasing epochs write it: no gaps, and each epoch begins with its leader change.

    Attributes:
        start_offset: inclusive.
        batches: in order.
    """

    start_offset: int
    batches: tuple[bytes, ...]

    @property
    def end_offset(self) -> int:
        """The offset after the last record; the start offset of an empty log."""
        return RecordBatch(self.batches[-1]).last_offset + 1 if self.batches else self.start_offset

    @property
    def data(self) -> bytes:
        """All batches, as in a segment."""
        return b"".join(self.batches)

    @property
    def epoch_entries(self) -> tuple[EpochEntry, ...]:
        """Where each epoch starts."""
        first: dict[int, int] = {}
        for batch in map(RecordBatch, self.batches):
            first.setdefault(batch.partition_leader_epoch, batch.base_offset)
        return tuple(EpochEntry(epoch, offset) for epoch, offset in first.items())


# Strategies that depend on no drawn value are built once, because Hypothesis validates each on its first draw.
_ANY_VOTERS: Final = voter_sets()
_ANY_CONTENTS: Final = _contents(4)
_EPOCH_GAPS: Final = st.sampled_from([1, 1, 2, 5])


@st.composite
def small_logs(
    draw: st.DrawFn, *, start_offset: int = 0, max_epochs: int = 3, max_batches: int = 4, voters: VoterSet | None = None
) -> SmallLog:
    """Logs of a few epochs with a few batches each.

    Args:
        draw: Hypothesis's.
        start_offset: of the first record.
        max_epochs: may be 0, for an empty log.
        max_batches: of data records in each epoch.
        voters: those in every leader change; None: any. The log has no VotersRecord.
    """
    voters = draw(_ANY_VOTERS) if voters is None else voters
    leaders = st.sampled_from(sorted(voters.voter_ids))
    epoch, offset, batches = -1, start_offset, list[bytes]()
    for gap in draw(st.lists(_EPOCH_GAPS, max_size=max_epochs)):
        epoch += gap
        change = _leader_change(draw(leaders), voters)
        batches.append(write_control_batch([change], base_offset=offset, epoch=epoch, timestamp=_TIMESTAMP_MS + offset))
        offset += 1
        for _ in range(draw(st.integers(0, max_batches))):
            batches.append(_batch(offset, epoch, draw(_ANY_CONTENTS)))
            offset = RecordBatch(batches[-1]).last_offset + 1
    return SmallLog(start_offset, tuple(batches))
