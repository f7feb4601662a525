# SPDX-License-Identifier: Apache-2.0
"""Runs of a partition's log: what compaction has left is whole, and what damage has left is not."""

import tempfile
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import RepairRefusedError
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.checksum import crc32c
from raftlog.tools.salvage.partitions.partition_runs import RunReader, TopicRun
from raftlog.tools.salvage.runs import NamedSegment
from tests.golden_files import GOLDEN
from tests.tools.made_logs import TIMESTAMP, batch, write_log

NEVER: Final = (1 << 63) - 1


def cleaned_batch(base_offset: int, last_offset: int, kept: tuple[int, ...], epoch: int = 1) -> bytes:
    """A batch as the cleaner leaves it: with some records, and the offsets that it had."""
    builder = RecordBatchBuilder(base_offset, partition_leader_epoch=epoch)
    for offset in range(base_offset, last_offset + 1):
        builder.append(TIMESTAMP + offset, b"k", b"v%d" % offset)
    whole = builder.build()
    if kept == tuple(range(base_offset, last_offset + 1)):
        return whole
    return _without_records(base_offset, last_offset, kept, epoch)


def _without_records(base_offset: int, last_offset: int, kept: tuple[int, ...], epoch: int) -> bytes:
    builder = RecordBatchBuilder(base_offset, partition_leader_epoch=epoch)
    for offset in kept:
        builder.append(TIMESTAMP + offset, b"k", b"v%d" % offset)
    if not kept:
        builder.append(TIMESTAMP, b"k", b"v")
    data = bytearray(builder.build())
    if not kept:
        del data[61:]
        data[8:12] = (len(data) - 12).to_bytes(4, "big")
        data[57:61] = bytes(4)
    position = 61
    for offset in kept:  # One byte of length, attributes and timestamp delta before the offset delta, all of one byte.
        data[position + 3] = (offset - base_offset) << 1
        position += 1 + (data[position] >> 1)
    data[23:27] = (last_offset - base_offset).to_bytes(4, "big")
    data[17:21] = crc32c(data[21:]).to_bytes(4, "big")
    return bytes(data)


def runs(
    folder: Path, *, is_compacted: bool, below: int = 1 << 62, cleaned_to: int | None = None
) -> tuple[list[TopicRun], bool]:
    """The runs of a log, and whether it was seen to be cleaned."""
    segments = [NamedSegment(path.name, int(path.name[:20])) for path in sorted(folder.glob("*.log"))]
    reader = RunReader(below if is_compacted else 0, cleaned_to)
    return list(reader.runs(str(folder), segments)), reader.odd_end > 0


def spans(found: list[TopicRun]) -> list[tuple[int, int, int]]:
    """From where each run covers, where it starts and where it ends."""
    return [(run.covers_from, run.start_offset, run.end_offset) for run in found]


def test_a_gap_of_compaction_is_inside_a_run(tmp_path: Path) -> None:
    """Between two batches that follow each other byte by byte, and before the first of a file; nothing was there."""
    write_log(tmp_path, batch(3), cleaned_batch(7, 9, (8,)), batch(20))
    found, has_cleaned = runs(tmp_path, is_compacted=True)
    assert (spans(found), has_cleaned) == ([(0, 3, 10), (20, 20, 21)], True)
    places = (found[1].is_linked_before, found[1].is_linked_after)
    assert places == (False, False)  # Nothing follows it, so that its place is open.
    write_log(tmp_path, batch(3), cleaned_batch(7, 9, (8,)), batch(20), batch(21))
    assert spans(runs(tmp_path, is_compacted=True)[0]) == [(0, 3, 22)]


def test_a_gap_of_a_log_that_was_never_compacted_is_a_hole(tmp_path: Path) -> None:
    """There each batch starts where the one before it ends."""
    write_log(tmp_path, batch(0), batch(1), batch(5), batch(6))
    found, has_cleaned = runs(tmp_path, is_compacted=False)
    assert (spans(found), has_cleaned) == ([(0, 0, 2), (5, 5, 7)], False)
    assert [(run.is_linked_before, run.is_linked_after) for run in found] == [(True, False), (False, False)]


@pytest.mark.parametrize(
    ("below", "cleaned_to", "expected"),
    [(20, None, 2), (10, None, 2), (9, None, NEVER), (20, 10, 2), (20, 11, 2), (20, 9, NEVER)],
)
def test_a_compacted_log_may_have_nothing_between_two_files(
    below: int, cleaned_to: int | None, expected: int, tmp_path: Path
) -> None:
    """Or a file is missing: this log does not say. Not where no cleaner went; not after damage at the end of a file."""
    write_log(tmp_path, batch(0), batch(1))
    write_log(tmp_path, batch(10), batch(11), name=f"{10:020}.log")
    found, _ = runs(tmp_path, is_compacted=True, below=below, cleaned_to=cleaned_to)
    assert spans(found) == [(0, 0, 2), (10, 10, 12)]
    assert (found[1].perhaps_from, found[0].is_linked_after) == (expected, expected == 2)
    write_log(tmp_path, batch(0), batch(1), b"\x01" * 70)
    assert runs(tmp_path, is_compacted=True)[0][1].perhaps_from == NEVER


def test_an_empty_file_may_have_had_batches(tmp_path: Path) -> None:
    """Compaction leaves such files; and so does a disk that has lost what was in them."""
    write_log(tmp_path, batch(0), batch(1))
    write_log(tmp_path, name=f"{2:020}.log")
    write_log(tmp_path, name=f"{5:020}.log")
    write_log(tmp_path, batch(10), batch(11), name=f"{10:020}.log")
    found, _ = runs(tmp_path, is_compacted=True)
    assert (spans(found), found[1].perhaps_from) == ([(0, 0, 2), (10, 10, 12)], 2)
    assert runs(tmp_path, is_compacted=False)[0][1].perhaps_from == NEVER


@pytest.mark.parametrize(("below", "expected"), [(4, [(0, 0, 2), (5, 5, 7)]), (5, [(0, 0, 7)])])
def test_gaps_count_up_to_where_the_log_was_compacted(
    below: int, expected: list[tuple[int, int, int]], tmp_path: Path
) -> None:
    """A gap that ends there or before it is none."""
    write_log(tmp_path, batch(0), batch(1), batch(5), batch(6))
    assert spans(runs(tmp_path, is_compacted=True, below=below)[0]) == expected


def test_an_empty_batch_is_sound(tmp_path: Path) -> None:
    """The cleaner keeps a producer's last batch without its records."""
    write_log(tmp_path, cleaned_batch(0, 4, ()), batch(5))
    assert spans(runs(tmp_path, is_compacted=True)[0]) == [(0, 0, 6)]


@pytest.mark.parametrize("base_offset", [0, 9, 10, 14, 15])
def test_a_batch_outside_of_its_file_is_damage(base_offset: int, tmp_path: Path) -> None:
    """Files are named by their first offset: a batch of 5 records at or after 10 ends at or below 15 or 20."""
    write_log(tmp_path, batch(base_offset, [b"v"] * 5), name=f"{10:020}.log")
    write_log(tmp_path, batch(20), name=f"{19:020}.log")
    found = [run for run in runs(tmp_path, is_compacted=True)[0] if run.file.endswith("10.log")]
    assert len(found) == (10 <= base_offset <= 14)


def test_a_change_of_epoch_ends_a_run(tmp_path: Path) -> None:
    """Both runs are still known to be beside each other."""
    write_log(tmp_path, batch(0), cleaned_batch(1, 1, (1,), epoch=2))
    found, _ = runs(tmp_path, is_compacted=False)
    assert [(run.epoch, run.is_linked_before, run.is_linked_after) for run in found] == [
        (1, True, True),
        (2, True, False),
    ]


def test_an_old_message_format_is_refused(tmp_path: Path) -> None:
    """With the file and the position, and before anything is made of it."""
    path = next((GOLDEN / "damaged/data/legacy-1-nested").glob("*.log"))
    write_log(tmp_path, path.read_bytes())
    with pytest.raises(RepairRefusedError, match=r"position \d+: a batch of message format 1"):
        runs(tmp_path, is_compacted=False)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), st.booleans()), min_size=2, max_size=12))
def test_sound_batches_are_one_run_or_end_at_the_last_gap(steps: list[tuple[int, int, bool]]) -> None:
    """Whatever gaps a cleaner has left: all but a last batch after a gap, whose place nothing confirms."""
    offset, data, starts, ends = 0, [], [], []
    for gap, count, is_cleaned in steps:
        start = offset + gap
        kept = tuple(range(start, start + count))
        data.append(cleaned_batch(start, start + count - 1, kept[:-1] if is_cleaned else kept))
        starts.append(start)
        ends.append(offset := start + count)
    with tempfile.TemporaryDirectory() as place:
        write_log(Path(place), *data)
        found, has_cleaned = runs(Path(place), is_compacted=True)
    ends_open = starts[-1] > ends[-2]
    assert spans(found)[0] == (0, starts[0], ends[-2] if ends_open else ends[-1])
    assert len(found) == 1 + ends_open
    assert has_cleaned == any(each[2] for each in steps)
