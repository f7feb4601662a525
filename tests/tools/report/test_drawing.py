# SPDX-License-Identifier: Apache-2.0
"""Figures: whatever the numbers are, everything is drawn inside the figure."""

from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.rules import Severity
from raftlog.tools.report.drawing import Bar, Lane, Mark, Scale, lanes_figure, share_bar
from tests.tools.report.page_outline import outline

NUMBERS = st.integers(-(1 << 70), 1 << 70) | st.integers(-5, 300)


@given(start=NUMBERS, end=NUMBERS, value=NUMBERS, more=st.integers(0, 1 << 70))
def test_a_scale_keeps_order_and_stays_inside(start: int, end: int, value: int, more: int) -> None:
    """Percentages are from 0 to 100, and a greater value is never further to the left."""
    scale = Scale(start, end)
    assert 0 <= scale.percent(value) <= scale.percent(value + more) <= 100
    ticks = scale.ticks()
    assert ticks == sorted(set(ticks))
    assert {start, end} == {ticks[0], ticks[-1]} or end < start


@given(
    bars=st.lists(st.tuples(NUMBERS, NUMBERS)),
    marks=st.lists(st.tuples(NUMBERS, st.none() | st.sampled_from(Severity))),
    label=st.text(st.characters(codec=None)),
)
def test_every_bar_and_mark_is_drawn_inside(
    bars: list[tuple[int, int]], marks: list[tuple[int, Severity | None]], label: str
) -> None:
    """Each bar has its title and fits into the figure, even one that ends before it starts; so has each mark."""
    drawn = [Bar(start, end, "plain", f"bar {start}", str(start)) for start, end in bars]
    lane = Lane(label, drawn, [Mark(at, f"mark {at}", severity) for at, severity in marks])
    figure = outline(lanes_figure("figure", [lane], Scale(0, 1000))).children[0]
    titles = [node.words for node in figure.all("title")]
    assert titles == ["figure", *(f"bar {start}" for start, _ in bars), *(f"mark {at}" for at, _ in marks)]
    for rectangle in figure.all("rect"):
        x, width = (float((rectangle.attributes[name] or "").rstrip("%")) for name in ("x", "width"))
        assert 0 <= x <= x + width <= 100.01
    assert all(len(node.words) <= 50 or node.words.isdecimal() or node.words[0] == "-" for node in figure.all("text"))


@given(value=st.integers(0, 1 << 64), more=st.integers(0, 1 << 64))
def test_something_is_more_than_nothing(value: int, more: int) -> None:
    """A share that is not nothing can be seen, and nothing has no width."""
    bar = outline(share_bar("share", value, value + more)).children[0].all("rect")[0]
    width = float((bar.attributes["width"] or "").rstrip("%"))
    assert (width > 0) == (value > 0)
    assert width <= 100


def test_a_scale_may_have_words() -> None:
    """The labels of a scale are numbers, or what its words make of them."""
    plain = lanes_figure("plain", [Lane("lane")], Scale(0, 1000))
    shares = lanes_figure("shares", [Lane("lane")], Scale(0, 1000, lambda value: f"{value // 10}%"))
    assert ">250<" in plain
    assert ">25%<" in shares
    assert ">250<" not in shares
