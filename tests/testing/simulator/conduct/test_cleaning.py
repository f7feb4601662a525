# SPDX-License-Identifier: Apache-2.0
"""When a log must be cleaned, and when not."""

import pytest

from raftlog.offsets import OffsetAndEpoch
from raftlog.testing.simulator.checks.ledger import Ledger
from raftlog.testing.simulator.conduct.cleaning import CLEANING_MS, CleaningCheck
from raftlog.testing.simulator.violation import ViolationError
from tests.testing.simulator.checks.quorum_disks import QuorumDisks

IDS = tuple(OffsetAndEpoch(offset, 1) for offset in (5, 10, 15))


def cleaned(*, is_kept: bool = False, is_slow: bool = False) -> tuple[Ledger, CleaningCheck]:
    """Return a ledger with two snapshots, and their check, which has seen them at 0 ms."""
    ledger = QuorumDisks(1).ledgers[1]
    ledger.snapshots = IDS[:2]
    found = CleaningCheck(ledger, is_kept=is_kept, is_slow=is_slow, pause_ms=100)
    found.check(0, is_full=False)
    return ledger, found


def test_the_oldest_of_two_goes_in_time() -> None:
    """At the last moment it may still be there."""
    _, found = cleaned()
    found.check(CLEANING_MS, is_full=False)
    with pytest.raises(ViolationError, match="logs-are-cleaned"):
        found.check(CLEANING_MS + 1, is_full=False)


@pytest.mark.parametrize("reason", ["one", "other", "kept", "slow", "quarantine"])
def test_reasons_to_keep_it(reason: str) -> None:
    """The only one stays, as does what the retention keeps; a log in quarantine deletes nothing."""
    ledger, found = cleaned(is_kept=reason == "kept", is_slow=reason == "slow")
    if reason in {"one", "other"}:
        ledger.snapshots = IDS[1:2] if reason == "one" else IDS[1:]
        found.check(10, is_full=False)
    ledger.quarantine_end = 1 if reason == "quarantine" else 0
    found.check(CLEANING_MS + 1, is_full=False)


def test_a_full_disk_puts_a_cleaning_off() -> None:
    """While there is no room nothing is deleted; once there is, it has all of the time."""
    _, found = cleaned()
    found.check(CLEANING_MS + 1, is_full=True)
    found.check(2 * CLEANING_MS + 1, is_full=False)
    with pytest.raises(ViolationError, match="logs-are-cleaned"):
        found.check(2 * CLEANING_MS + 2, is_full=False)


@pytest.mark.parametrize(("after_ms", "is_right"), [(99, False), (100, True)])
def test_a_cleaning_that_deletes_nothing_is_the_last_for_a_while(after_ms: int, is_right: bool) -> None:
    """After one that has deleted something, the next one may begin at once."""
    ledger, found = cleaned()
    found.began(0)
    ledger.snapshots = IDS[1:]
    found.began(0)
    if is_right:
        found.began(after_ms)
    else:
        with pytest.raises(ViolationError, match="cleaning-pauses"):
            found.began(after_ms)
