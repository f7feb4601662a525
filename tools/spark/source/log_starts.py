# SPDX-License-Identifier: Apache-2.0
"""Where brokers start to read logs: retention and DeleteRecords move the log start before any segment is deleted."""

import functools
from collections.abc import Mapping, Sequence
from typing import Final

from raftlog.errors import DecodeError, MissingFileError, StorageError
from raftlog.file_paths import join_path
from raftlog.records.files.checkpoint_files import read_offset_checkpoint
from raftlog.records.files.file_names import FileKind
from raftlog.storage.reading.file_source import read_file
from raftlog.tools.auditing.evidence import SurveyTask
from raftlog.tools.spark.rows.dropped import LOGGER
from raftlog.tools.spark.rows.exhaustion import is_exhaustion
from raftlog.tools.terminal.standard_error import printable, unicode_text

_LARGEST_FILE: Final = 64 * 1024 * 1024


class LogStarts:
    """The log starts in the ``log-start-offset-checkpoint`` of log directories, each read once.

    Args:
        is_used: whether the files are read at all; else no log has a start.

    Source: LogManager#loadLogs and LogLoader#load, which take the later one of this offset and the first segment's.
    """

    def __init__(self, *, is_used: bool) -> None:
        self._is_used = is_used
        self._entries = functools.cache(_entries)

    def of(self, segments: Sequence[SurveyTask]) -> int | None:
        """Return the log start of a log if it is after the first segment's base offset, else None.

        A raft log starts at its first segment. Segments that a user named one by one are read as they are.
        """
        if not self._is_used or not segments or any(each.is_raft or each.was_named for each in segments):
            return None
        place = segments[0].place
        found = self._entries(place.log_directory).get(place.topic_partition, 0)
        return found if found > (segments[0].base_offset or 0) else None


def _entries(directory: str) -> Mapping[tuple[str, int], int]:
    """Return the offsets of a file, none if there is no such file or, as in Kafka, if it cannot be read."""
    path = join_path(directory, FileKind.LOG_START_OFFSET_CHECKPOINT.value)
    try:
        entries = read_offset_checkpoint(read_file(path, _LARGEST_FILE))
    except (StorageError, DecodeError) as error:
        if isinstance(error, StorageError) and is_exhaustion(error):
            raise
        is_missing = isinstance(error, MissingFileError) or isinstance(error.__cause__, FileNotFoundError)
        if not is_missing:
            reason = printable(unicode_text(f"{path}: {error}"))
            LOGGER.warning("%s; logs are read from their first segments", reason)
        return {}
    return {(each.topic, each.partition): each.offset for each in entries}
