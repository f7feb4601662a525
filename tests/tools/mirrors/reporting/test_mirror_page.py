# SPDX-License-Identifier: Apache-2.0
"""The page of ``raftlog verify-mirror``: the verdict on top, what was found on both sides, and no empty sections."""

import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.rules import Severity
from raftlog.tools.catalogue.mirror_rules import MIRROR_RULES
from raftlog.tools.mirrors.following import FlowSpan, MirrorFinding
from raftlog.tools.mirrors.reporting.mirror_advice import ADVICE
from raftlog.tools.mirrors.reporting.mirror_sections import times_section
from raftlog.tools.terminal.value_text import LAST_MS, time_text
from tests.tools.console import run
from tests.tools.mirrors.changed_mirror import MIRROR, copied, rewrite
from tests.tools.mirrors.reporting.faulty_mirrors import faulty_mirror
from tests.tools.mirrors.verb_runs import refused

SOUND = ("--source", str(MIRROR / "n1"), "--target", str(MIRROR / "n2"))
GAP = "mirror.heartbeat-gap"
ALWAYS = ["What to do next", "Pairs", "Groups that move from A to B now", "Groups that come back to A then"]


def page_of(tmp_path: Path, *arguments: str) -> str:
    """The page of a run."""
    path = tmp_path / "page.html"
    assert run("verify-mirror", *arguments, "--report", path).exit_code != 1
    return path.read_text()


def headings(page: str) -> list[str]:
    return [re.sub("&gt;", ">", each) for each in re.findall("<h2[^>]*>(.*?)</h2>", page)]


def test_a_sound_mirror_has_a_page_without_findings(tmp_path: Path) -> None:
    """The verdict, the pairs, the groups, the flow and the configuration; sections without content are not there."""
    page = page_of(tmp_path, *SOUND)
    assert "<h1>Clean: the mirror in B holds what A holds, as far as it was compared</h1>" in page
    assert "<p>5 pairs, 580 records compared, 0 not mirrored yet</p>" in page
    assert headings(page) == [*ALWAYS, "When the flow stood still", "What was taken from the configuration"]
    for words in ("Nothing needs to be done before a fail-over", "No flow stood still", "25 of 25", "<dd>10</dd>"):
        assert words in page
    assert "readers" in page
    assert page_of(tmp_path, *SOUND) == page


def test_a_faulty_mirror_has_all_sections(tmp_path: Path) -> None:
    """Differences with the places on both sides, gaps of heartbeats, replicas, files with commands, and what to do."""
    page = page_of(tmp_path, *faulty_mirror(tmp_path))
    title = "Data is lost from A to B: 2 findings of lost records, 2 findings of damage"
    assert f"<h1>{title}</h1>" in page
    assert '<div class="verdict data-loss">' in page
    more = ["When the flow stood still", "Replicas", "Files", "What was taken from the configuration"]
    assert headings(page) == [*ALWAYS[:2], "Differences", *ALWAYS[2:], *more]
    assert "<td>offset 150</td><td>before offset 150</td>" in page
    assert page.count("there is no heartbeat for") == 2
    assert page.count("<title>11 missing in the mirror</title>") == 1
    assert page.count("<title>309 compared</title>") == 1
    assert "raftlog explain" in page
    assert "of 2 replicas, it reaches furthest: it ends at offset 40 of epoch 0" in page
    first = page.index(ADVICE["mirror.lost"])
    assert first < page.index(ADVICE["mirror.changed"]) < page.index(ADVICE["mirror.heartbeat-gap"])
    assert "<script" not in page
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize(
    ("records", "title", "kind"),
    [
        (320, "Clean: the mirror in B holds", '"verdict"'),
        (-1, "Suspicious: 1 finding to look at from A to B, nothing is damaged", '"verdict suspicious"'),
        (1, "Damaged: 1 finding of damage from A to B", '"verdict damaged"'),
    ],
)
def test_the_headline_is_the_worst(records: int, title: str, kind: str, tmp_path: Path) -> None:
    """Nothing, a suspicion, damage; a loss is in the test above."""
    source, target = copied(tmp_path)
    if records < 0:
        rewrite(target / "heartbeats-0", lambda found: enumerate([*found[:10], *found[15:]]))
    elif records == 1:
        rewrite(target / "A.orders-1", lambda found: enumerate([*found[:90], found[91], found[90], *found[92:]]))
    page = page_of(tmp_path, "--source", str(source), "--target", str(target))
    assert f"<h1>{title}" in page
    assert f"<div class={kind}>" in page


def test_same_offsets_have_no_anchors(tmp_path: Path) -> None:
    """Neither in the table nor in what was taken from the configuration."""
    copy = shutil.copytree(SOUND[1], tmp_path / "copy")
    page = page_of(tmp_path, "--source", SOUND[1], "--target", str(copy), "--policy", "same-offsets")
    assert "<dd>same-offsets</dd>" in page
    assert "Anchors" not in page
    assert "Offset syncs" not in page


def test_each_rule_above_harmless_has_an_advice() -> None:
    """And no other rule has."""
    assert set(ADVICE) == {rule.id for rule in MIRROR_RULES if rule.severity > Severity.HARMLESS}


def test_a_page_is_written_nowhere_else(tmp_path: Path) -> None:
    """Not over a file that is no report, and not into a log directory; nothing is compared then."""
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    assert "is not a report of raftlog" in refused(*SOUND, "--report", path)
    assert path.read_text() == "mine"
    source, target = copied(tmp_path)
    assert str(target) in refused("--source", source, "--target", target, "--report", target / "page.html")


TIMES = st.integers(-(1 << 63), (1 << 63) - 1) | st.sampled_from([0, -1, LAST_MS - 1, LAST_MS, LAST_MS + 1])


@given(st.lists(st.tuples(TIMES, TIMES), min_size=1, max_size=4))
def test_heartbeats_of_any_time_are_drawn(times: list[tuple[int, int]]) -> None:
    """Times that calendars do not have are at the edge of the scale, and the others keep their room."""
    spans = [FlowSpan("A->B", min(each), max(each), 2) for each in times]
    gaps = [MirrorFinding(GAP, "A->B", "none", since_ms=min(each), until_ms=max(each)) for each in times]
    page = str(times_section(spans, gaps))
    known = [time for each in times for time in each if 0 <= time <= LAST_MS] or [0]
    assert f"Heartbeats from {time_text(min(known))} to {time_text(max(known))}, in UTC." in page
