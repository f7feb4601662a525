# SPDX-License-Identifier: Apache-2.0
"""A story as one HTML page: a lane per replica, time downward, an arrow per message, the violated claim on top.

The page needs no script and no network. Each event has a row, and the time of the first one of a millisecond is shown.
"""

import html
from collections.abc import Iterator, Sequence
from typing import Final

from raftlog.testing.simulator.story import StoryEvent

_LEFT: Final = 90
_LANE: Final = 260
_RIGHT: Final = 120
_TOP: Final = 40
_ROW: Final = 16
_STUB: Final = 0.6
"""A lost message ends after this part of its way."""
_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --faint: #c9d1d9; --bad: #b3261e; --mark: #0b57d0;
  --fault: #a15c00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --faint: #3d444d; --bad: #ff8a80;
  --mark: #7cacf8; --fault: #f0b849; } }
body { font: 14px/1.5 system-ui, sans-serif; margin: 1.5rem; color: var(--ink); background: var(--paper); }
h1 { font-size: 1.2rem; overflow-wrap: anywhere; } h1.bad { color: var(--bad); }
ul { font-family: ui-monospace, monospace; }
svg { font: 11px ui-monospace, monospace; } svg text { fill: var(--ink); }
.lane { stroke: var(--faint); } .message { stroke: var(--ink); stroke-opacity: .55; marker-end: url(#head); }
.lost { stroke: var(--bad); stroke-dasharray: 3 3; } text.lost { fill: var(--bad); stroke: none; }
text.role, text.high-watermark { fill: var(--mark); } text.fault { fill: var(--fault); }
text.violation { fill: var(--bad); font-weight: bold; } .time { opacity: .6; }
.scroll { overflow-x: auto; }
"""


def page_html(
    title: str,
    facts: Sequence[str],
    events: Sequence[StoryEvent],
    replicas: Sequence[int],
    *,
    is_violated: bool,
    before: int = 0,
) -> str:
    """Return the page.

    Args:
        title: the violated claim, or that there is none.
        facts: lines below the title, such as the choices that are left.
        events: of the story, in order.
        replicas: their ids, in the order of the lanes.
        is_violated: whether a claim is.
        before: how many events come before these, and are not on the page; it says so.
    """
    items = "".join(f"<li>{html.escape(each)}</li>" for each in facts)
    css_class = ' class="bad"' if is_violated else ""
    drawing = "\n".join(_svg(title, events, replicas))
    cut = f'<p class="before">{before:,} events before these are not on this page</p>\n' if before else ""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>\n'
        f"<body><h1{css_class}>{html.escape(title)}</h1>\n<ul>{items}</ul>\n{cut}"
        f'<div class="scroll">\n{drawing}\n</div></body></html>\n'
    )


def _svg(title: str, events: Sequence[StoryEvent], replicas: Sequence[int]) -> Iterator[str]:
    lanes = {replica: _LEFT + _LANE // 2 + number * _LANE for number, replica in enumerate(replicas)}
    height = _TOP + (len(events) + 1) * _ROW
    width = _LEFT + _LANE * len(replicas) + _RIGHT
    yield f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" role="img">'
    yield f"<title>{html.escape(title)}</title>"
    yield (
        '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="currentColor"/></marker></defs>'
    )
    for replica, x in lanes.items():
        yield f'<text x="{x}" y="{_TOP - 18}" text-anchor="middle">replica {replica}</text>'
        yield f'<line class="lane" x1="{x}" x2="{x}" y1="{_TOP - 8}" y2="{height}"/>'
    yield from _times(events)
    sent = {event.message: row for row, event in enumerate(events) if event.kind == "sent"}
    for row, event in enumerate(events):
        yield from _drawn(event, row, sent, lanes)
    yield "</svg>"


def _times(events: Sequence[StoryEvent]) -> Iterator[str]:
    last_ms = -1
    for row, event in enumerate(events):
        if event.at_ms != last_ms:
            yield f'<text class="time" x="4" y="{_y(row)}">{event.at_ms:,} ms</text>'
        last_ms = event.at_ms


def _y(row: int) -> int:
    return _TOP + row * _ROW + _ROW // 2


def _drawn(event: StoryEvent, row: int, sent: dict[int, int], lanes: dict[int, int]) -> Iterator[str]:
    words = html.escape(event.words)
    if event.kind == "sent":
        return
    if event.message and event.sender in lanes and event.replica in lanes:
        x1, x2, y1, y2 = lanes[event.sender], lanes[event.replica], _y(sent.get(event.message, row)), _y(row)
        if event.kind == "lost":
            x2, y2 = round(x1 + (x2 - x1) * _STUB), round(y1 + (y2 - y1) * _STUB)
        kind = "message lost" if event.kind == "lost" else "message"
        yield f'<line class="{kind}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"><title>{words}</title></line>'
        anchor, x = ("start", x1 + 8) if x2 >= x1 else ("end", x1 - 8)
        text_class = ' class="lost"' if event.kind == "lost" else ""
        yield f'<text{text_class} x="{x}" y="{y1 - 2}" text-anchor="{anchor}">{words}</text>'
    else:
        x = lanes.get(event.replica, _LEFT)
        yield f'<text class="{event.kind}" x="{x + 6}" y="{_y(row)}">{words}</text>'
