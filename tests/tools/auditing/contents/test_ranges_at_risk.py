# SPDX-License-Identifier: Apache-2.0
"""Which offsets of which replica are told to an operator, for the cases in which something may be lost or dropped."""

from collections.abc import Iterator

import pytest

from raftlog.records.batches.batch import RecordBatch
from raftlog.tools.auditing.contents import records_at_risk as module
from raftlog.tools.auditing.contents.records_at_risk import at_risk_words, records_at_risk
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence
from tests.tools.auditing.history.test_verdicts import THREE, log_of, node, observer, view_of
from tests.tools.auditing.made_quorum import voters

Node = list[PartitionEvidence]


def unreadable(_: FileEvidence, __: int, ___: int) -> Iterator[RecordBatch]:
    """Read nothing, as where a file has gone."""
    yield from ()


def told(*nodes: Node) -> set[tuple[str, int, int]]:
    """The ranges that are told."""
    evidence = [place for each in nodes for place in each]
    view = view_of(*nodes)
    found = records_at_risk(view, evidence, unreadable)
    assert [line.endswith(" could not be read.") for line in at_risk_words(view, found)] == [True] * len(found)
    ranges = [(each.path, each.start_offset, each.end_offset) for each in found]
    assert len(set(ranges)) == len(ranges)
    return set(ranges)


def test_nothing_is_at_risk() -> None:
    """Three equal logs."""
    assert told(*(node(log_of(each, 9), epoch=1) for each in THREE)) == set()


def test_what_a_snapshot_proves_and_no_voter_has() -> None:
    """It is told of the observer that still has it, or of none if only the snapshot is left."""
    voting = [node(log_of(each, 205), epoch=1) for each in THREE]
    assert told(*voting, observer(223, snapshot=223)) == {("n9", 205, 223)}
    assert told(*voting, observer(9, snapshot=223)) == set()


def test_what_only_one_replica_has() -> None:
    """The absent ones may elect each other: what is not proven may be lost."""
    assert told(node(log_of(1, 9), epoch=1)) == {("n1", 0, 9)}


def test_replicas_with_the_same_records() -> None:
    """They are told once; what only one of them has is a range of its own."""
    five = (1, 2, 3, 4, 5)
    equal = [node(log_of(each, 9, named=five), epoch=1) for each in (1, 2)]
    assert told(*equal) == {("n1", 0, 9)}
    assert told(*equal, node(log_of(3, 8, named=five), epoch=1)) == {("n1", 8, 9)}


def forked(*, is_proven: bool) -> list[Node]:
    """Voter 1 led epoch 2 without the records from 205 on, which 2 and 3 have of epoch 1."""
    old = [log_of(each, 223) for each in (2, 3)]
    if is_proven:
        old[0].snapshot(220, epoch=1, named=voters(*THREE))
    return [node(log_of(1, 230, epochs=((2, 205),)), epoch=2), *(node(each, epoch=1) for each in old)]


def test_a_fork() -> None:
    """Each side of it is told, once: what is proven up to 220 is a part of what one replica has up to 223."""
    for is_proven in (True, False):
        assert told(*forked(is_proven=is_proven)) == {("n1", 205, 230), ("n2", 205, 223)}


def test_two_lineages() -> None:
    """Where both are proven, what each one holds is told, from the offset where they part."""
    rewritten = log_of(1, 201)
    rewritten.change(voters(1))
    rewritten.lead(1, (1,), epoch=2)
    found = told(node(rewritten.data(20), epoch=2), node(log_of(2, 223), epoch=1), observer(223, snapshot=223))
    assert {("n1", 202, 223), ("n2", 202, 223)} <= found


@pytest.mark.parametrize("most", [1, 2, 3])
def test_only_some_ranges_are_read(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first ones."""
    monkeypatch.setattr(module, "MOST_RANGES", most)
    assert len(told(*forked(is_proven=True))) == min(most, 2)
