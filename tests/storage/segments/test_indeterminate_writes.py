# SPDX-License-Identifier: Apache-2.0
"""Where something may have changed, a full disk is a disk that failed."""

import pytest

from raftlog.errors import InvalidRecordError, MissingFileError, OutOfSpaceError, RaftLogError, StorageError
from raftlog.storage.segments.indeterminate_writes import INDETERMINATE_WRITES


def test_a_full_disk_is_no_promise() -> None:
    """An error for want of room comes out as one of the disk, with its words and itself as the cause."""
    full = OutOfSpaceError("log", "sync", "no room")
    with pytest.raises(StorageError) as raised, INDETERMINATE_WRITES:
        raise full
    assert type(raised.value) is StorageError
    assert (raised.value.path, raised.value.operation, raised.value.cause) == ("log", "sync", "no room")
    assert raised.value.__cause__ is full


@pytest.mark.parametrize(
    "error",
    [StorageError("log", "sync", "input/output error"), MissingFileError("log", "open", "-"), InvalidRecordError("-")],
    ids=lambda error: type(error).__name__,
)
def test_other_errors_come_out_as_they_are(error: RaftLogError) -> None:
    """Nothing else is touched; nor is a block that ends well."""
    with pytest.raises(RaftLogError) as raised, INDETERMINATE_WRITES:
        raise error
    assert raised.value is error
    with INDETERMINATE_WRITES:
        pass
