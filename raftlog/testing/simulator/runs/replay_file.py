# SPDX-License-Identifier: Apache-2.0
"""Replay files: a schedule as JSON, with the violation that it leads to.

::

    {"format": "raftlog-schedule", "version": 1, "configuration": {…}, "plan": {…}, "machine": "bank:Bank",
     "violation": {"invariant": "…", "description": "…"},
     "choices": [["crash", [], 0, 1], ["loss", [1, 2], 14, 1], …]}

A choice is its kind, the replicas that it is about, its number, and its value. Without ``machine``, the state machine
is the built-in one. The file has no state of a generator of random numbers, so it can be edited, within the ranges of
``replay_ranges``.
"""

import json
import re
import reprlib
from typing import Any, Final

import attrs

from raftlog.errors import OptionError
from raftlog.testing.simulator.applications.checked_machine import MachineKind
from raftlog.testing.simulator.applications.registers import BUILT_IN
from raftlog.testing.simulator.choices import ChoiceName
from raftlog.testing.simulator.fault_plan import FaultPlan
from raftlog.testing.simulator.operating.settings import CONFIG
from raftlog.testing.simulator.runs.replay_ranges import fault_in_choice, fault_in_plan
from raftlog.testing.simulator.runs.schedule import Schedule
from raftlog.testing.simulator.simulation import SCHEDULE_MS
from raftlog.testing.simulator.violation import ViolationError

_FORMAT: Final = "raftlog-schedule"
_VERSION: Final = 1
_FIELDS: Final = frozenset({"format", "version", "configuration", "plan", "machine", "violation", "choices"})
_MACHINE: Final = re.compile(r"[\w.:]{0,1000}")
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
        fields = json.loads(data, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise OptionError("replay", f"{path} is no JSON: {error}") from None
    if not isinstance(fields, dict) or fields.get("format") != _FORMAT:
        raise OptionError("replay", f"{path} is no replay file: its format is not {_FORMAT}")
    if not _is_same(fields.get("version"), _VERSION):
        reason = f"{path} has version {_short(fields.get('version'))}, and this release reads {_VERSION}"
        raise OptionError("replay", reason)
    _check_configuration(path, fields.get("configuration"))
    _check_machine(path, fields, kind)
    if unknown := fields.keys() - _FIELDS:
        raise OptionError("replay", f"{path} has a field {_short(min(unknown))}, which no replay file has")
    return Schedule(_plan(path, fields.get("plan")), _choices(path, fields.get("choices")), kind)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("an object has a key twice")
    return fields


def _short(value: object) -> str:
    """Return a value as Python writes it, in few words."""
    return reprlib.repr(value)


def _is_same(found: object, expected: object) -> bool:
    """Whether two values are equal, and of one type: 1, 1.0 and true are three values."""
    return type(found) is type(expected) and found == expected


def _configuration() -> dict[str, Any]:
    return {"schedule_ms": SCHEDULE_MS, **attrs.asdict(CONFIG)}


def _check_configuration(path: str, found: Any) -> None:
    if not isinstance(found, dict):
        raise OptionError("replay", f"{path} has no configuration")
    known = _configuration()
    for name in (*known, *sorted(found.keys() - known.keys())):
        if not _is_same(found.get(name), known.get(name)):
            was, now = _short(found.get(name)), known.get(name)
            reason = f"{path} was recorded with {_named(name)} {was}, and this release has {now!r}"
            raise OptionError("replay", reason)


def _named(name: str) -> str:
    return name if name.isidentifier() else _short(name)


def _check_machine(path: str, fields: dict[str, Any], kind: MachineKind) -> None:
    found, expected = fields.get("machine"), None if kind == BUILT_IN else kind.place
    if found is not None and (not isinstance(found, str) or _MACHINE.fullmatch(found) is None):
        raise OptionError("replay", f"{path}: machine is {_short(found)}, not a module and class")
    if found != expected:
        needed = f"--machine {found}" if found else "no --machine"
        raise OptionError("replay", f"{path} was recorded with another state machine: it needs {needed}")


def _plan(path: str, found: Any) -> FaultPlan:
    if not isinstance(found, dict) or found.keys() != attrs.fields_dict(FaultPlan).keys():
        raise OptionError("replay", f"{path} has another fault plan than this release")
    fault = fault_in_plan(found)
    if fault is not None:
        name, allowed = fault
        raise OptionError("replay", f"{path}: {name} of its fault plan is {_short(found[name])}, not {allowed}")
    return FaultPlan(**found)


def _choices(path: str, found: Any) -> dict[ChoiceName, int | float]:
    if not isinstance(found, list):
        raise OptionError("replay", f"{path} has no choices")
    choices: dict[ChoiceName, int | float] = {}
    for index, entry in enumerate(found):
        fault = fault_in_choice(entry)
        if fault is None:
            kind, of, number, value = entry
            name = ChoiceName(kind, tuple(of), number)
            fault = "is there twice" if name in choices else None
            choices[name] = value
        if fault is not None:
            raise OptionError("replay", f"{path}: choice {index}, {_short(entry)}, {fault}")
    return choices
