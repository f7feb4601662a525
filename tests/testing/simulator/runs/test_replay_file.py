# SPDX-License-Identifier: Apache-2.0
"""Replay files: read as they are written, and refused by name if they are anything else."""

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import OptionError
from raftlog.testing.simulator.choices import ChoiceName
from raftlog.testing.simulator.fault_plan import draw_fault_plan
from raftlog.testing.simulator.runs import replay_file
from raftlog.testing.simulator.runs.replay_file import decode_schedule, encode_schedule
from raftlog.testing.simulator.runs.schedule import Schedule
from raftlog.testing.simulator.violation import ViolationError

NAMES = st.builds(
    ChoiceName, st.sampled_from(("loss", "crash")), st.just(()) | st.tuples(st.integers(1, 9)), st.integers(0)
)
DEVIATIONS = st.dictionaries(NAMES, st.integers() | st.floats(allow_nan=False, allow_infinity=False), max_size=20)


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
        (_set("configuration", to=None), "no configuration"),
        (_set("configuration", "election_timeout_ms", to=301), "election_timeout_ms 301, and this release has 300"),
        (lambda fields: fields["configuration"].pop("schedule_ms"), "schedule_ms None"),
        (lambda fields: fields["plan"].pop("loss"), "another fault plan"),
        (_set("plan", "fire", to=1), "another fault plan"),
        (_set("plan", "loss", to="much"), "'much' for loss"),
        (_set("plan", "voters", to=True), "True for voters"),
        (_set("plan", "is_delay_even", to=1), "1 for is_delay_even"),
        (_set("plan", "delay_ms", to=-1.0), "-1.0 for delay_ms"),
        (_set("plan", "delay_ms", to=float("inf")), "inf for delay_ms"),
        (_set("plan", "voters", to=0), "0 voters"),
        (_set("plan", "voters", to=99), "99 voters"),
        (_set("choices", to=None), "no choices"),
        (_set("choices", 0, to=["loss", [1]]), "choice 0 is no kind"),
        (_set("choices", 0, to=["loss", ["1"], 0, 1]), "choice 0 is no kind"),
        (_set("choices", 0, to=["loss", [], 0, float("nan")]), "choice 0 is no kind"),
    ],
)
def test_a_file_that_is_no_replay_file(change: Callable[[dict[str, Any]], None], reason: str) -> None:
    """It is refused, with its name and what is wrong."""
    schedule = Schedule(draw_fault_plan(random.Random(0)), {ChoiceName("loss", (1, 2), 3): 1})
    fields = json.loads(encode_schedule(schedule))
    change(fields)
    with pytest.raises(OptionError, match=reason) as caught:
        decode_schedule(json.dumps(fields).encode(), "run.json")
    assert "run.json" in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"[]", b"null", b"{", b"\xff", b'{"format": 1}'])
def test_other_bytes(data: bytes) -> None:
    """They are refused, too."""
    with pytest.raises(OptionError, match=r"is no JSON|no replay file"):
        decode_schedule(data, "run.json")


@pytest.mark.parametrize(("size", "is_read"), [(99, True), (100, True), (101, False)])
def test_the_size_of_a_file(size: int, is_read: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than a limit is read."""
    monkeypatch.setattr(replay_file, "MAX_FILE_BYTES", 100)
    with pytest.raises(OptionError, match="no JSON" if is_read else "larger than"):
        decode_schedule(b" " * size, "run.json")
