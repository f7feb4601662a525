# SPDX-License-Identifier: Apache-2.0
"""Reports in a real browser: nothing is loaded, nothing runs, nothing is cut off, and all can be read."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.tools.report.made_reports import (
    PARTITION,
    copy_quorum,
    damage_quorum,
    flood,
    forked_quorum,
    hostile_names,
    report_of,
    report_of_evidence,
)

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium, chromium-browser or google-chrome"),
]

PAGES = ("clean", "damaged", "forked", "single", "hostile", "flood", "deep")
WIDTHS = (400, 1280, 1600)
WIDE = 1280
"""From this width on, no table needs to be scrolled."""
LEAST_CONTRAST = 4.5
"""WCAG 2, level AA."""

LAYOUT = """() => {
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

CONTRASTS = """() => {
    const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
    const rgb = (color) => {
        canvas.fillStyle = color;
        canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    const luminance = ([red, green, blue]) => {
        const [r, g, b] = [red, green, blue].map((value) => value / 255).map(
            (value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (node) => {
        const bar = node.closest("g")?.querySelector("rect");
        if (bar && getComputedStyle(bar).fill.startsWith("rgb")) return getComputedStyle(bar).fill;
        for (let up = node; up; up = up.parentElement) {
            const color = getComputedStyle(up).backgroundColor;
            if (color !== "rgba(0, 0, 0, 0)") return color;
        }
        return "rgb(255, 255, 255)";
    };
    const worst = {};
    const texts = "h1,h2,h3,p,li,dt,dd,a,th,td,caption,code,figcaption,.severity,text";
    for (const node of document.querySelectorAll(texts)) {
        const style = getComputedStyle(node);
        const color = node.tagName === "text" ? style.fill : style.color;
        const [one, other] = [luminance(rgb(color)), luminance(rgb(behind(node)))];
        const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
        const name = `${node.tagName} ${node.getAttribute("class")} ${color}`;
        worst[name] = Math.min(worst[name] ?? 21, contrast);
    }
    return worst;
}"""


@attrs.frozen
class Visit:
    """A page that is open in the browser, and what it did when it was opened."""

    page: Any
    messages: list[str]
    requests: list[str]
    address: str


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser without a window."""
    playwright = pytest.importorskip("playwright.sync_api")
    # Chromium refuses to run as root inside its sandbox.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield running
        running.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages as files."""
    made = tmp_path_factory.mktemp("pages")
    deep = made.joinpath(*["a-directory-of-a-very-long-name-indeed"] * 5)
    texts = {
        "clean": report_of(copy_quorum(made / "clean")),
        "damaged": report_of(damage_quorum(made / "damaged")),
        "forked": report_of_evidence(forked_quorum()),
        "single": report_of(PARTITION),
        "hostile": report_of(hostile_names(made / "hostile")),
        "flood": report_of_evidence(flood(2000)),
        "deep": report_of(damage_quorum(deep)),
    }
    for name, text in texts.items():
        made.joinpath(f"{name}.html").write_text(text, "utf-8")
    return made


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


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole(browser: Any, folder: Path, name: str, width: int) -> None:
    """Nothing is loaded or complained about, nothing is wider than the page, and all that should be seen has a size."""
    seen = visit(browser, folder / f"{name}.html", width)
    layout = seen.page.evaluate(LAYOUT)
    seen.page.close()
    assert (seen.messages, seen.requests) == ([], [seen.address])
    assert layout["scroll"] <= layout["client"]
    assert layout["unseen"] == 0
    assert (layout["untitled"], layout["cut"], layout["scripts"]) == (0, [], 0)
    assert layout["figures"] > 5
    assert width < WIDE or layout["scrolled"] == []
    assert layout["tooltips"] > 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["damaged", "forked"])
def test_text_has_contrast(browser: Any, folder: Path, name: str, scheme: str) -> None:
    """Light or dark, each text has the contrast with its background that level AA requires."""
    seen = visit(browser, folder / f"{name}.html", scheme=scheme)
    contrasts = seen.page.evaluate(CONTRASTS)
    background = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
    seen.page.close()
    assert {name: contrast for name, contrast in contrasts.items() if contrast < LEAST_CONTRAST} == {}
    assert len(contrasts) > 10
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")


def test_a_page_prints_light(browser: Any, folder: Path) -> None:
    """On paper even a dark page is dark on white, and no part of a table is hidden by a scroll bar."""
    seen = visit(browser, folder / "damaged.html", 720, "dark")
    seen.page.emulate_media(media="print")
    assert seen.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= 720
    assert seen.page.pdf(format="A4").startswith(b"%PDF")
    seen.page.close()


def test_hostile_names_do_nothing(browser: Any, folder: Path) -> None:
    """Names with markup and quotes are text: the title is ours, and the name is read as it is written."""
    seen = visit(browser, folder / "hostile.html")
    assert seen.page.title().startswith("Damaged: ")
    words = seen.page.inner_text("body")
    assert "a<script>document.title='owned'<script>-0" in words
    assert "b\"quote's&amp;&lt;-0" in words
    seen.page.close()


def test_links_lead_to_their_rules(browser: Any, folder: Path) -> None:
    """A click on the rule of a finding shows what the rule claims, and every link of the page has its target."""
    seen = visit(browser, folder / "damaged.html")
    seen.page.click("table.findings a >> nth=0")
    assert seen.page.url.endswith("#rule-batch-crc")
    assert seen.page.evaluate("document.querySelector(':target').textContent") == "batch-crc"
    missing = "[...document.links].filter((link) => !document.getElementById(link.hash.slice(1))).length"
    assert seen.page.evaluate(missing) == 0
    seen.page.close()
