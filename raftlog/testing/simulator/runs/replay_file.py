# SPDX-License-Identifier: Apache-2.0
"""Replay files: a schedule as JSON, with the violation that it leads to.

::

    {"format": "raftlog-schedule", "version": 1, "configuration": {…}, "plan": {…}, "machine": "bank:Bank",
     "violation": {"invariant": "…", "description": "…"},
     "choices": [["crash", [], 0, 1], ["loss", [1, 2], 14, 1], …]}

A choice is its kind, the replicas that it is about, its number, and its value. Without ``machine``, the state machine
is the built-in one. The file has no state of a generator of random numbers, so it can be edited.
"""

import json
import math
from typing import Any, Final

import attrs

from raftlog.errors import OptionError
from raftlog.testing.simulator.applications.checked_machine import MachineKind
from raftlog.testing.simulator.applications.registers import BUILT_IN
from raftlog.testing.simulator.choices import ChoiceName
from raftlog.testing.simulator.fault_plan import APPEND_INTERVALS_MS, FaultPlan
from raftlog.testing.simulator.runs.schedule import Schedule
from raftlog.testing.simulator.simulation import CONFIG, SCHEDULE_MS
from raftlog.testing.simulator.violation import ViolationError

_FORMAT: Final = "raftlog-schedule"
_VERSION: Final = 1
MAX_FILE_BYTES: Final = 64 << 20


def encode_schedule(schedule: Schedule, violation: ViolationError | None = None) -> str:
    """Return the text of a replay file."""
    fields: dict[str, Any] = {
        "format": _FORMAT,
        "version": _VERSION,
        "configuration": _configuration(),
        "plan": attrs.asdict(schedule.plan),
    }
    if schedule.kind != BUILT_IN:
        fields["machine"] = schedule.kind.place
    if violation is not None:
        fields["violation"] = {"invariant": violation.invariant, "description": violation.description}
    lines = [json.dumps([name.kind, list(name.of), name.number, value]) for name, value in schedule.deviations.items()]
    head = json.dumps(fields, indent=1)[:-2]
    return f'{head},\n "choices": [\n  ' + ",\n  ".join(lines) + "\n ]\n}\n"


def decode_schedule(data: bytes, path: str, kind: MachineKind = BUILT_IN) -> Schedule:
    """Return what a replay file holds.

    Args:
        data: its contents. Of a larger file, the first ``MAX_FILE_BYTES`` and one byte more are enough.
        path: its name, for errors.
        kind: of the state machines: the one that was recorded.

    Raises:
        OptionError: it is no replay file, or one of another version, configuration or state machine, or too large.
    """
    if len(data) > MAX_FILE_BYTES:
        raise OptionError("replay", f"{path} is larger than {MAX_FILE_BYTES} bytes")
    try:
        fields = json.loads(data)
    except ValueError as error:
        raise OptionError("replay", f"{path} is no JSON: {error}") from None
    if not isinstance(fields, dict) or fields.get("format") != _FORMAT:
        raise OptionError("replay", f"{path} is no replay file: its format is not {_FORMAT}")
    if fields.get("version") != _VERSION:
        raise OptionError("replay", f"{path} has version {fields.get('version')!r}, and this release reads {_VERSION}")
    _check_configuration(path, fields.get("configuration"))
    expected = None if kind == BUILT_IN else kind.place
    if fields.get("machine") != expected:
        needed = f"--machine {fields['machine']}" if fields.get("machine") else "no --machine"
        raise OptionError("replay", f"{path} was recorded with another state machine: it needs {needed}")
    return Schedule(_plan(path, fields.get("plan")), dict(_choices(path, fields.get("choices"))), kind)


def _configuration() -> dict[str, Any]:
    return {"schedule_ms": SCHEDULE_MS, **attrs.asdict(CONFIG)}


def _check_configuration(path: str, found: Any) -> None:
    if not isinstance(found, dict):
        raise OptionError("replay", f"{path} has no configuration")
    for name, value in _configuration().items():
        if found.get(name) != value:
            reason = f"{path} was recorded with {name} {found.get(name)!r}, and this release has {value!r}"
            raise OptionError("replay", reason)


def _plan(path: str, found: Any) -> FaultPlan:
    known = attrs.fields_dict(FaultPlan)
    if not isinstance(found, dict) or found.keys() != known.keys():
        raise OptionError("replay", f"{path} has another fault plan than this release")
    for name, value in found.items():
        of_type = known[name].type
        is_number = isinstance(value, int) or (of_type is float and isinstance(value, float))
        if not is_number or isinstance(value, bool) != (of_type is bool) or not 0 <= value < math.inf:
            raise OptionError("replay", f"{path} has {value!r} for {name} in its fault plan")
    plan = FaultPlan(**found)
    if not 1 <= plan.voters + plan.observers <= max(APPEND_INTERVALS_MS) or plan.voters < 1:
        raise OptionError("replay", f"{path} has {plan.voters} voters and {plan.observers} observers")
    return plan


def _choices(path: str, found: Any) -> "list[tuple[ChoiceName, int | float]]":
    if not isinstance(found, list):
        raise OptionError("replay", f"{path} has no choices")
    choices: list[tuple[ChoiceName, int | float]] = []
    for number, entry in enumerate(found):
        match entry:
            case [str(kind), list(of), int(index), int() | float() as value] if all(
                isinstance(each, int) for each in of
            ) and math.isfinite(value):
                choices.append((ChoiceName(kind, tuple(of), index), value))
            case _:
                raise OptionError("replay", f"{path}: choice {number} is no kind, replicas, number and value")
    return choices
