# SPDX-License-Identifier: Apache-2.0
"""The files in which judging tasks pass outcomes to the driver: one per slice, read one outcome at a time."""

import pickle
from collections.abc import Iterable, Iterator

import attrs

from raftlog.errors import StorageError
from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.object_paths import OutputPath
from raftlog.tools.auditing.run.full_audit import AuditPart
from raftlog.tools.spark.audit.whole_file import whole_file


@attrs.frozen
class Outcome:
    """The outcome of judging some consecutive partitions.

    Attributes:
        part: to add to the run.
        kept: evidence that log directories are compared with; empty if there are no log directories.
        file_count: number of files judged.
    """

    part: AuditPart
    kept: tuple[PartitionEvidence, ...]
    file_count: int


def write_outcomes(folder: OutputPath, slice_number: int, outcomes: Iterable[Outcome]) -> None:
    """Write the outcomes of a slice.

    Raises:
        StorageError: the file cannot be written.
    """
    with whole_file(_path(folder, slice_number)) as part, part.open("wb") as file:
        for outcome in outcomes:
            pickle.dump(outcome, file)


def outcomes_in(folder: OutputPath, slices: Iterable[int]) -> Iterator[Outcome]:
    """Yield the outcomes of some slices.

    Raises:
        StorageError: a file cannot be read.
    """
    for slice_number in slices:
        path = _path(folder, slice_number)
        try:
            with path.open("rb") as file:
                while file.peek(1):
                    yield pickle.load(file)  # noqa: S301 - ours
        except Exception as error:  # Damaged bytes can make pickle raise anything.
            raise StorageError(str(path), "read", str(error)) from error


def _path(folder: OutputPath, slice_number: int) -> OutputPath:
    return folder / str(slice_number)
