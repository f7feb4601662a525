# SPDX-License-Identifier: Apache-2.0
"""Compares the data records of two snapshots, which were surveyed and are read again."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import attrs

from raftlog.errors import RaftLogError
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import split
from raftlog.storage.reading.file_source import open_source
from raftlog.tools.auditing.evidence import FileEvidence


@attrs.frozen
class StoredValue:
    """A data record of a snapshot.

    Attributes:
        offset: its offset in the snapshot.
        key, value: as they are stored.
    """

    offset: int
    key: bytes | None
    value: bytes | None


ContentReader = Callable[[FileEvidence], Iterable[StoredValue]]
"""Reads the data records of a surveyed snapshot."""


def read_contents(snapshot: FileEvidence) -> Iterator[StoredValue]:
    """Yield the data records of a surveyed snapshot, in order.

    Raises:
        RaftLogError: the file was deleted or changed after the survey, or a codec is not installed.
    """
    with open_source(snapshot.task.path) as source:
        for piece in split(source):
            if isinstance(piece, RecordBatch) and not piece.is_control:
                for record in piece.records(check_crc=False):
                    yield StoredValue(record.offset, _bytes(record.key), _bytes(record.value))


def by_contents(files: Iterable[FileEvidence], read: ContentReader) -> list[list[FileEvidence]]:
    """Divide snapshots by their data records, in whatever order these are."""
    groups: list[list[FileEvidence]] = []
    for file in files:
        group = next((each for each in groups if first_difference(file, each[0], read) is None), None)
        if group is None:
            groups.append([file])
        else:
            group.append(file)
    return groups


def first_difference(mine: FileEvidence, theirs: FileEvidence, read: ContentReader) -> str | None:
    """Describe the first record that one snapshot has and the other has not, in whatever order they are.

    Nodes write one state in different orders. Records of a snapshot that cannot be read again are not compared.

    Returns:
        What differs, from the side of the first snapshot; None if nothing does.
    """
    if mine.batches_digest == theirs.batches_digest:
        return None
    try:
        left = Counter((each.key, each.value) for each in read(theirs))
        for each in read(mine):
            if not left[each.key, each.value]:
                return f"the {record_name(each.value)} at offset {each.offset} is not in"
            left[each.key, each.value] -= 1
    except (RaftLogError, OSError):
        return None
    lacking = next((value for (_, value), count in left.items() if count > 0), None)
    return None if not any(left.values()) else f"it lacks a {record_name(lacking)} of"


def record_name(value: bytes | None) -> str:
    """Return the type of a metadata record with what it is about; ``record`` if it is none.

    Its fields are left out: some are secrets.
    """
    from raftlog.records.messages.metadata import read_metadata_record  # Slow to import, and rarely needed.
    from raftlog.tools.auditing.contents.record_subjects import subject_of, subject_text

    try:
        record = read_metadata_record(value)
    except RaftLogError:
        return "record"
    about = subject_text(*subject_of(record.type_name, record.message), {})
    return f"{record.type_name} of {about}" if about else record.type_name


def _bytes(field: Iterable[int] | None) -> bytes | None:
    return None if field is None else bytes(field)
