# SPDX-License-Identifier: Apache-2.0
"""Transactions of a log are searched for when the first batch is met that may be part of one."""

import itertools
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.batches.iterator import BufferSource
from raftlog.records.columns.transactions import Transactions, find_transactions
from raftlog.tools.mirrors.comparing.log_view import SummedLog, SummedView
from raftlog.tools.mirrors.comparing.rows import ABORTED, UNKNOWN, DigestRows
from raftlog.tools.mirrors.reading.log_reading import SumsRequest, read_log
from raftlog.tools.mirrors.reading.log_rows import LogRows, LogTransactions, SegmentPlace
from tests.consumer_logs import ConsumerLog, Step, steps


class Searches:
    """Finds the transactions of a log, and counts how often it was asked."""

    def __init__(self, log: ConsumerLog) -> None:
        self._log = log
        self.count = 0

    def __call__(self) -> Transactions:
        """Return them."""
        self.count += 1
        return find_transactions(BufferSource(b"".join(self._log.batches)))


def segments_of(log: ConsumerLog, folder: Path, cuts: list[int]) -> list[SegmentPlace]:
    """The log as segment files; ``cuts`` choose the batches that begin them."""
    bounds = [*sorted({0, *(cut % len(log.batches) for cut in cuts)}), len(log.batches)]
    found = []
    for first, last in itertools.pairwise(bounds):
        path = folder / f"{log.base_offsets[first]:020}.log"
        path.write_bytes(b"".join(log.batches[first:last]))
        found.append(SegmentPlace(str(path), log.base_offsets[first]))
    return found


def asked(view: SummedView, edges: list[int]) -> list[list[object]]:
    """What a view says between some offsets: counts and sums."""
    ranks = view.ranks(np.array(edges, np.int64))
    return [ranks.tolist(), view.sums(ranks)[0].tolist()]


def both(summed: SummedLog, edges: list[int]) -> list[list[list[object]]]:
    """What a log says with aborted records and without."""
    return [asked(summed.all, edges), asked(summed.committed, edges)]


@given(steps.filter(bool), st.lists(st.integers(0, 20), max_size=3), st.booleans())
def test_what_is_aborted_is_known_wherever_it_begins(made: list[Step], cuts: list[int], has_places: bool) -> None:
    """Rows and sums are those of a log whose transactions were known before; they are searched for once, or not at all.

    They are not if no batch is transactional, or a control batch.
    """
    log = ConsumerLog(made)
    aborted = {each.offset for each in log.records if each.is_aborted}
    edges = list(range(log.end_offset + 1))
    with tempfile.TemporaryDirectory() as folder:
        segments = segments_of(log, Path(folder), cuts)
        search = Searches(log)
        on_demand, known = LogTransactions(find=search), LogTransactions(Searches(log)())
        readings = []
        for transactions in (on_demand, known):
            rows = LogRows(segments, 0, log.end_offset, transactions, with_places=has_places)
            reading = read_log(SumsRequest(rows, np.array(edges, np.int64), wants_holes=True))
            flags = DigestRows.joined(rows.read(0, log.end_offset)).without_markers()
            is_aborted = (flags.flags & (ABORTED | UNKNOWN)) == ABORTED
            assert set(flags.offsets[is_aborted].tolist()) == aborted
            readings.append((both(reading.summed, edges), reading.holes, reading.damage))
        assert readings[0] == readings[1]
        has_marks = any(step.kind != "plain" for step in made)
        assert search.count == (1 if has_marks else 0)
        assert on_demand.has_aborted is known.has_aborted is bool(aborted or log.aborted)


def test_copies_of_a_log_share_what_was_found(tmp_path: Path) -> None:
    """One search serves the rows without timestamps, with places, and of a part."""
    log = ConsumerLog([Step("plain"), Step("write"), Step("abort")])
    search = Searches(log)
    segments = segments_of(log, tmp_path, [])
    rows = LogRows(segments, 0, log.end_offset, LogTransactions(find=search))
    for each in (rows, rows.without_timestamps(), rows.placed(), rows.within(segments[0], 0, 4)):
        found = DigestRows.joined(each.read(0, log.end_offset)).without_markers()
        assert found.flags.tolist() == [0, 0, ABORTED, ABORTED]
    assert search.count == 1


def test_a_part_has_the_transactions_of_its_offsets(tmp_path: Path) -> None:
    """They are searched for before it is read: a part does not say which transactions reach into it."""
    log = ConsumerLog([Step("write"), Step("plain"), Step("abort")])
    rows = LogRows(segments_of(log, tmp_path, []), 0, log.end_offset, LogTransactions(find=Searches(log)))
    for first, end, has_aborted in ((0, 2, True), (1, 2, True), (4, 5, True), (5, 9, False)):
        assert rows.within(rows.segments[0], first, end).has_aborted is has_aborted


def test_a_log_without_transactions_has_none() -> None:
    """Neither known nor searched for."""
    assert not LogTransactions().has_aborted
    assert LogTransactions().all() == Transactions()
    with pytest.raises(ValueError):
        LogTransactions(find=lambda: (_ for _ in ()).throw(ValueError)).all()
