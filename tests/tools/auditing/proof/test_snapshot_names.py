# SPDX-License-Identifier: Apache-2.0
"""The names of snapshots against the timestamps of logs: no true name is contradicted, and most wrong ones are."""

from collections.abc import Sequence

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.offsets import OffsetAndEpoch
from raftlog.tools.auditing.proof.snapshot_names import NamedSnapshot, TimeSeen, wrong_names


def snapshot(end: int, timestamp: int, *, epoch: int = 3, path: str = "", content: int | None = None) -> NamedSnapshot:
    """A snapshot whose path is its name, unless said otherwise."""
    digest = None if content is None else (1, content)
    return NamedSnapshot(path or f"{end}-{epoch}", OffsetAndEpoch(end, epoch), timestamp, digest)


@st.composite
def sound_logs(draw: st.DrawFn, least_ms: int = 0) -> list[TimeSeen]:
    """All records of a log; within an epoch, time does not go back, and passes by some ms at least per record."""
    found: list[TimeSeen] = []
    for epoch in sorted(draw(st.sets(st.integers(0, 6), min_size=1, max_size=3))):
        now = draw(st.integers(0, 50))
        for _ in range(draw(st.integers(1, 9))):
            now += draw(st.integers(least_ms, 3))
            found.append(TimeSeen(epoch, len(found), now))
    return found


def named_truly(last: TimeSeen, number: int = 0) -> NamedSnapshot:
    """A snapshot up to a record, as a leader writes it."""
    return snapshot(last.offset + 1, last.timestamp, epoch=last.epoch, path=str(number))


@given(st.data())
def test_true_names_are_never_contradicted(data: st.DataObject) -> None:
    """Whatever of a sound log is left, and whichever snapshots there are, each under the name it was written under."""
    log = data.draw(sound_logs())
    left = data.draw(st.lists(st.sampled_from(log)))
    ends = data.draw(st.lists(st.sampled_from(log)))
    assert wrong_names([named_truly(last, number) for number, last in enumerate(ends)], left) == {}


@given(st.data())
def test_a_wrong_end_is_contradicted_by_a_whole_epoch(data: st.DataObject) -> None:
    """If time passes with each record, a renamed snapshot is found: ahead of its epoch, before it, or within."""
    log = data.draw(sound_logs(least_ms=1))
    last = data.draw(st.sampled_from(log))
    mine = [each for each in log if each.epoch == last.epoch]
    other = data.draw(st.integers(mine[0].offset + 1, mine[-1].offset + 9).filter(lambda end: end != last.offset + 1))
    renamed = attrs.evolve(named_truly(last), id=OffsetAndEpoch(other, last.epoch))
    # Beyond an epoch of which nothing follows the true end, the name may be true: that would be a lost tail.
    is_told = other <= mine[-1].offset + 1 or last != mine[-1]
    assert list(wrong_names([renamed], log)) == (["0"] if is_told else [])


def naive(snapshots: Sequence[NamedSnapshot], times: Sequence[TimeSeen]) -> set[str]:
    """The same by comparing everything with everything."""
    known = {each for each in times if each.timestamp >= 0}
    usable = [each for each in snapshots if each.id.offset > 0 and each.timestamp >= 0]

    def steady(epoch: int) -> bool:
        mine = [each for each in known if each.epoch == epoch]
        return all(
            a.timestamp <= b.timestamp for a in mine for b in mine if (a.offset, a.timestamp) < (b.offset, b.timestamp)
        )

    def last(each: NamedSnapshot) -> set[int]:
        return {seen.timestamp for seen in known if (seen.epoch, seen.offset + 1) == (each.id.epoch, each.id.offset)}

    def is_wrong(each: NamedSnapshot) -> bool:
        if last(each):
            return each.timestamp not in last(each)
        mine = [seen for seen in known if seen.epoch == each.id.epoch]
        before = any(seen.timestamp > each.timestamp for seen in mine if seen.offset < each.id.offset)
        after = any(seen.timestamp < each.timestamp for seen in mine if seen.offset >= each.id.offset)
        return steady(each.id.epoch) and (before or after)

    found = {each.path for each in usable if is_wrong(each)}
    left = [each for each in usable if each.path not in found]
    for one in left:
        for other in left:
            is_pair = one.id.epoch == other.id.epoch and one.id.offset < other.id.offset
            are_same = one.content is not None and one.content == other.content
            if is_pair and (are_same or (steady(one.id.epoch) and one.timestamp > other.timestamp)):
                sure = [each for each in (one, other) if each.timestamp in last(each)]
                if len(sure) < 2:
                    found.add(one.path if sure == [other] else other.path)
    return found


@given(
    st.lists(
        st.tuples(st.integers(0, 8), st.integers(-1, 6), st.integers(0, 1), st.none() | st.integers(0, 2)), max_size=5
    ),
    st.lists(st.builds(TimeSeen, st.integers(0, 1), st.integers(0, 8), st.integers(-1, 6)), max_size=8),
)
def test_all_rules_together(found: list[tuple[int, int, int, int | None]], times: list[TimeSeen]) -> None:
    """For any snapshots and any timestamps, sound or not, the answer is that of a naive model."""
    snapshots = [
        snapshot(end, time, epoch=epoch, path=str(number), content=content)
        for number, (end, time, epoch, content) in enumerate(found)
    ]
    assert wrong_names(snapshots, times).keys() == naive(snapshots, times)


LOG = [TimeSeen(3, 10, 100), TimeSeen(3, 19, 110), TimeSeen(4, 20, 50)]


@pytest.mark.parametrize(
    ("end", "timestamp", "reason"),
    [
        pytest.param(20, 110, None, id="the record before the end has the timestamp"),
        pytest.param(20, 109, "record at offset 19", id="it has a later one"),
        pytest.param(20, 111, "record at offset 19", id="it has an earlier one"),
        pytest.param(21, 110, None, id="just beyond the log, with the time of its last record"),
        pytest.param(21, 109, "offset 19 of epoch 3 with timestamp 110, before its end", id="and with an earlier one"),
        pytest.param(900, 120, None, id="far beyond the log, of a later time"),
        pytest.param(19, 105, None, id="before a record that is later"),
        pytest.param(19, 110, None, id="and of its time"),
        pytest.param(19, 111, "offset 19 of epoch 3 with timestamp 110, after its end", id="after it in time"),
        pytest.param(10, 100, None, id="where the log begins"),
        pytest.param(10, 101, "offset 10 of epoch 3 with timestamp 100, after its end", id="there, and later"),
        pytest.param(900, -1, None, id="without a timestamp"),
    ],
)
def test_at_the_limits(end: int, timestamp: int, reason: str | None) -> None:
    """One ms, and one offset, decide; other epochs have other clocks."""
    found = wrong_names([snapshot(end, timestamp)], LOG)
    assert (found != {}) == (reason is not None)
    assert reason is None or reason in found[f"{end}-3"]


def test_a_clock_that_was_set_back_contradicts_nothing() -> None:
    """Unless the record before the end is there, which has one timestamp by whatever clock."""
    log = [TimeSeen(3, 10, 100), TimeSeen(3, 19, 90)]
    assert wrong_names([snapshot(900, 95), snapshot(5, 95)], log) == {}
    assert list(wrong_names([snapshot(20, 95)], log)) == ["20-3"]


@pytest.mark.parametrize(
    ("snapshots", "wrong"),
    [
        pytest.param([snapshot(20, 110), snapshot(900, 110, content=1)], [], id="of one time, of other bytes"),
        pytest.param([snapshot(20, 110, content=1), snapshot(900, 110, content=1)], ["900-3"], id="of the same bytes"),
        pytest.param([snapshot(400, 200), snapshot(900, 199)], ["900-3"], id="the one that ends first is later"),
        pytest.param([snapshot(20, 110, path="a"), snapshot(20, 110, path="b")], [], id="two of one name"),
        pytest.param(
            [snapshot(15, 110, content=1), snapshot(20, 110, content=1)], ["15-3"], id="a log confirms the later"
        ),
        pytest.param([snapshot(400, 200), snapshot(900, 199, epoch=5)], [], id="of two epochs"),
    ],
)
def test_snapshots_among_themselves(snapshots: list[NamedSnapshot], wrong: list[str]) -> None:
    """Two that contradict each other are not both believed; the one that ends first is, unless a log knows better."""
    assert list(wrong_names(snapshots, LOG)) == wrong
