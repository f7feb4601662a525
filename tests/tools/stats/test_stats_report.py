# SPDX-License-Identifier: Apache-2.0
"""The page of ``raftlog stats --report``: its charts have the counts, each also as text, and nothing runs in it."""

from pathlib import Path

import pytest

from tests.golden_files import GOLDEN
from tests.tools.console import run
from tests.tools.made_logs import batch, flip, write_log
from tests.tools.report.page_outline import Node, outline

NODE = GOLDEN / "mirror/data/n1"
TITLES = {
    "partition": "Partitions",
    "type": "Types of records",
    "key": "Prefixes of keys",
    "producer": "Producers",
    "codec": "Codecs",
    "hour": "Hours by the greatest timestamp of batches, UTC",
}


def page_of(path: Path, *arguments: str | Path) -> str:
    """Run with a report, and return it; what is printed is as without it."""
    outcome = run("stats", "--report", path, *arguments)
    assert (outcome.exit_code, outcome.output) == (0, run("stats", *arguments).output)
    return path.read_text("utf-8")


def tables(page: str) -> dict[str, Node]:
    """The tables by the heading of their section."""
    return {each.all("h2")[0].words: each.all("table")[0] for each in outline(page).all("section") if each.all("table")}


def rows(table: Node) -> list[list[str]]:
    """The texts of the cells of each row, with the titles of bars."""
    (body,) = table.all("tbody")
    return [[cell.words for cell in row.children] for row in body.all("tr")]


def number(text: str) -> int:
    return int(text.replace(",", ""))


def test_charts_have_the_counts(tmp_path: Path) -> None:
    """Of each grouping: the groups of the JSON lines, in their order, with bars as long as the numbers beside them."""
    page = page_of(tmp_path / "stats.html", "--top", "1000", NODE)
    lines = run("stats", "--format", "json", NODE).of_kind("group")
    found = tables(page)
    for name, title in TITLES.items():
        groups = [line for line in lines if line["by"] == name]
        size, count = ("bytes", "records") if name in ("type", "key") else ("stored_bytes", "batches")
        shown = rows(found[title])
        assert sorted((number(row[1]), number(row[3])) for row in shown) == sorted(
            (group[size], group[count]) for group in groups
        )
        for row in shown:
            assert row[2] == f"{number(row[1])} bytes: {row[0]}"
            assert row[4] == f"{number(row[3])} {count}: {row[0]}"
        for column in (1, 3):
            values = [number(row[column]) for row in shown]
            widths = [
                float((row.children[column + 1].all("rect")[0].attributes["width"] or "").rstrip("%"))
                for row in found[title].all("tbody")[0].all("tr")
            ]
            assert widths == [
                pytest.approx(max(100 * value / max(values), 0.5 if value else 0.0), abs=0.01) for value in values
            ]
    assert [row[0] for row in rows(found[TITLES["hour"]])] == sorted(row[0] for row in rows(found[TITLES["hour"]]))


def test_what_is_not_asked_for_has_no_chart(tmp_path: Path) -> None:
    """The sections are those of the text."""
    found = tables(page_of(tmp_path / "stats.html", "--by", "codec,hour", "--no-compaction", NODE))
    assert set(found) == {"Sizes of batches", TITLES["codec"], TITLES["hour"], "Snapshots"}
    text = run("stats", NODE).text
    found = tables(page_of(tmp_path / "stats.html", NODE))
    assert ("Compaction" in found) == ("Compaction would remove" in text)
    assert {*TITLES.values(), "Sizes of batches", "Snapshots"} <= set(found)


@pytest.mark.parametrize(("top", "shown"), [(1, 1), (20, 20), (1001, 1000)])
def test_a_page_is_bounded(top: int, shown: int, tmp_path: Path) -> None:
    """Of many groups the largest have a row, and the rest one together, whose number is said."""
    write_log(tmp_path / "orders-0", *(batch(at, key=b"%07d" % at) for at in range(1300)))
    page = page_of(tmp_path / "s.html", "--top", str(top), "--by", "key", "--no-compaction", tmp_path / "orders-0")
    found = rows(tables(page)[TITLES["key"]])
    assert len(found) == shown + 1
    assert found[-1][0] == f"({1300 - shown:,} more)"
    assert sum(number(row[3]) for row in found) == 1300
    assert len(page) < 1_000_000


def test_hours_are_a_week_at_least(tmp_path: Path) -> None:
    """They are read one after the other, whatever the number of other groups is."""
    hour = 3_600_000
    write_log(tmp_path / "orders-0", *(batch(at, timestamp=1_700_000_000_000 + at * hour) for at in range(170)))
    page = page_of(tmp_path / "stats.html", "--top", "1", tmp_path / "orders-0")
    assert len(rows(tables(page)[TITLES["hour"]])) == 169


def test_names_are_text(tmp_path: Path) -> None:
    """Keys with markup in them are shown as they are; there is no script, and nothing is loaded."""
    write_log(tmp_path / "orders-0", batch(key=b'<script src="//x">'))
    page = page_of(tmp_path / "stats.html", "--key-prefix", "40", tmp_path / "orders-0")
    assert outline(page).all("script") == []
    assert [row[0] for row in rows(tables(page)[TITLES["key"]])] == [repr('<script src="//x">')]
    assert "default-src 'none'" in page


def test_damage_is_counted_apart(tmp_path: Path) -> None:
    """It is among what is not counted, and the verdict has the colour of damage."""
    flip(write_log(tmp_path / "orders-0", batch(0), batch(1)), 65)
    outcome = run("stats", "--report", tmp_path / "stats.html", tmp_path / "orders-0")
    assert outcome.exit_code == 2
    page = outline((tmp_path / "stats.html").read_text())
    assert "damaged" in next(each.words for each in page.all("dl"))
    assert "verdict damaged" in [each.attributes.get("class") for each in page.all("div")]


def test_other_files_are_not_overwritten(tmp_path: Path) -> None:
    """Nor is a report made inside of what is read; both are told before anything is counted. A report is replaced."""
    log = write_log(tmp_path / "logs/orders-0", batch())
    other = tmp_path / "other.html"
    other.write_text("mine")
    for path in (other, log.parent / "stats.html", tmp_path / "none/stats.html"):
        outcome = run("stats", "--report", path, log.parent)
        assert (outcome.exit_code, outcome.output, len(outcome.complaints)) == (1, b"", 1)
    assert other.read_text() == "mine"
    assert page_of(tmp_path / "stats.html", log.parent) == page_of(tmp_path / "stats.html", log.parent)
