# SPDX-License-Identifier: Apache-2.0
"""What the driver has left for tasks: each finds the files that it is to survey by its number.

They stand in the output directory, which all see. As rows of a DataFrame they would take a shuffle to get to their
tasks, and a pass through Java.
"""

import pickle
from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs

from raftlog.errors import StorageError
from raftlog.tools.auditing.evidence import SurveyTask


@attrs.frozen
class PlannedSurvey:
    """A file that is to be surveyed.

    Attributes:
        slice_number: of the partitions that are judged by one task.
        number: of the file, in the order in which all were listed.
        key: of its evidence.
        task: what there is to survey.
    """

    slice_number: int
    number: int
    key: str
    task: SurveyTask


Bin = Sequence[PlannedSurvey]
"""What a task of Spark's surveys."""


def write_bins(folder: Path, bins: Iterable[Bin]) -> None:
    """Write a file for each bin into a folder that is not there yet.

    Raises:
        StorageError: it cannot be written.
    """
    try:
        folder.mkdir()
        for number, surveys in enumerate(bins):
            _path(folder, number).write_bytes(pickle.dumps(surveys))
    except OSError as error:
        raise StorageError(str(folder), "write", error.strerror or str(error)) from error


def read_bin(folder: Path, number: int) -> Bin:
    """Return the bin of a number.

    Raises:
        StorageError: it cannot be read.
    """
    path = _path(folder, number)
    try:
        found: Bin = pickle.loads(path.read_bytes())  # noqa: S301 - ours
    except OSError as error:
        cause = f"{error.strerror or error}; the output directory has to be one that driver and workers share"
        raise StorageError(str(path), "read", cause) from error
    return found


def _path(folder: Path, number: int) -> Path:
    return folder / str(number)
