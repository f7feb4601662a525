# SPDX-License-Identifier: Apache-2.0
"""The bins of files to survey: the driver writes one file per bin, and a task reads its bin by number.

Bins are written to the output directory, which the driver and all workers share. As rows of a DataFrame, they would
need a shuffle, and a pass through Java, to reach their tasks.
"""

import pickle
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

import attrs

from raftlog.errors import StorageError
from raftlog.tools.auditing.evidence import SurveyTask
from raftlog.tools.auditing.object_paths import OutputPath
from raftlog.tools.spark.audit.bins import bin_weights, pack, weight_of


@attrs.frozen
class PlannedSurvey:
    """A file to survey.

    Attributes:
        slice_number: of the slice that has its partition.
        number: of the file, in the order in which files were listed.
        key: of its evidence.
        task: what to survey.
    """

    slice_number: int
    number: int
    key: str
    task: SurveyTask

    @property
    def is_own(self) -> bool:
        """Whether the file is directly in a log directory, and in no partition."""
        return self.slice_number == 0


Bin = Sequence[PlannedSurvey]
"""The files that one Spark task surveys."""
_MOST_FILES: Final = 50_000
"""The most files that are divided among bins at once; the driver holds them."""


class SurveyQueue:
    """Divides files among bins, and writes the bins; a context manager, whose exit writes the last ones.

    Args:
        folder: for the bins; it must exist.
        slots: how many tasks run at a time.

    Attributes:
        sizes_bytes: of the files in each bin.
        own_count: number of bins with files of log directories themselves. These come first, and have no other files.
    """

    def __init__(self, folder: OutputPath, slots: int) -> None:
        self.sizes_bytes: list[int] = []
        self.own_count = 0
        self._folder = folder
        self._slots = slots
        self._waiting: list[PlannedSurvey] = []

    @property
    def count(self) -> int:
        """The number of bins so far."""
        return len(self.sizes_bytes)

    def add(self, planned: PlannedSurvey) -> None:
        """Add a file. Files of log directories themselves must be added before all others.

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
        except StorageError:
            raise
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


def read_bin(folder: OutputPath, number: int) -> Bin:
    """Return the bin with a number.

    Raises:
        StorageError: the bin cannot be read.
    """
    path = _path(folder, number)
    try:
        found: Bin = pickle.loads(path.read_bytes())  # noqa: S301 - ours
    except StorageError:
        raise
    except OSError as error:
        cause = f"{error.strerror or error}; driver and workers must share the output directory"
        raise StorageError(str(path), "read", cause) from error
    except Exception as error:  # Damaged bytes can make pickle raise anything.
        raise StorageError(str(path), "read", str(error)) from error
    return found


def _path(folder: OutputPath, number: int) -> OutputPath:
    return folder / str(number)
