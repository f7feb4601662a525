# SPDX-License-Identifier: Apache-2.0
"""Opening a page in a real browser, and checking that it is whole."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import attrs

CHROMIUM: Final = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_WIDE: Final = 1280
"""From this width on, no table needs to be scrolled."""

_LAYOUT = """() => {
    const boxes = (chosen) => [...document.querySelectorAll(chosen)].map((node) => node.getBoundingClientRect());
    const root = document.documentElement;
    return {
        scroll: root.scrollWidth, client: root.clientWidth,
        // On a narrow page rows of findings are cards, without heads and without what is empty.
        unseen: boxes("h1,h2,h3,svg[role=img],tbody th,td:not(.none)")
            .filter((box) => !box.width || !box.height).length,
        figures: boxes("svg[role=img]").length,
        untitled: [...document.querySelectorAll("svg[role=img]")].filter(
            (node) => !node.querySelector(":scope > title")?.textContent).length,
        cut: [...document.querySelectorAll("svg text")].filter((node) => {
            const box = node.getBoundingClientRect();
            return box.width && (box.left < -1 || box.right > root.clientWidth + 1);
        }).map((node) => node.textContent),
        scrolled: [...document.querySelectorAll(".frame")].filter(
            (node) => node.scrollWidth > node.clientWidth + 1).map((node) => node.getAttribute("aria-label")),
        tooltips: document.querySelectorAll("svg g > title").length,
        scripts: document.scripts.length,
    };
}"""


@attrs.frozen
class Visit:
    """A page that is open in the browser, and what it did when it was opened."""

    page: Any
    messages: list[str]
    requests: list[str]
    address: str


@contextmanager
def opened_browser() -> Iterator[Any]:
    """Open a browser without a window."""
    from playwright.sync_api import sync_playwright

    # Chromium refuses to run as root inside its sandbox.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as started:
        running = started.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield running
        running.close()


def visit(browser: Any, path: Path, width: int = 1600, scheme: str = "light", **options: Any) -> Visit:
    """Open a page and note what it does."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme, **options)
    seen = Visit(page, [], [], path.as_uri())
    page.on("console", lambda message: seen.messages.append(message.text))
    page.on("pageerror", lambda error: seen.messages.append(str(error)))
    page.on("dialog", lambda dialog: seen.messages.append(dialog.message))
    page.on("request", lambda request: seen.requests.append(request.url))
    page.goto(seen.address)
    return seen


def check_whole(browser: Any, path: Path, width: int) -> dict[str, Any]:
    """Check that a page loads nothing, complains of nothing, and shows all; return what was measured of its layout."""
    seen = visit(browser, path, width)
    layout: dict[str, Any] = seen.page.evaluate(_LAYOUT)
    seen.page.close()
    assert (seen.messages, seen.requests) == ([], [seen.address])
    assert layout["scroll"] <= layout["client"]
    assert layout["unseen"] == 0
    assert (layout["untitled"], layout["cut"], layout["scripts"]) == (0, [], 0)
    assert width < _WIDE or layout["scrolled"] == []
    return layout
