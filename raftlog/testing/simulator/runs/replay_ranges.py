# SPDX-License-Identifier: Apache-2.0
"""The range of each field of a fault plan, and of each kind of choice, in a replay file.

A field is within what schedules draw, or switched off: what no schedule has was never tried, and a quorum that is too
slow for its own timeouts would be taken for one that does not recover.
"""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from raftlog.testing.simulator.fault_plan import APPEND_INTERVALS_MS, MOST_REPLICAS, FaultPlan
from raftlog.testing.simulator.runs.schedule import MAX_VOTERS

_NUMBERS: Final = 1 << 31


@attrs.frozen
class Range:
    """What a number may be.

    Attributes:
        least: the smallest one.
        most: the largest one, inclusive.
        may_be_off: whether it may be 0, too.
        is_whole: whether it is an integer.
    """

    least: float
    most: float
    may_be_off: bool = False
    is_whole: bool = True

    def __contains__(self, value: object) -> bool:
        is_number = isinstance(value, int) or (isinstance(value, float) and not self.is_whole)
        if not is_number or isinstance(value, bool):
            return False
        return bool(self.least <= value <= self.most or (self.may_be_off and value == 0))  # type: ignore[operator]

    def __str__(self) -> str:
        return f"{'0, or ' if self.may_be_off else ''}from {self.least:,} to {self.most:,}"


def _share(most: float) -> Range:
    return Range(0, most, is_whole=False)


PLAN_RANGES: Final[Mapping[str, Range]] = {
    "voters": Range(1, MAX_VOTERS),
    "observers": Range(0, MOST_REPLICAS - 1),
    "delay_ms": Range(3, 15, is_whole=False),
    "loss": _share(0.06),
    "duplication": _share(0.15),
    "cut_interval_ms": Range(6_000, 15_000, may_be_off=True),
    "crash_interval_ms": Range(5_000, 14_000, may_be_off=True),
    "armed_crashes": _share(0.95),
    "snapshot_crashes": _share(0.8),
    "rot": _share(0.5),
    "pause_interval_ms": Range(5_000, 15_000, may_be_off=True),
    "change_interval_ms": Range(1_500, 5_000, may_be_off=True),
    "kraft_version": Range(0, 1),
    "upgrade_ms": Range(5_000, 30_000, may_be_off=True),
    "clock_error_ppm": Range(1_000, 100_000, may_be_off=True),
    "sync_ms": Range(1, 20, is_whole=False),
    "slow_sync": _share(0.01),
    "append_interval_ms": Range(min(APPEND_INTERVALS_MS.values()), max(APPEND_INTERVALS_MS.values())),
    "listeners": Range(1, 2),
    "listener_delay_ms": Range(30, 1_500, is_whole=False),
    "snapshot_interval": Range(40, 150, may_be_off=True),
    "retention_bytes": Range(5_000, 15_000, may_be_off=True),
    "disk_error_interval_ms": Range(4_000, 12_000, may_be_off=True),
    "failed_crashes": _share(0.7),
    "misread_interval_ms": Range(4_000, 12_000, may_be_off=True),
    "torn_crashes": _share(0.5),
    "lies": _share(0.4),
    "autopilot_look_ms": Range(100, 200, may_be_off=True),
    "stabilize_ms": Range(500, 3_000, may_be_off=True),
    "demote_later_ms": Range(500, 3_000, may_be_off=True),
    "autopilot_max_lag": Range(8, 100, may_be_off=True),
    "replacement_interval_ms": Range(4_000, 12_000, may_be_off=True),
    "disk_loss_interval_ms": Range(3_000, 8_000, may_be_off=True),
}
"""Of each field that is no truth value."""

_TABLE: Final = (
    ("happens", 0, "change command-happens crash crash-armed cut cut-one-way disk-error disk-loss misread pause read"),
    ("happens", 0, "removal removal-of-dead replace-disk replacement victim-leads"),
    ("happens", 1, "cut-off damaged-other failed-crash lost-vote lying-sync nothing-read part-read recovery-crash rot"),
    ("happens", 1, "slow-sync snapshot-abandoned snapshot-crash some-kept torn-crash work-cut work-done"),
    ("happens", 0, "misread-snapshot"),
    ("happens", 1, "aimed-again aimed-crash aimed-damage aimed-full aimed-part aimed-read"),
    ("happens", 2, "duplicate loss"),
    ("time_ms", 0, "append-interval change-interval crash-interval cut-interval cut-time disk-error-interval"),
    ("time_ms", 0, "deposal disk-full-time disk-loss-interval misread-interval pause-interval pause-time"),
    ("time_ms", 0, "replacement-interval second-crash upgrade-interval"),
    ("time_ms", 1, "down-time listener-delay rotten-batches step-delay sync"),
    ("time_ms", 2, "delay"),
    ("number", 0, "appends command-number"),
    ("number", 1, "clock-error crash-state damaged-position fault-skip flipped-bit kept-batches lost-bytes"),
    ("number", 1, "aimed-byte aimed-skip misdirected-position read-end recovery-steps work-steps written-bytes"),
    ("fraction", 0, "values"),
    ("fraction", 1, "bootstrap-server election-timeout first-look misread-place"),
    ("fraction", 2, "even-delay"),
    ("pick", 0, "added command-pick cut-off-alone disk-error-kind disk-lost leader misread-kind removed replaced"),
    ("pick", 0, "victim"),
    ("pick", 1, "aimed-bit aimed-file aimed-kind aimed-path aimed-place aimed-step"),
    ("pick", 1, "damage damaged-file down fault-operation misdirected-file"),
)
CHOICE_KINDS: Final[Mapping[str, tuple[str, int]]] = {
    kind: (method, count) for method, count, kinds in _TABLE for kind in kinds.split()
}
"""The method of ``Choices`` that makes each kind of choice, and about how many replicas it is."""
_VALUE_RANGES: Final[Mapping[str, Range]] = {
    "happens": Range(0, 1),
    "time_ms": Range(0, _NUMBERS),
    "number": Range(-_NUMBERS, _NUMBERS),
    "fraction": Range(0, 1, is_whole=False),
    "pick": Range(0, _NUMBERS),
}
_IDS: Final = Range(1, MOST_REPLICAS)
_COUNTS: Final = Range(0, _NUMBERS)


def fault_in_plan(fields: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the first field of a fault plan that no schedule can have, and what it may be; None if there is none.

    Args:
        fields: all fields of a ``FaultPlan``, of any types.
    """
    for field in attrs.fields(FaultPlan):
        value, allowed = fields[field.name], PLAN_RANGES.get(field.name)
        if allowed is None and not isinstance(value, bool):
            return field.name, "true or false"
        if allowed is not None and value not in allowed:
            return field.name, str(allowed)
    return _fault_of_two(FaultPlan(**fields))


def _fault_of_two(plan: FaultPlan) -> tuple[str, str] | None:
    """Return a field that is out of range because of another one."""
    replicas = plan.voters + plan.observers
    if replicas > MOST_REPLICAS:
        return "observers", f"at most {MOST_REPLICAS - plan.voters} beside {plan.voters} voters"
    if plan.append_interval_ms < APPEND_INTERVALS_MS[replicas]:
        return "append_interval_ms", f"at least {APPEND_INTERVALS_MS[replicas]} for {replicas} replicas"
    if plan.autopilot_look_ms:
        for name in ("stabilize_ms", "autopilot_max_lag"):
            if not getattr(plan, name):
                return name, f"{PLAN_RANGES[name].least:,} or more with autopilots"
    is_loss_possible = plan.kraft_version and plan.change_interval_ms and not plan.autopilot_look_ms
    if plan.disk_loss_interval_ms and not is_loss_possible:
        return "disk_loss_interval_ms", "0 without changes of the voters, with autopilots, and at kraft.version 0"
    return None


def fault_in_choice(entry: object) -> str | None:
    """Return what is wrong with a choice in a replay file; None if nothing is.

    Args:
        entry: its kind, the replicas that it is about, its number and its value, of any types.
    """
    match entry:
        case [str(kind), list(of), number, value]:
            pass
        case _:
            return "is no kind, replicas, number and value"
    if kind not in CHOICE_KINDS:
        return "is of a kind that there is not"
    method, count = CHOICE_KINDS[kind]
    if len(of) != count or not all(each in _IDS for each in of):
        return f"needs {count} replicas, with ids {_IDS}"
    if number not in _COUNTS:
        return f"needs a number {_COUNTS}"
    allowed = _VALUE_RANGES[method]
    return None if value in allowed else f"needs a value {allowed}"
