# SPDX-License-Identifier: Apache-2.0
"""A wrong driver, or a core that trusts it: effects in another order, and results that are late or come twice."""

from typing import Any, Final

from raftlog.quorum.driving import carrying_out
from raftlog.quorum.driving.disk_queue import DiskQueue
from raftlog.quorum.driving.replica_driver import ReplicaDriver
from raftlog.quorum.leading import serving
from raftlog.quorum.listening import delivering
from raftlog.quorum.seam.log_view import LogView
from raftlog.quorum.seam.outbox import Outbox
from tests.mutants.planting import Mutant, Wrong, instead, missing, swapped

DRIVER: Final = "tests/quorum/driving/test_replica_driver.py"
EFFECTS: Final = "tests/quorum/driving/test_carrying_out.py"
LATE: Final = "tests/quorum/seam/test_late_results.py"


def _newest_first(driver: Any) -> bool:
    driver._effects.extendleft(reversed(driver.raft.take_effects()))
    return bool(driver._effects)


def _as_often_as_it_comes(right: Wrong) -> Wrong:
    def answer_read(core: Any, number: int, records: Any) -> None:
        reading = [] if core.leadership is None else list(core.leadership.reading.items())
        right(core, number, records)
        for place, fetch in reading:
            if fetch.number == number:
                core.leadership.reading[place] = fetch

    return answer_read


def _with_another_pause(right: Wrong) -> Wrong:
    def close_delivery(core: Any, number: int, next_offset: Any) -> None:
        right(core, number, next_offset)
        for listener in core.listeners.values():
            listener.resume_ms = (listener.resume_ms or core.now_ms) + 1

    return close_delivery


def _watched_late(right: Wrong) -> Wrong:
    def settle(driver: Any) -> None:
        watch, carry_out = driver._watch, driver._carry_out
        if watch is not None:
            driver._watch, driver._carry_out = None, lambda effect: (carry_out(effect), watch(effect))
        try:
            right(driver)
        finally:
            driver._watch, driver._carry_out = watch, carry_out

    return settle


def _forgetful(right: Wrong) -> Wrong:
    def settle(driver: Any) -> None:
        try:
            right(driver)
        except BaseException:
            driver._effects.clear()
            raise

    return settle


def _without_a_report(right: Wrong) -> Wrong:
    def submit(queue: Any, job: Any, work: Any) -> None:
        right(queue, job._replace(failed=lambda _: None), work)

    return submit


_NO_ERRORS: Final[Any] = ()

MUTANTS: Final = (
    Mutant(
        "K-log-before-vote",
        "work on the log waits for the election states before it",
        "DECISIONS.md 61",
        instead(DiskQueue, "is_next_before", lambda *_: True),
        (f"{DRIVER}::test_threads_change_nothing_but_the_time",),
    ),
    Mutant(
        "S-nested-settle",
        "effects are carried out in order, also if the network answers at once",
        "DECISIONS.md 61",
        instead(ReplicaDriver, "_has_effects", _newest_first),
        (f"{DRIVER}::test_threads_change_nothing_but_the_time",),
    ),
    Mutant(
        "S-effects-lost",
        "an embedder that raises loses no effect",
        "DECISIONS.md 61",
        swapped(ReplicaDriver, "settle", _forgetful),
        (f"{DRIVER}::test_an_embedder_that_raises_loses_no_effect",),
    ),
    Mutant(
        "S-work-refused",
        "work that the executor does not take has failed",
        "DECISIONS.md 61",
        swapped(DiskQueue, "_submit", _without_a_report),
        (f"{DRIVER}::test_work_that_the_executor_does_not_take_stops_the_replica",),
    ),
    Mutant(
        "S-after-a-failure",
        "no work for the disk begins once the replica has halted",
        "DECISIONS.md 61",
        missing(DiskQueue, "clear"),
        (f"{DRIVER}::test_no_work_begins_after_a_failure",),
    ),
    Mutant(
        "S-watched-late",
        "an effect is watched before it is carried out",
        "DECISIONS.md 61",
        swapped(ReplicaDriver, "settle", _watched_late),
        (f"{DRIVER}::test_effects_are_watched_before_they_are_carried_out",),
    ),
    Mutant(
        "R24-view",
        "a report with a view that is older than the last one is refused",
        "etcd-io/raft async_storage_writes_append_aba_race",
        instead(LogView, "is_older_than", lambda *_: False),
        (LATE,),
    ),
    Mutant(
        "R24-twice",
        "the result of a read is taken once",
        "DECISIONS.md 61",
        swapped(serving, "answer_read", _as_often_as_it_comes),
        (LATE,),
    ),
    Mutant(
        "R24-delivery",
        "a delivery is closed once",
        "DECISIONS.md 60",
        swapped(delivering, "close_delivery", _with_another_pause),
        (LATE,),
    ),
    Mutant(
        "R24-failed",
        "the failure of an effect that never was does not stop a replica",
        "DECISIONS.md 61",
        missing(Outbox, "check_handed_out"),
        (f"{LATE}::test_a_number_that_never_was_is_misuse",),
    ),
    Mutant(
        "K-bad-records",
        "a leader cannot stop its follower by records that the log refuses",
        "KAFKA-18723",
        instead(carrying_out, "_BAD_RECORDS", _NO_ERRORS),
        (EFFECTS,),
    ),
)
