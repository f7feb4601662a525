# SPDX-License-Identifier: Apache-2.0
"""What judging tasks leave for the driver: a file for each slice, of which it reads one outcome at a time."""

import pickle
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

from raftlog.errors import StorageError
from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.run.full_audit import AuditPart
from raftlog.tools.spark.audit.whole_file import whole_file


@attrs.frozen
class Outcome:
    """What came of some partitions that follow each other.

    Attributes:
        part: for the run.
        kept: for what log directories are compared with; empty where there are none.
        file_count: how many files there were.
    """

    part: AuditPart
    kept: tuple[PartitionEvidence, ...]
    file_count: int


def write_outcomes(folder: Path, slice_number: int, outcomes: Iterable[Outcome]) -> None:
    """Write what came of a slice.

    Raises:
        StorageError: it cannot be written.
    """
    with whole_file(_path(folder, slice_number)) as part, part.open("wb") as file:
        for outcome in outcomes:
            pickle.dump(outcome, file)


def outcomes_in(folder: Path, slices: Iterable[int]) -> Iterator[Outcome]:
    """Yield what came of some slices.

    Raises:
        StorageError: it cannot be read.
    """
    for slice_number in slices:
        path = _path(folder, slice_number)
        try:
            with path.open("rb") as file:
                while file.peek(1):
                    yield pickle.load(file)  # noqa: S301 - ours
        except Exception as error:  # Damage may have pickle raise anything.
            raise StorageError(str(path), "read", str(error)) from error


def _path(folder: Path, slice_number: int) -> Path:
    return folder / str(slice_number)
