# SPDX-License-Identifier: Apache-2.0
"""Damage is of one file, of the kind that is named, and in the place that is named."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.testing.simulator.choices import SeededChoices
from raftlog.testing.simulator.disks.damage import DAMAGES, LOST_VOTE, SECTOR_BYTES, Damaged, damage_disk

SEGMENT = f"log/{0:020}.log"
OTHER = "log/quorum-state"
COPIES = ("log/raftlog-quorum-state-1", "log/raftlog-quorum-state-2")
BEFORE = {SEGMENT: bytes(2000), OTHER: b"old"}


def damaged(seed: int, size: int = 1500) -> tuple[dict[str, bytes], Damaged]:
    """Return the files of a disk, and the disk after damage."""
    files = {SEGMENT: random.Random(seed).randbytes(size), OTHER: b"{}"} | dict.fromkeys(COPIES, b"{}")
    state = (("log", None, False), *((path, data, False) for path, data in files.items()))
    found = damage_disk(state, BEFORE, SeededChoices(random.Random(seed)), 1)
    assert found is not None
    return files, found


@given(
    seed=st.integers(0, 10_000), size=st.sampled_from((1, 2, SECTOR_BYTES - 1, SECTOR_BYTES, SECTOR_BYTES + 1, 1500))
)
def test_one_file_is_damaged_as_the_words_say(seed: int, size: int) -> None:
    """No other file is touched, and no directory; only a lost name or tail changes a length."""
    files, found = damaged(seed, size)
    after = {path: data for path, data, _ in found.state if data is not None}
    changed = [path for path, data in files.items() if after.get(path) != data]
    if found.kind == LOST_VOTE:
        assert set(after) == {SEGMENT}
        assert found.words == "loses all copies of quorum-state"
        return
    assert len(changed) <= 1
    assert found.state[0] == ("log", None, False)
    for path in changed:
        assert found.words.endswith(f" of {path.rpartition('/')[2]}")
        before, now = files[path], after.get(path)
        if found.kind == "lost-file":
            assert now is None
            continue
        assert now is not None
        if found.kind == "lost-tail":
            assert before.startswith(now)
            assert 1 <= len(before) - len(now) <= 4 * SECTOR_BYTES
            continue
        assert len(now) == len(before)
        places = [place for place, (one, other) in enumerate(zip(before, now, strict=True)) if one != other]
        assert len({place // SECTOR_BYTES for place in places}) == 1
        if found.kind == "bit-rot":
            (place,) = places
            assert (before[place] ^ now[place]).bit_count() == 1


def test_each_kind_happens_and_segments_are_half_of_the_files() -> None:
    """The same for all kinds; other files are as likely as segments together. Votes are lost one time in seven."""
    found = [damaged(seed)[1] for seed in range(600)]
    assert set(Counter(each.kind for each in found)) == set(DAMAGES)
    of_segments = sum(each.words.endswith(".log") for each in found)
    assert 270 <= of_segments <= 370  # Of six in seven, half, and a quarter of the others.
    assert 60 <= sum(each.kind == LOST_VOTE for each in found) <= 120


@pytest.mark.parametrize("state", [(), (("log", None, False),), (("log/empty", b"", False),)])
def test_there_is_nothing_to_damage(state: tuple[tuple[str, bytes | None, bool], ...]) -> None:
    """A disk without a byte stays as it is."""
    assert damage_disk(state, {}, SeededChoices(random.Random(0)), 1) is None


def test_a_vote_is_lost_where_that_can_be_told() -> None:
    """Not beside an empty log, which looks like a new directory, nor where there is no election state."""
    for files in ({OTHER: b"{}"}, {SEGMENT: b"records"}):
        state = tuple((path, data, False) for path, data in files.items())
        for seed in range(200):
            found = damage_disk(state, BEFORE, SeededChoices(random.Random(seed)), 1)
            assert found is None or found.kind != LOST_VOTE
