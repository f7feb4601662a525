# SPDX-License-Identifier: Apache-2.0
"""Wrong settings, clocks and causes: what a core tries or awaits for ever, looks up in vain, or blames wrongly."""

from typing import Any, Final

import attrs
import pytest

from raftlog.quorum.leading import leading_epoch, serving
from raftlog.quorum.quorum_config import CLEANING_INTERVAL_MS, QuorumConfig
from raftlog.quorum.replica import LocalReplica
from raftlog.records.batches.accumulator import BatchAccumulator
from tests.mutants.planting import Mutant, Wrong, instead, instead_of_property, swapped

ACCUMULATOR: Final = "tests/records/batches/test_accumulator.py"
APPENDING: Final = "tests/quorum/leading/test_appending.py"
CLEANING: Final = "tests/quorum/snapshots/test_cleaning.py"
LEADING: Final = "tests/quorum/leading/test_leading.py"
MEMBERSHIP: Final = "tests/quorum/test_membership.py"
TRUNCATING: Final = "tests/quorum/following/test_truncating.py"
SETTINGS: Final = "tests/quorum/test_quorum_config.py"


def _unchecked(right: Wrong) -> Wrong:
    def init(*arguments: Any, **options: Any) -> None:
        with attrs.validators.disabled():
            right(*arguments, **options)

    return init


def _waiting_as_long_as_it_asks(right: Wrong) -> Wrong:
    def park(core: Any, leadership: Any, place: Any, fetch: Any) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(serving, "MAX_FETCH_WAIT_MS", 2**31)
            right(core, leadership, place, fetch)

    return park


def _cleaning_as_kafka_does(right: Wrong) -> Wrong:
    def init(*arguments: Any, **options: Any) -> None:
        right(*arguments, **{**options, "cleaning_interval_ms": CLEANING_INTERVAL_MS})

    return init


def _without_a_least(config: Any) -> int:
    return int(config.fetch_timeout_ms // 2)


def _by_the_time_of_day(core: Any) -> bool:
    leadership = core.leadership
    batches = None if leadership is None or leadership.flushing is not None else leadership.batches
    return batches is not None and bool(batches.needs_drain(core.wall_ms))


def _due_by_the_time_of_day(right: Wrong) -> Wrong:
    def append(batches: Any, *arguments: Any, **options: Any) -> Any:
        return right(batches, *arguments, **{**options, "clock_ms": None})

    return append


def _looking_at_all(right: Wrong) -> Wrong:
    def note_membership(core: Any) -> None:
        core._membership_of = None
        right(core)

    return note_membership


def _looking_at_none(right: Wrong) -> Wrong:
    def note_membership(core: Any) -> None:
        right(core)
        core._next_voters_offset = 2**63

    return note_membership


def _plant_forgetting_truncations() -> None:
    setattr(LocalReplica, "truncation", property(lambda _: None, lambda _, __: None))  # noqa: B010


MUTANTS: Final = (
    Mutant(
        "R-linger-by-wall",
        "records are written after the linger, even if the time of day stands still",
        "the seam: wall time only stamps records",
        instead(leading_epoch, "is_append_due", _by_the_time_of_day),
        (f"{APPENDING}::test_the_time_of_day_stamps_records_and_ends_no_linger",),
    ),
    Mutant(
        "R-linger-begin",
        "the linger begins by the clock that ends it",
        "the seam: wall time only stamps records",
        swapped(BatchAccumulator, "append", _due_by_the_time_of_day),
        (f"{ACCUMULATOR}::test_the_linger_may_have_a_clock_of_its_own", APPENDING),
    ),
    Mutant(
        "R-truncation-blame",
        "a replica that halts because the log refuses a truncation says which leader has asked for it",
        "an embedder that is told that the disk has failed looks in the wrong place",
        _plant_forgetting_truncations,
        (TRUNCATING,),
    ),
    Mutant(
        "R-membership-cost",
        "a commit costs an observer nothing for the voter sets of the past",
        "a loop over all voter sets at each commit",
        swapped(LocalReplica, "_note_membership", _looking_at_all),
        (f"{MEMBERSHIP}::test_an_observer_looks_at_voter_sets_only_when_one_is_committed",),
    ),
    Mutant(
        "R-membership-missed",
        "a replica knows that it is a voter when the set that says so is committed",
        "KafkaRaftClient, auto-join after a removal",
        swapped(LocalReplica, "_note_membership", _looking_at_none),
        (f"{MEMBERSHIP}::test_an_observer_looks_at_voter_sets_only_when_one_is_committed",),
    ),
    Mutant(
        "R-no-pause",
        "no setting lets a replica try something for ever at one time",
        "QuorumConfig, which takes 0",
        swapped(QuorumConfig, "__init__", _unchecked),
        (SETTINGS,),
    ),
    Mutant(
        "R-no-pause-announcing",
        "a leader announces itself once at a time, however short the fetch timeout is",
        "QuorumConfig, which takes 0",
        instead_of_property(QuorumConfig, "begin_quorum_epoch_interval_ms", _without_a_least),
        (f"{SETTINGS}::test_a_replica_can_run_with_the_least",),
    ),
    Mutant(
        "R-fetch-waits",
        "no Fetch waits for more than five minutes, whatever it asks for",
        "DECISIONS.md 54",
        swapped(serving, "_park", _waiting_as_long_as_it_asks),
        (f"{LEADING}::test_a_fetch_waits_for_a_bounded_time",),
    ),
    Mutant(
        "R-cleaning-interval",
        "the log is cleaned as often as the settings say",
        "KafkaMetadataLog#maybeClean, which Kafka runs once a minute",
        swapped(QuorumConfig, "__init__", _cleaning_as_kafka_does),
        (CLEANING,),
    ),
)
