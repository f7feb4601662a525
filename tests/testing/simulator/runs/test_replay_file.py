# SPDX-License-Identifier: Apache-2.0
"""Replay files: read as they are written, and refused by name if they are anything else."""

import ast
import json
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import OptionError
from raftlog.testing.simulator.choices import ChoiceName, RecordedChoices, SeededChoices
from raftlog.testing.simulator.fault_plan import Storage, draw_fault_plan
from raftlog.testing.simulator.runs import replay_file
from raftlog.testing.simulator.runs.replay_file import decode_schedule, encode_schedule
from raftlog.testing.simulator.runs.replay_ranges import CHOICE_KINDS, PLAN_RANGES, Range, fault_in_plan
from raftlog.testing.simulator.runs.schedule import SWITCHES, Schedule, ScheduleOptions, Token, plan_of, replay
from raftlog.testing.simulator.simulation import Simulation
from raftlog.testing.simulator.violation import ViolationError
from tests.checkout import ROOT

VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    "happens": st.integers(0, 1),
    "time_ms": st.integers(0, 1 << 31),
    "number": st.integers(-(1 << 31), 1 << 31),
    "fraction": st.floats(0, 1),
    "pick": st.integers(0, 1 << 31),
}


@st.composite
def _choices(draw: st.DrawFn) -> tuple[ChoiceName, int | float]:
    kind = draw(st.sampled_from(list(CHOICE_KINDS)))
    method, count = CHOICE_KINDS[kind]
    ids = draw(st.tuples(*[st.integers(1, 8)] * count))
    return ChoiceName(kind, ids, draw(st.integers(0, 1 << 31))), draw(VALUES[method])


DEVIATIONS = st.lists(_choices(), max_size=20).map(dict)


@given(st.integers(0, 1000), DEVIATIONS, st.none() | st.just(ViolationError("recovery", 'in "quotes"\nand lines')))
def test_a_file_is_read_as_it_is_written(seed: int, deviations: Any, violation: ViolationError | None) -> None:
    """Exactly, floats too, and in the same order; the violation is for people."""
    schedule = Schedule(draw_fault_plan(random.Random(seed)), deviations)
    text = encode_schedule(schedule, violation)
    found = decode_schedule(text.encode(), "run.json")
    assert found == schedule
    assert list(found.deviations) == list(deviations)
    fields = json.loads(text)
    assert ("violation" in fields) == (violation is not None)


def _set(*names: str | int, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(fields: Any) -> None:
        for name in names[:-1]:
            fields = fields[name]
        fields[names[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_set("format", to="other"), "no replay file"),
        (_set("version", to=2), "version 2"),
        (_set("version", to="1"), "version '1'"),
        (_set("version", to=True), "version True"),
        (_set("version", to=1.0), "version 1.0"),
        (_set("configuration", to=None), "no configuration"),
        (_set("configuration", "election_timeout_ms", to=301), "election_timeout_ms 301, and this release has 300"),
        (_set("configuration", "election_timeout_ms", to=300.0), "election_timeout_ms 300.0, and this release has 300"),
        (_set("configuration", "more\n", to=1), r"'more\\n' 1, and this release has None"),
        (lambda fields: fields["configuration"].pop("schedule_ms"), "schedule_ms None"),
        (_set("machine", to=["x"]), "machine is \\['x'\\], not a module"),
        (_set("machine", to="evil; rm"), "machine is 'evil; rm', not a module"),
        (_set("machine", to="bank:Bank"), "it needs --machine bank:Bank"),
        (_set("more", to=1), "has a field 'more'"),
        (lambda fields: fields["plan"].pop("loss"), "another fault plan"),
        (_set("plan", "fire", to=1), "another fault plan"),
        (_set("plan", "loss", to="much"), "loss of its fault plan is 'much', not from 0 to 0.06"),
        (_set("plan", "voters", to=True), "voters of its fault plan is True"),
        (_set("plan", "is_delay_even", to=1), "is_delay_even of its fault plan is 1, not true or false"),
        (_set("plan", "delay_ms", to=float("inf")), "delay_ms of its fault plan is inf"),
        (_set("plan", "delay_ms", to=float("nan")), "delay_ms of its fault plan is nan"),
        (_set("plan", "delay_ms", to=10**400), "delay_ms of its fault plan is 1000"),
        (_set("plan", "crash_interval_ms", to=4_999), "is 4999, not 0, or from 5,000 to 14,000"),
        (_set("plan", "observers", to=6), "observers of its fault plan is 6, not at most 5 beside 3 voters"),
        (_set("plan", "append_interval_ms", to=319), "append_interval_ms of its fault plan is 319, not at least 320"),
        (_set("choices", to=None), "no choices"),
        (_set("choices", 0, to={}), "choice 0, {}, is no kind, replicas"),
        (_set("choices", 0, to=["loss", [1]]), "choice 0, .* is no kind, replicas"),
        (_set("choices", 0, to=["loss", 1, 0, 1]), "choice 0, .* is no kind, replicas"),
        (_set("choices", 0, to=["fire", [1, 2], 0, 1]), "is of a kind that there is not"),
        (_set("choices", 0, to=["loss", [1, "2"], 0, 1]), "needs 2 replicas, with ids from 1 to 8"),
        (_set("choices", 0, to=["loss", [1, True], 0, 1]), "needs 2 replicas"),
        (_set("choices", 0, to=["loss", [1], 0, 1]), "needs 2 replicas"),
        (_set("choices", 0, to=["loss", [0, 1], 0, 1]), "needs 2 replicas"),
        (_set("choices", 0, to=["loss", [1, 9], 0, 1]), "needs 2 replicas"),
        (_set("choices", 0, to=["loss", [1, 2], -1, 1]), "needs a number from 0"),
        (_set("choices", 0, to=["loss", [1, 2], 0, True]), "needs a value from 0 to 1"),
        (_set("choices", 0, to=["loss", [1, 2], 0, 2]), "needs a value from 0 to 1"),
        (_set("choices", 0, to=["values", [], 0, float("nan")]), "needs a value from 0 to 1"),
        (_set("choices", 0, to=["append-interval", [], 0, 10**400]), "needs a value from 0 to"),
        (_set("choices", 0, to=["victim", [], 0, 1.5]), "needs a value from 0 to"),
        (lambda fields: fields["choices"].append(fields["choices"][0]), "choice 1, .*, is there twice"),
    ],
)
def test_a_file_that_is_no_replay_file(change: Callable[[dict[str, Any]], None], reason: str) -> None:
    """It is refused, with its name, the field and what is wrong."""
    fields = made_fields()
    change(fields)
    with pytest.raises(OptionError, match=reason) as caught:
        decode_schedule(json.dumps(fields).encode(), "run.json")
    _check_line(caught.value)


def made_fields() -> dict[str, Any]:
    """Return the fields of a replay file."""
    schedule = Schedule(draw_fault_plan(random.Random(0)), {ChoiceName("loss", (1, 2), 3): 1})
    return dict(json.loads(encode_schedule(schedule)))


def _check_line(error: OptionError) -> None:
    assert "run.json" in str(error)
    assert len(str(error).splitlines()) == 1
    assert len(str(error)) < 500


@pytest.mark.parametrize(("name", "allowed"), PLAN_RANGES.items())
def test_limits_of_a_field(name: str, allowed: Range) -> None:
    """Each is taken at its least and its most, and refused by its name just beyond."""
    step = 1 if allowed.is_whole else 0.001
    for value, is_taken in (
        (allowed.least, True),
        (allowed.most, True),
        (allowed.least - step, False),
        (allowed.most + step, False),
        (0, allowed.may_be_off or allowed.least == 0),
    ):
        fields = made_fields()
        fields["plan"] |= {"voters": 1, "append_interval_ms": 850, "kraft_version": 1, "change_interval_ms": 1_500}
        fields["plan"] |= {"stabilize_ms": 500, "autopilot_max_lag": 8, name: value}
        data = json.dumps(fields).encode()
        if is_taken:
            assert getattr(decode_schedule(data, "run.json").plan, name) == value
        else:
            with pytest.raises(OptionError, match=f"run.json: {name} of its fault plan is {value}, not "):
                decode_schedule(data, "run.json")


@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        ({"disk_loss_interval_ms": 3_000, "kraft_version": 0}, "disk_loss_interval_ms"),
        ({"disk_loss_interval_ms": 3_000, "change_interval_ms": 0}, "disk_loss_interval_ms"),
        ({"disk_loss_interval_ms": 3_000, "autopilot_look_ms": 100}, "disk_loss_interval_ms"),
        ({"autopilot_look_ms": 100, "stabilize_ms": 0}, "stabilize_ms"),
        ({"autopilot_look_ms": 100, "autopilot_max_lag": 0}, "autopilot_max_lag"),
        ({"voters": 7, "observers": 2}, "observers"),
        ({"voters": 1, "observers": 2, "append_interval_ms": 319}, "append_interval_ms"),
    ],
)
def test_fields_that_do_not_go_together(fields: dict[str, int], refused: str) -> None:
    """The one is named that is out of range because of another."""
    plan = attrs.asdict(draw_fault_plan(random.Random(0)))
    plan |= {"kraft_version": 1, "change_interval_ms": 1_500, "stabilize_ms": 500, "autopilot_max_lag": 8}
    assert fault_in_plan(plan) is None
    found = fault_in_plan(plan | fields)
    assert found is not None
    assert found[0] == refused


@settings(max_examples=25)
@given(st.integers(0, 10**9), st.sampled_from(Storage))
def test_what_is_drawn_is_in_its_range(seed: int, storage: Storage) -> None:
    """Whatever voters there are, and whichever faults are switched off."""
    for voters in (None, *range(1, 8)):
        for off in (None, *SWITCHES):
            options = ScheduleOptions(voters, frozenset(SWITCHES) - {off}, storage)
            assert fault_in_plan(attrs.asdict(plan_of(Token(seed, options)))) is None


def test_ranges_are_what_is_drawn() -> None:
    """No wider: each limit is drawn by some seed, or 0 where that switches the field off."""
    options = [ScheduleOptions(voters, storage=Storage.FILES) for voters in (None, *range(1, 8))]
    plans = [plan_of(Token(seed, each)) for seed in range(1_000) for each in options]
    for name, allowed in PLAN_RANGES.items():
        found = {getattr(plan, name) for plan in plans}
        switched_off = {0} if allowed.least == 0 or allowed.may_be_off else set()
        assert min(found - switched_off if allowed.may_be_off else found | switched_off) == allowed.least, name
        assert max(found) == (allowed.most if name != "observers" else 2), name


def _called(path: Path) -> Iterator[tuple[str, tuple[str, int]]]:
    """Yield the kinds of choices that a module asks for, with the method and how many replicas each is about."""
    places = {"happens": 1, "time_ms": 1, "number": 2, "fraction": 1, "pick": 1}
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        name, arguments = node.func.attr, node.args
        if name in {"_after", "_replace_one"} and isinstance(arguments[-1], ast.Constant):
            yield str(arguments[-1].value), ("time_ms" if name == "_after" else "pick", 0)
        elif name in places and len(arguments) > places[name]:
            kind, *of = arguments[places[name] :]
            if isinstance(kind, ast.Constant):
                yield str(kind.value), (name, len(of))
            else:
                assert ast.unparse(kind) == "kind", f"{path.name}, line {node.lineno}"


def test_each_kind_of_choice_is_known() -> None:
    """As the simulator asks for it, and no other; also those that a table of faults names."""
    folder = ROOT / "raftlog/testing/simulator"
    found = dict(pair for path in sorted(folder.rglob("*.py")) for pair in _called(path))
    assert found == CHOICE_KINDS


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from((10**400, -(10**400), 1 << 63, 1e308, -0.0))
    | st.floats()
    | st.text(max_size=5),
    lambda parts: st.lists(parts, max_size=4) | st.dictionaries(st.text(max_size=5), parts, max_size=4),
    max_leaves=8,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to each value in a JSON document."""
    if path:
        yield path
    for key, part in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ()):
        yield from _places(part, (*path, key))


def _decoded(data: bytes) -> Schedule | None:
    """Return what is read; None if it is refused, in one line that has the name of the file."""
    try:
        return decode_schedule(data, "run.json")
    except OptionError as error:
        _check_line(error)
        return None


@settings(max_examples=40)
@given(JSON | st.dictionaries(st.sampled_from(("format", "version", "plan", "choices")), JSON), st.binary(max_size=40))
def test_arbitrary_json_is_refused_in_one_line(document: Any, tail: bytes) -> None:
    """Also with other bytes after it, and instead of it."""
    text = json.dumps(document).encode()
    assert [_decoded(each) for each in (text, text + tail, tail, text[:-1])] == [None] * 4


@given(st.integers(0, 200), DEVIATIONS, st.data())
def test_a_mutated_file_is_refused_or_runs(seed: int, deviations: Any, data: st.DataObject) -> None:
    """One to three values of a true file are others, gone, or there twice: it is refused in one line, or is a run."""
    plan = plan_of(Token(seed, ScheduleOptions()))
    fields = json.loads(encode_schedule(Schedule(plan, deviations)))
    for _ in range(data.draw(st.integers(1, 3))):
        *way, last = data.draw(st.sampled_from(list(_places(fields))))
        holder = fields
        for key in way:
            holder = holder[key]
        is_small = isinstance(holder[last], int | float) and not isinstance(holder[last], bool)
        new = data.draw((st.sampled_from((0, 1, 2, 2 * holder[last], holder[last] / 2)) | JSON) if is_small else JSON)
        action = data.draw(st.sampled_from(("change", "change", "delete", "repeat")))
        if action == "delete":
            del holder[last]
        elif action == "repeat" and isinstance(holder, list):
            holder.append(holder[last])
        else:
            holder[last] = new
    schedule = _decoded(json.dumps(fields).encode())
    if schedule is not None:
        assert _decoded(encode_schedule(schedule).encode()) == schedule
        _, outcome = replay(schedule, end_ms=20)
        assert outcome.violation is None


@pytest.mark.slow
@pytest.mark.parametrize("voters", [1, 3, 7])
@pytest.mark.parametrize("is_slowest", [True, False])
def test_a_plan_at_its_limits_violates_nothing(voters: int, is_slowest: bool) -> None:
    """All fields at their most, or at their least, without and with the choices of a seed: the quorum recovers."""
    plan = plan_of(Token(voters, ScheduleOptions(voters)))
    limits = {name: each.most if is_slowest else each.least for name, each in PLAN_RANGES.items()}
    kept = ("voters", "observers", "kraft_version", "append_interval_ms", "disk_loss_interval_ms")
    plan = plan.changed({name: limit for name, limit in limits.items() if name not in kept})
    plan = plan.changed({"disk_loss_interval_ms": 0, "is_beyond_atlas": False})
    assert fault_in_plan(attrs.asdict(plan)) is None
    assert replay(Schedule(plan))[1].violation is None
    recorded = RecordedChoices(SeededChoices(random.Random(voters)))
    assert Simulation(recorded, plan).run().violation is None


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"[]", b"null", b"{", b"\xff", b'{"format": 1}', bytes(100), b'{"format": ' + b"9" * 5000 + b"}"),
        *(b"[" * 200_000, b'{"format":' + b"[" * 100_000, b'{"format": 1, "format": 2}'),
    ],
)
def test_other_bytes(data: bytes) -> None:
    """They are refused, too."""
    with pytest.raises(OptionError, match=r"is no JSON|no replay file") as caught:
        decode_schedule(data, "run.json")
    _check_line(caught.value)


@pytest.mark.parametrize(("size", "is_read"), [(99, True), (100, True), (101, False)])
def test_the_size_of_a_file(size: int, is_read: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than a limit is read."""
    monkeypatch.setattr(replay_file, "MAX_FILE_BYTES", 100)
    with pytest.raises(OptionError, match="no JSON" if is_read else "larger than"):
        decode_schedule(b" " * size, "run.json")
