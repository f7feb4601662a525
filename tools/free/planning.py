# SPDX-License-Identifier: Apache-2.0
"""Puts together what may be removed from some directories, in the order in which to remove it."""

import os
from collections.abc import Sequence

from raftlog.errors import OptionError
from raftlog.records.files.file_names import FileKind, FileState
from raftlog.tools.free.disk_usage import device_of, files_below
from raftlog.tools.free.left_overs import offer_left_overs
from raftlog.tools.free.offers import Offer, Offers
from raftlog.tools.free.raft_logs import offer_covered
from raftlog.tools.free.rules import DELETED_PARTITION
from raftlog.tools.free.surveyed import SurveyedDirectories


def offers_of(surveyed: SurveyedDirectories) -> Offers:
    """Return what may be removed, and what must stay although it looks as if it might be removed.

    Raises:
        StorageError: a file or directory cannot be looked up.
    """
    offers = Offers()
    for directory in surveyed.deleted:
        if not os.path.islink(directory):  # noqa: PTH114
            offers.found.append(Offer(DELETED_PARTITION, directory, tuple(files_below(directory)), is_directory=True))
    for names in surveyed.partitions:
        log = surveyed.raft_logs.get(names.directory)
        if log is None and names.of_state(FileState.CURRENT, FileKind.QUORUM_STATE):
            offers.keep(names.directory, "the metadata log could not be judged")
            continue
        if log is None or log.damage is None:
            offer_left_overs(names, offers)
        if log is not None:
            offer_covered(log, names, offers)
    return offers


def check_one_file_system(paths: Sequence[str]) -> None:
    """Check that some directories are on one file system: otherwise, bytes that come free cannot be added up.

    Raises:
        OptionError: they are on several.
        StorageError: one cannot be looked up.
    """
    if len({device_of(path) for path in paths}) > 1:
        raise OptionError("--need", "the directories are on several file systems: give those of one")
