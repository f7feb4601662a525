# SPDX-License-Identifier: Apache-2.0
"""Bugs to plant in the log in files and its recovery, so that the simulator is seen to find them on its disks."""

from collections.abc import Iterator
from typing import Any, Final

import attrs

from raftlog.errors import StorageError
from raftlog.file_system import FileSystem
from raftlog.storage.recovery import startup
from raftlog.storage.recovery.recovery_point import DurablePoint
from raftlog.storage.state import quorum_state_store
from tests.mutants.planting import Mutant, Wrong, instead, swapped


def _without_the_end(right: Wrong) -> Wrong:
    def load_durable_point(file_system: FileSystem, directory: str) -> Any:
        stored = right(file_system, directory)
        point = stored.recovery_point
        return attrs.evolve(
            stored, marks=(), recovery_point=None if point is None else attrs.evolve(point, durable_end_offset=0)
        )

    return load_durable_point


def _without_a_sync(file_system: FileSystem, path: str, data: bytes) -> None:
    with_new_name = f"{path}.tmp"
    file = file_system.open(with_new_name, create=True)
    file.truncate(0)
    file.append(data)
    file.close()
    file_system.rename(with_new_name, path)


def _unless_there_is_something(right: Wrong) -> Wrong:
    def settle_names(file_system: FileSystem, directory: str) -> Iterator[Any]:
        found = list(right(file_system, directory))
        if found:
            raise StorageError(directory, "open", "a file that was never finished")
        return iter(found)

    return settle_names


def _missing_too_much(right: Wrong) -> Wrong:
    def read_segments(start: Any, *arguments: Any) -> Any:
        scanned, quarantine = right(start, *arguments)
        if quarantine is None:
            return scanned, None
        return scanned, attrs.evolve(quarantine, durable_end_offset=quarantine.durable_end_offset + 1000)

    return read_segments


def _bug(name: str, rule: str, plant: Any) -> Mutant:
    return Mutant(name, rule, "", plant, ())


DISKS: Final = (
    _bug("flush-without-sync", "a flush syncs the segment", instead(DurablePoint, "mark_sync", lambda *_: None)),
    _bug(
        "damage-is-torn",
        "what was durable is not a torn write",
        swapped(startup, "load_durable_point", _without_the_end),
    ),
    _bug(
        "misses-too-much",
        "a quarantine ends where the log was durable",
        swapped(startup._Recovery, "_read_segments", _missing_too_much),
    ),
    _bug(
        "vote-without-sync",
        "an election state is durable before it is used",
        instead(quorum_state_store, "replace_file", _without_a_sync),
    ),
    _bug(
        "leftovers-are-refused",
        "an open completes what a crash has interrupted",
        swapped(startup, "settle_names", _unless_there_is_something),
    ),
)
