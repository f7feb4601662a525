# SPDX-License-Identifier: Apache-2.0
"""The names of snapshots against the timestamps of logs: no true name is contradicted, and most wrong ones are."""

import itertools
from collections.abc import Sequence

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.offsets import OffsetAndEpoch
from raftlog.tools.auditing.proof.snapshot_names import NamedSnapshot, TimeSeen, name_faults_of


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
    assert name_faults_of([named_truly(last, number) for number, last in enumerate(ends)], left) == {}


@given(st.data())
def test_a_wrong_end_is_contradicted_by_a_whole_epoch(data: st.DataObject) -> None:
    """If time passes with each record, a renamed snapshot is found: ahead of its epoch, before it, or within."""
    log = data.draw(sound_logs(least_ms=1))
    last = data.draw(st.sampled_from(log))
    mine = [each for each in log if each.epoch == last.epoch]
    other = data.draw(st.integers(mine[0].offset + 1, mine[-1].offset + 9).filter(lambda end: end != last.offset + 1))
    renamed = attrs.evolve(named_truly(last), id=OffsetAndEpoch(other, last.epoch))
    # Beyond an epoch of which nothing follows the true end, the name may be true: that would be a lost tail. And a
    # snapshot that ends where a transaction begins has the time of the batch after.
    is_told = (other <= mine[-1].offset + 1 or last != mine[-1]) and (other, last.timestamp) not in {
        (each.offset, each.timestamp) for each in log
    }
    found = name_faults_of([renamed], log)
    assert list(found) == (["0"] if is_told else [])
    is_inside = any(each.offset == other - 1 for each in mine)
    after = any(each.offset == other for each in log)
    assert [each.is_certain for each in found.values()] == (
        [is_inside and (after or other > last.offset)] if is_told else []
    )


LINEAGES = st.sampled_from("ab")


@attrs.frozen
class Naive:
    """All that is known, and what one snapshot says against it."""

    known: frozenset[TimeSeen]

    def of(self, snapshot: NamedSnapshot) -> list[TimeSeen]:
        return [each for each in self.known if (each.epoch, each.lineage) == (snapshot.id.epoch, snapshot.lineage)]

    def is_steady(self, snapshot: NamedSnapshot) -> bool:
        mine = self.of(snapshot)
        return all(
            a.timestamp <= b.timestamp for a in mine for b in mine if (a.offset, a.timestamp) < (b.offset, b.timestamp)
        )

    def last(self, snapshot: NamedSnapshot) -> set[int]:
        return {seen.timestamp for seen in self.of(snapshot) if seen.offset + 1 == snapshot.id.offset}

    def after(self, snapshot: NamedSnapshot) -> set[int]:
        return {seen.timestamp for seen in self.known if seen.offset == snapshot.id.offset}

    def fits(self, snapshot: NamedSnapshot) -> bool:
        is_after = bool(self.of(snapshot)) and snapshot.timestamp in self.after(snapshot)
        return snapshot.timestamp in self.last(snapshot) or is_after

    def strength(self, snapshot: NamedSnapshot) -> tuple[bool, bool] | None:
        end, time, last = snapshot.id.offset, snapshot.timestamp, self.last(snapshot)
        if self.fits(snapshot):
            return None
        if last:
            return (bool(self.after(snapshot)) or time < min(last)), False
        before = any(seen.timestamp > time for seen in self.of(snapshot) if seen.offset < end)
        later = any(seen.timestamp < time for seen in self.of(snapshot) if seen.offset >= end)
        return (False, False) if self.is_steady(snapshot) and (before or later) else None


def naive(snapshots: Sequence[NamedSnapshot], times: Sequence[TimeSeen]) -> dict[str, tuple[bool, bool]]:
    """The same by comparing everything with everything: by path, whether it is certain, and whether it proves."""
    model = Naive(frozenset(each for each in times if each.timestamp >= 0))
    usable = [each for each in snapshots if each.id.offset > 0 and each.timestamp >= 0]
    found = {each.path: strong for each in usable if (strong := model.strength(each)) is not None}
    left = [each for each in usable if not found.get(each.path, (False, False))[0]]
    sure = {each.path for each in left if model.fits(each) and model.last(each)}
    twins = itertools.product([each for each in left if each.path in sure and each.content is not None], usable)
    sure |= {b.path for a, b in twins if (a.id, a.content) == (b.id, b.content) and b.path not in found}
    for one, other in itertools.permutations(left, 2):
        if one.id.epoch != other.id.epoch or one.id.offset >= other.id.offset or {one.path, other.path} <= sure:
            continue
        are_same = one.content is not None and one.content == other.content
        is_late = one.lineage == other.lineage and model.is_steady(one) and one.timestamp > other.timestamp
        unsure = {one.path, other.path} - sure
        is_settled = are_same and len(unsure) == 1
        for path in sorted(unsure) if are_same or is_late else ():
            new = (is_settled, not is_settled and path == one.path)
            found[path] = max(found.get(path, new), new, key=lambda each: (each[0], not each[1]))
    return found


@given(
    st.lists(
        st.tuples(
            st.integers(0, 8),
            st.integers(-1, 6),
            st.integers(0, 1),
            st.none() | st.integers(0, 2),
            st.sampled_from("ab"),
        ),
        max_size=5,
    ),
    st.lists(st.builds(TimeSeen, st.integers(0, 1), st.integers(0, 8), st.integers(-1, 6), LINEAGES), max_size=8),
)
def test_all_rules_together(found: list[tuple[int, int, int, int | None, str]], times: list[TimeSeen]) -> None:
    """For any snapshots and any timestamps, sound or not, the answer is that of a naive model."""
    snapshots = [
        attrs.evolve(snapshot(end, time, epoch=epoch, path=str(number), content=content), lineage=lineage)
        for number, (end, time, epoch, content, lineage) in enumerate(found)
    ]
    faults = name_faults_of(snapshots, times)
    assert {path: (each.is_certain, each.proves) for path, each in faults.items()} == naive(snapshots, times)


LOG = [TimeSeen(3, 10, 100), TimeSeen(3, 19, 110), TimeSeen(4, 20, 50)]


@pytest.mark.parametrize(
    ("end", "timestamp", "reason", "is_certain"),
    [
        pytest.param(20, 110, None, False, id="the record before the end has the timestamp"),
        pytest.param(20, 109, "record before its end is offset 19", True, id="it has a later one"),
        pytest.param(20, 111, "record before its end is offset 19", True, id="it has an earlier one"),
        pytest.param(20, 50, None, False, id="the batch after the end has the timestamp"),
        pytest.param(20, 51, "record before its end is offset 19", True, id="and another than that"),
        pytest.param(11, 99, "record before its end is offset 10", True, id="earlier, and what follows is not here"),
        pytest.param(11, 101, "the batch at its end, which is not here", False, id="later, and that is not here"),
        pytest.param(21, 110, None, False, id="just beyond the log, with the time of its last record"),
        pytest.param(21, 109, "back between the offsets 19 and 21", False, id="and with an earlier one"),
        pytest.param(900, 120, None, False, id="far beyond the log, of a later time"),
        pytest.param(900, 109, "back between the offsets 19 and 900", False, id="and of an earlier one"),
        pytest.param(19, 105, None, False, id="before a record that is later"),
        pytest.param(19, 110, None, False, id="and of its time"),
        pytest.param(19, 111, "back between the offsets 18 and 19", False, id="after it in time"),
        pytest.param(10, 100, None, False, id="where the log begins"),
        pytest.param(10, 101, "back between the offsets 9 and 10", False, id="there, and later"),
        pytest.param(900, -1, None, False, id="without a timestamp"),
    ],
)
def test_at_the_limits(end: int, timestamp: int, reason: str | None, is_certain: bool) -> None:
    """One ms, and one offset, decide; other epochs have other clocks. Only a record at the end makes it certain."""
    found = name_faults_of([snapshot(end, timestamp)], LOG)
    assert (found != {}) == (reason is not None)
    if reason is not None:
        assert reason in found[f"{end}-3"].reason
        assert (found[f"{end}-3"].is_certain, found[f"{end}-3"].proves) == (is_certain, False)


def test_times_have_their_date() -> None:
    """A person compares dates, not numbers."""
    found = name_faults_of([snapshot(20, 1_700_000_000_000)], [*LOG, TimeSeen(3, 25, 0)])
    assert "1700000000000 (2023-11-14T22:13:20.000Z)" in found["20-3"].reason


@pytest.mark.parametrize("times", [LOG, [TimeSeen(3, 899, 110), TimeSeen(3, 900, 120)]], ids=["order", "record"])
def test_other_lineages_say_nothing(times: list[TimeSeen]) -> None:
    """A second leader of an epoch has another clock, and other records at the same offsets."""
    of_another = [attrs.evolve(each, lineage="another") for each in times]
    assert name_faults_of([snapshot(900, 109)], times) != {}
    assert name_faults_of([snapshot(900, 109)], of_another) == {}


def test_a_clock_that_was_set_back_contradicts_nothing() -> None:
    """Unless the record before the end is there, which has one timestamp by whatever clock."""
    log = [TimeSeen(3, 10, 100), TimeSeen(3, 19, 90), TimeSeen(3, 20, 91)]
    assert name_faults_of([snapshot(900, 95), snapshot(5, 95)], log) == {}
    assert list(name_faults_of([snapshot(20, 95)], log)) == ["20-3"]


CERTAIN, DOUBTED, BELIEVED = (True, False), (False, False), (False, True)


@pytest.mark.parametrize(
    ("snapshots", "faults"),
    [
        pytest.param([snapshot(20, 110), snapshot(900, 110, content=1)], {}, id="of one time, of other bytes"),
        pytest.param(
            [snapshot(20, 110, content=1), snapshot(900, 110, content=1)], {"900-3": CERTAIN}, id="of the same bytes"
        ),
        pytest.param(
            [snapshot(400, 200, content=1), snapshot(900, 200, content=1)],
            {"400-3": BELIEVED, "900-3": DOUBTED},
            id="which no record confirms",
        ),
        pytest.param(
            [snapshot(400, 200), snapshot(900, 199)],
            {"400-3": BELIEVED, "900-3": DOUBTED},
            id="the one that ends first is later",
        ),
        pytest.param([snapshot(20, 110), snapshot(900, 109)], {"900-3": DOUBTED}, id="and a record confirms it"),
        pytest.param([snapshot(20, 110, path="a"), snapshot(20, 110, path="b")], {}, id="two of one name"),
        pytest.param(
            [snapshot(15, 110, content=1), snapshot(20, 110, content=1)],
            {"15-3": CERTAIN},
            id="a log confirms the later",
        ),
        pytest.param([snapshot(400, 200), snapshot(900, 199, epoch=5)], {}, id="of two epochs"),
        pytest.param(
            [snapshot(400, 200), attrs.evolve(snapshot(900, 199), lineage="another")], {}, id="of two lineages"
        ),
    ],
)
def test_snapshots_among_themselves(snapshots: list[NamedSnapshot], faults: dict[str, tuple[bool, bool]]) -> None:
    """Of two that contradict each other, only the lower end proves something, unless a record knows better."""
    found = name_faults_of(snapshots, LOG)
    assert {path: (each.is_certain, each.proves) for path, each in found.items()} == faults
