# SPDX-License-Identifier: Apache-2.0
"""Compares the voters that a replica has found in its log with what a scan of all its control records finds."""

from collections.abc import Sequence

from raftlog.testing.simulator.checks.ledger import Ledger, NamedVoters
from raftlog.testing.simulator.violation import check


def check_voter_history(ledger: Ledger, first_offset: int, found: Sequence[NamedVoters], kraft_version: int) -> None:
    """Check that a replica knows which voters are in force at each offset.

    Args:
        ledger: of its directory.
        first_offset: the first offset, inclusive, of which it knows the voters; -1 for those before the log.
        found: the sets that it knows, by the offsets of their records; none of them is static.
        kraft_version: that it takes to be in force at the log end.
    """
    before = ledger.voters_before(first_offset + 1)
    expected = [each for each in ledger.voter_sets if each.offset > first_offset]
    if before.offset >= 0 or ledger.levels[0][1]:
        is_first_right = bool(found) and found[0].offset <= first_offset and found[0].keys == before.keys
        check(is_first_right, "voter-history", "{}: {} at {}, not {}", ledger.key, found[:1], first_offset, before)
        found = found[1:]
    check(list(found) == expected, "voter-history", "{}: {}, not {}", ledger.key, found, expected)
    level = ledger.levels[-1][1]
    check(kraft_version == level, "voter-history", "{}: kraft.version {}, not {}", ledger.key, kraft_version, level)


def check_leader(ledger: Ledger) -> None:
    """Check that a leader, whose ledger this is, does not know that its removal is committed."""
    is_voter = ledger.names_as_voter(ledger.key) or ledger.voter_sets[-1].offset >= ledger.high_watermark
    check(is_voter, "removed-leaders-resign", "{} leads, after its removal is committed", ledger)
