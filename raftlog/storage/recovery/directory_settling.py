# SPDX-License-Identifier: Apache-2.0
"""Completes or undoes the renames and removals that a crash has interrupted in a log directory.

::

    *.log.deleted, *.index.deleted ...      removed
    *.cleaned                               removed, and with it every .swap of its base offset or above
    *.swap                                  renamed to its plain name; an existing segment of that name is set aside.
                                            This includes snapshots, which Kafka never names so
    *.tmp                                   removed: the file of the plain name is complete
    *.checkpoint.part, .checkpoint.deleted  removed
    *.index, *.timeindex, *.txnindex        removed if their segment is missing

Removing these is safe: a file gets such a name because its owner decided to delete it, or before it is finished;
indexes can be rebuilt from segments.

Source: LogLoader#removeTempFilesAndCollectSwapFiles, KafkaRaftLog#recoverSnapshots.
"""

from collections.abc import Iterator
from typing import Final

from raftlog.file_system import FileSystem, join, remove_if_there
from raftlog.records.files.file_names import FileKind, FileName, FileState, parse_file_name
from raftlog.storage.recovery.recovery_point import RECOVERY_POINT_NAME
from raftlog.storage.recovery.recovery_report import ActionKind, RecoveryAction
from raftlog.storage.segments.damaged_files import is_half_copied, set_file_aside

_INDEX_KINDS: Final = frozenset({FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX})
_UNFINISHED: Final = {
    FileState.DELETED: "it was being deleted",
    FileState.CLEANED: "it was never finished",
    FileState.PART: "it was never finished",
    FileState.TEMPORARY: "it was never finished",
}


def settle_names(file_system: FileSystem, directory: str) -> Iterator[RecoveryAction]:
    """Complete or undo interrupted renames and removals; yield each action after it is done.

    None of it is durable until the directory is synced. It is idempotent.

    Raises:
        StorageError: a file could not be renamed or removed, or the directory not be read.
    """
    first_cleaned = min(
        (name.base_offset or 0 for _, name in _names(file_system, directory) if name.state is FileState.CLEANED),
        default=None,
    )
    for text, name in _names(file_system, directory):
        path = join(directory, text)
        if name.state is FileState.SWAP:
            yield from _settle_swap(file_system, path, name, first_cleaned)
        elif name.state in _UNFINISHED:
            yield _remove(file_system, path, _UNFINISHED[name.state])
    for text in file_system.list(directory):
        if _is_swapped_snapshot(text):
            yield _rename_in(file_system, join(directory, text))
        elif text == f"{RECOVERY_POINT_NAME}{FileState.TEMPORARY.value}" or is_half_copied(text):
            yield _remove(file_system, join(directory, text), _UNFINISHED[FileState.TEMPORARY])
    yield from _remove_orphans(file_system, directory)


def _settle_swap(
    file_system: FileSystem, path: str, name: FileName, first_cleaned: int | None
) -> Iterator[RecoveryAction]:
    target = path.removesuffix(FileState.SWAP.value)
    is_segment, is_there = name.kind is FileKind.LOG, file_system.exists(target)
    if first_cleaned is not None and (name.base_offset or 0) >= first_cleaned and (is_there or not is_segment):
        yield _remove(file_system, path, "the cleaning that it belongs to was never finished")
        return
    if is_segment and is_there:
        copy = set_file_aside(file_system, target)
        yield RecoveryAction(ActionKind.SET_ASIDE, target, "a .swap file replaces it", copy)
    yield _rename_in(file_system, path)


def _is_swapped_snapshot(text: str) -> bool:
    """Whether a name is that of a snapshot that an open was renaming back and forth (``rewriting``)."""
    name = parse_file_name(text.removesuffix(FileState.SWAP.value))
    is_snapshot = name is not None and name.kind is FileKind.SNAPSHOT and name.state is FileState.CURRENT
    return is_snapshot and text.endswith(FileState.SWAP.value)


def _rename_in(file_system: FileSystem, path: str) -> RecoveryAction:
    file_system.rename(path, path.removesuffix(FileState.SWAP.value))
    return RecoveryAction(ActionKind.RENAMED, path, "a rename to its plain name was interrupted")


def _remove_orphans(file_system: FileSystem, directory: str) -> Iterator[RecoveryAction]:
    names = _names(file_system, directory)
    segments = {name.base_offset for _, name in names if name.kind is FileKind.LOG}
    for text, name in names:
        if name.kind in _INDEX_KINDS and name.base_offset not in segments:
            yield _remove(file_system, join(directory, text), "its segment is missing")


def _remove(file_system: FileSystem, path: str, detail: str) -> RecoveryAction:
    remove_if_there(file_system, path)
    return RecoveryAction(ActionKind.REMOVED, path, detail)


def _names(file_system: FileSystem, directory: str) -> list[tuple[str, FileName]]:
    names = ((text, parse_file_name(text)) for text in file_system.list(directory))
    return [(text, name) for text, name in names if name is not None]
