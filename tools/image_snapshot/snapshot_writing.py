# SPDX-License-Identifier: Apache-2.0
"""Makes a snapshot of the cluster at an offset: the state without the records that controllers of a release refuse."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import attrs

from raftlog.errors import SnapshotError, StorageError, UnsupportedVersionError
from raftlog.offsets import OffsetAndEpoch
from raftlog.records import limits
from raftlog.snapshot.file_raw import FileRawSnapshotWriter
from raftlog.snapshot.paths import snapshot_name
from raftlog.snapshot.writer import RecordsSnapshotWriter
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.tools.auditing.history.timelines import voter_timeline
from raftlog.tools.image.cluster_image import MetadataBatch
from raftlog.tools.image.image_records import image_records
from raftlog.tools.image.tables import Tables
from raftlog.tools.loading.control_records import CONTROL_RULES
from raftlog.tools.loading.features import CHECKED_RELEASES, unsupported_level
from raftlog.tools.loading.load_check import NEWER_RULES, LoadCheck, LoadFault
from raftlog.tools.payloads.format_features import METADATA_VERSION
from raftlog.tools.state.reading import snapshot_time
from raftlog.tools.state.snapshot_effect import SnapshotEffect, effect_of, faults_of
from raftlog.tools.state.state_search import Span
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import VoterSet

_RECORDS_PER_BATCH: Final = 1024
"""As many as Kafka writes. Source: RaftSnapshotWriter, SnapshotGenerator."""
_RECORD_OVERHEAD: Final = 26
"""The most bytes of a record beside its value: attributes, and the varints of its five other fields."""
_MODE: Final = 0o444
"""As checkpoints of Kafka have it: a user other than Kafka's writes this one."""
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
        effect: what becomes of controllers that have it beside the log as it is.
    """

    snapshot_id: OffsetAndEpoch
    timestamp: int
    kraft_version: KRaftVersion
    voters: VoterSet | None
    values: tuple[bytes, ...]
    skipped: tuple[LoadFault, ...]
    loaded_by: tuple[str, ...]
    effect: SnapshotEffect


def snapshot_content(span: Span, release: str, *, skips_unknown: bool = False) -> SnapshotContent:
    """Return what a snapshot for a release says at the end of a span.

    Args:
        span: the batches.
        release: whose rules count.
        skips_unknown: whether records of newer releases have no effect; otherwise they are refused.

    Raises:
        SnapshotError: the end is inside a batch or a metadata transaction, or at offset 0; or a record is of a newer
            release, or raft refuses a control record; or the release would not load the result; or its
            ``metadata.version`` has no field for a part of the state.
        RaftLogError: a file cannot be read.
    """
    check, possible = _replayed(span, release)
    if possible is None or possible.next_offset != span.asked_offset:
        raise SnapshotError(f"{span.copy.path}: {_no_state(span, possible, release)}")
    _refuse_controls(check.skipped, span.copy.path)
    if not skips_unknown:
        _refuse_newer(check.skipped, release, span.copy.path)
    values = _values(check.tables, release)
    kraft_version, voters = _voters(span)
    snapshot_id = OffsetAndEpoch(possible.next_offset, possible.epoch)
    return SnapshotContent(
        snapshot_id,
        possible.timestamp,
        kraft_version,
        voters,
        values,
        tuple(check.skipped),
        loaded_by(values, release, span.asked_offset),
        effect_of(span.copy, values, snapshot_id),
    )


def _replayed(span: Span, release: str) -> tuple[LoadCheck, MetadataBatch | None]:
    """Return a replay of a span, and its last batch after which a snapshot is possible."""
    check = LoadCheck((release,), in_snapshot=True, skips=True)
    for batch in span.of_snapshot():
        check.apply(batch)
    check.begin_log(span.start_offset)
    possible = _after_snapshot(span)
    for batch in span.of_log():
        check.apply(batch)
        if not check.is_in_transaction:
            possible = batch
    return check, possible


def _no_state(span: Span, possible: MetadataBatch | None, release: str) -> str:
    """Say why no snapshot can end where a span does, and which offset next to it has a state.

    Args:
        span: the batches.
        possible: the last batch after which a snapshot is possible; None if there is none before the span's end.
        release: whose rules count.

    Raises:
        RaftLogError: a file cannot be read.
    """
    if span.asked_offset == 0:
        place = "a snapshot that ends at offset 0 covers no record"
    else:
        place = f"offset {span.asked_offset} is inside a batch or a metadata transaction"
    if possible is not None:
        return f"{place}: the last offset before it with a state is {possible.next_offset}"
    first = _first_state(span, release)
    return f"{place}: {'no offset has' if first is None else f'offset {first} is the first with'} a state"


def _first_state(span: Span, release: str) -> int | None:
    """Return the first offset of a log, from its start on, where a snapshot can end; None if there is none.

    Raises:
        RaftLogError: a file cannot be read.
    """
    check = LoadCheck((release,), in_snapshot=True, skips=True)
    check.begin_log(span.start_offset)
    for batch in attrs.evolve(span, asked_offset=span.copy.log_end).of_log():
        check.apply(batch)
        if not check.is_in_transaction:
            return batch.next_offset
    return None


def _refuse_controls(skipped: Sequence[LoadFault], path: str) -> None:
    """Refuse to leave out what raft reads: the snapshot could have other voters, or another kraft.version."""
    fault = next((each for each in skipped if each.rule in CONTROL_RULES), None)
    if fault is not None:
        record = f"the control record at offset {fault.offset} (index {fault.record_index})"
        raise SnapshotError(f"{path}: {record} cannot be left out: {fault.rule}: {fault.reason}")


def _refuse_newer(skipped: Sequence[LoadFault], release: str, path: str) -> None:
    fault = next((each for each in skipped if each.rule in NEWER_RULES), None)
    if fault is not None:
        record = f"the {fault.record or 'record of an unknown type'} at offset {fault.offset}"
        problem = f"{record} (index {fault.record_index}) is not for {release}: {fault.rule}: {fault.reason}"
        raise SnapshotError(f"{path}: {problem}: give the --kafka of a newer release, or --skip-unknown")


def _values(tables: Tables, release: str) -> tuple[bytes, ...]:
    level = tables.features.get(METADATA_VERSION)
    if level is None:
        raise SnapshotError(f"{release} would not load it: no record sets a {METADATA_VERSION} that it supports")
    problem = unsupported_level(release, METADATA_VERSION, level)
    if problem is not None:
        raise SnapshotError(f"{release} would not load it: {problem}")
    try:
        return tuple(image_records(tables))
    except UnsupportedVersionError as error:
        problem = f"{METADATA_VERSION} {level} has no field for a part of the state"
        raise SnapshotError(f"{problem}: {error.reason}") from error


def _after_snapshot(span: Span) -> MetadataBatch | None:
    """Return the place where a span's snapshot ends, as a batch without records; None if it has no snapshot."""
    if span.snapshot is None:
        return None
    time = snapshot_time(span.copy.log.snapshots_by_id[span.snapshot], span.snapshot)
    return MetadataBatch(span.snapshot.offset, span.snapshot.offset, span.snapshot.epoch, time)


def loaded_by(values: Sequence[bytes], release: str, end_offset: int) -> tuple[str, ...]:
    """Return the releases whose controllers load the records of a snapshot, oldest first.

    Args:
        values: of the records.
        release: that has to.
        end_offset: of the snapshot, exclusive.

    Raises:
        SnapshotError: the release does not.
    """
    faults = faults_of(values, end_offset)
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
        SnapshotError: nothing is given, or the file has another name than Kafka's for this snapshot, or is there.
    """
    if not out:
        raise SnapshotError("--out is empty: give a directory that exists, or a file")
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
        BatchTooLargeError: a record does not fit in a batch.
    """
    raw = FileRawSnapshotWriter(LocalFileSystem(), folder, content.snapshot_id, _DIGITS)
    with RecordsSnapshotWriter(
        raw,
        now_ms,
        last_contained_log_timestamp=content.timestamp,
        kraft_version=content.kraft_version,
        voter_set=content.voters,
    ) as writer:
        for portion in portions(content.values):
            writer.append(portion, now_ms)
        size_bytes = writer.freeze(now_ms)
    path = Path(folder, snapshot_name(content.snapshot_id))
    try:
        path.chmod(_MODE)
    except OSError as error:
        raise StorageError(str(path), "make it readable", str(error)) from error
    return size_bytes


def portions(values: Sequence[bytes], most_bytes: int = limits.MAX_BATCH_SIZE) -> Iterator[list[bytes]]:
    """Yield records in order, as many at a time as fit in a batch, and not more than Kafka writes at once.

    Args:
        values: of the records.
        most_bytes: of a batch, header included; a record that alone needs more is yielded alone.
    """
    portion: list[bytes] = []
    size = limits.BATCH_OVERHEAD
    for value in values:
        needed = len(value) + _RECORD_OVERHEAD
        if portion and (len(portion) == _RECORDS_PER_BATCH or size + needed > most_bytes):
            yield portion
            portion, size = [], limits.BATCH_OVERHEAD
        portion.append(value)
        size += needed
    if portion:
        yield portion
