# SPDX-License-Identifier: Apache-2.0
"""Work in three parts: memory says what the disk has done, no more, once, and on its owner's thread."""

import threading
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.disk_work import DiskStep, DiskWork, nothing
from raftlog.errors import StorageError, WorkUnderWayError

ERROR = StorageError("f", "sync", "it failed")


class Diary:
    """Steps that note what is done, and by which part."""

    def __init__(self, failing: int | None = None) -> None:
        self.lines: list[tuple[str, int]] = []
        self._failing = failing

    def step(self, number: int) -> DiskStep:
        def disk() -> int:
            if number == self._failing:
                raise ERROR
            self.lines.append(("disk", number))
            return number * 10

        def memory(outcome: int) -> None:
            assert outcome == number * 10
            self.lines.append(("memory", number))

        return DiskStep(disk, memory, (f"f{number}",), lambda _: self.lines.append(("failed", number)))

    def result(self) -> str:
        self.lines.append(("result", -1))
        return "result"

    def work(self, count: int) -> DiskWork[str]:
        end, failed = ("end", -1), ("failed", -1)
        return DiskWork(
            [self.step(number) for number in range(count)],
            self.result,
            on_end=lambda: self.lines.append(end),
            on_failure=lambda _: self.lines.append(failed),
        )


@given(st.integers(1, 5), st.integers(0, 6))
def test_memory_and_disk_agree(count: int, failing: int) -> None:
    """Steps are done in order up to the first that fails; memory's parts of just those follow, then the result."""
    diary = Diary(failing)
    work = diary.work(count)
    work.run()
    done = list(range(min(count, failing)))
    assert diary.lines == [("disk", number) for number in done]
    diary.lines.clear()
    if failing < count:
        for _ in range(2):
            with pytest.raises(StorageError) as raised:
                work.finish()
            assert str(raised.value) == str(ERROR)
        assert diary.lines == [("end", -1), *(("memory", number) for number in done), ("failed", failing)]
    else:
        assert [work.finish(), work.finish()] == ["result"] * 2
        assert diary.lines == [("end", -1), *(("memory", number) for number in done), ("result", -1)]


def test_errors_of_memory_or_the_result_are_reported_and_raised_again() -> None:
    """The first error ends the work, and goes to the caller of the step, or of the work."""

    def fail(_: object = None) -> NoReturn:
        raise ERROR

    told: list[str] = []
    in_memory = DiskWork([DiskStep(nothing, fail, on_failure=lambda _: told.append("step"))], nothing)
    in_result = DiskWork([DiskStep(nothing)], fail, on_failure=lambda _: told.append("work"))
    for work in (in_memory, in_result):
        work.run()
        for _ in range(2):
            with pytest.raises(StorageError):
                work.finish()
    assert told == ["step", "work"]


def test_work_is_finished_after_it_was_run_and_run_once() -> None:
    """Calls out of order are refused, and change nothing."""
    diary = Diary()
    work = diary.work(1)
    with pytest.raises(WorkUnderWayError):
        work.finish()
    work.run()
    with pytest.raises(WorkUnderWayError):
        work.run()
    assert diary.lines == [("disk", 0)]
    assert work.finish() == "result"
    with pytest.raises(WorkUnderWayError):
        work.run()


def test_work_that_still_runs_cannot_be_finished() -> None:
    """Nor cancelled: nothing of memory changes before the disk's part is over."""
    seen: list[object] = []

    def disk() -> None:
        with pytest.raises(WorkUnderWayError):
            work.finish()
        seen.append(work.cancel(ERROR))

    work = DiskWork([DiskStep(disk)], lambda: "result")
    assert work.complete() == "result"
    assert seen == [False]


def test_only_one_of_many_threads_runs_it() -> None:
    """The others are refused."""
    barrier, diary, refused = threading.Barrier(8), Diary(), []
    work = diary.work(1)

    def run() -> None:
        barrier.wait()
        try:
            work.run()
        except WorkUnderWayError as error:
            refused.append(error)

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(refused), diary.lines) == (7, [("disk", 0)])


def test_work_that_is_cancelled_is_never_run() -> None:
    """Finishing it raises the reason, each time."""
    diary = Diary()
    work = diary.work(1)
    assert work.cancel(ERROR)
    assert not work.cancel(KeyError())
    with pytest.raises(WorkUnderWayError):
        work.run()
    for _ in range(2):
        with pytest.raises(StorageError):
            work.finish()
    assert diary.lines == [("end", -1)]


def test_work_that_was_run_cannot_be_cancelled() -> None:
    """It is finished as ever."""
    work = Diary().work(1)
    work.run()
    assert not work.cancel(ERROR)
    assert work.finish() == "result"


def test_nothing_to_do_is_finished_at_once() -> None:
    """Work without steps need not be run."""
    work = DiskWork.done(5)
    assert (work.is_needed, work.paths, work.complete(), work.finish()) == (False, (), 5, 5)
    assert DiskWork.done(5).then(lambda value: value + 1).complete() == 6


def test_steps_are_put_before_and_after() -> None:
    """Steps are done in order; each path is named once, and the result may be converted."""
    diary = Diary()
    work = diary.work(1).precede(diary.step(1), diary.step(2)).add(diary.step(3), diary.step(1)).then(str.upper)
    assert work.paths == ("f1", "f2", "f0", "f3")
    assert work.complete() == "RESULT"
    assert [number for part, number in diary.lines if part == "disk"] == [1, 2, 0, 3, 1]


@pytest.mark.parametrize("failing", [None, 0, 1])
def test_one_work_follows_another(failing: int | None) -> None:
    """Where the first fails nothing of the second is done; both have ended in any case."""
    first, second = Diary(0 if failing == 0 else None), Diary(0 if failing == 1 else None)
    work = second.work(1).follow(first.work(1))
    assert work.paths == ("f0",)
    if failing is None:
        assert work.complete() == "result"
        assert first.lines == [("disk", 0), ("end", -1), ("memory", 0), ("result", -1)]
        assert second.lines == [("disk", 0), ("end", -1), ("memory", 0), ("result", -1)]
        return
    with pytest.raises(StorageError):
        work.complete()
    if failing == 0:
        assert (first.lines, second.lines) == ([("end", -1), ("failed", 0)], [("end", -1)])
    else:
        assert first.lines == [("disk", 0), ("end", -1), ("memory", 0), ("result", -1)]
        assert second.lines == [("end", -1), ("failed", 0)]


def test_what_follows_is_cancelled_with_it() -> None:
    """Neither is run then."""
    first, second = Diary(), Diary()
    work = second.work(1).follow(first.work(1))
    assert work.cancel(ERROR)
    assert first.lines == second.lines == [("end", -1)]


def test_work_without_steps_cannot_be_cancelled() -> None:
    """It has happened; running it does nothing. With steps that come later it can be."""
    work = DiskWork.done(5)
    assert not work.cancel(ERROR)
    work.run()
    work.run()
    assert work.finish() == 5
    diary = Diary()
    later = DiskWork.done(5).add(diary.step(1))
    assert later.cancel(ERROR)
    assert diary.lines == []


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_exception_that_ends_a_thread_propagates(end: type[BaseException]) -> None:
    """The error is raised where it occurs, and again by finishing the work."""

    def interrupted() -> None:
        raise end

    work = DiskWork([DiskStep(interrupted)], lambda: None)
    with pytest.raises(end):
        work.run()
    with pytest.raises(end):
        work.finish()
    ended: list[int] = []
    with pytest.raises(end):
        DiskWork([DiskStep(interrupted)], lambda: None, on_end=lambda: ended.append(1)).complete()
    assert ended == [1]


class OddError(Exception):
    """An error that cannot be copied."""

    def __init__(self, code: int, *, place: str) -> None:
        super().__init__(f"{code} at {place}")


def test_an_error_that_cannot_be_copied_is_raised_all_the_same() -> None:
    """Whoever finishes the work sees what has failed, and no error of the copy's."""

    def fail() -> None:
        raise OddError(5, place="x")

    work = DiskWork([DiskStep(fail)], lambda: None)
    work.run()
    for _ in range(2):
        with pytest.raises(OddError, match="5 at x"):
            work.finish()
