# SPDX-License-Identifier: Apache-2.0
"""A real quorum and its broker, which roll, compact, delete and elect for two minutes, are never blamed for it."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from tests.kafka import dump_tool
from tests.kafka.live_quorum import BROKER, CONTROLLERS, LiveQuorum
from tests.tools.auditing.acts.real_broker import check_acts
from tests.tools.console import Outcome, run_process

pytestmark = dump_tool.marks("a real Kafka")
TRANSACTIONS = 2400
"""Two minutes of work."""
VERBS = ("quorum", "verify", "quorum", "audit", "voters", "dump-log")


@attrs.define
class Said:
    """What all runs have said.

    Attributes:
        runs: by verb.
        rules: how often each rule was told.
        false: what was told above harmless, or made an exit code other than 0.
        gone: how many segments dump-log has missed, and said so.
    """

    runs: Counter[str] = attrs.field(factory=Counter)
    rules: Counter[str] = attrs.field(factory=Counter)
    false: list[str] = attrs.field(factory=list)
    gone: int = 0

    def take(self, verb: str, outcome: Outcome) -> None:
        """Count the output of a run."""
        self.runs[verb] += 1
        found = [] if verb == "audit" else outcome.of_kind("finding")
        self.rules.update(each["rule"] for each in found)
        self.false += [str(each) for each in found if each["severity"] != "harmless"]
        is_incomplete = verb == "dump-log" and any(each["rule"] == "file-gone" for each in found)
        self.gone += is_incomplete
        if outcome.exit_code != (1 if is_incomplete else 0) or (outcome.messages and not is_incomplete):
            self.false.append(f"{verb} exits with {outcome.exit_code}: {outcome.messages[-2000:]}")
        if verb == "quorum":
            (state,) = outcome.of_kind("quorum")
            self.false += [] if state["verdict"] == "nothing-missing" else [str(state)]


def arguments(verb: str, live: LiveQuorum) -> Iterator[str | Path]:
    """The command line of a verb."""
    yield verb
    if verb == "audit":
        yield from ("--out", live.work / "audit")
    else:
        yield from ("--format", "jsonl")
    if verb == "verify":
        yield "--all"
    yield live.path / f"n{BROKER}" / "deleted-0" if verb == "dump-log" else live.path


@pytest.mark.longest
def test_a_running_quorum_is_not_blamed(tmp_path: Path) -> None:
    """No verb tells anything above harmless, while a controller is killed and started again.

    Of what the broker has acted on until it stops, each record is found in its metadata log. When all have stopped,
    snapshots have the state that the logs make.
    """
    live, said = LiveQuorum(tmp_path / "data", tmp_path / "work"), Said()
    with live.running(), live.loaded(TRANSACTIONS) as load:
        for is_half_time in load.rounds():
            if is_half_time:
                live.kill(CONTROLLERS[-1])
                live.start(CONTROLLERS[-1])
            for verb in VERBS:
                said.take(verb, run_process(*map(str, arguments(verb, live))))
            live.check_running()
        records, transactions, topics = load.counts()
        live.stop(BROKER)  # at once: its log is trimmed to some seconds, and must have a topic that it acted on
    check_acts(live.path / f"n{BROKER}", is_registered=True)
    said.take("verify", run_process("verify", "--messages", "--all", "--format", "jsonl", str(live.path)))
    print(f"{dict(said.runs)}, {dict(said.rules)}, {said.gone} incomplete, {records} {transactions} {topics}")

    assert said.false == []
    assert said.rules["directory-changed"] > 0
    assert min(records, transactions, topics) > 0
