# SPDX-License-Identifier: Apache-2.0
"""Restarts of a task, whose syncs retention and compaction have left in part: what is sound, and what is not."""

import random
from collections.abc import Sequence

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from raftlog.tools.mirrors.comparing import course, long_stretches
from raftlog.tools.mirrors.comparing.differences import MirrorFault as Kind
from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.comparing.lifetimes import Sync
from raftlog.tools.mirrors.comparing.pair import MadeAnew
from tests.tools.mirrors.comparing.made_histories import History, cut, made_history, numbered_source
from tests.tools.mirrors.comparing.made_mirrors import UNREADABLE, Entry, MemoryLog, Task

SEEDS = st.integers(0, 1 << 32)
SIZE = 200
END = (1 << 63) - 1


def restarted(
    end: int = 100, back: int = 0, *, skipped: int = 0, lag_max: int = 10, source: MemoryLog | None = None
) -> History:
    """A mirror of 200 records whose task was restarted after some, and then went back, or skipped some."""
    source = source or numbered_source(SIZE)
    task = Task(lag_max=lag_max)
    task.mirror(source.entries[:end])
    task.restart()
    task.mirror(source.entries[end - back + skipped :])
    origins = [*range(end), *range(end - back + skipped, SIZE)]
    return History(source, task.log(), tuple(task.syncs), origins, reads_committed=False, mirrored_end=SIZE)


def kinds(history: History) -> list[Kind]:
    """Kinds of what is found."""
    return [each.kind for each in history.compared().differences]


@given(SEEDS, st.booleans())
def test_restarts_and_retention_are_no_faults(seed: int, is_level_known: bool) -> None:
    """Whatever logs and syncs are left: records may be there again, or aborted ones left out, and nothing else."""
    history = made_history(random.Random(seed))
    if not history.syncs:
        return
    level = history.reads_committed if is_level_known else None
    found = history.compared(reads_committed=level)
    allowed = {Kind.COPIED_AGAIN, *[Kind.PASSED_OVER] * history.reads_committed}
    assert {each.kind for each in found.differences} <= allowed
    assert found.wrong_anchors == 0


@given(SEEDS, st.integers(0, 6), st.integers(1, 20), st.booleans())
@example(458, 2, 3, True)
def test_counts_add_up_whatever_repeats(seed: int, most_restarts: int, contents: int, is_level_known: bool) -> None:
    """Each record of the source counts once, and each sync, also where few contents leave open which one is which."""
    history = made_history(random.Random(seed), contents=contents, most_restarts=most_restarts)
    history.compared(reads_committed=history.reads_committed if is_level_known else None)


def of_tasks(*ranges: tuple[int, int], start: int = 0) -> History:
    """A mirror of 60 records by some tasks, of which retention has left the end, and compaction the newest sync."""
    source, task = numbered_source(60), Task(lag_max=100)
    for number, (first, end) in enumerate(ranges):
        if number:
            task.restart()
        task.mirror(source.entries[first:end])
    origins = [each for first, end in ranges for each in range(first, end)]
    return History(source, cut(task.log(), start), task.syncs[-1:], origins, reads_committed=False)


LOOPS = (
    ((0, 20), (10, 30), (15, 60)),
    ((0, 20), (10, 30), (10, 60)),
    ((0, 20), (15, 30), (10, 60)),
    (*((first, first + 10) for first in range(0, 50, 5)), (45, 60)),
    (*((0, 30),) * 4, (0, 60)),
)


@pytest.mark.parametrize("ranges", LOOPS)
@pytest.mark.parametrize("start", [0, 8, 12])
def test_a_task_that_was_restarted_often_is_no_fault(ranges: Sequence[tuple[int, int]], start: int) -> None:
    """Whatever was mirrored again, and again: the copies are counted, and nothing is foreign, damaged or lost."""
    history = of_tasks(*ranges, start=start)
    differences = history.compared().differences
    assert {each.kind for each in differences} == {Kind.COPIED_AGAIN}
    if not start:
        assert sum(each.count for each in differences) == len(history.origins) - 60


@pytest.mark.parametrize("level", [True, False, None])
@pytest.mark.parametrize("start", [0, 3])
def test_a_source_of_aborted_records_alone_is_compared(level: bool | None, start: int) -> None:
    """A task that should have left them all out, and was restarted: it is told, whatever is known of the level."""
    source, task = MemoryLog(tuple(Entry(each, 1000 + each, True) for each in range(10)), 0, 10), Task(lag_max=100)
    for _ in range(2):
        task.mirror(source.entries)
        task.restart()
    history = History(source, cut(task.log(), start), task.syncs[-1:], [], reads_committed=False)
    found = {each.kind for each in history.compared(reads_committed=level).differences}
    assert (Kind.WRONG_ANCHOR in found) == (level is True)
    assert found == {Kind.COPIED_AGAIN} or level is True


@pytest.mark.parametrize(("most", "is_explained"), [(3, False), (4, True), (5, True)])
def test_so_many_tasks_explain_what_is_there(monkeypatch: pytest.MonkeyPatch, most: int, is_explained: bool) -> None:
    """Of more, records are only foreign: nobody knows who wrote them."""
    monkeypatch.setattr(long_stretches, "MOST_TASKS", most)
    found = kinds(of_tasks(*((0, 30),) * 4, (0, 60)))
    assert (set(found) == {Kind.COPIED_AGAIN}) == is_explained


@pytest.mark.parametrize("start", [0, 5])
@pytest.mark.parametrize(
    ("ranges", "place"),
    [
        (((0, 20), (21, 60)), (20, 21)),
        (((0, 20), (25, 40), (30, 60)), (20, 25)),
        (((0, 20), (10, 25), (28, 60)), (25, 28)),
    ],
)
def test_what_no_task_has_mirrored_is_lost(
    ranges: Sequence[tuple[int, int]], place: tuple[int, int], start: int
) -> None:
    """Though a restart would explain all the rest."""
    lost = [each for each in of_tasks(*ranges, start=start).compared().differences if each.kind is Kind.LOST]
    assert [(each.source.start, each.source.end) for each in lost] == [place]


@given(SEEDS, st.data())
def test_a_change_is_told_whatever_logs_and_syncs_are_left(seed: int, data: st.DataObject) -> None:
    """A record between two whose places are known; if another copy of it is there, that is enough for the groups."""
    history = made_history(random.Random(seed), most_restarts=1)
    before = history.compared() if history.syncs else None
    if before is None or before.counts.compared < 3 or len(history.target.entries) < 3:
        return
    at = data.draw(st.integers(1, len(history.target.entries) - 2))
    origins = [history.origins[each.offset] for each in history.target.entries[at - 1 : at + 2]]
    if min(origins) < history.source.start_offset or len({*history.origins}) < len(history.origins):
        return
    changed = history.changed(at)
    (found,) = [each for each in changed.compared().differences if each.kind is not Kind.PASSED_OVER]
    assert found.kind is Kind.CHANGED
    assert (found.source.start, found.target.start) == (origins[1], history.target.entries[at].offset)


@pytest.mark.parametrize("back", [0, 1, 50])
@pytest.mark.parametrize("lag_max", [0, 10, 100, 1000])
@pytest.mark.parametrize("start", [1, 49, 51, 90, 95, 99, 100, 101, 110, 150, 199])
@pytest.mark.parametrize("is_source", [True, False])
def test_retention_beside_a_restart_is_no_loss(back: int, lag_max: int, start: int, is_source: bool) -> None:
    """The syncs of the former task, and the first one of the next, name records that are gone on one side."""
    history = restarted(100, back, lag_max=lag_max)
    if is_source:
        history = attrs.evolve(history, source=cut(history.source, start))
    else:
        history = attrs.evolve(history, target=cut(history.target, start))
    found = history.compared()
    assert {each.kind for each in found.differences} <= {Kind.COPIED_AGAIN}
    gone = 0 if is_source else history.origins[start]
    assert (found.counts.compared, found.counts.unverifiable) == (len(history.source.entries) - gone, gone)


@pytest.mark.parametrize(("skipped", "is_told"), [(20, False), (21, True), (80, True)])
def test_what_retention_removed_before_a_restart_is_passed_over(skipped: int, is_told: bool) -> None:
    """The task was down for longer than retention: the syncs on both sides of the restart show it, and nothing else."""
    history = restarted(20, skipped=skipped)
    history = attrs.evolve(
        history, source=cut(history.source, 20 + skipped), syncs=[history.syncs[0], *history.syncs[2:]]
    )
    assert [each.upstream for each in history.syncs[:2]] == [0, 20 + skipped]
    found = history.compared().differences
    assert [(each.kind, each.source, each.target.start) for each in found] == (
        [(Kind.PASSED_OVER, OffsetRange(20, 20 + skipped), 20)] if is_told else []
    )


@pytest.mark.parametrize("content", [UNREADABLE, 1])
def test_what_cannot_be_read_of_a_source_was_not_skipped_at_a_restart(content: int) -> None:
    """It was compacted away, maybe before it was mirrored, or is damaged; what can be read is lost."""
    history = restarted(100, skipped=10)
    entries = [
        attrs.evolve(each, content=content) if 100 <= each.offset < 110 else each for each in history.source.entries
    ]
    history = attrs.evolve(history, source=attrs.evolve(history.source, entries=tuple(entries)))
    is_read = content != UNREADABLE
    assert kinds(history) == [Kind.LOST] * is_read
    assert history.compared().counts.unverifiable == 10 * (not is_read)


@pytest.mark.parametrize("is_source", [True, False])
def test_what_cannot_be_read_and_was_mirrored_again_counts_once(is_source: bool) -> None:
    """Each record of the source is in one count, and no count is below 0."""
    history = restarted(50, 5)
    log = history.source if is_source else history.target
    spoiled = range(45, 50) if is_source else range(50, 55)
    entries = [attrs.evolve(each, content=UNREADABLE) if each.offset in spoiled else each for each in log.entries]
    log = attrs.evolve(log, entries=tuple(entries))
    history = attrs.evolve(history, source=log) if is_source else attrs.evolve(history, target=log)
    counts = history.compared().counts
    assert (counts.compared, counts.unverifiable) == (195, 5)


@pytest.mark.parametrize("level", [True, None])
def test_aborted_records_at_a_restart_were_not_skipped(level: bool | None) -> None:
    """They count as aborted, whether or not the isolation level is known; others between are lost."""
    entries = [attrs.evolve(each, is_aborted=100 <= each.offset < 105) for each in numbered_source(SIZE).entries]
    source = MemoryLog(tuple(entries), 0, SIZE)
    for skipped, lost in ((5, []), (8, [3])):
        history = restarted(100, skipped=skipped, source=source)
        found = history.compared(reads_committed=level)
        assert [each.count for each in found.differences] == lost
        assert (found.counts.aborted, found.counts.compared) == (5, 195)


@pytest.mark.parametrize("count", [1, 3])
def test_what_has_changed_before_a_restart_is_not_lost(count: int) -> None:
    """The last records of a task are there, with other contents: nobody else wrote them."""
    history = restarted()
    for at in range(100 - count, 100):
        history = history.changed(at)
    found = history.compared().differences
    assert {each.kind for each in found} == {Kind.CHANGED}
    assert [(each.source.start, each.target.end) for each in found][:1] == [(100 - count, 100)]
    assert sum(each.count for each in found) == count


def test_what_others_wrote_before_a_restart_that_skips_is_told_as_far_as_it_is_more() -> None:
    """Two lost records, and three of others in their place: two have changed, and one is of others."""
    source = numbered_source(SIZE)
    task = Task()
    task.mirror(source.entries[:100])
    task.target += [Entry(100 + at, 10**6 + at) for at in range(3)]
    task.next_offset += 3
    task.restart()
    task.mirror(source.entries[102:])
    history = History(source, task.log(), task.syncs, [], reads_committed=False)
    found = [(each.kind, each.source, each.target, each.count) for each in history.compared().differences]
    assert found == [
        (Kind.CHANGED, OffsetRange(100, 102), OffsetRange(100, 102), 2),
        (Kind.WRITTEN_TO, OffsetRange(102, 102), OffsetRange(102, 103), 1),
    ]


# Where logs start


@pytest.mark.parametrize(
    ("starts", "kind"),
    [
        ((0, 0), Kind.CHANGED),
        ((105, 105), Kind.CHANGED),
        ((0, 105), Kind.CHANGED),
        ((100, 105), Kind.CHANGED),
        ((105, 100), Kind.LOST),
        ((105, 0), Kind.LATE_START),
    ],
)
def test_a_change_where_logs_start_is_told(starts: tuple[int, int], kind: Kind) -> None:
    """If the target may have records from before the source's start, nothing shows which one should be there.

    A target that has all from its beginning may have begun late.
    """
    source = numbered_source(SIZE)
    task = Task()
    task.mirror(source.entries)
    at = max(starts)
    syncs = [each for each in task.syncs if each.upstream >= at + 5]
    target = cut(task.log(), starts[1])
    history = History(cut(source, starts[0]), target, syncs, [], reads_committed=False)
    (found,) = history.changed(at - starts[1]).compared().differences
    assert (found.kind, found.source) == (kind, OffsetRange(at, at + 1))


@pytest.fixture
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a thousand records be more than are told apart at a time."""
    monkeypatch.setattr(course, "MOST_ROWS", 1000)
    monkeypatch.setattr(long_stretches, "MOST_ROWS", 1000)
    monkeypatch.setattr(long_stretches, "MOST_EDITS", 40)


def mirrored(size: int) -> tuple[MemoryLog, Task]:
    """A source, and the task that has mirrored all of it."""
    source, task = numbered_source(size), Task()
    task.mirror(source.entries)
    return source, task


@pytest.mark.parametrize("place", [0, 1, 300, 900])
@pytest.mark.parametrize("starts", [(0, 0), (300, 300), (100, 300)])
@pytest.mark.usefixtures("few_rows")
def test_a_change_at_the_start_of_a_long_log_is_told(place: int, starts: tuple[int, int]) -> None:
    """Before the only sync that compaction has left are more records than are told apart at a time."""
    source, task = mirrored(3000)
    logs = cut(source, starts[0]), attrs.evolve(cut(task.log(), starts[1]), at_once=1000)
    history = History(*logs, task.syncs[-1:], [], reads_committed=False)
    at = max(starts) + place
    (found,) = history.changed(at - starts[1]).compared().differences
    assert (found.kind, found.source, found.target) == (Kind.CHANGED, OffsetRange(at, at + 1), OffsetRange(at, at + 1))


@pytest.mark.usefixtures("few_rows")
def test_what_is_not_read_of_a_long_log_is_never_clean() -> None:
    """Both logs begin otherwise for longer than is looked at: a range is named."""
    source, task = mirrored(3000)
    target = attrs.evolve(task.log(), at_once=1000)
    history = History(source, target, task.syncs[-1:], [], reads_committed=False)
    for at in range(1500):
        history = history.changed(at)
    assert any(not each.is_exact and each.kind is Kind.CHANGED for each in history.compared().differences)


# What contents and single syncs show


def test_a_log_above_all_syncs_is_compared_by_its_contents() -> None:
    """Retention has removed what all syncs name; which record is which is known by what they are."""
    history = restarted(lag_max=1000)
    history = attrs.evolve(history, source=cut(history.source, 150))
    assert history.compared().counts.compared == 50
    assert kinds(history.changed(170)) == [Kind.CHANGED]


def test_a_log_above_all_syncs_whose_records_repeat_is_not_verified() -> None:
    """Nothing shows which one is which: they are neither lost nor lag."""
    source = MemoryLog(tuple(Entry(offset, offset % 3 + 1) for offset in range(SIZE)), 0, SIZE)
    history = restarted(lag_max=1000, source=source)
    history = attrs.evolve(history, source=cut(source, 150))
    found = history.compared()
    assert (found.differences, found.counts.unverifiable, found.counts.lag) == ((), 50, 0)


def alike(log: MemoryLog, *places: int) -> MemoryLog:
    """A log with one content at some places."""
    entries = list(log.entries)
    for each in places:
        entries[each] = attrs.evolve(entries[each], content=7)
    return attrs.evolve(log, entries=tuple(entries))


def test_a_task_began_before_its_first_sync_in_both_logs() -> None:
    """A record of the source after that sync, which is the same as a former one, does not show where it went on."""
    source, task = alike(numbered_source(15), 10, 14), Task(lag_max=2)
    task.mirror(source.entries)
    task.restart()
    task.mirror(source.entries[6:14])
    history = History(cut(source, 12), task.log(), task.syncs, [], reads_committed=False)
    assert kinds(history) == [Kind.COPIED_AGAIN]


def test_the_record_of_a_sync_is_not_the_next_one() -> None:
    """A record that is the same as the one of the last sync, which the source has lost, was not mirrored yet."""
    source, task = alike(numbered_source(40), 15, 25), Task(lag_max=0)
    task.mirror(source.entries[:16])
    history = History(cut(source, 20), task.log(), task.syncs, [], reads_committed=False)
    assert kinds(history) == []


REPEATED = MemoryLog(tuple(Entry(each, each % 5) for each in range(60)), 0, 60)


def test_one_record_shows_nothing_where_records_repeat() -> None:
    """The last one that was mirrored is the same as one that was not: nothing was skipped between."""
    source, task = alike(REPEATED, 39, 50), Task(lag_max=100)
    task.mirror(source.entries[:40])
    found = History(cut(source, 45), task.log(), task.syncs, [], reads_committed=False).compared()
    assert (found.differences, found.counts.compared) == ((), 0)


@pytest.mark.parametrize(("start", "compared"), [(31, 9), (32, 8), (33, 0)])
def test_eight_records_show_where_a_task_went_on(start: int, compared: int) -> None:
    """So many in a row must be the same, where records repeat."""
    source, task = alike(REPEATED, start), Task(lag_max=100)
    task.mirror(source.entries[:40])
    found = History(cut(source, start), task.log(), task.syncs, [], reads_committed=False).compared()
    assert (found.differences, found.counts.compared) == ((), compared)


@pytest.mark.parametrize("copies", [1, 2, 3])
def test_copies_of_tasks_whose_syncs_are_gone_are_harmless(copies: int) -> None:
    """Compaction has left the newest sync: each block of copies is one finding, and no fault."""
    source = numbered_source(SIZE)
    task = Task()
    for number in range(copies + 1):
        task.mirror(source.entries[max(0, 40 * number - 7) : 40 * number + 40])
        task.restart()
    history = History(source, task.log(), task.syncs[-1:], [], reads_committed=False)
    found = history.compared().differences
    assert [(each.kind, each.count) for each in found] == [(Kind.COPIED_AGAIN, 7)] * copies
    assert [each.source.start for each in found] == [40 * number - 7 for number in range(1, copies + 1)]


@pytest.mark.parametrize("start", [25, 30])
@pytest.mark.parametrize(
    ("ranges", "copies"),
    [
        (((0, 45), (20, 60)), []),
        (((0, 45), (20, 50), (45, 60)), [(45, 50)]),
        (((0, 45), (20, 50), (35, 55), (50, 60)), [(35, 50), (50, 55)]),
    ],
)
def test_copies_of_what_retention_has_removed_since_are_harmless(
    ranges: Sequence[tuple[int, int]], copies: Sequence[tuple[int, int]], start: int
) -> None:
    """A task went back to before where the source starts now; those after it are told as ever."""
    history = of_tasks(*ranges)
    found = attrs.evolve(history, source=cut(history.source, start)).compared().differences
    assert [(each.kind, (each.source.start, each.source.end)) for each in found] == [
        (Kind.COPIED_AGAIN, each) for each in copies
    ]


def test_one_changed_record_does_not_make_a_source_anew() -> None:
    """It is the only one that a former sync names; those beside it are the same."""
    history = restarted(100, 50)
    syncs = [each for each in history.syncs if each.producer_id or each.upstream == 99]
    assert len(syncs) < len(history.syncs)
    history = attrs.evolve(history, syncs=syncs).changed(99)
    assert Kind.SOURCE_RECREATED not in kinds(history)
    assert Kind.WRONG_ANCHOR in kinds(history)


@pytest.mark.parametrize("place", [(END, 5), (199, END), (END, END), (-END - 1, -END - 1), (END - 1, END - 1)])
@pytest.mark.parametrize("made_anew", [MadeAnew(), MadeAnew(source_ms=10), MadeAnew(target_ms=10)])
def test_syncs_at_the_ends_of_int64_are_bad(place: tuple[int, int], made_anew: MadeAnew) -> None:
    """They are told, wherever they stand among the others, and whether or not a topic was made anew."""
    history = restarted()
    for at in (0, 5, len(history.syncs)):
        wrong = Sync(*place, history.syncs[min(at, len(history.syncs) - 1)].producer_id, 999)
        syncs = [*history.syncs[:at], wrong, *history.syncs[at:]]
        syncs = [attrs.evolve(each, timestamp_ms=5) for each in syncs]
        found = attrs.evolve(history, syncs=syncs).compared(made_anew=made_anew).differences
        assert len(found) == 1
        assert (found[0].sync == 999) == (made_anew == MadeAnew())


def test_syncs_past_an_end_before_a_fall_are_no_failure() -> None:
    """Several that rise to the end of int64, and then one at 0: of a target that was made anew."""
    history = restarted()
    past = [Sync(50 + at, END - 1 + at, 7, 900 + at) for at in range(2)]
    found = attrs.evolve(history, syncs=[*past, *history.syncs]).compared()
    assert Kind.TARGET_SHRUNK in {each.kind for each in found.differences}
