# SPDX-License-Identifier: Apache-2.0
"""The operations in a log's life during which tests crash the machine or fail the disk."""

from collections.abc import Callable
from typing import Final

from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.faults.log_story import LogStory, Promised, data_batch, extended, fetch, leader_batch, voters_batch

Story = Callable[[LogStory], object]


def nothing(story: LogStory) -> None:
    """An empty log."""


def some_records(story: LogStory) -> None:
    """A log of two epochs in two segments, all of it flushed, that was not closed."""
    story.append(leader_batch(1), voters_batch(1, 1, 2, 3), data_batch(1, 200))
    story.append(leader_batch(2), data_batch(2, 500), data_batch(2, 10, 3))
    story.flush()


def with_a_snapshot(story: LogStory) -> None:
    """The same with a snapshot in the middle, and more records after it."""
    some_records(story)
    story.snapshot(5)
    story.append(voters_batch(2, 1, 2, 3, 4))
    story.flush()


def with_a_torn_tail(story: LogStory) -> None:
    """The same records, followed by the first part of a batch."""
    some_records(story)
    half = data_batch(2, 700)(9)[:-100]
    story.file_system.open(story.log_path(5)).append(half)


def with_damage(story: LogStory) -> None:
    """The same records, one of them damaged, with a segment after it."""
    some_records(story)
    story.damage(3)


def with_two_snapshots(story: LogStory) -> None:
    """A log that retention finds too old."""
    with_a_snapshot(story)
    story.snapshot(11)


def append_and_flush(story: LogStory) -> None:
    story.append(data_batch(2))
    story.flush()
    story.append(data_batch(2, 20, 2))
    story.flush()


def append_a_large_batch(story: LogStory) -> None:
    story.append(data_batch(2, 1300))
    story.flush()


def append_without_flush(story: LogStory) -> None:
    story.append(data_batch(2), data_batch(2, 300), leader_batch(3), data_batch(3, 100))


def roll(story: LogStory) -> None:
    story.append(data_batch(2, 900))
    story.append(data_batch(2, 10), data_batch(2, 20))
    story.flush()


def begin_a_log(story: LogStory) -> None:
    story.append(leader_batch(1), data_batch(1))
    story.flush()
    story.log.close()


def truncate_in_a_segment(story: LogStory) -> None:
    story.truncate(6)
    story.append(leader_batch(4), data_batch(4, 30))
    story.flush()


def truncate_across_segments(story: LogStory) -> None:
    story.append(data_batch(2, 900))
    story.truncate(1)
    story.append(leader_batch(4), data_batch(4, 300))


def truncate_what_was_not_flushed(story: LogStory) -> None:
    story.append(data_batch(2), leader_batch(3))
    story.truncate(9)
    story.append(leader_batch(4))
    story.flush()


def freeze_a_snapshot(story: LogStory) -> None:
    story.snapshot(6)


def freeze_a_snapshot_of_unflushed_records(story: LogStory) -> None:
    story.append(data_batch(2, 100))
    story.snapshot(story.log.end_offset.offset)


def start_at_a_snapshot(story: LogStory) -> None:
    story.start_at(story.snapshot(9))


def start_at_the_end(story: LogStory) -> None:
    story.start_at(story.snapshot(story.log.end_offset.offset))
    story.append(data_batch(2))
    story.flush()


def install_a_snapshot(story: LogStory) -> None:
    story.install(extended(story.history, data_batch(2, 700), leader_batch(3)))
    story.append(data_batch(3, 20))
    story.flush()


def install_another_history(story: LogStory) -> None:
    story.install(extended((), leader_batch(3), voters_batch(3, 4, 5, 6), data_batch(3, 30, 20)))
    story.append(data_batch(3, 20))
    story.flush()


def install_a_shorter_history(story: LogStory) -> None:
    story.install(extended((), leader_batch(3), data_batch(3, 30)))
    story.append(data_batch(3, 20))
    story.flush()


def clean(story: LogStory) -> None:
    story.clean()


def recover(story: LogStory) -> None:
    story.append(data_batch(2, 40))
    story.flush()


def close_and_open(story: LogStory) -> None:
    story.append(data_batch(2, 40))
    story.log.close()


def repair(story: LogStory) -> None:
    story.repair()


def repair_and_go_on(story: LogStory) -> None:
    story.repair()
    story.append(data_batch(2, 20))
    story.flush()


def set_aside(story: LogStory) -> None:
    fetch(story.log, story.history[:3])


def give_up_what_is_damaged(story: LogStory) -> None:
    story.give_up(3)
    story.append(leader_batch(4), data_batch(4, 30))
    story.flush()


def give_up_more_than_that(story: LogStory) -> None:
    story.give_up(1)


def diverge_in_quarantine(story: LogStory) -> None:
    story.diverge(1)


def restart_in_quarantine(story: LogStory) -> None:
    story.install(extended(story.history, data_batch(2, 20)))


LIFE: Final[dict[str, tuple[Story, Story]]] = {
    story.__name__: (before, story)
    for before, story in (
        (nothing, begin_a_log),
        (some_records, append_and_flush),
        (some_records, append_a_large_batch),
        (some_records, append_without_flush),
        (some_records, roll),
        (some_records, truncate_in_a_segment),
        (some_records, truncate_across_segments),
        (some_records, truncate_what_was_not_flushed),
        (some_records, freeze_a_snapshot),
        (some_records, freeze_a_snapshot_of_unflushed_records),
        (with_a_snapshot, start_at_a_snapshot),
        (with_a_snapshot, start_at_the_end),
        (with_a_snapshot, install_a_snapshot),
        (with_a_snapshot, install_another_history),
        (some_records, install_a_shorter_history),
        (with_two_snapshots, clean),
        (with_a_torn_tail, recover),
        (some_records, close_and_open),
    )
}

DAMAGED_LIFE: Final[dict[str, tuple[Story, Story]]] = {
    story.__name__: (with_damage, story)
    for story in (
        repair,
        repair_and_go_on,
        set_aside,
        give_up_what_is_damaged,
        give_up_more_than_that,
        diverge_in_quarantine,
        restart_in_quarantine,
    )
}
"""What happens to a log that is damaged when it is opened."""


def lived(before: Story, file_system: MemoryFileSystem) -> Promised:
    """Let a log live on an empty disk, and return what it has promised."""
    if before is nothing:
        return Promised()
    story = LogStory(file_system, lambda value: None, Promised())
    before(story)
    return story.promised
