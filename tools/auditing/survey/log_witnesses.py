# SPDX-License-Identifier: Apache-2.0
"""Recognises files that show how far a log once reached, for logs whose segments are missing."""

from typing import Final

from raftlog.records.files.file_names import FileKind, FileState
from raftlog.storage.recovery.recovery_point import FLUSH_MARK_NAME, RECOVERY_POINT_NAME

_WITNESS_KINDS: Final = frozenset({FileKind.PRODUCER_SNAPSHOT, FileKind.SNAPSHOT, FileKind.LEADER_EPOCH_CHECKPOINT})
_WITNESS_NAMES: Final = frozenset({RECOVERY_POINT_NAME, FLUSH_MARK_NAME})


def is_witness(name: str, kind: FileKind | None, state: FileState) -> bool:
    """Whether a file may show how far a log once reached."""
    return state is FileState.CURRENT and (kind in _WITNESS_KINDS or name in _WITNESS_NAMES)
