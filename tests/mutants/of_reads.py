# SPDX-License-Identifier: Apache-2.0
"""Wrong linearizable reads: confirmed by what proves nothing, or by the wrong voters; and voters that store nothing."""

from collections.abc import Sequence
from typing import Any, Final

import attrs

from raftlog.quorum.following import fetching
from raftlog.quorum.high_watermark import majority_offset
from raftlog.quorum.leading import reading
from raftlog.quorum.pending_reads import PendingReads
from raftlog.quorum.seam.effects import ReadPolicy
from tests.mutants.planting import Mutant, Wrong, instead, swapped

READING: Final = "tests/quorum/leading/test_reading.py"
HOSTILE_NETWORK: Final = f"{READING}::test_no_read_misses_what_was_acknowledged_before_it"
SCENARIOS: Final = "tests/scenarios/test_scenarios.py::test_scenario"

_ANY_READ: Final = 2**62


def _of_any_time(right: Wrong) -> Wrong:
    return lambda reads, voter_key, _: right(reads, voter_key, _ANY_READ)


def _ignoring_writes_under_way(right: Wrong) -> Wrong:
    def begin(core: Any, leadership: Any) -> None:
        handed, leadership.handed_end_offset = leadership.handed_end_offset, 0
        right(core, leadership)
        leadership.handed_end_offset = handed

    return begin


def _before_the_first_commit(right: Wrong) -> Wrong:
    def begin(core: Any, leadership: Any) -> None:
        known = core.high_watermark
        core.high_watermark = core.committed_offset if known is None else known
        right(core, leadership)
        core.high_watermark = known

    return begin


def _until_the_leader_would_resign(right: Wrong) -> Wrong:
    return lambda core, leadership: _ANY_READ if core.now_ms < leadership.check_quorum_deadline_ms else None


def _with_a_smaller_majority(right: Wrong) -> Wrong:
    return lambda numbers, size: right(numbers, max(size - 1, 1))


def _counting_a_removed_leader(right: Wrong) -> Wrong:
    def confirmed(core: Any, leadership: Any) -> Any:
        found = right(core, leadership)
        if core.voters.is_voter(core.identity.key):
            return found
        newest = leadership.reads.newest
        numbers = [leadership.reads.confirmed.get(each, 0) for each in core.voters.voter_keys]
        return None if newest is None else majority_offset([newest, *numbers], core.voters.majority_size)

    return confirmed


def _by_id(right: Wrong) -> Wrong:
    def confirmed(core: Any, leadership: Any) -> Any:
        reads = leadership.reads
        by_id: dict[int, int] = {}
        for key, number in reads.confirmed.items():
            by_id[key.id] = max(number, by_id.get(key.id, 0))
        kept = reads.confirmed
        reads.confirmed = {each: by_id.get(each.id, 0) for each in core.voters.voter_keys}
        found = right(core, leadership)
        reads.confirmed = kept
        return found

    return confirmed


def _by_a_lease(right: Wrong) -> Wrong:
    def begin_read(core: Any, policy: Any, timeout_ms: int) -> int:
        return right(core, ReadPolicy.MAJORITY, timeout_ms)  # type: ignore[no-any-return]

    return begin_read


def _without_storing(right: Wrong) -> Wrong:
    def append(core: Any, *arguments: Any) -> None:
        identity, voters = core.identity, core.log
        if not identity.can_become_voter:
            found = attrs.evolve(voters.control_records, voter_sets=())
            core.log = attrs.evolve(voters, control_records=found)
        right(core, *arguments)
        core.log = voters

    return append


def _keeping_them(*_: Sequence[Any]) -> None:
    """Leave the reads of an ended leadership without an answer."""


MUTANTS: Final = (
    Mutant(
        "R-read-fetch",
        "a Fetch that arrives after a read does not confirm it",
        "Raft, 6.4, in a pull protocol",
        swapped(PendingReads, "note_fetch", _of_any_time),
        (f"{READING}::test_a_fetch_that_arrives_after_the_read_proves_nothing", HOSTILE_NETWORK, SCENARIOS),
    ),
    Mutant(
        "R-read-answer",
        "an announcement that was sent before a read does not confirm it",
        "Raft, 6.4",
        swapped(PendingReads, "note_answer", _of_any_time),
        (f"{READING}::test_an_announcement_that_was_sent_before_the_read_proves_nothing", HOSTILE_NETWORK, SCENARIOS),
    ),
    Mutant(
        "R-read-writes",
        "records that are being written when a read arrives do not confirm it",
        "Raft, 6.4, in a pull protocol",
        swapped(reading, "_begin", _ignoring_writes_under_way),
        (f"{READING}::test_records_that_are_being_written_when_the_read_arrives_prove_nothing",),
    ),
    Mutant(
        "R-read-epoch",
        "a read waits for the first commit of the epoch",
        "Raft, 8; etcd raft, read_only",
        swapped(reading, "_begin", _before_the_first_commit),
        (f"{READING}::test_a_read_waits_until_a_record_of_the_epoch_is_committed", HOSTILE_NETWORK, SCENARIOS),
    ),
    Mutant(
        "R-read-lease",
        "the time until a leader would resign proves nothing",
        "Raft, 6.4.1",
        swapped(reading, "_confirmed_by_majority", _until_the_leader_would_resign),
        (HOSTILE_NETWORK, SCENARIOS),
    ),
    Mutant(
        "R-read-majority",
        "a majority confirms a read",
        "Raft, 6.4",
        swapped(reading, "majority_offset", _with_a_smaller_majority),
        (f"{READING}::test_a_read_is_confirmed_by_a_majority", HOSTILE_NETWORK),
    ),
    Mutant(
        "K9-read",
        "a leader that is no voter does not confirm its reads",
        "KAFKA-16530",
        swapped(reading, "_confirmed_by_majority", _counting_a_removed_leader),
        (f"{READING}::test_the_voters_in_force_confirm",),
    ),
    Mutant(
        "R9-read",
        "a voter confirms a read with its directory",
        "KIP-853",
        swapped(reading, "_confirmed_by_majority", _by_id),
        (f"{READING}::test_what_a_voter_confirmed_with_another_directory_does_not_count",),
    ),
    Mutant(
        "R-read-policy",
        "reads by a lease are refused",
        "Raft, 6.4.1",
        swapped(reading, "begin_read", _by_a_lease),
        (f"{READING}::test_a_read_that_is_refused_changes_nothing", SCENARIOS),
    ),
    Mutant(
        "R-read-end",
        "reads end with the leadership",
        "etcd raft, read_only",
        instead(reading, "end_reads", _keeping_them),
        (f"{READING}::test_a_read_fails_with_the_leadership", SCENARIOS),
    ),
    Mutant(
        "R-witness",
        "a voter stores what it acknowledges, so there are no witness voters",
        "KIP-595",
        swapped(fetching, "_append", _without_storing),
        ("tests/quorum/test_raft.py::test_observers_that_may_become_voters_flush",),
    ),
)
