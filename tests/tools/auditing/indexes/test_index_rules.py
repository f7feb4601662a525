# SPDX-License-Identifier: Apache-2.0
"""Indexes against their segment: what a segment gets is silent, and each wrong entry is one finding at its place."""

from collections.abc import Sequence

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.files.file_names import FileKind
from raftlog.records.files.index_entries import (
    OFFSET_INDEX,
    TIME_INDEX,
    TRANSACTION_INDEX,
    AbortedTransaction,
    OffsetIndexEntry,
    TimeIndexEntry,
)
from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.producers.producer_rules import judge_producers
from raftlog.tools.catalogue.findings import Finding
from tests.tools.auditing.produced_logs import (
    PLACE,
    TIMESTAMP,
    Step,
    batches,
    rules_and_offsets,
    segment_task,
    survey,
)

BASE = 100


def batch(offset: int, *timestamps: int, size: int = 1500, last_offset_delta: int | None = None) -> bytes:
    """Make a batch of records with these timestamps after ``TIMESTAMP``, each with a value of some bytes."""
    builder = RecordBatchBuilder(offset, partition_leader_epoch=1, last_offset_delta=last_offset_delta)
    for timestamp in timestamps:
        builder.append(TIMESTAMP + timestamp, None, b"v" * size)
    return builder.build()


def segment(count: int = 24) -> list[bytes]:
    """Make a segment of batches of two records, whose second one is the later."""
    return [batch(BASE + 2 * index, 10 * index, 10 * index + 5) for index in range(count)]


def indexed(parts: Sequence[bytes]) -> tuple[list[OffsetIndexEntry], list[TimeIndexEntry]]:
    """Return the indexes that a segment gets, by the model: an entry when more than 4096 bytes came since the last."""
    offsets: list[OffsetIndexEntry] = []
    times: list[TimeIndexEntry] = []
    greatest = TimeIndexEntry(-1, 0)
    since = 0
    for each in split(BufferSource(b"".join(parts))):
        assert isinstance(each, RecordBatch)
        if each.max_timestamp > greatest.timestamp:
            greatest = TimeIndexEntry(each.max_timestamp, each.last_offset - BASE)
        if since > 4096:
            offsets.append(OffsetIndexEntry(each.last_offset - BASE, each.position))
            times += [greatest] if not times or greatest.timestamp > times[-1].timestamp else []
            since = 0
        since += each.size_bytes
    times += [greatest] if greatest.timestamp >= 0 and (not times or greatest.timestamp > times[-1].timestamp) else []
    return offsets, times


OFFSETS, TIMES = indexed(segment())
KINDS = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX)


def look(
    parts: Sequence[bytes],
    offsets: Sequence[OffsetIndexEntry] = OFFSETS,
    times: Sequence[TimeIndexEntry] = TIMES,
    *,
    tail: bytes = b"",
    chunk: int | None = None,
    is_raft: bool = False,
) -> list[Finding]:
    """Survey a segment with both indexes."""
    log = b"".join(parts)
    encoded = dict(zip(KINDS, (OFFSET_INDEX.encode(offsets), TIME_INDEX.encode(times)), strict=True))
    task = segment_task(BASE, len(log) + len(tail), is_raft=is_raft)
    return list(survey(log, task=task, indexes=encoded, chunk=chunk).findings)


def at(findings: Sequence[Finding]) -> list[tuple[str, int | None]]:
    """Return the rule and the position of each finding."""
    return [(finding.rule, finding.position) for finding in findings]


@given(
    st.lists(st.tuples(st.lists(st.integers(0, 50), min_size=1, max_size=3), st.integers(0, 6000)), max_size=20),
    st.integers(1, 5),
)
def test_the_indexes_that_a_segment_gets_are_silent(shapes: list[tuple[list[int], int]], chunk: int) -> None:
    """Whatever batches a segment has, in chunks of any size, nothing is wrong with its indexes."""
    parts, offset = [], BASE
    for timestamps, size in shapes:
        parts.append(batch(offset, *timestamps, size=size))
        offset += len(timestamps)
    assert look(parts, *indexed(parts)) == look(parts, *indexed(parts), chunk=chunk) == []


NEAR = st.integers(-3, 3)
ANY_32_BITS = st.integers(-(2**31), 2**31 - 1)


@given(st.integers(0, len(OFFSETS) - 1), st.booleans(), st.booleans(), NEAR, ANY_32_BITS, st.integers(1, 5))
def test_one_wrong_entry_of_an_offset_index_is_one_finding(
    number: int, is_offset: bool, is_near: bool, near: int, far: int, chunk: int
) -> None:
    """An offset or a position that is another is found at its entry, and nowhere else."""
    right = OFFSETS[number]
    value = (right.relative_offset if is_offset else right.position) + near if is_near else far
    wrong = right._replace(relative_offset=value) if is_offset else right._replace(position=value)
    following = OFFSETS[number + 1].relative_offset if number + 1 < len(OFFSETS) else 2 * len(segment())
    is_of_append = is_offset and right.relative_offset < value < following and value % 2 == 1
    if wrong == right or is_of_append:
        return
    findings = look(segment(), [*OFFSETS[:number], wrong, *OFFSETS[number + 1 :]], chunk=chunk)
    assert [finding.position for finding in findings] == [8 * number]
    assert findings[0].rule in {"index-entry", "index-beyond", "index-order"}


@given(st.integers(0, len(TIMES) - 1), st.booleans(), st.booleans(), NEAR, ANY_32_BITS, st.integers(1, 5))
def test_one_wrong_entry_of_a_time_index_is_one_finding(
    number: int, is_offset: bool, is_near: bool, near: int, far: int, chunk: int
) -> None:
    """An offset or a timestamp that is another is found at its entry, and nowhere else."""
    right = TIMES[number]
    value = (right.relative_offset if is_offset else right.timestamp) + near if is_near else far
    wrong = right._replace(relative_offset=value) if is_offset else right._replace(timestamp=value)
    if wrong == right:
        return
    findings = look(segment(), OFFSETS, [*TIMES[:number], wrong, *TIMES[number + 1 :]], chunk=chunk)
    assert [finding.position for finding in findings] == [12 * number]
    assert findings[0].rule in {"index-entry", "index-timestamp", "index-beyond", "time-index-order"}


@pytest.mark.parametrize("number", [0, 1, 2, 11, 22])
@pytest.mark.parametrize("chunk", [1, 5])
def test_a_batch_that_is_lost_doubled_or_damaged_is_not_found_in_the_indexes(number: int, chunk: int) -> None:
    """Entries that are wrong because batches moved, or whose batch is unreadable, have no findings of their own."""
    parts = segment()
    flipped = bytearray(parts[number])
    flipped[40] ^= 1
    for spoiled in (
        [*parts[:number], *parts[number + 1 :]],
        [*parts[: number + 1], *parts[number:]],
        [*parts[:number], bytes(flipped), *parts[number + 1 :]],
    ):
        assert look(spoiled, chunk=chunk) == []


@given(st.integers(0, 22))
def test_swapped_batches_are_not_found_in_the_indexes(number: int) -> None:
    """Two batches in the wrong order are found by their offsets alone."""
    parts = segment()
    parts[number], parts[number + 1] = parts[number + 1], parts[number]
    assert look(parts) == []


@given(st.binary(max_size=200), st.binary(max_size=200), st.binary(max_size=200), st.integers(0, 3))
def test_any_bytes_are_findings(offsets: bytes, times: bytes, transactions: bytes, count: int) -> None:
    """Whatever the indexes hold, nothing is raised."""
    indexes = dict(zip((*KINDS, FileKind.TRANSACTION_INDEX), (offsets, times, transactions), strict=True))
    survey(b"".join(segment(count)), BASE, indexes=indexes)


# Offset and time index


def test_an_entry_between_batches_differs_from_one_of_another_batch() -> None:
    """The reason says whether no batch starts at the position, or another one does."""
    (between,) = look(segment(), [OFFSETS[0]._replace(position=OFFSETS[0].position + 1), *OFFSETS[1:]])
    assert (between.rule, between.offset) == ("index-entry", BASE + OFFSETS[0].relative_offset)
    assert between.reason.endswith("where no batch starts")
    (other,) = look(segment(), [OFFSETS[0]._replace(relative_offset=1), *OFFSETS[1:]])
    assert other.reason.endswith(f"where a batch ends at offset {BASE + OFFSETS[0].relative_offset}")


def test_entries_that_are_right_and_out_of_order_are_found() -> None:
    """Two entries that changed places, and one that is there twice."""
    swapped = [OFFSETS[1], OFFSETS[0], *OFFSETS[2:]]
    assert at(look(segment(), swapped)) == [("index-order", 8)]
    assert at(look(segment(), [OFFSETS[0], *OFFSETS])) == [("index-order", 8)]
    assert at(look(segment(), OFFSETS, [TIMES[0], *TIMES])) == [("time-index-order", 12)]


def test_a_log_that_lost_its_end_is_found_once() -> None:
    """Both indexes extend past the log: the first one is reported, for all entries; a torn tail explains it alone."""
    parts = segment()
    (found,) = look(parts[:-9])
    assert found.rule == "index-beyond"
    assert found.reason.endswith("and 3 entries after it also point past the end")
    assert at(look(parts[:-1])) == [("index-beyond", 12 * (len(TIMES) - 1))]
    assert look(parts[:-9], tail=parts[-9][:70]) == []


def test_zeros_after_the_entries_are_harmless_padding() -> None:
    """A broker that was killed leaves them; a partial entry is none."""
    log = b"".join(segment())
    indexes = {FileKind.OFFSET_INDEX: OFFSET_INDEX.encode(OFFSETS) + bytes(80), FileKind.TIME_INDEX: bytes(120)}
    padded = survey(log, BASE, indexes=indexes).findings
    assert at(padded) == [("index-padding", 8 * len(OFFSETS)), ("index-padding", 0)]
    indexes = {FileKind.OFFSET_INDEX: OFFSET_INDEX.encode(OFFSETS) + b"\1\2"}
    assert at(survey(log, BASE, indexes=indexes).findings) == [("index-size", 8 * len(OFFSETS))]


def test_a_sparse_index_is_harmless() -> None:
    """More than 64 KiB of batches without an entry, or four batches if these are larger."""
    parts = segment(60)
    offsets, times = indexed(parts)
    (found,) = look(parts, offsets[:1], times)
    assert (found.rule, found.severity.value) == ("index-sparse", "harmless")
    large = [batch(BASE + index, index, size=100_000) for index in range(4)]
    assert look(large, [], indexed(large)[1]) == []


def test_entries_of_appends_are_harmless() -> None:
    """An older broker's entry names the last offset of several batches, at the first one's position."""
    positions = [sum(map(len, segment()[:number])) for number in range(24)]
    appended = [OffsetIndexEntry(2 * number + 7, positions[number]) for number in range(4, 24, 4)]
    (found,) = look(segment(), appended)
    assert (found.rule, found.severity.value) == ("index-append", "harmless")
    overlapping = [OffsetIndexEntry(19, positions[4]), OffsetIndexEntry(15, positions[7])]
    assert {each.rule for each in look(segment(), overlapping)} == {"index-entry"}


def test_a_compacted_batch_may_be_named_by_its_last_record() -> None:
    """The cleaner of older brokers put the last offset that it kept."""
    parts = [*segment(4), batch(BASE + 8, 90, last_offset_delta=1)]
    offsets = [OffsetIndexEntry(8, sum(map(len, parts[:4])))]
    assert at(look(parts, offsets, indexed(parts)[1])) == [("index-append", 0)]


def test_a_time_index_may_name_the_record_itself() -> None:
    """Older leaders did so; not in a log of raft, and no other record."""
    parts = [batch(BASE, 3, 9, 1)]
    right, wrong = [TimeIndexEntry(TIMESTAMP + 9, 1)], [TimeIndexEntry(TIMESTAMP + 9, 0)]
    assert at(look(parts, [], right)) == [("index-append", 0)]
    assert at(look(parts, [], wrong)) == at(look(parts, [], right, is_raft=True)) == [("index-entry", 0)]


def test_a_wrong_timestamp_in_a_batch_is_not_found_in_the_time_index() -> None:
    """Where the batch's records have the entry's timestamp, and its header another, the header is what is wrong."""
    builder = RecordBatchBuilder(BASE, partition_leader_epoch=1, max_timestamp=TIMESTAMP + 77)
    builder.append(TIMESTAMP + 5, None, b"v")
    entry = TimeIndexEntry(TIMESTAMP + 5, 0)
    assert look([builder.build()], [], [entry]) == []
    assert at(look([batch(BASE, 6)], [], [entry])) == [("index-timestamp", 0)]


# Transaction index

WORDS = Step(is_transactional=True)
ABORT = Step(committed=False)
COMMIT = Step(committed=True)
OTHER = Step(producer_id=8, is_transactional=True)


def aborted(*, producer: int, first: int, last: int, last_stable: int) -> AbortedTransaction:
    """Return the entry of an aborted transaction: its producer, its offsets, and the last stable offset."""
    return AbortedTransaction(0, producer, first, last, last_stable)


WORDS_ABORTED = aborted(producer=7, first=0, last=2, last_stable=3)
"""The entry of the transaction in [WORDS, ABORT]: two records, and the marker at offset 2."""


def look_at(
    steps: Sequence[Step | None], *entries: AbortedTransaction, base_offset: int = 0
) -> list[tuple[str, int | None]]:
    """Survey a segment with a transaction index."""
    encoded = TRANSACTION_INDEX.encode(entries)
    log = b"".join(batches(steps, base_offset))
    evidence = survey(log, base_offset, indexes={FileKind.TRANSACTION_INDEX: encoded})
    return rules_and_offsets(evidence.findings)


def test_each_aborted_transaction_has_its_entry() -> None:
    """With its first offset, its marker, and the last stable offset while another transaction is open."""
    assert look_at([WORDS, ABORT], WORDS_ABORTED) == []
    interleaved = [WORDS, OTHER, ABORT, attrs.evolve(ABORT, producer_id=OTHER.producer_id)]
    while_other_is_open = aborted(producer=7, first=0, last=4, last_stable=2)
    other_aborted = aborted(producer=8, first=2, last=5, last_stable=6)
    assert look_at(interleaved, while_other_is_open, other_aborted) == []
    assert look_at([WORDS, COMMIT]) == look_at([ABORT]) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"producer_id": 9},
        {"first_offset": 1},
        {"last_offset": 1},
        {"last_stable_offset": 2},
        {"last_offset": 77, "last_stable_offset": 78},
    ],
    ids=["producer", "first offset", "last offset", "stable before the marker", "beyond the log"],
)
def test_a_wrong_entry_is_one_finding(wrong: dict[str, int]) -> None:
    """Be it of another producer, another first or last offset, or a last stable offset before the marker."""
    entry = WORDS_ABORTED._replace(**wrong)
    assert look_at([WORDS, ABORT], entry) == [("transaction-index", entry.last_offset)]


@pytest.mark.parametrize("field", ["first_offset", "last_stable_offset"])
def test_an_entry_has_no_negative_offset(field: str) -> None:
    """An offset before the segment may be right, and one before every log cannot be."""
    assert look_at([WORDS, ABORT], WORDS_ABORTED._replace(**{field: -1})) == [("transaction-index", 2)]


@pytest.mark.parametrize(
    ("stable", "is_right"),
    [(0, False), (1, False), (2, True), (3, False), (4, False), (5, False), (7, False), (8, False), (10, False)],
)
def test_a_last_stable_offset_of_an_earlier_segment(stable: int, is_right: bool) -> None:
    """It is where the earliest transaction of another producer began that was open then, and not after the marker."""
    entry = aborted(producer=7, first=6, last=7, last_stable=stable)
    steps = [WORDS, attrs.evolve(OTHER, count=1), attrs.evolve(OTHER, producer_id=9, count=1), COMMIT]
    later_steps = [
        attrs.evolve(COMMIT, producer_id=9),
        attrs.evolve(WORDS, sequence=2, count=1),
        ABORT,
        attrs.evolve(COMMIT, producer_id=8),
    ]
    earlier = survey(b"".join(batches(steps)))
    assert earlier.extent is not None
    assert earlier.extent.end_offset == 5
    indexes = {FileKind.TRANSACTION_INDEX: TRANSACTION_INDEX.encode([entry])}
    later = survey(b"".join(batches(later_steps, 5)), 5, indexes=indexes)
    found = [*later.findings, *judge_producers(PartitionEvidence(PLACE, (earlier, later)))]
    wrong = [(finding.path, finding.offset) for finding in found if finding.rule == "transaction-index"]
    assert wrong == ([] if is_right else [(later.task.indexes[FileKind.TRANSACTION_INDEX], 7)])


@pytest.mark.parametrize("stable", range(-1, 5))
def test_a_last_stable_offset_before_the_log_start(stable: int) -> None:
    """A transaction that retention has cut off may have begun anywhere below the log start, but not below 0."""
    entry = aborted(producer=7, first=5, last=6, last_stable=stable)
    indexes = {FileKind.TRANSACTION_INDEX: TRANSACTION_INDEX.encode([entry])}
    log = b"".join(batches([attrs.evolve(WORDS, count=1), ABORT], 5))
    later = survey(log, 5, indexes=indexes)
    found = [*later.findings, *judge_producers(PartitionEvidence(PLACE, (later,)))]
    assert [finding.rule for finding in found] == (["transaction-index"] if stable < 0 else [])


def test_a_missing_entry_is_found() -> None:
    """An index that lacks an entry, and an index that is not there."""
    assert look_at([WORDS, ABORT]) == [("transaction-index", 2)]
    evidence = survey(b"".join(batches([WORDS, ABORT])), indexes={})
    assert rules_and_offsets(evidence.findings) == [("transaction-index", 2)]


def test_an_entry_of_a_committed_transaction_is_found() -> None:
    """Readers would leave out what was committed."""
    assert look_at([WORDS, COMMIT], WORDS_ABORTED) == [("transaction-index", 2)]


def test_an_entry_whose_marker_is_lost_is_not_found() -> None:
    """Offsets that are missing explain it."""
    assert look_at([WORDS, None, OTHER], WORDS_ABORTED) == []


def test_what_began_in_an_earlier_segment_is_judged_over_segments() -> None:
    """The first offset in the index is that in the earlier segment."""

    def found(claimed: int) -> list[tuple[str, int | None]]:
        entry = aborted(producer=7, first=claimed, last=4, last_stable=5)
        indexes = {FileKind.TRANSACTION_INDEX: TRANSACTION_INDEX.encode([entry])}
        earlier, later = (
            survey(b"".join(batches([WORDS]))),
            survey(b"".join(batches([attrs.evolve(WORDS, sequence=2), ABORT], 2)), 2, indexes=indexes),
        )
        assert later.findings == ()
        return rules_and_offsets(judge_producers(PartitionEvidence(PLACE, (earlier, later))))

    assert found(0) == []
    assert found(1) == [("transaction-index", 4)]
    assert found(2) == [("transaction-index", 4)]


def test_a_transaction_index_of_a_log_that_lost_its_end_is_found_once() -> None:
    """Not again by the other indexes, nor where the log's torn tail says it."""
    parts = batches([WORDS, ABORT])
    indexes = {
        FileKind.TRANSACTION_INDEX: TRANSACTION_INDEX.encode([WORDS_ABORTED]),
        FileKind.TIME_INDEX: TIME_INDEX.encode([TimeIndexEntry(TIMESTAMP + 1, 2)]),
    }
    cut = survey(parts[0], indexes=indexes)
    assert [(each.rule, each.path[-9:]) for each in cut.findings] == [("index-beyond", ".txnindex")]
    torn = survey(parts[0], task=segment_task(0, len(parts[0]) + 9), indexes=indexes)
    assert torn.findings == ()


def test_the_order_and_bytes_of_a_transaction_index_are_checked() -> None:
    """Entries in the wrong order, of another version, zeros and a partial entry at the end."""
    two = [WORDS, ABORT, attrs.evolve(WORDS, sequence=2), ABORT]
    first, second = WORDS_ABORTED, aborted(producer=7, first=3, last=5, last_stable=6)
    assert look_at(two, second, first) == [("index-order", None)]
    entry = TRANSACTION_INDEX.encode([first])
    for data, rule in (
        (entry + bytes(34), "tail-zero"),
        (entry + b"\1", "index-size"),
        (b"\0\1" + entry[2:], "file-format"),
    ):
        evidence = survey(b"".join(batches([WORDS, ABORT])), indexes={FileKind.TRANSACTION_INDEX: data})
        assert [finding.rule for finding in evidence.findings] == [rule]
