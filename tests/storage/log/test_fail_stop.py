# SPDX-License-Identifier: Apache-2.0
"""After a write or a sync that failed, nothing happens any more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import InvalidRecordError, MissingFileError, OutOfSpaceError, RaftLogError, StorageError
from raftlog.storage.log.fail_stop import FailStop

ERRORS: list[RaftLogError | None] = [
    None,
    InvalidRecordError("no batch"),
    OutOfSpaceError("log", "write", "no room"),
    StorageError("log", "sync", "input/output error"),
    MissingFileError("log", "open", "not there"),
]


@given(st.lists(st.sampled_from(ERRORS)))
def test_the_first_failure_is_the_last_thing_that_happens(errors: list[RaftLogError | None]) -> None:
    """Errors of a block propagate; after the first failure of the disk, every block raises that one instead."""
    guard = FailStop("log")
    failure: StorageError | None = None
    for error in errors:
        expected = error if failure is None else failure
        assert str(use(guard, error)) == str(expected)
        if failure is None and isinstance(error, StorageError) and not isinstance(error, OutOfSpaceError):
            failure = error
        assert str(guard.failure) == str(failure)


def use(guard: FailStop, error: RaftLogError | None) -> RaftLogError | None:
    """Raise an error in a block, or nothing; return what comes out."""
    try:
        with guard:
            if error is not None:
                raise error
    except RaftLogError as raised:
        return raised
    return None


def test_blocks_may_be_nested() -> None:
    """A failure inside is the failure of all blocks around it."""
    guard, failure = FailStop("log"), StorageError("log", "sync", "input/output error")
    with pytest.raises(StorageError), guard, guard:
        raise failure
    with pytest.raises(StorageError) as raised:
        guard.check()
    assert str(raised.value) == str(failure)


def test_a_closed_log_is_not_used() -> None:
    """Once it is closed, a block is not entered."""
    guard = FailStop("log")
    guard.check()
    guard.is_closed = True
    with pytest.raises(StorageError, match="the log is closed"), guard:
        raise AssertionError


@pytest.mark.parametrize("kind", [KeyboardInterrupt, MemoryError, ValueError])
def test_errors_not_of_the_log_are_failures(kind: type[BaseException]) -> None:
    """A block that was interrupted has perhaps done half of its work; what comes out of it is left as it is."""
    guard = FailStop("log")
    with pytest.raises(kind), guard:
        raise kind("x")
    with pytest.raises(StorageError, match=kind.__name__):
        guard.check()
