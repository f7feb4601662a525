# SPDX-License-Identifier: Apache-2.0
"""Checks that Kafka's own metadata log sets metadata.version, without which no controller starts.

A log is Kafka's if its ``bootstrap.checkpoint``, which has the records that the first leader writes to an empty log,
sets metadata.version. Logs of other state machines have no such file, or it does not set metadata.version.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from raftlog.errors import DecodeError, MissingExtraError
from raftlog.records.batches.batch import CONTROL_FLAG, RecordBatch
from raftlog.records.batches.iterator import split
from raftlog.records.files.file_names import FileKind
from raftlog.snapshot.paths import BOOTSTRAP_SNAPSHOT_ID
from raftlog.storage.reading.file_source import FileSource
from raftlog.tools.auditing.batches.batch_table import BatchTable
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence, SurveyTask
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.payloads.format_features import VERSION_RECORD_START

_CODEC: Final = 7
_find: Final = re.compile(re.escape(VERSION_RECORD_START), re.DOTALL).search


def may_set_version(task: SurveyTask) -> bool:
    """Whether metadata.version should be set in a file: the first segment, or a snapshot.

    Only beside ``bootstrap.checkpoint``, because searching a whole log takes as long as the rest of its audit.
    """
    if task.kind is FileKind.BOOTSTRAP_SNAPSHOT:
        return True
    is_first = task.kind is FileKind.LOG and task.base_offset == 0
    is_snapshot = task.kind is FileKind.SNAPSHOT and task.snapshot_id != BOOTSTRAP_SNAPSHOT_ID
    return task.is_raft and task.has_bootstrap and (is_first or is_snapshot)


class VersionSearch:
    """Searches for a record that sets metadata.version, until it has found one.

    Attributes:
        found: whether there was one; None as long as there was no data record.
    """

    def __init__(self) -> None:
        self.found: bool | None = None

    def take(self, table: BatchTable) -> None:
        """Search the next batches. A batch that cannot be decompressed counts as one that may set it."""
        if self.found or (table.all_attributes & CONTROL_FLAG and table.are_control.all()):
            return
        self.found = False
        # Usually all bytes at once: single batches are searched only if the bytes of all have a match.
        may_set = _find(table.run.data) is not None
        if may_set or table.may_be_compressed:
            candidates = ~table.are_control if may_set else ~table.are_control & (table.attributes & _CODEC != 0)
            self.found = any(_sets_version(table.run.batch(row)) for row in candidates.nonzero()[0].tolist())


def _sets_version(batch: RecordBatch) -> bool:
    """Whether a batch contains the bytes that set it, without a check that they are the whole value of a record."""
    try:
        area = batch.record_area() if batch.attributes & _CODEC else batch.buffer
    except (DecodeError, MissingExtraError):
        return True
    return _find(area) is not None


@attrs.frozen
class PartOfFile:
    """A part of a file of batches.

    Attributes:
        path: of the file.
        position, end_position: inclusive and exclusive; None stands for the end of the file.
    """

    path: str
    position: int = 0
    end_position: int | None = None


def any_sets_version(parts: Iterable[PartOfFile]) -> bool:
    """Whether a sound batch in some parts of segments or snapshots sets metadata.version. Reading ends where one does.

    Raises:
        StorageError: a file cannot be read.
    """
    return any(map(_sets_version, _data_batches(parts)))


def _data_batches(parts: Iterable[PartOfFile]) -> Iterator[RecordBatch]:
    for part in parts:
        with FileSource(part.path) as source:
            for piece in split(source, start=part.position, stop=part.end_position):
                if isinstance(piece, RecordBatch) and not piece.is_control:
                    yield piece


def judge_version(partition: PartitionEvidence, directory: PartitionEvidence | None) -> Iterator[Finding]:
    """Report that ``bootstrap.checkpoint`` sets metadata.version, but neither the log nor its snapshots do.

    Nothing is reported if the file or the log is damaged, since the record may have been there.

    Args:
        partition: all files of a partition.
        directory: the files of its log directory itself; None if that is not audited as a whole.

    Source: ActivationRecordsGenerator, FeaturesImage.
    """
    bootstrap = None if directory is None else directory.small_file(FileKind.BOOTSTRAP_SNAPSHOT)
    if bootstrap is None or not bootstrap.sets_metadata_version:
        return
    looked_at = [file for file in partition.files if file.sets_metadata_version is not None]
    if looked_at and not any(file.sets_metadata_version or _is_damaged(file) for file in looked_at):
        path = looked_at[-1].task.path
        reason = "it has records, but none that sets metadata.version, as bootstrap.checkpoint does"
        yield Finding(path, "metadata-version-missing", f"{reason}: Kafka does not start on this log")


def _is_damaged(file: FileEvidence) -> bool:
    return file.coverage is not None and file.coverage.damaged_bytes > 0
