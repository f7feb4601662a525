# SPDX-License-Identifier: Apache-2.0
"""``raftlog verify-mirror`` where batches are damaged, up to the end of a log: what they had is unverifiable.

Kafka's offset index names the last batch of a segment, so that a search for the end of a log begins there.
"""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.batches.record import Record, RecordView
from raftlog.records.limits import BATCH_OVERHEAD
from raftlog.records.messages.mirrors.mirror_records import OffsetSync, OffsetSyncKey, write_mirror_record
from raftlog.tools.mirrors.reading.log_rows import LogEnd, SegmentPlace, find_end
from tests.tools.console import Outcome
from tests.tools.made_logs import flip
from tests.tools.mirrors.changed_mirror import MIRROR, SYNCS, Entry, copied, log_bytes, rewrite
from tests.tools.mirrors.verb_runs import found, of_flow, verified

ORDERS: Final = {"topic": "orders", "partition": 0}
SIDES: Final = ("n1/orders-0", "n2/A.orders-0")
SEGMENT: Final = f"{0:020d}.log"
PAIRS: Final = 300


def batches(data: bytes) -> list[RecordBatch]:
    """The batches of a sound log."""
    return [each for each in split(BufferSource(data)) if isinstance(each, RecordBatch)]


PLACES: Final = [
    (side, number) for side in SIDES for number in range(len(batches((MIRROR / side / SEGMENT).read_bytes())))
]


def pair_of(outcome: Outcome) -> dict[str, Any]:
    """What was counted of a pair."""
    (line,) = [each for each in outcome.of_kind("pair") if each["source"] == ORDERS]
    return dict(line)


def check_unverifiable(outcome: Outcome, first: RecordBatch, path: Path) -> None:
    """Check that the offsets from a batch on, of 320, could not be compared, and nothing else is told but damage."""
    assert (found(outcome), of_flow(outcome)) == ([], [])
    assert f"{path}, position {first.position}: " in outcome.messages
    line = pair_of(outcome)
    left = 320 - first.base_offset
    assert (line["compared"], line["unverifiable"], line["lag"], line["aborted"]) == (320 - left, left, 0, 0)
    check_anchors(line, first.base_offset, 320)


def check_anchors(line: dict[str, Any], start: int, end: int) -> None:
    """Check how many syncs are not verified: in this mirror, each names the same offset twice."""
    syncs = [*range(0, 133, 11), *range(198, 320, 11)]
    inside = sum(start <= each < end for each in syncs)
    assert line["anchors_wrong"] == 0
    assert (line["anchors_unverifiable"], line["anchors_equal"]) == (inside, len(syncs) - inside)


@pytest.mark.parametrize(("side", "number"), PLACES)
def test_a_damaged_batch_is_unverifiable(side: str, number: int, tmp_path: Path) -> None:
    """Wherever it is, its records are not compared, those of all others are, and the damage is told beside."""
    copied(tmp_path)
    path = tmp_path / side / SEGMENT
    batch = batches(path.read_bytes())[number]
    flip(path, batch.position + batch.size_bytes - 9)
    outcome = verified(tmp_path / "n1", tmp_path / "n2")
    assert (outcome.exit_code, found(outcome), of_flow(outcome)) == (2, [], [])
    assert f"{path}, position {batch.position}: damaged: the stored CRC is not that of the bytes" in outcome.messages
    line = pair_of(outcome)
    count = batch.next_offset - batch.base_offset
    assert (line["compared"], line["unverifiable"]) == (320 - count, count)
    check_anchors(line, batch.base_offset, batch.next_offset)


@pytest.mark.parametrize(("side", "number"), PLACES)
def test_damage_up_to_the_end_is_unverifiable(side: str, number: int, tmp_path: Path) -> None:
    """All batches from one on are damaged, and the last one is cut off."""
    copied(tmp_path)
    path = tmp_path / side / SEGMENT
    data = bytearray(path.read_bytes())
    damaged = batches(bytes(data))[number:]
    for each in damaged:
        data[each.position + BATCH_OVERHEAD + 20] ^= 4
    path.write_bytes(data[:-9])
    check_unverifiable(verified(tmp_path / "n1", tmp_path / "n2"), damaged[0], path)


@pytest.mark.parametrize("side", SIDES)
def test_a_last_segment_without_a_sound_batch_is_told(side: str, tmp_path: Path) -> None:
    """All before it is compared, as if it were empty."""
    copied(tmp_path)
    path = tmp_path / side / f"{320:020d}.log"
    path.write_bytes(b"garbage" * 50)
    outcome = verified(tmp_path / "n1", tmp_path / "n2")
    assert (outcome.exit_code, found(outcome), of_flow(outcome)) == (2, [], [])
    assert pair_of(outcome)["compared"] == 320
    (line,) = outcome.messages.splitlines()
    assert f"{path}, position 0: damaged: " in line
    path.write_bytes(b"")
    assert verified(tmp_path / "n1", tmp_path / "n2").exit_code == 0


# The end of a log


def made(counts: Sequence[int]) -> bytes:
    """A log of batches with so many records each."""
    offset, written = 0, []
    for count in counts:
        written.append(log_bytes([(offset + each, Record(0, 7, None, b"v")) for each in range(count)]))
        offset += count
    return b"".join(written)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.data())
def test_the_end_is_after_all_headers_that_go_on(
    tmp_path_factory: pytest.TempPathFactory, counts: list[int], data: st.DataObject
) -> None:
    """Of batches that are damaged at the end, those count whose offsets follow each other and fit their records."""
    damaged = data.draw(st.integers(0, len(counts)))
    wrong = data.draw(st.integers(0, damaged))
    log = bytearray(made(counts))
    pieces = batches(bytes(log))
    for each in pieces[len(counts) - damaged :]:
        log[each.position + each.size_bytes - 1] ^= 1
    if wrong:  # A header of which one number has rotted.
        field = data.draw(st.sampled_from((7, 26, 60)))
        log[pieces[-wrong].position + field] ^= 32
    path = tmp_path_factory.mktemp("log") / SEGMENT
    path.write_bytes(log)
    end = find_end([SegmentPlace(str(path), 0)], 0)
    assert end.offset == sum(counts[: len(counts) - wrong])
    assert end.epoch == (0 if damaged < len(counts) else -1)


@pytest.mark.parametrize("size", [0, 1, BATCH_OVERHEAD - 1, BATCH_OVERHEAD])
def test_a_header_that_is_cut_says_nothing(size: int, tmp_path: Path) -> None:
    """A whole one does: the records after it are cut off, and were there."""
    whole, cut = made([3]), made([3, 4])
    path = tmp_path / SEGMENT
    path.write_bytes(cut[: len(whole) + size])
    assert find_end([SegmentPlace(str(path), 0)], 0) == LogEnd(7 if size == BATCH_OVERHEAD else 3, 0, 7)


# Hundreds of pairs


def plant_pairs(directory: Path) -> tuple[Path, Path]:
    """Beside a real mirror, another one of many partitions, some of which are damaged, or not there."""
    source, target = copied(directory)
    sound = list(enumerate(Record(0, 1_700_000_000_000 + each, b"k", b"v%d" % each) for each in range(10)))
    for number in range(PAIRS):
        for place in (source / f"many-{number}", target / f"A.many-{number}"):
            place.mkdir()
            (place / SEGMENT).write_bytes(log_bytes(sound))
    rewrite(source / SYNCS, lambda records: [*enumerate(records), *syncs_of_pairs(records)])
    segment = target / "A.many-13" / SEGMENT
    segment.write_bytes(b"garbage" * 50)
    shutil.rmtree(target / "A.many-26")
    flip(source / "many-39" / SEGMENT, 70)
    segment = target / "A.many-52" / SEGMENT
    segment.write_bytes(segment.read_bytes()[:-5])
    changed = [*sound[:4], (4, Record(0, 1, b"x", b"y")), *sound[5:]]
    (target / "A.many-65" / SEGMENT).write_bytes(log_bytes(changed))
    segment = target / "A.many-78" / SEGMENT
    segment.unlink()
    segment.mkdir()
    shutil.rmtree(source / "many-91")
    (target / "A.many-104" / SEGMENT).write_bytes(b"")
    return source, target


def syncs_of_pairs(records: Sequence[RecordView]) -> Iterator[Entry]:
    """The syncs of their first records, after others."""
    for number in range(PAIRS):
        sync = OffsetSync(OffsetSyncKey("many", number), 0, 0)
        yield len(records) + number, Record(0, 1_700_000_000_000, *write_mirror_record(sync))


def test_of_hundreds_of_pairs_each_is_judged(tmp_path: Path) -> None:
    """Eight of them are damaged, or have one side only: these are told, and all others are compared to their end."""
    outcome = verified(*plant_pairs(tmp_path))
    lines = {each["source"]["partition"]: each for each in outcome.of_kind("pair") if each["source"]["topic"] == "many"}
    assert set(range(PAIRS)) - set(lines) == {26, 78, 91}
    unverifiable = {number for number, each in lines.items() if each["unverifiable"]}
    assert unverifiable == {13, 39, 52, 104}
    compared = {number for number, each in lines.items() if each["compared"] == 10 and not each["unverifiable"]}
    assert compared == set(lines) - unverifiable
    told = {
        (each["source"]["partition"], each["rule"])
        for each in outcome.of_kind("finding")
        if each["severity"] != "harmless"
    }
    assert told == {(13, "mirror.sync"), (65, "mirror.changed"), (104, "mirror.sync")}
    words = " ".join(each["reason"] for each in outcome.of_kind("flow_finding"))
    assert "A.many-26, A.many-78, the mirror of many-26, many-78" in words
    assert "many-91, whose mirror is A.many-91" in words
    for number, side in ((13, "n2/A.many"), (39, "n1/many"), (52, "n2/A.many")):
        assert f"{side}-{number}/{SEGMENT}, position 0: " in outcome.messages
    assert outcome.exit_code == 2
