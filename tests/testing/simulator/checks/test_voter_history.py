# SPDX-License-Identifier: Apache-2.0
"""The voters that a replica knows are those that a scan of its control records finds."""

import contextlib

import pytest

from raftlog.testing.simulator.checks.ledger import Ledger, NamedVoters
from raftlog.testing.simulator.checks.voter_history import check_leader, check_voter_history
from raftlog.testing.simulator.violation import ViolationError
from tests.quorum.single_replica import replica_key

SETS = [NamedVoters(offset, frozenset([replica_key(1 + offset)])) for offset in (-1, 4, 9)]


def ledger(level: int = 1) -> Ledger:
    """Return the ledger of a log that names voters at 4 and 9, after a first set."""
    return Ledger(replica_key(1), voter_sets=list(SETS), levels=[(-1, level)])


@pytest.mark.parametrize(("first_offset", "count"), [(-1, 3), (3, 3), (4, 2), (8, 2), (9, 1), (20, 1)])
def test_a_history_begins_with_the_set_in_force(first_offset: int, count: int) -> None:
    """Sets before that may be forgotten; the first may be known by the offset at which a snapshot named it."""
    check_voter_history(ledger(), first_offset, SETS[-count:], 1)
    named = [SETS[-count]._replace(offset=first_offset), *SETS[len(SETS) - count + 1 :]]
    check_voter_history(ledger(), first_offset, named, 1)


def test_static_voters_are_named_by_no_record() -> None:
    """Until the first record."""
    check_voter_history(ledger(0), -1, SETS[1:], 0)


@pytest.mark.parametrize(
    ("found", "level"),
    [(SETS[1:], 1), (SETS[:2], 1), ([], 1), ([SETS[1], *SETS[1:]], 1), (SETS, 0), ([*SETS, SETS[0]], 1)],
    ids=["without the first", "without the last", "none", "another first one", "another level", "one more"],
)
def test_another_history_is_a_violation(found: list[NamedVoters], level: int) -> None:
    """Whatever is wrong."""
    with pytest.raises(ViolationError, match="voter-history"):
        check_voter_history(ledger(), -1, found, level)


@pytest.mark.parametrize(
    ("leader", "high_watermark", "leads"), [(10, 10, True), (1, 9, True), (1, 10, False), (5, 5, True)]
)
def test_a_leader_resigns_when_its_removal_is_committed(leader: int, high_watermark: int, leads: bool) -> None:
    """Not before: the set at offset 9 is committed when the high watermark is 10, and is the last one."""
    found = ledger()
    found.key, found.high_watermark = replica_key(leader), high_watermark
    with contextlib.nullcontext() if leads else pytest.raises(ViolationError, match="removed-leaders-resign"):
        check_leader(found)
