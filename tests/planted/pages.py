# SPDX-License-Identifier: Apache-2.0
"""Opens the page of every planted kind of fault in a real browser: ``python -m tests.planted.pages``."""

import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from raftlog.tools.report.page import Report
from tests.planted.faults import FAULTS
from tests.planted.plant import Field
from tests.tools.report.browsing import check_whole, opened_browser

WIDTH: Final = 1280
"""The narrowest page on which no table may be cut off."""


def wrong_pages(browser: Any, field: Field, names: Iterable[str]) -> dict[str, str]:
    """Return what is wrong with the page of each kind of fault, by its name."""
    wrong = {}
    for name in names:
        planted = field.plant(FAULTS[name], 0)
        root = field.directory / planted.ground
        report = Report([str(root)])
        for judged in field.judged(root):
            report.add(judged)
        page = field.directory / f"{name}.html"
        page.write_text(report.html(), "utf-8")
        try:
            check_whole(browser, page, WIDTH)
        except AssertionError as error:
            wrong[name] = str(error)
    return wrong


def main() -> int:
    """Open the pages of all kinds; return 1 if one is not whole."""
    with tempfile.TemporaryDirectory() as directory, opened_browser() as browser:
        wrong = wrong_pages(browser, Field(Path(directory)), FAULTS)
    for name, problem in wrong.items():
        print(name, problem)
    print(f"{len(FAULTS)} pages, {len(wrong)} not whole")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
