# SPDX-License-Identifier: Apache-2.0
"""The page of a run in a real browser: the violated claim on top, a lane per replica, an arrow per message."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from raftlog.testing.simulator.runs.schedule import Token, record
from raftlog.testing.simulator.runs.telling import ToldRun, tell
from raftlog.tools.simulate import simulate
from tests.testing.simulator.runs.test_shrinking import crashing
from tests.tools.console import run
from tests.tools.report.browsing import CHROMIUM, Visit, visit

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium, chromium-browser or google-chrome"),
]

SHOWN = 3_000

DRAWN = """() => {
    const box = (node) => { const b = node.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; };
    const ends = (node) => ["x1", "y1", "x2", "y2"].map((name) => Number(node.getAttribute(name)));
    const all = (chosen, found) => [...document.querySelectorAll(chosen)].map(found);
    const style = (node) => getComputedStyle(node);
    return {
        head: box(document.querySelector("h1")), svg: box(document.querySelector("svg")),
        headColor: style(document.querySelector("h1")).color, color: style(document.body).color,
        lanes: all("line.lane", ends), names: all("svg > text", (node) => node.textContent).slice(0, 20),
        arrows: all("line.message:not(.lost)", ends), stubs: all("line.message.lost", ends),
        heads: all("line.message", (node) => style(node).markerEnd),
        strokes: all("line.message", (node) => style(node).stroke).filter((each) => each === "none").length,
        dashes: all("line.message.lost", (node) => style(node).strokeDasharray),
        sizes: all("svg text", (node) => { const b = box(node); return (b[2] - b[0]) * (b[3] - b[1]); }),
        tallest: Math.max(...all("svg text", (node) => Number(node.getAttribute("y")))),
        height: document.querySelector("svg").height.baseVal.value,
        title: document.querySelector("svg > title").textContent,
    };
}"""


@pytest.fixture(scope="module")
def told() -> ToldRun:
    """The run that ``crashing`` makes violate a claim: its story has losses, and an error code."""
    with pytest.MonkeyPatch.context() as patched:
        crashing(patched)
        return tell(record(Token(1))[0])


@pytest.fixture(scope="module")
def page(browser: Any, told: ToldRun, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visit]:
    """What the command writes of that run, opened."""
    path: Path = tmp_path_factory.mktemp("page") / "run.html"
    with pytest.MonkeyPatch.context() as patched:
        crashing(patched)
        patched.setattr(simulate, "_MOST_ON_A_PAGE", min(SHOWN, len(told.story.events) - 7))
        assert run("simulate", "--replay", "s1-1", "--page", path).exit_code == 2
    seen = visit(browser, path)
    yield seen
    seen.page.close()


def test_the_violated_claim_is_on_top(page: Visit, told: ToldRun) -> None:
    """Above all else, in a color of its own; below it, how many events are left out. Nothing is loaded or wrong."""
    drawn = page.page.evaluate(DRAWN)
    assert (page.messages, page.requests) == ([], [page.address])
    claim = f"violated: {told.outcome.violation}"
    assert page.page.inner_text("h1") == page.page.title() == drawn["title"] == claim
    assert drawn["head"][3] <= drawn["svg"][1]
    assert drawn["head"][1] < 100
    assert drawn["headColor"] != drawn["color"]
    shown = min(SHOWN, len(told.story.events) - 7)
    words = f"{len(told.story.events) - shown:,} events before these are not on this page"
    assert words == page.page.inner_text("p.before")


def test_each_replica_has_a_lane(page: Visit, told: ToldRun) -> None:
    """Upright, from the top to the bottom, with its name above it, all as far from each other."""
    drawn = page.page.evaluate(DRAWN)
    lanes = drawn["lanes"]
    assert [f"replica {each}" for each in told.replicas] == [name for name in drawn["names"] if "replica" in name]
    assert all(x1 == x2 and y2 == drawn["height"] for x1, _, x2, y2 in lanes)
    apart = {right[0] - left[0] for left, right in itertools.pairwise(lanes)}
    assert (len(lanes), len(apart)) == (len(told.replicas), 1)
    assert drawn["tallest"] < drawn["height"]


def test_messages_are_arrows_and_losses_are_stubs(page: Visit, told: ToldRun) -> None:
    """An arrow goes downward from a lane to another one; a stub of a lost message ends between the two, dashed."""
    drawn = page.page.evaluate(DRAWN)
    lanes = {x for x, *_ in drawn["lanes"]}
    kinds = [event.kind for event in told.story.events[-min(SHOWN, len(told.story.events) - 7) :]]
    assert len(drawn["arrows"]) == kinds.count("arrived") > 100
    assert len(drawn["stubs"]) == kinds.count("lost") > 0
    assert all({x1, x2} <= lanes and y1 <= y2 for x1, y1, x2, y2 in drawn["arrows"])
    assert all(x1 in lanes and y1 <= y2 for x1, y1, _, y2 in drawn["stubs"])
    assert all(x2 not in lanes or x1 == x2 for x1, _, x2, _ in drawn["stubs"])
    assert all('url("#head")' in each for each in drawn["heads"])
    assert drawn["strokes"] == 0
    assert all(each not in {"none", ""} for each in drawn["dashes"])
    assert min(drawn["sizes"]) > 0
