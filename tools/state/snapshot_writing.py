# SPDX-License-Identifier: Apache-2.0
"""Makes a snapshot of the cluster at an offset: the state without the records that controllers of a release refuse."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

from raftlog.errors import SnapshotError, UnsupportedVersionError
from raftlog.offsets import OffsetAndEpoch
from raftlog.snapshot.file_raw import FileRawSnapshotWriter
from raftlog.snapshot.paths import snapshot_name
from raftlog.snapshot.writer import RecordsSnapshotWriter
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.tools.auditing.history.timelines import voter_timeline
from raftlog.tools.image.cluster_image import MetadataBatch
from raftlog.tools.image.image_records import image_records
from raftlog.tools.image.tables import Tables
from raftlog.tools.loading.features import CHECKED_RELEASES
from raftlog.tools.loading.load_check import LoadCheck, LoadFault
from raftlog.tools.payloads.format_features import METADATA_VERSION
from raftlog.tools.state.reading import snapshot_time
from raftlog.tools.state.state_search import Span
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import VoterSet

_RECORDS_PER_BATCH: Final = 1024
"""As many as Kafka writes. Source: RaftSnapshotWriter, SnapshotGenerator."""
_DIGITS: Final = "1"
"""Of the partial file's name; the folder is not one that Kafka writes to."""


@attrs.frozen
class SnapshotContent:
    """What a snapshot will say.

    Attributes:
        snapshot_id: end offset (exclusive) and the epoch of the record before it.
        timestamp: when that record was appended, in ms since the Unix epoch.
        kraft_version: in force there.
        voters: in force there, if a record names them.
        values: of the records.
        skipped: the records of log and snapshot that have no effect, in order.
        loaded_by: the releases whose controllers load it, oldest first.
    """

    snapshot_id: OffsetAndEpoch
    timestamp: int
    kraft_version: KRaftVersion
    voters: VoterSet | None
    values: tuple[bytes, ...]
    skipped: tuple[LoadFault, ...]
    loaded_by: tuple[str, ...]


def snapshot_content(span: Span, release: str) -> SnapshotContent:
    """Return what a snapshot for a release says at the end of a span.

    Raises:
        SnapshotError: the end is inside a batch or a metadata transaction, or at offset 0; or the release would not
            load it; or its ``metadata.version`` has no field for a part of the state.
        RaftLogError: a file cannot be read.
    """
    check = LoadCheck((release,), in_snapshot=True, skips=True)
    for batch in span.of_snapshot():
        check.apply(batch)
    check.begin_log(span.start_offset)
    possible = _after_snapshot(span)
    for batch in span.of_log():
        check.apply(batch)
        if not check.is_in_transaction:
            possible = batch
    if possible is None or possible.next_offset != span.asked_offset:
        before = 0 if possible is None else possible.next_offset
        place = f"offset {span.asked_offset} is inside a batch or a metadata transaction, or covers no record"
        raise SnapshotError(f"{span.copy.path}: {place}: the last offset before it with a state is {before}")
    values = _values(check.tables, release)
    kraft_version, voters = _voters(span)
    return SnapshotContent(
        OffsetAndEpoch(possible.next_offset, possible.epoch),
        possible.timestamp,
        kraft_version,
        voters,
        values,
        tuple(check.skipped),
        _loaded_by(values, release, span.asked_offset),
    )


def _values(tables: Tables, release: str) -> tuple[bytes, ...]:
    try:
        return tuple(image_records(tables))
    except UnsupportedVersionError as error:
        if METADATA_VERSION not in tables.features:
            problem = f"{release} would not load it: no record sets a {METADATA_VERSION} that it supports"
        else:
            problem = f"{METADATA_VERSION} {tables.features[METADATA_VERSION]} has no field for a part of the state"
        raise SnapshotError(f"{problem}: {error.reason}") from error


def _after_snapshot(span: Span) -> MetadataBatch | None:
    """Return the place where a span's snapshot ends, as a batch without records; None if it has no snapshot."""
    if span.snapshot is None:
        return None
    time = snapshot_time(span.copy.log.snapshots_by_id[span.snapshot], span.snapshot)
    return MetadataBatch(span.snapshot.offset, span.snapshot.offset, span.snapshot.epoch, time)


def _loaded_by(values: tuple[bytes, ...], release: str, end_offset: int) -> tuple[str, ...]:
    check = LoadCheck(in_snapshot=True)
    check.apply(MetadataBatch(0, len(values), 0, 0, values))
    check.begin_log(end_offset)
    faults = check.finish()
    if release in faults:
        raise SnapshotError(f"{release} would not load it: {faults[release].reason}")
    return tuple(each for each in CHECKED_RELEASES if each not in faults)


def _voters(span: Span) -> tuple[KRaftVersion, VoterSet | None]:
    """Return the kraft.version and the voters that records have put in force below the end of a span."""
    rows = [row for row in voter_timeline([span.copy.log]) if row.offset < span.asked_offset and row.kraft_version]
    if not rows:
        return KRaftVersion.from_level(0), None
    return KRaftVersion.from_level(rows[-1].kraft_version), rows[-1].voters


def snapshot_folder(out: str, snapshot_id: OffsetAndEpoch) -> str:
    """Return the folder for a snapshot, which is given, or is that of the file that is given.

    Raises:
        SnapshotError: the file has another name than Kafka's for this snapshot, or is there.
    """
    name = snapshot_name(snapshot_id)
    is_folder = Path(out).is_dir()
    if not is_folder and Path(out).name != name:
        raise SnapshotError(f"{out}: the name of this snapshot is {name}; give that, or a directory that exists")
    folder = Path(out) if is_folder else Path(out).parent
    if os.path.lexists(folder / name):
        raise SnapshotError(f"{folder / name} exists, and is not replaced")
    return str(folder)


def write_snapshot(content: SnapshotContent, folder: str, now_ms: int) -> int:
    """Write a snapshot under Kafka's name, durably or not at all; return its size in bytes.

    Raises:
        StorageError: the disk failed.
        BatchTooLargeError: 1,024 records do not fit in a batch.
    """
    raw = FileRawSnapshotWriter(LocalFileSystem(), folder, content.snapshot_id, _DIGITS)
    with RecordsSnapshotWriter(
        raw,
        now_ms,
        last_contained_log_timestamp=content.timestamp,
        kraft_version=content.kraft_version,
        voter_set=content.voters,
    ) as writer:
        for portion in _portions(content.values):
            writer.append(portion, now_ms)
        return writer.freeze(now_ms)


def _portions(values: tuple[bytes, ...]) -> Iterator[list[bytes]]:
    rest = iter(values)
    while portion := list(itertools.islice(rest, _RECORDS_PER_BATCH)):
        yield portion
