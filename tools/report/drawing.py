# SPDX-License-Identifier: Apache-2.0
"""Figures of a report: lanes with bars and marks over a scale of offsets or bytes, as SVG.

Horizontal positions are in percent, so that a figure is as wide as the page while its text keeps its size. A pattern, a
shape or a word repeats the meaning of each colour.
"""

from collections.abc import Callable, Sequence
from typing import Final

import attrs

from raftlog.records.rules import Severity
from raftlog.tools.report.markup import Markup, element, escaped, joined, visible

_LANE_HEIGHT: Final = 42
_LABEL_HEIGHT: Final = 18
_BAR_HEIGHT: Final = 16
_AXIS_HEIGHT: Final = 20
_DIGIT_PERCENT: Final = 3.2
"""The width of a digit on a narrow page."""
_LEAST_PERCENT: Final = 0.2
"""The least width of a bar, so that it can be seen."""
_LONGEST_TITLE: Final = 200
_LONGEST_LABEL: Final = 50

_SHAPES: Final = {
    Severity.HARMLESS: "M-3-7h6v6h-6z",
    Severity.SUSPICIOUS: "M0-9l5 5-5 5-5-5z",
    Severity.DAMAGED: "M-6 0L0-10 6 0z",
    Severity.DATA_LOSS: "M-6-10l3-1 3 3 3-3 3 1-4 4 4 4-3 1-3-3-3 3-3-1 4-4z",
}


@attrs.frozen
class Scale:
    """Converts offsets or positions to percent of a figure's width.

    Attributes:
        start: the first value, inclusive.
        end: the last value, exclusive.
        words: returns a value as a label says it.
    """

    start: int
    end: int
    words: Callable[[int], str] = str

    def percent(self, value: int) -> float:
        """Return the place of a value; values outside the scale are at its edge."""
        if self.end <= self.start:
            return 0.0
        return 100 * (min(max(value, self.start), self.end) - self.start) / (self.end - self.start)

    def ticks(self) -> list[int]:
        """Return the values to label: five, or fewer on a short scale."""
        return sorted({self.start + (self.end - self.start) * step // 4 for step in range(5)})


@attrs.frozen
class Bar:
    """A range of offsets or bytes.

    Attributes:
        start, end: inclusive and exclusive.
        kind: a class of the style sheet, which fills the bar.
        title: its tooltip.
        label: text inside the bar, if there is room.
    """

    start: int
    end: int
    kind: str
    title: str
    label: str = ""


@attrs.frozen
class Mark:
    """A symbol at one offset or byte.

    Attributes:
        at: the offset or position.
        title: its tooltip.
        severity: determines the shape; None draws a line through the lane.
    """

    at: int
    title: str
    severity: Severity | None = None


@attrs.frozen
class Lane:
    """A row of a figure: a label above its bars and marks."""

    label: str
    bars: Sequence[Bar] = ()
    marks: Sequence[Mark] = ()


def lanes_figure(title: str, lanes: Sequence[Lane], scale: Scale) -> Markup:
    """Return a figure of lanes, one below the other, over one scale."""
    height = _LANE_HEIGHT * len(lanes) + _AXIS_HEIGHT
    drawn = (_lane(lane, _LANE_HEIGHT * number, scale) for number, lane in enumerate(lanes))
    return picture(title, height, *drawn, _axis(scale, height))


def picture(title: str, height: int, *parts: Markup) -> Markup:
    """Return a figure that is as wide as the page; its title describes it to screen readers."""
    attributes = {"role": "img", "width": "100%", "height": height}
    return element("svg", element("title", title), *parts, **attributes)


def share_bar(title: str, value: int, greatest: int, kind: str = "plain") -> Markup:
    """Return a value as a bar; the greatest takes the full width, and any value above 0 is visible."""
    width = Scale(0, greatest).percent(value)
    return picture(title, 12, _rectangle(0.0, max(width, 0.5 if value else 0.0), 1, 10, kind))


def legend(items: Sequence[tuple[str, str]], severities: Sequence[Severity] = ()) -> Markup:
    """Return the meaning of fills and shapes.

    Args:
        items: pairs of a class of the style sheet and a word.
        severities: those whose shapes are explained.
    """
    swatches = [(_rectangle(0.0, 100.0, 1, 12, kind), word) for kind, word in items]
    swatches += [(_shape(severity, 50.0, 12), severity.value) for severity in severities]
    return element(
        "p",
        *(element("span", _swatch(drawn, word), word, class_="key") for drawn, word in swatches),
        class_="legend",
    )


def definitions() -> Markup:
    """Return the fill patterns that the style sheet uses; a page needs them once."""
    strokes = {"hatch": "M0 8L8 0M-2 2L2-2M6 10L10 6", "cross": "M0 0L8 8M8 0L0 8", "dots": "M2 4h2"}
    patterns = (
        element(
            "pattern",
            element("rect", width=8, height=8, class_="paper"),
            element("path", d=path, class_=f"stroke-{name}"),
            id=f"pattern-{name}",
            width=8,
            height=8,
            patternUnits="userSpaceOnUse",
        )
        for name, path in strokes.items()
    )
    return element("svg", element("defs", *patterns), width=0, height=0, aria_hidden="true", class_="unseen")


def _swatch(drawn: Markup, word: str) -> Markup:
    return element("svg", element("title", word), drawn, role="img", width=18, height=14)


def _lane(lane: Lane, top: int, scale: Scale) -> Markup:
    bar_top = top + _LABEL_HEIGHT
    return joined(
        [
            element("text", _short(lane.label), x=0, y=top + _LABEL_HEIGHT - 5, class_="lane"),
            _rectangle(0.0, 100.0, bar_top, _BAR_HEIGHT, "ground"),
            *(_bar(bar, bar_top, scale) for bar in lane.bars),
            *(_mark(mark, bar_top, scale) for mark in lane.marks),
        ]
    )


def _bar(bar: Bar, top: int, scale: Scale) -> Markup:
    start, end = scale.percent(bar.start), scale.percent(bar.end)
    end = max(end, start + _LEAST_PERCENT)
    start, end = start - max(0.0, end - 100), min(end, 100.0)
    drawn = _rectangle(start, end - start, top, _BAR_HEIGHT, bar.kind)
    if not bar.label or end - start < len(bar.label) * _DIGIT_PERCENT:
        return element("g", _title(bar.title), drawn)
    label = element("text", bar.label, x=_percent((start + end) / 2), y=top + 12, class_=f"in {bar.kind}-text")
    return element("g", _title(bar.title), drawn, label)


def _mark(mark: Mark, top: int, scale: Scale) -> Markup:
    x = scale.percent(mark.at)
    if mark.severity is None:
        line = {"x1": _percent(x), "x2": _percent(x), "y1": top - 3, "y2": top + _BAR_HEIGHT + 3}
        return element("g", _title(mark.title), element("line", class_="cut", **line))
    return element("g", _title(mark.title), _shape(mark.severity, x, top + _BAR_HEIGHT))


def _short(label: str) -> str:
    """Shorten a label in the middle if it is too long for a narrow page."""
    shown = visible(label)
    return shown if len(shown) <= _LONGEST_LABEL else f"{shown[:15]}…{shown[16 - _LONGEST_LABEL :]}"


def _title(text: str) -> Markup:
    return element("title", escaped(text, _LONGEST_TITLE))


def _shape(severity: Severity, x: float, bottom: int) -> Markup:
    """Return the shape of a severity, in a nested figure: only that can be placed in percent."""
    path = element("path", d=_SHAPES[severity], class_=f"mark {severity.value}")
    return element("svg", path, x=_percent(x), y=bottom, overflow="visible", width=1, height=1)


def _axis(scale: Scale, height: int) -> Markup:
    ticks = scale.ticks()
    anchors = {0: "start", len(ticks) - 1: "end"}
    return joined(
        element(
            "text",
            scale.words(tick),
            x=_percent(scale.percent(tick)),
            y=height - 4,
            class_="tick" if index in (0, 2, len(ticks) - 1) else "tick wide",
            text_anchor=anchors.get(index, "middle"),
        )
        for index, tick in enumerate(ticks)
    )


def _rectangle(start: float, width: float, top: int, height: int, kind: str) -> Markup:
    return element("rect", x=_percent(start), width=_percent(width), y=top, height=height, class_=f"bar {kind}")


def _percent(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".") + "%"
