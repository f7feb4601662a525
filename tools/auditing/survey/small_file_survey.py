# SPDX-License-Identifier: Apache-2.0
"""Surveys the small files of a log, and reports files that are left over."""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import attrs

from raftlog.errors import DecodeError
from raftlog.file_paths import name_of
from raftlog.records.files.checkpoint_files import read_offset_checkpoint
from raftlog.records.files.file_names import METADATA_TOPIC, OFFSET_CHECKPOINTS, FileKind, FileState
from raftlog.records.files.producer_snapshot import read_producer_snapshot
from raftlog.storage.recovery.recovery_point import (
    FLUSH_MARK_NAME,
    RECOVERY_POINT_NAME,
    read_flush_marks,
    read_recovery_point,
)
from raftlog.storage.state.log_directory import METADATA_TOPIC_ID
from raftlog.storage.state.quorum_state_store import COPY_NAMES, RESERVE_NAME, read_quorum_state_copy
from raftlog.tools.auditing.evidence import EpochSeen, FileEvidence, SurveyTask
from raftlog.tools.auditing.finding_limit import FindingLimit
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.input.inputs import LARGEST_SMALL_FILE_BYTES
from raftlog.tools.input.small_files import READABLE_KINDS, plain, small_file_contents
from raftlog.uuid_text import uuid_to_text

_Contents = dict[str, Any]

_LEFT_OVER: Final = {
    FileState.DELETED: "it was deleted, and will be removed after a minute or at the next startup",
    FileState.CLEANED: "compaction was writing it; the next startup removes it",
    FileState.SWAP: "compaction has finished it; the next startup puts it in place",
    FileState.PART: "it was being written; the next startup removes it",
    FileState.TEMPORARY: "it was being written; the next write replaces it",
}
_SET_ASIDE: Final = re.compile(r".+\.(damaged|torn|superseded)-[0-9-]+(?:\.tmp)?")
_SET_ASIDE_BYTES: Final = {
    "damaged": "damaged bytes",
    "torn": "the torn tail of a log after a crash",
    "superseded": "records that a newer snapshot replaced",
}
_SILENT_KINDS: Final = frozenset({FileKind.LOCK, FileKind.CLEAN_SHUTDOWN})
"""Kinds of files whose contents do not matter, only their presence."""


def file_name(task: SurveyTask) -> str:
    """Return the name of a task's file, without its directory."""
    return name_of(task.path)


def has_contents(task: SurveyTask) -> bool:
    """Whether the contents of a small file matter, and not only its name."""
    return task.state is FileState.CURRENT and _reader(task) is not None


def survey_small_file(task: SurveyTask, data: bytes) -> FileEvidence:
    """Return the contents of a file without batches, and its findings.

    The contents are those that ``dump-log --format jsonl`` prints. A producer snapshot has ``entries``, each with the
    ``first_sequence`` of its newest batch. Raftlog's own files have the fields that their modules name; the copies of
    quorum-state have the fields of quorum-state, and ``sequence`` and ``is_vote_lost``; the flush mark has ``marks``.

    Args:
        task: the file.
        data: its bytes; at least ``LARGEST_SMALL_FILE_BYTES + 1`` of them if it is larger than that limit.
    """
    name = file_name(task)
    if task.state is not FileState.CURRENT:
        rule = "snapshot-unfinished" if task.state is FileState.PART else "file-left-over"
        return _with_finding(task, rule, _LEFT_OVER[task.state])
    read = _reader(task)
    if read is None:
        return FileEvidence(task, _findings_of_other_file(task, name))
    if len(data) > LARGEST_SMALL_FILE_BYTES:
        reason = f"more than {LARGEST_SMALL_FILE_BYTES} bytes, which no such file has"
        return _with_finding(task, "file-format", reason, 0)
    try:
        contents = read(data)
    except DecodeError as error:
        return FileEvidence(task, (Finding.of_error(error, task.path),))
    limit = FindingLimit(task.path)
    limit.extend(_findings_of_contents(task, name, contents, data))
    return FileEvidence(task, limit.findings(), epochs=_epochs(task, contents), contents=contents)


def _with_finding(task: SurveyTask, rule: str, reason: str, position: int | None = None) -> FileEvidence:
    return FileEvidence(task, (Finding(task.path, rule, reason, position),))


def _findings_of_other_file(task: SurveyTask, name: str) -> tuple[Finding, ...]:
    """Report a file that is judged by its name, if it is left over or unknown."""
    if task.kind in _SILENT_KINDS:
        return ()
    if aside := _SET_ASIDE.fullmatch(name):
        return (Finding(task.path, "file-left-over", f"raftlog has set {_SET_ASIDE_BYTES[aside[1]]} aside here"),)
    if name.removesuffix(FileState.TEMPORARY.value) in {*_RAFTLOG_READERS, RESERVE_NAME}:
        is_reserve = name == RESERVE_NAME
        reason = _LEFT_OVER[FileState.TEMPORARY]
        return () if is_reserve else (Finding(task.path, "file-left-over", reason),)
    return (Finding(task.path, "file-unknown", "it is not a file of Kafka or raftlog"),)


def _findings_of_contents(task: SurveyTask, name: str, contents: _Contents, data: bytes) -> Iterator[Finding]:
    match task.kind:
        case FileKind.LEADER_EPOCH_CHECKPOINT:
            yield from _order_of_epochs(task, contents["entries"], data)
        case FileKind.META_PROPERTIES:
            if (contents["node_id"] or 0) < 0:
                reason = f"node.id {contents['node_id']} is negative"
                yield Finding(task.path, "file-format", reason, max(0, data.find(b"node.id")))
        case FileKind.PARTITION_METADATA:
            wanted = uuid_to_text(METADATA_TOPIC_ID)
            if task.place.topic == METADATA_TOPIC and contents["topic_id"] != wanted:
                reason = f"the topic id is {contents['topic_id']}, but that of {METADATA_TOPIC} is {wanted}"
                yield Finding(task.path, "topic-id", reason, data.find(b"topic_id"))
            if contents["version"] != 0:
                reason = f"version {contents['version']}, but the only version is 0"
                yield Finding(task.path, "file-format", reason, 0)
        case kind if kind in OFFSET_CHECKPOINTS:
            yield from _negative_offsets(task, contents["entries"], data)
            yield from _named_twice(task, contents["entries"], data)
        case None if name == FLUSH_MARK_NAME:
            for position, mark in read_flush_marks(data).items():
                if mark is None:
                    yield Finding(task.path, "file-crc", "a mark that is torn or damaged", position)


def _negative_offsets(task: SurveyTask, entries: list[dict[str, Any]], data: bytes) -> Iterator[Finding]:
    """Report offsets that no log can have, although Kafka reads them."""
    for position, entry in zip(_entry_positions(data), entries, strict=False):
        if entry["offset"] < 0:
            reason = f"offset {entry['offset']} of {entry['topic']}-{entry['partition']} is negative"
            yield Finding(task.path, "file-format", reason, position)


def _named_twice(task: SurveyTask, entries: list[dict[str, Any]], data: bytes) -> Iterator[Finding]:
    """Report partitions that are named again, of which Kafka takes the last offset."""
    seen: dict[tuple[str, int], int] = {}
    for position, entry in zip(_entry_positions(data), entries, strict=False):
        name = entry["topic"], entry["partition"]
        if name in seen:
            reason = f"{name[0]}-{name[1]} has offset {entry['offset']} here, and {seen[name]} before"
            yield Finding(task.path, "file-format", reason, position)
        seen[name] = entry["offset"]


def _entry_positions(data: bytes) -> list[int]:
    """Return the positions of the lines of a checkpoint's entries, which follow those of its version and count."""
    return list(itertools.accumulate(map(len, data.splitlines(keepends=True))))[1:]


def _order_of_epochs(task: SurveyTask, entries: list[dict[str, int]], data: bytes) -> Iterator[Finding]:
    """Report the entries that break an increasing order."""
    positions = _entry_positions(data)
    for index in _out_of_order([(entry["epoch"], entry["start_offset"]) for entry in entries]):
        epoch, start_offset = entries[index]["epoch"], entries[index]["start_offset"]
        beside = (*entries[max(0, index - 1) : index], *entries[index + 1 : index + 2])
        others = " and ".join(f"epoch {each['epoch']} at {each['start_offset']}" for each in beside)
        reason = f"epoch {epoch} at offset {start_offset} is not in order next to {others}"
        yield Finding(task.path, "epochs-order", reason, positions[index], offset=start_offset, epoch=epoch)


def _out_of_order(entries: Sequence[tuple[int, int]]) -> Iterator[int]:
    """Yield the indexes of entries that break the order: of two that contradict each other, the more contradicted."""
    kept: list[int] = []
    for index, entry in enumerate(entries):
        before = [entries[each] for each in kept[-2:]]
        if not before or _increases(before[-1], entry):
            kept.append(index)
            continue
        following = entries[index + 1 : index + 2]
        fits_without_last = len(before) < 2 or _increases(before[0], entry)
        if following and fits_without_last and not _increases(before[-1], following[0]):
            yield kept.pop()
            kept.append(index)
        else:
            yield index


def _increases(before: tuple[int, int], after: tuple[int, int]) -> bool:
    return before[0] < after[0] and before[1] < after[1]


def _epochs(task: SurveyTask, contents: _Contents) -> tuple[EpochSeen, ...]:
    if task.kind is not FileKind.LEADER_EPOCH_CHECKPOINT:
        return ()
    return tuple(EpochSeen(entry["epoch"], entry["start_offset"]) for entry in contents["entries"])


def _reader(task: SurveyTask) -> Callable[[bytes], _Contents] | None:
    kind = task.kind
    if kind is None:
        return _RAFTLOG_READERS.get(file_name(task))
    if kind in READABLE_KINDS:
        return lambda data: small_file_contents(kind, data)
    return _OTHER_READERS.get(kind)


def _cleaner_checkpoint(data: bytes) -> _Contents:
    return {"entries": plain(read_offset_checkpoint(data))}


def _producer_snapshot(data: bytes) -> _Contents:
    entries = read_producer_snapshot(data, allow_trailing_bytes=True)
    return {"entries": [plain(entry) | {"first_sequence": entry.first_sequence} for entry in entries]}


def _quorum_state_copy(data: bytes) -> _Contents:
    copy = read_quorum_state_copy(data)
    members: _Contents = plain(copy.state)
    return members | {"sequence": copy.sequence, "is_vote_lost": copy.is_vote_lost}


def _recovery_point(data: bytes) -> _Contents:
    return dict(plain(read_recovery_point(data)))


def _flush_mark(data: bytes) -> _Contents:
    return {"marks": [attrs.asdict(mark) for mark in read_flush_marks(data).values() if mark is not None]}


_OTHER_READERS: Final[dict[FileKind, Callable[[bytes], _Contents]]] = {
    FileKind.PRODUCER_SNAPSHOT: _producer_snapshot,
    FileKind.CLEANER_OFFSET_CHECKPOINT: _cleaner_checkpoint,
}
_RAFTLOG_READERS: Final[dict[str, Callable[[bytes], _Contents]]] = {
    **dict.fromkeys(COPY_NAMES, _quorum_state_copy),
    RECOVERY_POINT_NAME: _recovery_point,
    FLUSH_MARK_NAME: _flush_mark,
}
