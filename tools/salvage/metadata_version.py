# SPDX-License-Identifier: Apache-2.0
"""Looks for the record that sets metadata.version, without which no controller of Kafka 4 starts."""

from collections.abc import Iterable, Iterator

import attrs

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import split
from raftlog.storage.reading.file_source import FileSource
from raftlog.tools.auditing.survey.version_rules import sets_version


@attrs.frozen
class Part:
    """A part of a file of batches.

    Attributes:
        path: of the file.
        position, end_position: inclusive and exclusive; None stands for the end of the file.
    """

    path: str
    position: int = 0
    end_position: int | None = None


def any_sets_version(parts: Iterable[Part]) -> bool:
    """Whether a sound batch in some parts of segments or snapshots sets metadata.version. Reading ends where one does.

    Raises:
        StorageError: a file cannot be read.
    """
    return any(map(sets_version, _data_batches(parts)))


def _data_batches(parts: Iterable[Part]) -> Iterator[RecordBatch]:
    for part in parts:
        with FileSource(part.path) as source:
            for piece in split(source, start=part.position, stop=part.end_position):
                if isinstance(piece, RecordBatch) and not piece.is_control:
                    yield piece
