# SPDX-License-Identifier: Apache-2.0
"""Whether a log is still what a stream has read, and what each log gets of a micro-batch, against naive models."""

from hypothesis import given
from hypothesis import strategies as st

from raftlog.offsets import OffsetAndEpoch
from raftlog.tools.spark.source.stream_checks import NO_EPOCH, EpochWitness, contradicting_epoch, shares

GAPS = st.lists(st.integers(0, 2), min_size=1, max_size=12)
"""Between the epochs of a log's records, one after the other."""
WAITING = st.dictionaries(st.text("abcdef", min_size=1, max_size=2), st.integers(0, 50), max_size=6)


def _epochs(gaps: list[int]) -> list[int]:
    return [sum(gaps[: index + 1]) for index in range(len(gaps))]


def _runs(epochs: list[int]) -> list[EpochWitness]:
    return [EpochWitness(offset, offset + 1, epoch) for offset, epoch in enumerate(epochs)]


@given(GAPS, st.data())
def test_a_log_never_contradicts_its_own_places(gaps: list[int], data: st.DataObject) -> None:
    """Whatever is left of a log, by compaction, retention and snapshots, agrees with every place that it ever had."""
    epochs = _epochs(gaps)
    offset = data.draw(st.integers(1, len(epochs)))
    left = data.draw(st.lists(st.sampled_from(_runs(epochs)), unique=True))
    snapshots = [OffsetAndEpoch(end, epochs[end - 1]) for end in data.draw(st.sets(st.integers(1, len(epochs))))]
    witnesses = [*left, *map(EpochWitness.of_snapshot, snapshots)]
    assert contradicting_epoch(OffsetAndEpoch(offset, epochs[offset - 1]), witnesses) is None


@given(GAPS, GAPS, st.data())
def test_a_log_with_another_record_there_contradicts(gaps: list[int], others: list[int], data: st.DataObject) -> None:
    """Two logs part at the first offset that has two epochs: from there on no place of one is one of the other."""
    mine = _epochs(gaps)
    kept = data.draw(st.integers(0, len(mine)))
    rewritten = mine[:kept] + [mine[-1] + 1 + each for each in _epochs(others)]
    for offset in range(1, min(len(mine), len(rewritten)) + 1):
        place = OffsetAndEpoch(offset, mine[offset - 1])
        found = contradicting_epoch(place, _runs(rewritten)[offset - 1 : offset])
        assert found == (None if offset <= kept else rewritten[offset - 1])


def test_neighbours_show_the_epoch_of_a_missing_record() -> None:
    """Epochs never decrease: a later one before, an earlier one after, or a snapshot of another epoch contradict."""
    place = OffsetAndEpoch(10, 5)
    assert EpochWitness(3, 7, 6).contradicts(place)
    assert EpochWitness(10, 12, 4).contradicts(place)
    assert EpochWitness.of_snapshot(OffsetAndEpoch(10, 6)).contradicts(place)
    assert not EpochWitness.of_snapshot(OffsetAndEpoch(9, 4)).contradicts(place)
    assert not EpochWitness(12, 13, 5).contradicts(place)
    assert not EpochWitness(9, 10, NO_EPOCH).contradicts(place)
    assert not EpochWitness(9, 10, 6).contradicts(OffsetAndEpoch(10, NO_EPOCH))


def _shares_one_by_one(waiting: dict[str, int], most: int) -> dict[str, int]:
    """Give one offset at a time to the log that has the least and wants more."""
    found = {name: 1 for name, count in waiting.items() if count}
    while sum(found.values()) < most and (poor := [name for name in found if found[name] < waiting[name]]):
        found[min(poor, key=lambda name: (found[name], -waiting[name], name))] += 1
    return found


@given(WAITING, st.integers(1, 200))
def test_shares_are_as_dealt_one_by_one(waiting: dict[str, int], most: int) -> None:
    """All of the limit is used, as evenly as what waits allows, and each log that has something gets some of it."""
    found, dealt = shares(waiting, most), _shares_one_by_one(waiting, most)
    assert sum(found.values()) == sum(dealt.values())
    assert sorted(found.values()) == sorted(dealt.values())
    assert all(0 < count <= waiting[name] for name, count in found.items())
    assert found.keys() == dealt.keys()
