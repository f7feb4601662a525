# SPDX-License-Identifier: Apache-2.0
"""Reports in a real browser: nothing is loaded, nothing runs, nothing is cut off, and all can be read."""

from pathlib import Path
from typing import Any

import pytest

from tests.golden_files import GOLDEN
from tests.tools.console import run
from tests.tools.mirrors.reporting.faulty_mirrors import HOSTILE, faulty_mirror
from tests.tools.report.browsing import CHROMIUM, check_whole, visit
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

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium, chromium-browser or google-chrome"),
]

PAGES = ("clean", "damaged", "forked", "single", "hostile", "flood", "deep")
WIDTHS = (400, 1280, 1600)
LEAST_CONTRAST = 4.5
"""WCAG 2, level AA."""

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


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole(browser: Any, folder: Path, name: str, width: int) -> None:
    """Nothing is loaded or complained about, nothing is wider than the page, and all that should be seen has a size."""
    layout = check_whole(browser, folder / f"{name}.html", width)
    assert layout["figures"] > 5
    assert layout["tooltips"] > 0


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_of_stats_is_whole(browser: Any, width: int, tmp_path: Path) -> None:
    """Likewise; and each bar has a size and a title."""
    path = tmp_path / "stats.html"
    assert run("stats", "--report", path, GOLDEN / "mirror/data/n1").exit_code == 0
    assert check_whole(browser, path, width)["figures"] > 20


def test_the_page_of_a_mirror_is_whole(browser: Any, tmp_path: Path) -> None:
    """Likewise, on a wide and a narrow page, with each section; the name of a directory that is markup does nothing."""
    path = tmp_path / "mirror.html"
    assert run("verify-mirror", *faulty_mirror(tmp_path), "--report", path).exit_code == 2
    for width in WIDTHS[:2]:
        layout = check_whole(browser, path, width)
        assert layout["figures"] > 2
        assert layout["tooltips"] > 8
    seen = visit(browser, path)
    assert seen.page.title().startswith("Data is lost from A to B: ")
    assert HOSTILE.replace("/", "") in seen.page.inner_text("body")
    seen.page.close()


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
