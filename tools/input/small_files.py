# SPDX-License-Identifier: Apache-2.0
"""The contents of the small files beside a log, as JSON values."""

import uuid
from collections.abc import Callable
from typing import Any, Final

import attrs

from raftlog.records.files.checkpoint_files import read_leader_epoch_checkpoint, read_offset_checkpoint
from raftlog.records.files.file_names import FileKind
from raftlog.records.files.property_files import read_meta_properties, read_partition_metadata
from raftlog.records.files.quorum_state import read_quorum_state
from raftlog.uuid_text import uuid_to_text


def small_file_contents(kind: FileKind, data: bytes) -> dict[str, Any]:
    """Return the contents of a file of one of ``READABLE_KINDS``: its fields, or ``entries``.

    Raises:
        DecodeError: it breaks its format.
    """
    return _READERS[kind](data)


def plain(value: Any) -> Any:
    """Convert a value of a small file to JSON values."""
    if attrs.has(type(value)):
        return {name.lstrip("_"): plain(item) for name, item in attrs.asdict(value, recurse=False).items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return uuid_to_text(value) if isinstance(value, uuid.UUID) else value


def _entries_of(read: Callable[[bytes], Any]) -> Callable[[bytes], dict[str, Any]]:
    return lambda data: {"entries": plain(read(data))}


def _members_of(read: Callable[[bytes], Any]) -> Callable[[bytes], dict[str, Any]]:
    return lambda data: dict(plain(read(data)))


_READERS: Final[dict[FileKind, Callable[[bytes], dict[str, Any]]]] = {
    FileKind.LEADER_EPOCH_CHECKPOINT: _entries_of(read_leader_epoch_checkpoint),
    FileKind.RECOVERY_POINT_CHECKPOINT: _entries_of(read_offset_checkpoint),
    FileKind.LOG_START_OFFSET_CHECKPOINT: _entries_of(read_offset_checkpoint),
    FileKind.REPLICATION_OFFSET_CHECKPOINT: _entries_of(read_offset_checkpoint),
    FileKind.QUORUM_STATE: _members_of(read_quorum_state),
    FileKind.META_PROPERTIES: _members_of(read_meta_properties),
    FileKind.PARTITION_METADATA: _members_of(read_partition_metadata),
}

READABLE_KINDS: Final = frozenset(_READERS)
"""Kinds that ``dump-log`` prints; only the existence of ``.lock`` and ``.kafka_cleanshutdown`` has a meaning."""
