# SPDX-License-Identifier: Apache-2.0
"""A story says what happens, and its picture and page show each event once."""

import html.parser
import json
import re
from typing import Any

import attrs
import pytest

from raftlog.records.messages.raft.election_messages import VoteResponse
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.testing.simulator.choices import ChoiceName
from raftlog.testing.simulator.runs.itf import itf_trace
from raftlog.testing.simulator.runs.page import page_html
from raftlog.testing.simulator.runs.picture import picture_lines, script_lines
from raftlog.testing.simulator.runs.schedule import Schedule, Token, plan_of
from raftlog.testing.simulator.runs.telling import tell
from raftlog.testing.simulator.story import ReplicaState, Story, StoryEvent
from tests.testing.simulator.known_schedules import outcome_of, recorded, told


@pytest.mark.parametrize("seed", [0, 3])
def test_a_story_changes_nothing(seed: int) -> None:
    """A run that is taken down is the same, and the story has each message, loss, crash and answer."""
    run = told(seed)
    outcome, events = run.outcome, run.story.events
    assert outcome == recorded(seed)[1] == outcome_of(seed)
    kinds = [event.kind for event in events]
    assert kinds.count("arrived") == outcome.delivered
    assert kinds.count("lost") == outcome.lost
    crashes = [event for event in events if event.kind == "fault" and event.words.startswith("crashes")]
    assert len(crashes) == outcome.crashes
    leaders = {event.words for event in events if event.kind == "role" and "is leader" in event.words}
    assert len(leaders) >= outcome.leaders
    times = [event.at_ms for event in events]
    assert times == sorted(times)


def test_messages_are_sent_before_they_arrive() -> None:
    """By their numbers: each arrives, or is lost, after it was sent, from the same sender to the same receiver."""
    events = told(0).story.events
    sent: dict[int, StoryEvent] = {}
    for event in events:
        if event.kind == "sent":
            sent[event.message] = event
        elif event.message:
            begun = sent[event.message]
            assert (begun.sender, begun.replica) == (event.sender, event.replica)
            assert begun.at_ms <= event.at_ms


def test_the_script_has_a_line_for_each_event() -> None:
    """But for messages that were sent: they have one where they arrive or are lost."""
    events = tell(recorded(0)[0], end_ms=2_000).story.events
    lines = list(script_lines(events))
    assert len(lines) == sum(event.kind != "sent" for event in events)
    assert any(re.search(r" 330 ms  |ms  replica \d +is leader, epoch 1", line) for line in lines)


@pytest.mark.parametrize("seed", [0, 7])
def test_the_picture_has_a_row_for_each_event(seed: int) -> None:
    """All rows are as wide as the columns, or less; an arrow starts at its sender and ends at its receiver."""
    run = tell(recorded(seed)[0], end_ms=5_000)
    events, replicas = run.story.events, run.replicas
    head, *rows = picture_lines(events, replicas)
    shown = [event for event in events if event.kind != "sent"]
    assert len(rows) == len(shown)
    lanes = [head.index(f"replica {each}") + len("replica ") // 2 for each in replicas]
    for event, row in zip(shown, rows, strict=True):
        assert len(row) <= 11 + 38 * len(replicas)
        if event.kind == "arrived" and event.sender != event.replica:
            rightward = event.replica > event.sender
            assert (">" in row) if rightward else ("<" in row)
            between = sorted(lanes[replicas.index(each)] for each in (event.sender, event.replica))
            arrow = row.index("<") if not rightward else row.rindex(">")
            assert between[0] - 8 <= arrow <= between[1] + 8


class _Parser(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.counts: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        key = f"{tag}.{dict(attrs).get('class', '')}"
        self.counts[key] = self.counts.get(key, 0) + 1
        if tag not in {"meta", "path"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag != "path":
            assert self.open.pop() == tag


def test_the_page_has_an_arrow_for_each_message() -> None:
    """And a stub for each that is lost; what is violated is on top, and words are escaped."""
    schedule, _ = recorded(1)
    run = tell(schedule, end_ms=20_000)
    events, replicas = run.story.events, run.replicas
    page = page_html("violated: <b>", ["a & b"], events, replicas, is_violated=True)
    parser = _Parser()
    parser.feed(page)
    assert parser.open == []
    kinds = [event.kind for event in events]
    assert parser.counts["line.message"] == kinds.count("arrived")
    assert parser.counts.get("line.message lost", 0) == kinds.count("lost") > 0
    assert parser.counts["line.lane"] == len(replicas)
    assert '<h1 class="bad">violated: &lt;b&gt;</h1>' in page
    assert "<li>a &amp; b</li>" in page
    assert "<script" not in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize(("before", "words"), [(0, None), (1, "1 events"), (12_345, "12,345 events")])
def test_a_page_says_what_is_not_on_it(before: int, words: str | None) -> None:
    """How many events come before those that it shows; nothing if none does."""
    page = page_html("none", [], [], [1, 2, 3], is_violated=False, before=before)
    assert ("before these" in page) == (words is not None)
    assert words is None or f"{words} before these are not on this page" in page


def test_a_page_of_no_events() -> None:
    """It is a page."""
    assert "<h1>none</h1>" in page_html("none", [], [], [1, 2, 3], is_violated=False)


def test_errors_have_their_names() -> None:
    """Beside their numbers, as Kafka names them; a number without a name stays alone."""
    events = told(0).story.events
    codes = {each for event in events for each in re.findall(r"error (-?\d+(?: [A-Z_]+)?)", event.words)}
    assert codes
    for code in codes:
        number, _, name = code.partition(" ")
        assert ErrorCode(int(number)).name == name
    response = VoteResponse(error_code=29, topics=())
    story = Story()
    story.lost(0, 1, 2, 3, "response_arrived", (None, response))
    assert story.events[0].words == "Vote response error 29 is lost"


def test_lost_messages_are_said_to_be() -> None:
    """In a calm run, the first message of one replica to another is lost by one choice."""
    plan = plan_of(Token(0))
    run = tell(Schedule(plan, {ChoiceName("loss", (1, 2), 0): 1}), end_ms=2_000)
    assert run.outcome.lost == 1
    assert [(event.sender, event.replica) for event in run.story.events if event.kind == "lost"] == [(1, 2)]


def test_a_trace_for_model_checkers() -> None:
    """Each state has all variables of all replicas; what the core promises holds in it; it ends as the logs do."""
    run = told(0)
    trace = json.loads(itf_trace(run.story.states, run.replicas, "seed 0"))
    assert trace["#meta"]["format"] == "ITF"
    assert [state["#meta"]["index"] for state in trace["states"]] == list(range(len(run.story.states) + 1))
    leaders: dict[int, int] = {}
    last_ms = 0
    for state in trace["states"]:
        assert set(state) == {"#meta", *trace["vars"]}
        values = {name: dict(state[name]["#map"]) for name in trace["vars"] if name != "timeMs"}
        for replica in run.replicas:
            assert values["durableEnd"][replica] <= values["end"][replica]
            assert values["highWatermark"][replica] <= values["end"][replica]
            if values["role"][replica] == "leader":
                assert leaders.setdefault(values["epoch"][replica], replica) == replica
        assert state["timeMs"] >= last_ms
        last_ms = state["timeMs"]
    assert len(leaders) == run.outcome.leaders
    assert len(set(values["end"].values())) == 1
    assert sum("stopped" in dict(state["role"]["#map"]).values() for state in trace["states"]) >= run.outcome.crashes


def test_states_change() -> None:
    """No state of a replica is the one before it."""
    states = tell(recorded(0)[0], end_ms=10_000).story.states
    latest: dict[int, ReplicaState] = {}
    for state in states:
        if state.replica in latest:
            assert attrs.evolve(state, at_ms=latest[state.replica].at_ms) != latest[state.replica]
        latest[state.replica] = state
