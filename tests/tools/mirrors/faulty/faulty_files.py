# SPDX-License-Identifier: Apache-2.0
"""The log directories of a real mirror, in which faults are planted one at a time, with right CRCs."""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import attrs

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.batches.record import Header, Record, RecordView
from raftlog.records.messages.mirrors.connect_records import read_source_offset
from raftlog.records.messages.mirrors.mirror_records import (
    MirrorRecordType,
    OffsetSync,
    OffsetSyncKey,
    read_mirror_record,
    write_mirror_record,
)
from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.naming import configured_policy
from raftlog.tools.mirrors.pair_report import FlowReport
from raftlog.tools.mirrors.reading.clusters import Cluster
from raftlog.tools.mirrors.reading.flow import find_configs, find_syncs
from raftlog.tools.mirrors.reading.log_reading import LocalSummer
from raftlog.tools.mirrors.reading.metadata import ClusterMetadata, read_metadata
from raftlog.tools.mirrors.verification import MirrorVerification
from tests.tools.mirrors.changed_mirror import SYNCS, Entry, copied, log_bytes, with_contents
from tests.tools.mirrors.comparing.mirror_copies import ArrayLog, Content, Mirror

CHECKPOINTS: Final = "A.checkpoints.internal-0"
COMMITS: Final = "__consumer_offsets-0"
_COUNTS: Final = frozenset({"mirror.lag", "mirror.below-log-start", "mirror.aborted"})
_NO_PRODUCER: Final = -1


class Told(NamedTuple):
    """A finding: its rule, what it is about, where, and why."""

    rule: str
    subject: str
    source: OffsetRange | None
    target: OffsetRange | None
    reason: str


@attrs.define
class FaultyFiles:
    """Both clusters.

    Attributes:
        source: the log directory of the one that is mirrored.
        target: that of the other.
    """

    source: Path
    target: Path
    _metadata: tuple[ClusterMetadata | None, ClusterMetadata | None]
    _former: dict[Path, bytes] = attrs.field(factory=dict, init=False)
    _copies: list[Path] = attrs.field(factory=list, init=False)
    _has_new_metadata: bool = attrs.field(default=False, init=False)

    @classmethod
    def made(cls, directory: Path) -> "FaultyFiles":
        """Copy the real ones."""
        source, target = copied(directory)
        for pattern in ("*.index", "*.timeindex"):
            for path in directory.rglob(pattern):
                path.unlink()
        return cls(source, target, (read_metadata([str(source)]), read_metadata([str(target)])))

    @contextmanager
    def changes(self) -> Iterator[None]:
        """Take back what is written meanwhile."""
        try:
            yield
        finally:
            for path, data in self._former.items():
                path.write_bytes(data)
            self._former.clear()
            for path in self._copies:
                shutil.rmtree(path)
            self._copies.clear()
            self._has_new_metadata = False

    # Writing

    def write(self, partition: Path, change: Callable[[bytes], bytes]) -> None:
        """Change the bytes of a partition's last segment."""
        path = max(partition.glob("*.log"))
        data = path.read_bytes()
        self._former.setdefault(path, data)
        self._has_new_metadata |= partition.name == "__cluster_metadata-0"
        path.write_bytes(change(data))

    def copy(self, partition: Path, other: Path) -> None:
        """Copy a partition to another directory."""
        shutil.copytree(partition, other)
        self._copies.append(other)

    def rewrite(self, partition: Path, change: Callable[[RecordView], Record | RecordView | None]) -> None:
        """Change the records of a partition, or take them out: then others get their offsets."""
        kept = (each for each in map(change, records_in(partition)) if each is not None)
        self.write(partition, lambda _: log_bytes(list(enumerate(kept)), _NO_PRODUCER))

    def write_mirror(self, mirror: Mirror, real: Mirror) -> None:
        """Write what a mirror has otherwise than the real one."""
        if mirror.source is not real.source:
            self._write_source(self.source / mirror.name, mirror.source)
        target = self.target / f"{mirror.pair.target}-{mirror.pair.partition}"
        if mirror.target is not real.target:
            entries = list(entries_of(mirror.target))
            self.write(target, lambda _: log_bytes(entries, end=mirror.target.end_offset))
        if mirror.syncs != real.syncs:
            self._write_syncs(mirror)
        if mirror.mirrored_end != real.mirrored_end:
            self._write_progress(mirror)

    def _write_source(self, partition: Path, log: ArrayLog) -> None:
        """Write other contents into the batches that are there, as transactions need them."""
        contents = dict(zip(log.rows.offsets.tolist(), log.contents, strict=True))
        for path in partition.glob("*.log"):
            data = path.read_bytes()
            self._former.setdefault(path, data)
            path.write_bytes(b"".join(_with_contents(data, contents)))

    def _write_syncs(self, mirror: Mirror) -> None:
        key = OffsetSyncKey(mirror.pair.source, mirror.pair.partition)
        others: list[Entry] = []
        first = None
        for record in records_in(self.source / SYNCS):
            if _sync_of(record).key != key:
                others.append((len(others), record))
            elif first is None:
                first = record
        assert first is not None
        written = [log_bytes(others)]
        offset = len(others) + (not mirror.has_all_syncs)
        for number, each in enumerate(mirror.syncs, offset):
            contents = write_mirror_record(OffsetSync(key, each.upstream, each.downstream))
            written.append(log_bytes([(number, with_contents(first, *contents))], each.producer_id))
        self.write(self.source / SYNCS, lambda _: b"".join(written))

    def _write_progress(self, mirror: Mirror) -> None:
        value = json.dumps({"offset": mirror.mirrored_end - 1}).encode()

        def change(record: RecordView) -> RecordView | Record:
            place = read_source_offset(record.key, record.value).mirrored
            is_it = place is not None and (place.topic, place.partition) == (mirror.pair.source, mirror.pair.partition)
            return with_contents(record, record.key, value) if is_it else record

        for partition in sorted(self.target.glob("mm2-offsets.A.internal-*")):
            self.rewrite(partition, change)

    # Verifying

    def findings(self, *, reads_committed: bool | None = False) -> list[Told]:
        """Return all that ``verify-mirror`` finds, but for counts."""
        source, target = Cluster([str(self.source)]), Cluster([str(self.target)])
        ((config,), _) = find_configs(target)
        aliases = config.source_alias, config.target_alias
        policy = configured_policy(config.properties, aliases=aliases)
        syncs = find_syncs(source, target, policy, aliases, is_on_target=config.has_syncs_on_target)
        flow = FlowReport(aliases, policy, config, syncs, reads_committed)
        metadata = self._metadata
        if self._has_new_metadata:
            metadata = read_metadata([str(self.source)]), read_metadata([str(self.target)])
        verification = MirrorVerification(source, target, flow, *metadata, LocalSummer())
        found = [
            Told(each.rule, f"{each.pair.source}-{each.pair.partition}", each.source, each.target, each.reason)
            for report in verification.pairs()
            for each in report.findings
            if each.rule not in _COUNTS
        ]
        of_flow = verification.flow_findings()
        found += [Told(each.rule, each.subject, each.source, each.target, each.reason) for each in of_flow]
        return found + [Told(each.rule, each.path, None, None, each.reason) for each in verification.problems]


def records_in(partition: Path) -> list[RecordView]:
    """Return the data records of a partition."""
    return [
        record
        for path in sorted(partition.glob("*.log"))
        for piece in split(BufferSource(path.read_bytes()))
        if isinstance(piece, RecordBatch) and not piece.is_control
        for record in piece.records()
    ]


def _sync_of(record: RecordView) -> OffsetSync:
    sync = read_mirror_record(MirrorRecordType.OFFSET_SYNC, record.key, record.value)
    assert isinstance(sync, OffsetSync)
    return sync


def entries_of(log: ArrayLog) -> Iterator[Entry]:
    """Return the records of a log as they are written."""
    for offset, content in zip(log.rows.offsets.tolist(), log.contents, strict=True):
        if content is not None:
            yield offset, _record(offset, content)


def _record(offset: int, content: Content) -> Record:
    headers = tuple(Header(*each) for each in content.headers)
    return Record(offset, content.timestamp, content.key, content.value, headers)


def _with_contents(data: bytes, contents: dict[int, Content | None]) -> Iterator[bytes]:
    for piece in split(BufferSource(data)):
        assert isinstance(piece, RecordBatch)
        if piece.is_control:
            yield data[piece.position : piece.position + piece.size_bytes]
            continue
        builder = RecordBatchBuilder(
            piece.base_offset,
            partition_leader_epoch=piece.partition_leader_epoch,
            producer_id=piece.producer_id,
            producer_epoch=piece.producer_epoch,
            base_sequence=piece.base_sequence,
            is_transactional=piece.is_transactional,
        )
        for record in piece.records():
            content = contents[record.offset]
            assert content is not None
            builder.append(content.timestamp, content.key, content.value, content.headers, offset=record.offset)
        yield builder.build()


def appended(data: bytes) -> Callable[[bytes], bytes]:
    """Return what puts batches after those that are there."""
    return lambda former: former + data


def next_offset(partition: Path) -> int:
    """Return the offset after the last batch of a partition."""
    pieces: Sequence[object] = list(split(BufferSource(max(partition.glob("*.log")).read_bytes())))
    assert isinstance(pieces[-1], RecordBatch)
    return pieces[-1].next_offset


def joined_text(found: Iterable[Told]) -> str:
    """Return findings in one line."""
    return "; ".join(f"{each.rule} {each.subject} {each.source} {each.target}: {each.reason}" for each in found)
