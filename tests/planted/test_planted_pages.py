# SPDX-License-Identifier: Apache-2.0
"""Pages of planted faults in a real browser; ``python -m tests.planted.pages`` opens those of all kinds."""

from pathlib import Path

import pytest

from tests.planted.faults import FAULTS
from tests.planted.pages import wrong_pages
from tests.planted.plant import Field
from tests.tools.report.browsing import CHROMIUM, opened_browser

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium, chromium-browser or google-chrome"),
]
EVERY = 12


def test_some_pages_are_whole(tmp_path: Path) -> None:
    """Of every twelfth kind: nothing is cut off at 1280 pixels, nothing is loaded, and nothing is complained about."""
    pytest.importorskip("playwright.sync_api")
    with opened_browser() as browser:
        assert wrong_pages(browser, Field(tmp_path), list(FAULTS)[::EVERY]) == {}
