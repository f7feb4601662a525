# SPDX-License-Identifier: Apache-2.0
"""Producers: sound ones are silent however their log is cut, and each fault is one finding at its batch."""

import itertools
import struct

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.batches.batch import HEADER
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.checksum import crc32c
from raftlog.records.files.file_names import FileKind
from raftlog.records.files.index_entries import TRANSACTION_INDEX, AbortedTransaction
from raftlog.records.rules import Severity
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence, SurveyTask
from raftlog.tools.auditing.producers.producer_rules import HANGING_MS, judge_producers
from tests.tools.auditing.produced_logs import (
    LAST_SEQUENCE,
    PLACE,
    TIMESTAMP,
    Step,
    batches,
    last_stable_offset,
    offsets_of,
    partition_of,
    rules_and_offsets,
    segment_task,
    sound_logs,
    survey,
)

WORDS = Step(is_transactional=True)
COMMIT = Step(committed=True)
ABORT = Step(committed=False)


def found_in(*steps: Step | None, chunk: int | None = None) -> list[tuple[str, int | None]]:
    """Survey one segment."""
    return rules_and_offsets(survey(b"".join(batches(steps)), chunk=chunk).findings)


def judged(evidence: PartitionEvidence) -> list[tuple[str, int | None]]:
    """Judge a partition."""
    return rules_and_offsets(judge_producers(evidence))


def above_harmless(evidence: PartitionEvidence) -> list[str]:
    """Survey and judge a partition, and return what is wrong, but that these logs have no transaction indexes."""
    findings = [finding for file in evidence.files for finding in file.findings]
    findings += (each for each in judge_producers(evidence) if each.rule != "transaction-index")
    return [str(each) for each in findings if each.severity is not Severity.HARMLESS]


def open_by_model(steps: list[Step]) -> dict[int, int]:
    """Return the first offset of each open transaction, one batch after the other."""
    open_offsets: dict[int, int] = {}
    for step, offset in zip(steps, offsets_of(steps), strict=True):
        if step.committed is not None:
            open_offsets.pop(step.producer_id, None)
        elif step.is_transactional:
            open_offsets.setdefault(step.producer_id, offset)
    return open_offsets


@given(sound_logs(), st.integers(1, 7))
def test_a_sound_log_is_silent_in_chunks_of_any_size(steps: list[Step], chunk: int) -> None:
    """Producers' states are the same in one chunk and in many, without findings."""
    log = b"".join(batches(steps))
    whole, parts = survey(log), survey(log, chunk=chunk)
    assert whole.findings == parts.findings == ()
    assert whole.producers == parts.producers
    assert {span.producer_id: span.open_offset for span in whole.producers if span.open_offset >= 0} == (
        open_by_model(steps)
    )


@given(sound_logs())
def test_spans_are_those_of_a_walk(steps: list[Step]) -> None:
    """Each span says what a walk over the batches of its producer does."""
    spans = {span.producer_id: span for span in survey(b"".join(batches(steps))).producers}
    offsets = offsets_of(steps)
    assert set(spans) == {step.producer_id for step in steps}
    for id_, span in spans.items():
        own = [(step, at) for step, at in zip(steps, offsets, strict=True) if step.producer_id == id_]
        data = [(step, at) for step, at in own if step.committed is None]
        markers = [(step, at) for step, at in own if step.committed is not None]
        assert (span.first_epoch, span.last_epoch) == (own[0][0].epoch, own[-1][0].epoch)
        if data:
            (first, first_at), (last, last_at) = data[0], data[-1]
            assert (span.first_offset, span.first_data_epoch, span.first_sequence) == (
                first_at,
                first.epoch,
                first.sequence,
            )
            assert (span.last_offset, span.last_data_epoch) == (last_at + last.count - 1, last.epoch)
            assert span.last_sequence == (last.sequence + last.count - 1) & LAST_SEQUENCE
        if markers:
            assert span.first_marker_offset == markers[0][1]
            assert span.coordinator_epochs == (markers[0][0].coordinator_epoch, markers[-1][0].coordinator_epoch)


@given(sound_logs(), st.lists(st.integers(0, 40), max_size=4), st.none() | st.integers(0, 4))
def test_a_sound_log_is_silent_in_segments_of_any_size(steps: list[Step], cuts: list[int], lost: int | None) -> None:
    """However it is divided into segments, and if one of them is lost, nothing above harmless is said."""
    bounds = [0, *sorted(min(cut, len(steps)) for cut in cuts), len(steps)]
    evidence = partition_of(*[steps[start:end] for start, end in itertools.pairwise(bounds)])
    assert above_harmless(evidence) == []
    if lost is None:
        assert last_stable_offset(evidence) == min(open_by_model(steps).values(), default=evidence.end_offset)
    kept = tuple(file for index, file in enumerate(evidence.files) if index != lost)
    assert above_harmless(PartitionEvidence(PLACE, kept)) == []


@given(sound_logs(), st.data())
def test_lost_duplicated_and_swapped_batches_are_not_reported_here(steps: list[Step], data: st.DataObject) -> None:
    """Faults in the order of offsets are not reported again for producers."""
    written = batches(steps)
    if len(written) < 2:
        return
    at = data.draw(st.integers(0, len(written) - 2))
    for spoiled in (
        [*written[:at], *written[at + 1 :]],
        [*written[: at + 1], *written[at:]],
        [*written[:at], written[at + 1], written[at], *written[at + 2 :]],
    ):
        evidence = PartitionEvidence(PLACE, (survey(b"".join(spoiled)),))
        assert above_harmless(evidence) == []


@given(sound_logs(), st.data())
def test_one_wrong_sequence_is_one_finding(steps: list[Step], data: st.DataObject) -> None:
    """A batch with another sequence is found, and its neighbours are not, whatever its position."""
    with_data = [index for index, step in enumerate(steps) if step.committed is None]
    seen = [
        index
        for index in with_data
        if any(steps[before].producer_id == steps[index].producer_id for before in with_data if before < index)
    ]
    if not seen:
        return
    at = data.draw(st.sampled_from(seen))
    step = data.draw(st.integers(4, 1000))
    spoiled = [*steps]
    spoiled[at] = attrs.evolve(steps[at], sequence=(steps[at].sequence + step) & LAST_SEQUENCE)
    found = found_in(*spoiled)
    assert found == [("sequence-gap", offsets_of(steps)[at])]


HOSTILE = st.sampled_from([-(2**63), -1, 0, 1, 2**31, 2**62, 2**63 - 1])
HOSTILE_HEADERS = st.tuples(
    HOSTILE,  # base offset
    st.sampled_from([-(2**31), -1, 0, 1, 2**31 - 1]),  # last offset delta
    st.sampled_from([0, 0x10, 0x20, 0x30, -1]),  # attributes
    HOSTILE,  # max timestamp
    st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1]),  # producer id
    st.sampled_from([-(2**15), -1, 0, 1, 2**15 - 1]),  # producer epoch
    st.sampled_from([-(2**31), -1, 0, 1, 2**31 - 1]),  # base sequence
)


def hostile_batch(
    base_offset: int, delta: int, attributes: int, timestamp: int, producer_id: int, epoch: int, sequence: int
) -> bytes:
    """Make a batch with these fields, no records, and a CRC that holds."""
    covered = struct.pack(">hiqqqhii", attributes, delta, 0, timestamp, producer_id, epoch, sequence, 0)
    return HEADER.pack(base_offset, 49, 0, 2, *_signed(crc32c(covered)), *struct.unpack(">hiqqqhii", covered))


def _signed(crc: int) -> tuple[int]:
    return struct.unpack(">I", struct.pack(">I", crc))


@given(st.lists(HOSTILE_HEADERS, max_size=12), st.integers(1, 4))
def test_no_header_makes_it_raise(headers: list[tuple[int, ...]], chunk: int) -> None:
    """Whatever the numbers in headers are, there are findings or none, and they can be judged."""
    evidence = survey(b"".join(hostile_batch(*header) for header in headers), chunk=chunk)
    list(judge_producers(PartitionEvidence(PLACE, (evidence, evidence))))


# Each rule, at its place


def test_a_gap_in_sequences_is_found() -> None:
    """Sequence 9 after 0 to 1 is a gap; after missing offsets it is not."""
    gap = Step(sequence=9)
    assert found_in(Step(), gap) == found_in(Step(), gap, chunk=1) == [("sequence-gap", 2)]
    assert found_in(Step(), None, gap) == found_in(Step(), None, gap, chunk=1) == []


def test_a_sequence_that_is_written_twice_is_found() -> None:
    """Sequences 0 to 1 twice, at other offsets: missing offsets do not explain that."""
    assert found_in(Step(), Step(producer_id=8), Step()) == [("sequence-twice", 4)]
    assert found_in(Step(), None, Step()) == [("sequence-twice", 7)]


def test_sequences_wrap() -> None:
    """After 2147483647 comes 0."""
    assert found_in(Step(sequence=LAST_SEQUENCE - 1), Step(sequence=0)) == []
    assert found_in(Step(sequence=LAST_SEQUENCE - 1), Step(sequence=1)) == [("sequence-gap", 2)]


def test_a_new_epoch_starts_at_sequence_0() -> None:
    """A newer epoch of a producer starts at 0, one that was not seen before anywhere."""
    assert found_in(Step(), Step(epoch=1)) == []
    assert found_in(Step(), Step(epoch=1, sequence=5)) == [("sequence-gap", 2)]
    assert found_in(Step(epoch=1, sequence=5)) == []


def test_a_marker_of_a_newer_epoch_restarts_sequences() -> None:
    """In the transactions of Kafka 4 each marker raises the epoch."""
    marker, after = Step(epoch=1, committed=True), Step(epoch=1, is_transactional=True)
    assert found_in(WORDS, marker, after) == found_in(WORDS, marker, after, chunk=1) == []


@pytest.mark.parametrize("chunk", [None, 2])
def test_an_epoch_that_goes_back_is_found(chunk: int | None) -> None:
    """The one batch that is out of line is found, be it too low or too high."""
    low = [Step(epoch=2), Step(epoch=1, sequence=2), Step(epoch=2, sequence=4)]
    assert found_in(*low, chunk=chunk) == [("producer-epoch", 2)]


def test_an_epoch_that_is_ahead_alone_is_found() -> None:
    """Of epochs 2, 9, 2 the second one is odd."""
    high = [Step(epoch=2), Step(epoch=9, sequence=2), Step(epoch=2, sequence=4)]
    assert found_in(*high) == [("producer-epoch", 2)]


def test_coordinators_write_sequence_0() -> None:
    """In __consumer_offsets each batch of a producer has sequence 0."""
    log = b"".join(batches([WORDS, WORDS, COMMIT]))
    assert survey(log, task=segment_task(topic="__consumer_offsets")).findings == ()


def test_a_plain_batch_in_a_transaction_is_found() -> None:
    """It is found once, in one chunk or over two; among missing offsets there may have been a marker."""
    plain = Step(sequence=2)
    assert found_in(WORDS, plain, Step(sequence=4), COMMIT) == [("transaction-mixed", 2)]
    assert found_in(WORDS, plain, COMMIT, chunk=1) == [("transaction-mixed", 2)]
    assert found_in(WORDS, None, plain) == []


@pytest.mark.parametrize(("key", "value", "rule"), [(b"\0\0\0\1", b"\0", "control-value"), (b"\0", b"", "control-key")])
def test_a_marker_that_does_not_read_ends_its_transaction(key: bytes, value: bytes, rule: str) -> None:
    """It is reported, and nothing follows from it: no transaction is open, and the index may have an entry or none."""
    builder = RecordBatchBuilder(2, producer_id=7, producer_epoch=0, is_transactional=True, is_control=True)
    builder.append(TIMESTAMP, key, value)
    log = b"".join([*batches([WORDS]), builder.build(), *batches([attrs.evolve(WORDS, sequence=2), COMMIT], 3)])
    for entries in (b"", TRANSACTION_INDEX.encode([AbortedTransaction(0, 7, 0, 2, 3)])):
        evidence = survey(log, indexes={FileKind.TRANSACTION_INDEX: entries})
        assert rules_and_offsets(evidence.findings) == [(rule, 2)]
        assert judged(PartitionEvidence(PLACE, (evidence,))) == []


def test_an_entry_is_missing_of_a_transaction_over_two_segments() -> None:
    """A transaction that began in an earlier segment has an entry in the index of the one whose marker aborts it."""
    logs = [b"".join(batches([WORDS])), b"".join(batches([ABORT], 2))]
    entry = TRANSACTION_INDEX.encode([AbortedTransaction(0, 7, 0, 2, 3)])
    for entries, found in ((entry, []), (b"", [("transaction-index", 2)])):
        files = [survey(logs[0], indexes={}), survey(logs[1], 2, indexes={FileKind.TRANSACTION_INDEX: entries})]
        assert judged(PartitionEvidence(PLACE, tuple(files))) == found


def test_a_coordinator_epoch_that_goes_back_is_found() -> None:
    """The second marker has an older coordinator."""
    again = Step(sequence=2, is_transactional=True)
    old = attrs.evolve(COMMIT, coordinator_epoch=2)
    assert found_in(WORDS, COMMIT, again, old) == [("coordinator-epoch", 5)]


def test_a_damaged_marker_is_passed_over() -> None:
    """A control batch without a marker's key is reported elsewhere."""
    log = batches([WORDS])[0] + hostile_batch(2, 0, 0x30, TIMESTAMP, 7, 0, -1)
    assert survey(log).findings == ()
    assert survey(log).producers[0].open_offset == 0


# Over segments


def test_sequences_continue_over_segments() -> None:
    """A gap and a repetition are found at the segment's first batch of the producer; offsets that lack explain one."""
    assert judged(partition_of([Step()], [Step(sequence=9)])) == [("sequence-gap", 2)]
    assert judged(partition_of([Step()], [Step()])) == [("sequence-twice", 2)]
    assert judged(partition_of([Step()], [None, Step(sequence=9)])) == []
    assert judged(partition_of([Step()], [Step(producer_id=8)], [Step(sequence=9)])) == [("sequence-gap", 4)]
    assert judged(partition_of([Step()], [Step(epoch=1, sequence=4)])) == [("sequence-gap", 2)]


def test_epochs_continue_over_segments() -> None:
    """A producer's and a coordinator's epochs do not go back from a segment to the next."""
    assert judged(partition_of([Step(epoch=4)], [Step(epoch=3, sequence=2)])) == [("producer-epoch", 2)]
    again = Step(sequence=2, is_transactional=True)
    old = attrs.evolve(COMMIT, coordinator_epoch=2)
    assert judged(partition_of([WORDS, COMMIT], [again, old])) == [("coordinator-epoch", 5)]


def test_a_plain_batch_in_a_transaction_of_an_earlier_segment_is_found() -> None:
    """The transaction is open from the segment before."""
    assert judged(partition_of([WORDS], [Step(sequence=2), COMMIT])) == [("transaction-mixed", 2)]


def test_open_transactions_hang_if_the_log_continues() -> None:
    """Up to 15 minutes it is open, which is harmless; then it hangs. Where offsets lack, a marker may."""
    late = Step(producer_id=8, timestamp=TIMESTAMP + HANGING_MS + 1)
    assert judged(partition_of([WORDS])) == [("transaction-open", 0)]
    assert judged(partition_of([WORDS], [attrs.evolve(late, timestamp=TIMESTAMP + HANGING_MS)])) == [
        ("transaction-open", 0)
    ]
    assert judged(partition_of([WORDS], [late])) == judged(partition_of([WORDS, late])) == [("transaction-hanging", 0)]
    assert judged(partition_of([WORDS], [None, late])) == []
    assert judged(partition_of([WORDS], [late, COMMIT])) == []


def test_empty_transactions_are_counted() -> None:
    """Markers without records are one finding a partition."""
    (finding,) = judge_producers(partition_of([COMMIT, WORDS, ABORT], [COMMIT, COMMIT]))
    assert (finding.rule, finding.offset, finding.severity) == ("transaction-empty", 0, Severity.HARMLESS)
    assert finding.reason.startswith("3 markers")


def test_the_first_empty_transaction_is_named() -> None:
    """The offset is that of the first marker without records, which need not be the first marker."""
    (finding,) = judge_producers(partition_of([WORDS, COMMIT, COMMIT, ABORT]))
    assert (finding.rule, finding.offset) == ("transaction-empty", 3)


def test_the_last_stable_offset_is_where_the_first_open_transaction_begins() -> None:
    """Of two open ones the earlier counts; without one the log's end does."""
    other = Step(producer_id=8, is_transactional=True)
    assert last_stable_offset(partition_of([Step(producer_id=1), WORDS, other])) == 2
    assert last_stable_offset(partition_of([Step(producer_id=1), WORDS], [other, COMMIT])) == 4
    assert last_stable_offset(partition_of([WORDS, COMMIT])) == 3


# Producer snapshots


def producer_snapshot(offset: int, **fields: int) -> FileEvidence:
    """Return the evidence of a producer snapshot with one producer."""
    entry = {
        "producer_id": 7,
        "producer_epoch": 0,
        "last_sequence": 1,
        "last_offset": 1,
        "current_transaction_first_offset": -1,
    }
    path = f"node/orders-0/{offset:020}.snapshot"
    task = SurveyTask(PLACE, path, FileKind.PRODUCER_SNAPSHOT, base_offset=offset)
    return FileEvidence(task, contents={"entries": [entry | fields]})


@pytest.mark.parametrize("place", [2, 4])
def test_a_producer_snapshot_agrees_with_the_log(place: int) -> None:
    """At a segment's start and at the log's end each field is compared, for producers that both have."""
    segments = [Step()], [Step(producer_id=8)]

    def found(**fields: int) -> list[str]:
        return [
            each.reason for each in judge_producers(partition_of(*segments, extra=[producer_snapshot(place, **fields)]))
        ]

    assert found() == found(producer_id=9, last_offset=0) == []
    assert found(last_sequence=5) == ["producer 7: last sequence 5, but the log has 1"]
    assert found(producer_epoch=3, last_offset=0) == [
        "producer 7: producer epoch 3, but the log has 0; last offset 0, but the log has 1"
    ]
    assert found(current_transaction_first_offset=0) == [
        "producer 7: current transaction first offset 0, but the log has -1"
    ]


def test_a_wrong_sequence_is_not_found_again_in_the_producer_snapshot() -> None:
    """The snapshot has what the batch said when it was appended."""
    snapshot = producer_snapshot(4, last_sequence=3, last_offset=3)
    for segments in ([[Step(), Step(sequence=9)]], [[Step()], [Step(sequence=9)]]):
        evidence = partition_of(*segments, extra=[snapshot])
        assert [line.split("[")[-1] for line in above_harmless(evidence)] == ["sequence-gap]"]


def test_a_producer_snapshot_elsewhere_is_not_judged() -> None:
    """Within a segment, and after missing offsets, the log does not determine a producer's state."""
    wrong = {"last_sequence": 77}
    assert judged(partition_of([Step(), Step(producer_id=8)], extra=[producer_snapshot(2, **wrong)])) == []
    assert judged(partition_of([None, Step(sequence=0), None], [Step(8)], extra=[producer_snapshot(12, **wrong)])) == []


def test_a_producer_snapshot_after_a_marker_of_a_newer_epoch_has_no_batch() -> None:
    """A marker that raises the epoch makes Kafka forget the producer's last batch."""
    steps = [WORDS, Step(epoch=1, committed=True)]
    sound = producer_snapshot(3, producer_epoch=1, last_sequence=-1, last_offset=-1)
    assert judged(partition_of(steps, extra=[sound])) == []
    stale = producer_snapshot(3, producer_epoch=1)
    assert judged(partition_of(steps, extra=[stale])) == [("producer-snapshot", 3)]


def test_an_open_transaction_is_in_the_producer_snapshot() -> None:
    """The snapshot at a border has the first offset of a transaction that is open there."""
    sound = producer_snapshot(2, current_transaction_first_offset=0)
    assert judged(partition_of([WORDS], [COMMIT], extra=[sound])) == []
    assert judged(partition_of([WORDS], [COMMIT], extra=[producer_snapshot(2)])) == [("producer-snapshot", 2)]
