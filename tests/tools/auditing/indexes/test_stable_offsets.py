# SPDX-License-Identifier: Apache-2.0
"""Last stable offsets of a transaction index: what any broker writes is silent, and any other value is one finding.

A model of ``ProducerStateManager`` appends batches in groups, as leaders and followers do, and writes the entries.
"""

import itertools
from collections.abc import Iterable, Sequence

import attrs
from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.files.file_names import FileKind
from raftlog.records.files.index_entries import MAX_RELATIVE_OFFSET, TRANSACTION_INDEX, AbortedTransaction
from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.producers.producer_rules import judge_producers
from raftlog.tools.catalogue.findings import Finding
from tests.tools.auditing.produced_logs import PLACE, Step, batches, offsets_of, survey

PRODUCERS = (7, 8, 9)
START = 50
"""The log start: retention has taken what was before it."""

WORDS = st.lists(st.tuples(st.sampled_from(PRODUCERS), st.sampled_from(("write", "abort", "commit"))), max_size=12)
PLACES = st.sets(st.integers(1, 11))


def steps_of(words: Iterable[tuple[int, str]], before: Sequence[Step] = (), leader_epoch: int = 1) -> list[Step]:
    """Return the batches that producers write after some others; a marker where nothing is open becomes records."""
    steps = list(before)
    for producer, word in words:
        own = [step for step in steps if step.producer_id == producer]
        is_open = bool(own) and own[-1].committed is None
        step = Step(producer, is_transactional=True, leader_epoch=leader_epoch)
        if is_open and word != "write":
            steps.append(attrs.evolve(step, committed=word == "commit"))
        else:
            steps.append(attrs.evolve(step, sequence=sum(each.count for each in own if each.committed is None)))
    return steps


def entries_of(steps: Sequence[Step], starts_of_appends: Iterable[int]) -> dict[int, AbortedTransaction]:
    """Return the entries that a broker writes, by the number of the marker's batch.

    Kafka takes in all batches of an append first, and only then ends its transactions, in order.
    """
    offsets = offsets_of(steps, START)
    bounds = sorted({0, *(number for number in starts_of_appends if number < len(steps)), len(steps)})
    begun: dict[int, int] = {}
    ongoing: dict[int, int] = {}  # Producers by the first offset of their transaction.
    entries = {}
    for first, end in itertools.pairwise(bounds):
        ended = []
        for number in range(first, end):
            producer = steps[number].producer_id
            if steps[number].committed is not None:
                ended.append((number, begun.pop(producer)))
            elif producer not in begun:
                begun[producer] = offsets[number]
                ongoing[offsets[number]] = producer
        for number, begin in ended:
            producer, marker = steps[number].producer_id, offsets[number]
            stable = min((offset for offset, other in ongoing.items() if other != producer), default=marker + 1)
            if steps[number].committed is False:
                entries[number] = AbortedTransaction(0, producer, begin, marker, stable)
            del ongoing[begin]
    return entries


def found_in(steps: Sequence[Step], rolls: Iterable[int], entries: dict[int, AbortedTransaction]) -> list[Finding]:
    """Return what the audit finds in a log whose segments begin at some of its batches."""
    offsets = [*offsets_of(steps, START), START + sum(step.offset_count for step in steps)]
    bounds = sorted({0, *(number for number in rolls if number < len(steps)), len(steps)})
    segments = []
    for first, end in itertools.pairwise(bounds):
        index = TRANSACTION_INDEX.encode([entries[number] for number in range(first, end) if number in entries])
        log = b"".join(batches(steps[first:end], offsets[first]))
        segments.append(survey(log, offsets[first], indexes={FileKind.TRANSACTION_INDEX: index}))
    found = [finding for segment in segments for finding in segment.findings]
    judged = judge_producers(PartitionEvidence(PLACE, tuple(segments)))
    return [*found, *(finding for finding in judged if finding.rule.startswith("transaction-index"))]


@given(WORDS, PLACES, PLACES)
def test_what_a_broker_writes_is_right(words: list[tuple[int, str]], rolls: set[int], appends: set[int]) -> None:
    """However it groups batches; an append is in one segment."""
    steps = steps_of(words)
    assert found_in(steps, rolls, entries_of(steps, rolls | appends)) == []


@given(WORDS, WORDS, st.integers(0, 12), st.tuples(PLACES, PLACES, PLACES, PLACES))
def test_what_is_left_of_a_truncated_log_is_right(
    words: list[tuple[int, str]], later_words: list[tuple[int, str]], kept: int, places: tuple[set[int], ...]
) -> None:
    """An entry may name a transaction that a follower has truncated, whatever the next leader wrote in its place."""
    rolls, appends, later_rolls, later_appends = places
    steps = steps_of(words)
    kept = min(kept, len(steps))
    entries = {number: entry for number, entry in entries_of(steps, rolls | appends).items() if number < kept}
    steps = steps_of(later_words, steps[:kept], leader_epoch=2)
    rolls = {number for number in rolls if number <= kept} | {number for number in later_rolls if number > kept}
    later = entries_of(steps, rolls | later_appends | {kept})
    entries |= {number: entry for number, entry in later.items() if number >= kept}
    assert {finding.rule for finding in found_in(steps, rolls, entries)} <= {"transaction-index-ahead"}


@given(WORDS, PLACES, PLACES, st.data())
def test_any_other_value_is_one_finding(
    words: list[tuple[int, str]], rolls: set[int], appends: set[int], data: st.DataObject
) -> None:
    """Too early or too late by any distance, but for the unknown before the log start.

    It is only suspicious past the log's end, where a transaction may have begun that a truncation or crash took away.
    """
    steps = steps_of([*words, (7, "write"), (7, "abort")])
    end = START + sum(step.offset_count for step in steps)
    entries = entries_of(steps, rolls | appends)
    spoiled = data.draw(st.sampled_from(sorted(entries)))
    stable = data.draw(st.integers(START - 2, end + 2) | st.sampled_from((START + MAX_RELATIVE_OFFSET + 1, 1 << 40)))
    entry = entries[spoiled] = entries[spoiled]._replace(last_stable_offset=stable)
    segment_start = max((number for number in rolls if number <= spoiled), default=0)
    segment_end = min((number for number in rolls if spoiled < number < len(steps)), default=len(steps))
    singly = set(range(len(steps)))
    possible = {
        entries_of(steps, singly - set(range(spoiled + 1, last)))[spoiled].last_stable_offset
        for last in range(spoiled + 1, segment_end + 1)
    }
    may_be_lost = segment_end == len(steps) and entry.last_offset + 1 in possible
    reach = offsets_of(steps, START)[segment_start] + MAX_RELATIVE_OFFSET
    is_right = stable in possible or stable < START
    rule = "transaction-index-ahead" if may_be_lost and end <= stable <= reach else "transaction-index"
    found = [(finding.rule, finding.offset) for finding in found_in(steps, rolls, entries)]
    assert found == ([] if is_right else [(rule, entry.last_offset)])
