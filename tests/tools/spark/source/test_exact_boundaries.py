# SPDX-License-Identifier: Apache-2.0
"""Bounds and limits of the source at each offset of a log: at every boundary, one before it, and one after it."""

import itertools
from pathlib import Path
from typing import Any, Final

import pytest

from raftlog.errors import DivergedStreamError
from raftlog.offsets import OffsetAndEpoch
from raftlog.tools.spark.rows.filters import Hints
from raftlog.tools.spark.source.stream_checks import EpochWitness, shares
from raftlog.tools.spark.source.stream_positions import StreamLogs, list_logs
from tests.tools.made_logs import batch, write_log
from tests.tools.spark.source_reads import rows, source_options, splits

NAME: Final = "orders-0"
ENDS: Final = (3, 4, 6, 9)
"""After each batch of the log; a segment starts at 4."""
OFFSETS: Final = range(11)
"""All offsets of the log, one before its end, and one after it."""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Write a log of two segments, with batches of one, two and three records."""
    begins = (0, *ENDS[:-1])
    batches = [batch(begin, [b"v"] * (end - begin)) for begin, end in zip(begins, ENDS, strict=True)]
    write_log(tmp_path / NAME, *batches[:2])
    write_log(tmp_path / NAME, *batches[2:], name=f"{4:020}.log")
    return tmp_path


def _each(**bounds: int) -> dict[str, Any]:
    return {f"{side}Offsets": f'{{"orders": {{"0": {offset}}}}}' for side, offset in bounds.items()}


@pytest.mark.parametrize("size", [1, 10**6])
def test_every_start_and_end(log: Path, size: int) -> None:
    """For each pair of a start and an end, exactly the records between them, also within batches, are read."""
    for first, end in itertools.product(OFFSETS, OFFSETS):
        found = [row["offset"] for row in rows(log, splitSize=size, **_each(starting=first, ending=end))]
        assert found == list(range(first, min(end, ENDS[-1]))), (first, end)


@pytest.mark.parametrize(
    ("operator", "first_of", "end_of"),
    [
        ("EqualTo", lambda value: value, lambda value: value + 1),
        ("GreaterThan", lambda value: value + 1, lambda value: 99),
        ("GreaterThanOrEqual", lambda value: value, lambda value: 99),
        ("LessThan", lambda value: 0, lambda value: value),
        ("LessThanOrEqual", lambda value: 0, lambda value: value + 1),
        ("In", lambda value: value, lambda value: value + 1),
    ],
)
def test_every_offset_of_a_filter(log: Path, operator: str, first_of: Any, end_of: Any) -> None:
    """All records that match are read; and of batches without any, none is, but those next to a strict bound."""
    for value, size in itertools.product(OFFSETS, (1, 10**6)):
        hints = Hints().narrowed(operator, "offset", [value] if operator == "In" else value)
        found = {row["offset"] for row in rows(log, hints, splitSize=size)}
        matching = set(range(first_of(value), min(end_of(value), ENDS[-1])))
        assert matching <= found, (operator, value)
        near = matching | {value}
        touched = [range(begin, end) for begin, end in itertools.pairwise((0, *ENDS)) if near & {*range(begin, end)}]
        assert found <= set(itertools.chain.from_iterable(touched)), (operator, value)


def test_bytes_after_every_end_are_not_read(log: Path) -> None:
    """A part ends after the last batch that is wanted, by an option or a filter."""
    sizes = [row["size"] for row in rows(log, view="batches")]
    for end in OFFSETS[1:]:
        wanted = sum(size for size, begin in zip(sizes, (0, *ENDS[:-1]), strict=True) if begin < end)
        for planned in (splits(log, **_each(ending=end)), splits(log, Hints(last_offset=end - 1))):
            assert sum(part.size_bytes for each in planned for part in each) == wanted, end


@pytest.mark.parametrize("most", range(1, 11))
def test_every_limit_of_a_part(log: Path, most: int) -> None:
    """A part ends with the last batch that the limit has room for, or with its only batch."""
    begin, expected = 0, []
    for segment_end in (4, 9):
        ends = [end for end in ENDS if begin < end <= segment_end]
        while ends:
            within = [end for end in ends if end <= begin + most] or ends[:1]
            expected.append((begin, within[-1]))
            begin = within[-1]
            ends = [end for end in ends if end > begin]
    planned = splits(log, maxRecordsPerPartition=most)
    assert len(planned) == len(expected)
    found = [row["offset"] for row in rows(log, maxRecordsPerPartition=most)]
    assert found == list(range(9))
    assert [len(_offsets(log, each)) for each in planned] == [end - begin for begin, end in expected]


def _offsets(log: Path, split: Any) -> list[int]:
    from tests.tools.spark.source_reads import rows_of

    return [row["offset"] for row in rows_of([split], log)]


@pytest.mark.parametrize("most", range(1, 11))
def test_every_limit_of_a_micro_batch(log: Path, most: int) -> None:
    """From each place, a micro-batch ends with the last batch within the limit, or else with the first one."""
    logs = _logs(log)
    for begin in OFFSETS[: ENDS[-1]]:
        within = [end for end in ENDS if begin < end <= begin + most]
        expected = within[-1] if within else min(end for end in ENDS if end > begin)
        assert logs.latest({NAME: OffsetAndEpoch(begin, -1)}, most)[NAME].offset == expected, (begin, most)


def test_shares_use_the_limit_up() -> None:
    """The shares add up to the limit if more waits, to what waits if it does not, and are one each at least."""
    waiting = {"a-0": 3, "b-0": 5, "c-0": 0}
    for most in range(1, 11):
        assert sum(shares(waiting, most).values()) == min(max(most, 2), 8)


def test_evidence_at_every_offset_of_a_place() -> None:
    """A batch before the place, over it, and after it, at each distance: what its epoch may be beside the place's."""
    place = OffsetAndEpoch(5, 3)
    for first, size, epoch in itertools.product(range(3, 8), range(1, 4), range(1, 6)):
        if first + size < 5:
            expected = epoch > 3
        elif first >= 5:
            expected = epoch < 3
        else:
            expected = epoch != 3
        assert EpochWitness(first, first + size, epoch).contradicts(place) is expected, (first, size, epoch)


def _logs(folder: Path) -> StreamLogs:
    return list_logs(source_options(folder, startingOffsets="earliest"))


def _batches(*epochs: int) -> list[bytes]:
    return [
        each[:12] + epoch.to_bytes(4, "big") + each[16:]
        for each, epoch in zip(map(batch, range(9)), epochs, strict=False)
    ]


@pytest.mark.parametrize("end", [1, 2, 3, 4])
def test_a_replaced_log_that_ends_around_the_place(tmp_path: Path, end: int) -> None:
    """One of other epochs diverges wherever it ends, also exactly at the place; the same log does only before it."""
    place = {NAME: OffsetAndEpoch(3, 2)}
    write_log(tmp_path / NAME, *_batches(*[4] * end))
    with pytest.raises(DivergedStreamError):
        _logs(tmp_path).check_histories(place)
    write_log(tmp_path / NAME, *_batches(*[1, 2, 2, 2][:end]))
    if end < 3:
        with pytest.raises(DivergedStreamError):
            _logs(tmp_path).check_histories(place)
    else:
        _logs(tmp_path).check_histories(place)
