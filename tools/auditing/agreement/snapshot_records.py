# SPDX-License-Identifier: Apache-2.0
"""Compares the records of snapshots with the state that the log makes of the records up to their ends."""

from collections.abc import Iterator, Sequence
from typing import Final

from raftlog.errors import RaftLogError
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.file_names import METADATA_TOPIC
from raftlog.records.messages.metadata import read_metadata_record
from raftlog.tools.auditing.agreement.metadata_image import MetadataImage, StateDifference, UnknownStateError
from raftlog.tools.auditing.agreement.snapshot_contents import ContentReader, read_contents
from raftlog.tools.auditing.batch_reader import BatchReader, batches_in_range, read_batches
from raftlog.tools.auditing.contents.record_subjects import subject_of, subject_text
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence
from raftlog.tools.catalogue.findings import Finding

MOST_BYTES: Final = 256 << 20
"""Logs and snapshots of more bytes in all are not compared: their state is held in memory."""
_MAX_OFFSET: Final = (1 << 63) - 1


class _LogEndsError(Exception):
    """The log does not have all records up to the end of a snapshot."""


def judge_snapshot_records(
    log: PartitionEvidence, contents: ContentReader = read_contents, read: BatchReader = read_batches
) -> Iterator[Finding]:
    """Report snapshots of a metadata log whose records are not what the log makes of the records up to their ends.

    The state is compared key by key, as a node holds it: from the start of the log, or, if it starts later, from the
    oldest snapshot that it continues. Snapshots with findings are not compared. Nothing is compared from a record on
    that is gone, or has an effect that is not known.

    Args:
        log: with its snapshots.
        contents: reads a snapshot again.
        read: reads batches of a segment again.
    """
    files = (*log.segments, *log.snapshots)
    if log.place.topic != METADATA_TOPIC or sum(file.task.size_bytes for file in files) > MOST_BYTES:
        return
    start = log.start_offset
    ids = [each for each in log.snapshots_by_id.items() if each[0].offset >= max(start, 1) and not each[1].findings]
    image, at, base = MetadataImage(), 0, ""
    try:
        if start > 0 and ids:
            (first, snapshot), *ids = ids
            image, at, base = _image_of(snapshot, contents), first.offset, snapshot.task.path
        for id_, snapshot in ids:
            _replay(image, log, at, id_.offset, read)
            at = id_.offset
            state = _image_of(snapshot, contents)
            found = next(state.differences(image), None)
            if found is not None:
                yield _finding(id_, snapshot, found, (state, image), base)
    except (_LogEndsError, UnknownStateError, RaftLogError, OSError):
        return  # What cannot be read has findings of its own.


def _image_of(snapshot: FileEvidence, contents: ContentReader) -> MetadataImage:
    image = MetadataImage()
    for record in contents(snapshot):
        image.replay(read_metadata_record(record.value))
    return image


def _replay(image: MetadataImage, log: PartitionEvidence, start: int, end: int, read: BatchReader) -> None:
    """Apply the records of a log from one offset to another.

    Raises:
        _LogEndsError: one of them is not there.
        UnknownStateError: the effect of one is not known.
        RaftLogError: one cannot be decoded.
    """
    expected = start
    for _, batch in batches_in_range(log, start, end, read):
        if batch.base_offset > expected:
            raise _LogEndsError
        expected = batch.next_offset
        for record in () if batch.is_control else batch.records(check_crc=False):
            if start <= record.offset < end:
                image.replay(read_metadata_record(record.value))
    if expected < end:
        raise _LogEndsError


def _finding(
    id_: OffsetAndEpoch, snapshot: FileEvidence, found: StateDifference, states: Sequence[MetadataImage], base: str
) -> Finding:
    """Say what differs, without any value: some are secrets."""
    kind, identity = found.key
    message = next(state.stated[found.key] for state in states if found.key in state.stated)
    names = {topic_id: name for state in states for topic_id, name in state.topics()}
    of = f" of {subject_text(*subject_of(kind, message), names)}" if identity != () else ""
    source = f"{base} and the log after it" if base else "the log"
    match found.field:
        case None if found.key in states[0].stated:
            what = f"it has a {kind}{of}, which {source} up to its end has not"
        case None:
            what = f"it lacks the {kind}{of}, which {source} up to its end has"
        case field:
            what = f"the {kind}{of} has another {field} than by {source} up to its end"
    return Finding(snapshot.task.path, "snapshot-records", what, offset=id_.offset, epoch=id_.epoch)
