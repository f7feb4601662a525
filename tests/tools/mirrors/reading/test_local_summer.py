# SPDX-License-Identifier: Apache-2.0
"""Logs that are read here: a source and its target at the same time, and no more."""

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from raftlog.errors import StorageError
from raftlog.tools.mirrors.reading import log_reading
from raftlog.tools.mirrors.reading.log_reading import LocalSummer
from tests.hang_limit import HANG_S

Read = Callable[[Any], Any]


def summed(requests: Iterable[Any]) -> Any:
    """What is read for some requests, which are anything here."""
    return LocalSummer().summed(requests)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Callable[[Read], None]:
    """Exchanges what reads a log."""
    return lambda read: monkeypatch.setattr(log_reading, "read_log", read)


def test_two_logs_are_read_at_a_time(reads: Callable[[Read], None]) -> None:
    """Each waits for another one that is being read; results come in order, whichever is first."""
    meeting = threading.Barrier(2, timeout=HANG_S)

    def read(request: Any) -> Any:
        meeting.wait()
        return request

    reads(read)
    assert list(summed(range(6))) == list(range(6))


@pytest.mark.parametrize("count", range(5))
def test_no_more_is_asked_for_than_is_read(count: int, reads: Callable[[Read], None]) -> None:
    """A third log is asked for once the first two were taken; a last one may be alone."""
    asked: list[int] = []

    def requests() -> Iterator[Any]:
        for number in range(count):
            asked.append(number)
            yield number

    reads(lambda request: request)
    found = summed(requests())
    for number in range(count):
        assert next(found) == number
        assert len(asked) == min(count, number // 2 * 2 + 2)
    assert next(found, None) is None


def test_a_log_that_cannot_be_read_is_told_in_its_turn(reads: Callable[[Read], None]) -> None:
    """What is before it is there."""

    def read(request: Any) -> Any:
        if request == 3:
            raise StorageError("a.log", "read", "it is gone")
        return request

    reads(read)
    found = summed(range(5))
    assert [next(found) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(StorageError, match="it is gone"):
        next(found)


def test_an_end_does_not_wait_for_what_is_read(reads: Callable[[Read], None]) -> None:
    """A caller that takes no more results, as after an interrupt, goes on at once."""
    may_end = threading.Event()

    def read(request: Any) -> Any:
        if request == 1:
            may_end.wait(HANG_S)
        return request

    reads(read)
    found = summed(range(4))
    assert next(found) == 0
    found.close()
    assert not may_end.is_set()
    may_end.set()
