# SPDX-License-Identifier: Apache-2.0
"""A follower says what becomes of a log, each thing once, whatever a writer does between looks and during them."""

from collections.abc import Sequence
from random import Random
from typing import Any, cast

import pytest

from raftlog.offsets import OffsetAndEpoch
from raftlog.tools.follow.follower import FollowStart, LogFollower
from raftlog.tools.follow.log_files import LogFiles
from tests.tools.follow.followed_log import Line, ModelFollower, WrittenLog, drained, lines_of, some_step


def check_history(seed: int) -> int:
    """Follow one random history, with looks between the writer's steps, and return how many lines there were."""
    random = Random(seed)
    log, model = WrittenLog(segments={random.choice((0, 0, 9)): []}), ModelFollower()
    follower = LogFollower(log)
    count = 0
    for _ in range(random.randint(3, 8)):
        for _ in range(random.choice((0, 1, 1, 1, 2, 3, 8))):
            some_step(log, random)
        lines = drained(follower)
        assert lines == model.look(log), f"history {seed}"
        count += len(lines)
    return count


@pytest.mark.parametrize(
    "histories", [pytest.param(3_000, marks=pytest.mark.slow), pytest.param(10_000, marks=pytest.mark.volume)]
)
def test_many_histories(histories: int) -> None:
    """Random histories of a writer give exactly the lines that a model says, each once."""
    assert sum(map(check_history, range(histories))) > 5 * histories


def test_histories() -> None:
    """Some more of these histories."""
    assert sum(map(check_history, range(10_000, 10_300))) > 1500


def folded(lines: Sequence[Line]) -> tuple[list[Line], int | None]:
    """Return the batches that a reader of the lines believes to be in the log, and the offset that it expects next.

    A batch must be the next one; what a truncation names is dropped, and what is skipped is not expected any more.
    """
    held: list[Line] = []
    expected: int | None = None
    for event, offset, end, more in lines:
        if event == "batch":
            assert expected in (None, offset)
            held.append((event, offset, end, more))
            expected = more
        elif event == "truncated":
            assert expected in (None, end)
            assert offset < end
            held = [each for each in held if each[1] < offset]
            expected = offset
        elif event == "skipped":
            assert expected in (None, offset)
            assert offset < end
            expected = end
        else:
            assert event == "waiting"
    return held, expected


def check_busy_history(seed: int) -> int:
    """Follow a log whose writer works during the looks, too, and return how many lines there were."""
    random = Random(seed)
    log = WrittenLog(segments={random.choice((0, 0, 9)): []})
    follower = LogFollower(log, limit=random.choice((1, 2, 5, 1000)))
    left, rate = random.randint(0, 30), random.choice((0.05, 0.2, 0.5, 1.0))

    def write() -> None:
        nonlocal left
        while left > 0 and random.random() < rate:
            left -= 1
            some_step(log, random)

    log.before_read = write
    lines: list[Line] = []
    while left > 0:
        lines += [line for item in follower.look().items for line in lines_of(item)]
    log.before_read = lambda: None
    log.is_there = True
    lines += drained(follower)
    held, expected = folded(lines)
    first = min(log.segments)
    assert [each for each in held if each[1] >= first] == [each.line for each in log.batches], f"history {seed}"
    assert expected in (None, log.end_offset)
    return len(lines)


@pytest.mark.slow
def test_many_busy_writers() -> None:
    """Whenever a writer works, applying all lines in order gives the log in the end, with each batch once."""
    assert sum(map(check_busy_history, range(5000))) > 30_000


def test_busy_writers() -> None:
    """Some more of these writers."""
    assert sum(map(check_busy_history, range(5000, 5300))) > 1500


def written(*counts: int) -> WrittenLog:
    """Return a log with a segment per number, each with so many batches of one record."""
    log = WrittenLog()
    for count in counts:
        log.roll()
        for _ in range(count):
            log.append()
    return log


def batches(first: int, end: int, epoch: int = 1) -> list[Line]:
    """Return the lines of batches of one record."""
    return [("batch", offset, epoch, offset + 1) for offset in range(first, end)]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (FollowStart(), 0),
        (FollowStart(before_end=0), 12),
        (FollowStart(before_end=1), 11),
        (FollowStart(before_end=5), 7),
        (FollowStart(before_end=12), 0),
        (FollowStart(before_end=13), 0),
    ],
)
def test_a_start_that_is_counted_from_the_end(start: FollowStart, expected: int) -> None:
    """Batches before the start are not returned, later ones are, also after a truncation before the start."""
    log = written(5, 5, 2)
    follower = LogFollower(log, start)
    assert drained(follower) == batches(expected, 12)
    log.append()
    assert drained(follower) == batches(12, 13)
    log.truncate(3)
    log.append()
    assert drained(follower) == [("truncated", 3, 13, None), *batches(3, 4, 2)]


@pytest.mark.parametrize("offset", [0, 4, 5, 6, 11, 12, 13])
def test_a_start_at_an_offset(offset: int) -> None:
    """Reading starts at the batch that has the offset, or at the last one before it."""
    log = written(5, 5, 2)
    assert drained(LogFollower(log, FollowStart(offset))) == batches(min(offset, 11), 12)


def test_the_end_of_a_log_that_is_not_there_yet() -> None:
    """If there is no log at the first look, all of it is new."""
    log = written(2)
    log.is_there = False
    follower = LogFollower(log, FollowStart(before_end=0))
    assert drained(follower) == [("waiting", None, None, None)]
    log.is_there = True
    assert drained(follower) == batches(0, 2)


def test_growth_again_to_the_same_size_is_noticed() -> None:
    """After a truncation with regrowth between two looks, files have the same sizes, and other epochs."""
    log = written(3)
    follower = LogFollower(log)
    drained(follower)
    sizes = len(log.data(0))
    log.truncate(1)
    log.append()
    log.append()
    assert len(log.data(0)) == sizes
    assert drained(follower) == [("truncated", 1, 3, None), *batches(1, 3, 2)]


def test_a_forgotten_batch_that_is_truncated_is_reported_from_the_start() -> None:
    """If no remembered batch is left, all that was printed is void, and printed again as far as it is there."""
    log = written(9)
    follower = LogFollower(log, limit=2)
    drained(follower)
    log.truncate(4)
    assert drained(follower) == [("truncated", 0, 9, None), *batches(0, 4)]


def test_a_snapshot_of_the_same_lineage_keeps_what_is_before_it() -> None:
    """A log that begins anew at a snapshot keeps what was printed before it, if the snapshot's epoch is that of the
    record there, and else loses all of it.
    """
    for epoch, first in ((1, 3), (2, 0)):
        log = written(5)
        follower = LogFollower(log)
        drained(follower)
        log.restart_at(3, epoch)
        gap = [("skipped", 0, 3, OffsetAndEpoch(3, 2))] if first == 0 else []
        assert drained(follower) == [("truncated", first, 5, None), *gap]


@pytest.mark.parametrize(("offset", "first"), [(None, 0), (2, 2), (85, 85)])
def test_a_log_that_is_replaced_by_one_that_starts_lower(offset: int | None, first: int) -> None:
    """If a topic is deleted and made anew, all that the new log has is new, from the offset that was asked for on."""
    log = WrittenLog(segments={81: []})
    for _ in range(9):
        log.append()
    follower = LogFollower(log, FollowStart(offset))
    drained(follower)
    log.recreate_at(0)
    for _ in range(4):
        log.append()
    assert drained(follower)[:1] == [("truncated", first, 90, None)]
    log.append()
    lines = drained(follower)
    assert lines == batches(4, 5, 2)
    assert follower.next_offset == 5


def test_the_offsets_that_notices_name() -> None:
    """No notice names an offset below the start that was asked for."""
    log = written(5)
    follower = LogFollower(log, FollowStart(50))
    drained(follower)
    log.truncate(3)
    assert drained(follower) == []
    log.restart_at(40, 2)
    assert drained(follower) == []
    log.restart_at(60, 2)
    assert drained(follower) == [("skipped", 50, 60, OffsetAndEpoch(60, 2))]


def test_listings_while_catching_up() -> None:
    """A log of many segments is not listed anew for each of them."""
    log = written(*[1] * 50)
    listings: list[None] = []
    listed = log.listed

    class Counted:
        def __getattr__(self, name: str) -> Any:
            return getattr(log, name)

        def listed(self) -> Any:
            listings.append(None)
            return listed()

    assert drained(LogFollower(cast("LogFiles", Counted()))) == batches(0, 50)
    assert len(listings) < 8


def test_what_was_searched_is_not_searched_again() -> None:
    """While damage or zeros at the end stay as they are, a look reads headers only."""
    log = written(3)
    last = log.segments[0].pop()
    log.torn = (last.data[:62] + bytes(len(last.data) - 62), len(last.data))
    log.zeros = 3 * 1024 * 1024
    follower = LogFollower(log)
    drained(follower)
    log.torn = None
    log.zeros -= 1
    log.zeros += 1
    drained(follower)
    follower.look()
    reads: list[int] = []
    log.reads = reads
    assert not follower.look().has_moved
    assert sum(reads) < 100_000


def test_a_torn_tail_is_no_damage_until_the_end() -> None:
    """A part of a batch is not returned as long as it may grow; a last look returns it as torn, once."""
    log = written(1)
    follower = LogFollower(log)
    assert drained(follower) == batches(0, 1)
    log.begin_batch(30)
    assert drained(follower) == []
    look = follower.look(is_last=True)
    (torn,) = [line for item in look.items for line in lines_of(item)]
    assert torn == ("tail-torn", len(log.segments[0][0].data), 30, None)
    assert not follower.look(is_last=True).has_moved
    log.end_batch()
    log.append()
    # What was taken for torn was no batch; the bytes there have changed, so that they are read again.
    assert drained(follower)[-1] == ("batch", 2, 1, 3)


def test_a_batch_that_is_cut_after_it_was_printed() -> None:
    """If a crash takes the end of a batch that was printed, the batch is gone, although its header is in place."""
    log = written(2)
    follower = LogFollower(log)
    drained(follower)
    last = log.segments[0].pop()
    log.torn = (last.data, len(last.data) - 2)
    assert drained(follower) == [("truncated", 1, 2, None)]
    log.end_batch()
    assert drained(follower) == batches(1, 2)


def test_a_segment_that_goes_during_a_look_leaves_no_gap() -> None:
    """If a log is truncated after it was listed, a segment of the listing is gone: no records were skipped."""
    log = written(1)
    follower = LogFollower(log)
    drained(follower)
    log.append(2)
    log.roll()
    accesses = iter(range(9))

    def write() -> None:
        if next(accesses, None) == 1:  # After the listing.
            log.truncate(1)

    log.before_read = write
    assert drained(follower) == []
    log.append(2)
    assert drained(follower) == [("batch", 1, 2, 3)]


def test_an_idle_look_reads_two_headers() -> None:
    """A look at a log that has not changed reads 61 bytes twice: those after the end, and the last batch."""
    log = written(3)
    follower = LogFollower(log)
    drained(follower)
    reads: list[int] = []
    log.reads = reads
    assert not follower.look().has_moved
    assert reads == [61, 61]
