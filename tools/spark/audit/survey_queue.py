# SPDX-License-Identifier: Apache-2.0
"""What the driver leaves for tasks: each finds the files that it is to survey by the number of its bin.

They stand in the output directory, which all see. As rows of a DataFrame they would take a shuffle to get to their
tasks, and a pass through Java.
"""

import pickle
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import attrs

from raftlog.errors import StorageError
from raftlog.tools.auditing.evidence import SurveyTask
from raftlog.tools.spark.audit.bins import bin_weights, pack, weight_of


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

    @property
    def is_own(self) -> bool:
        """Whether it is a log directory's own, and in no partition."""
        return self.slice_number == 0


Bin = Sequence[PlannedSurvey]
"""What a task of Spark's surveys."""
_MOST_FILES: Final = 50_000
"""Of those that are divided together: the driver holds them."""


class SurveyQueue:
    """Divides files among bins, and writes these; a context manager, which ends with the last file.

    Args:
        folder: for them; it is there.
        slots: how many tasks run at a time.

    Attributes:
        sizes_bytes: of the files in each bin.
        own_count: how many bins have files of log directories themselves. They come first, and have no others.
    """

    def __init__(self, folder: Path, slots: int) -> None:
        self.sizes_bytes: list[int] = []
        self.own_count = 0
        self._folder = folder
        self._slots = slots
        self._waiting: list[PlannedSurvey] = []

    @property
    def count(self) -> int:
        """How many bins there are so far."""
        return len(self.sizes_bytes)

    def add(self, planned: PlannedSurvey) -> None:
        """Take a file; those of log directories themselves before all others.

        Raises:
            StorageError: the disk failed.
        """
        waiting = self._waiting
        if waiting and (len(waiting) == _MOST_FILES or waiting[0].is_own != planned.is_own):
            self._divide()
        self._waiting.append(planned)

    def _divide(self) -> None:
        surveys, self._waiting = self._waiting, []
        weights = [weight_of(planned.task) for planned in surveys]
        for within in pack(weights, bin_weights(sum(weights), self._slots)):
            self._write([surveys[index] for index in within])
        if surveys and surveys[0].is_own:
            self.own_count = self.count

    def _write(self, surveys: Bin) -> None:
        path = _path(self._folder, self.count)
        try:
            path.write_bytes(pickle.dumps(surveys))
        except OSError as error:
            raise StorageError(str(path), "write", error.strerror or str(error)) from error
        self.sizes_bytes.append(sum(planned.task.size_bytes for planned in surveys))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self._divide()


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
    except Exception as error:  # Damage may have pickle raise anything.
        raise StorageError(str(path), "read", str(error)) from error
    return found


def _path(folder: Path, number: int) -> Path:
    return folder / str(number)
