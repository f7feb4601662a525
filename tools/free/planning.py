# SPDX-License-Identifier: Apache-2.0
"""Puts together what may be removed from some directories, in the order in which to remove it."""

import os
from collections.abc import Sequence
from typing import Final

from raftlog.errors import OptionError
from raftlog.file_paths import name_of
from raftlog.records.files.file_names import (
    METADATA_TOPIC,
    DirectoryState,
    FileKind,
    FileState,
    parse_directory_name,
)
from raftlog.tools.free.disk_usage import device_of, files_below
from raftlog.tools.free.left_overs import offer_left_overs
from raftlog.tools.free.offers import Offer, Offers
from raftlog.tools.free.raft_logs import offer_covered
from raftlog.tools.free.rules import DELETED_PARTITION
from raftlog.tools.free.surveyed import SurveyedDirectories

_NOT_IN_USE: Final = {
    DirectoryState.STRAY: "a partition that this broker should not have, which may be the last copy of its records",
    DirectoryState.FUTURE: "a partition that moves to this disk: the broker may already take it for the current one",
}
"""Why directories of partitions stay that are not in use, although they look superfluous."""


def offers_of(surveyed: SurveyedDirectories) -> Offers:
    """Return what may be removed, and what must stay although it looks as if it might be removed.

    Raises:
        StorageError: a file or directory cannot be looked up.
    """
    offers = Offers()
    for directory in surveyed.deleted:
        if _is_of_metadata(directory):
            offers.keep(directory, "a metadata log: Kafka deletes none, so this was renamed by hand")
        elif not os.path.islink(directory):  # noqa: PTH114
            offers.found.append(Offer(DELETED_PARTITION, directory, tuple(files_below(directory)), is_directory=True))
    for names in surveyed.partitions:
        if (reason := _reason_to_keep(names.directory)) is not None:
            offers.keep(names.directory, reason)
            continue
        log = surveyed.raft_logs.get(names.directory)
        is_metadata = names.of_state(FileState.CURRENT, FileKind.QUORUM_STATE) or _is_of_metadata(names.directory)
        if log is None and is_metadata:
            offers.keep(names.directory, "the metadata log could not be judged")
            continue
        if log is None or log.damage is None:
            offer_left_overs(names, offers)
        if log is not None:
            offer_covered(log, names, offers)
    return offers


def _reason_to_keep(directory: str) -> str | None:
    name = parse_directory_name(name_of(directory))
    return None if name is None else _NOT_IN_USE.get(name.state)


def _is_of_metadata(directory: str) -> bool:
    name = parse_directory_name(name_of(directory))
    return name is not None and name.topic == METADATA_TOPIC


def check_one_file_system(paths: Sequence[str]) -> None:
    """Check that some directories are on one file system: otherwise, bytes that come free cannot be added up.

    Raises:
        OptionError: they are on several.
        StorageError: one cannot be looked up.
    """
    if len({device_of(path) for path in paths}) > 1:
        raise OptionError("--need", "the directories are on several file systems: give those of one")
