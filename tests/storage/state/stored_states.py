# SPDX-License-Identifier: Apache-2.0
"""Election states of one epoch, and directories in which they were stored."""

import uuid

import attrs

from raftlog.file_system import replace_file
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.storage.state.quorum_state_store import COPY_NAMES, QuorumStateStore
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem

DIRECTORY_ID = uuid.UUID("01020304-0506-0708-090a-0b0c0d0e0f10")
FILES = (*COPY_NAMES, "quorum-state")
UNDECIDED = QuorumStateData(1, leader_epoch=5)
VOTED = attrs.evolve(UNDECIDED, voted_id=2, voted_directory_id=DIRECTORY_ID)
LED = attrs.evolve(UNDECIDED, leader_id=3)
NEXT_EPOCH = QuorumStateData(1, leader_epoch=6, voted_id=1, voted_directory_id=DIRECTORY_ID)


def stored(*written: QuorumStateData) -> MemoryFileSystem:
    """Return a directory in which these states were written, one after the other."""
    file_system = MemoryFileSystem()
    store = QuorumStateStore.open(file_system, ".", has_log=False)
    for state in written:
        store.write(state)
    return file_system


def put(file_system: MemoryFileSystem, name: str, data: bytes) -> None:
    """Let a file hold these bytes."""
    replace_file(file_system, f"./{name}", data)
