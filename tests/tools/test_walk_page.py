# SPDX-License-Identifier: Apache-2.0
"""docs/walk.md: its examples give what it shows, and every function, error and rule that it names exists."""

import doctest
import importlib
import re
from functools import reduce
from pathlib import Path

import pytest

import raftlog.errors
from raftlog.tools.catalogue.audit_rules import CATALOGUE
from tests.checkout import ROOT
from tests.tools.console import run

PAGE_PATH = ROOT / "docs" / "walk.md"
PAGE = PAGE_PATH.read_text("utf-8")
LINKS = re.findall(r"\[([^]]*)\]\(([^)]*)\)", PAGE)
TABLE_ROWS = [line for line in PAGE.splitlines() if re.match(r"\| \d+ \|", line)]
SEGMENT = Path("walk/__cluster_metadata-0/00000000000000000000.log")


def anchor(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def anchors(path: Path) -> set[str]:
    """Return the anchors of a page."""
    return {anchor(heading) for heading in re.findall(r"^#+ (.*)", path.read_text("utf-8"), re.MULTILINE)}


def test_the_examples_give_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python of the page runs from top to bottom, the table has the bytes of its log, and commands print theirs."""
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    source = "\n".join(re.findall(r"^```pycon\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
    test = doctest.DocTestParser().get_doctest(source, {}, "walk.md", str(PAGE_PATH), 0)
    failures: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=failures.append)
    assert not failures, "".join(failures)

    rows = re.findall(r"^ +(\d+)  ((?:[0-9a-f]{2} )*[0-9a-f]{2})(?:  |$)", PAGE, re.MULTILINE)
    data = SEGMENT.read_bytes()
    assert b"".join(bytes.fromhex(text) for _, text in rows) == data
    for position, text in rows:
        assert data[int(position) :].startswith(bytes.fromhex(text))

    for block in re.findall(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        for command, output in re.findall(r"^\$ raftlog (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            assert run(*command.split()).text == output


@pytest.mark.parametrize(("name", "target"), LINKS)
def test_each_link_leads_to_what_it_names(name: str, target: str) -> None:
    """A link to a module names something in it; a link to a page names a heading that is there."""
    path_text, _, heading = target.partition("#")
    path = (PAGE_PATH.parent / path_text).resolve() if path_text else PAGE_PATH
    assert path.is_file()
    if path.suffix == ".md":
        assert not heading or heading in anchors(path)
        return
    parts = path.relative_to(ROOT).with_suffix("").parts
    module = importlib.import_module(".".join(parts if parts[0] == "raftlog" else ("raftlog", *parts)))
    named = name.strip("`")
    if named != parts[-1]:
        reduce(getattr, named.split("."), module)


@pytest.mark.parametrize("row", TABLE_ROWS)
def test_each_step_has_a_function_and_known_errors_and_rules(row: str) -> None:
    """A step links to what does it; the errors and rules that it names are those of the code."""
    _, _, functions, _, wrong, _ = row.split("|")
    assert "](../" in functions
    for name in re.findall(r"`([A-Z]\w+(?:Error|Violation))`", wrong):
        assert hasattr(raftlog.errors, name)
    for rule in re.findall(r"`([a-z]+(?:-[a-z]+)+)`", wrong):
        assert rule in CATALOGUE or rule == "dump-log"
