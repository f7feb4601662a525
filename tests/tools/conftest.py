# SPDX-License-Identifier: Apache-2.0
"""What tests of several rooms of the tools are given."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.tools.report.browsing import opened_browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser without a window."""
    pytest.importorskip("playwright.sync_api")
    with opened_browser() as running:
        yield running
