# SPDX-License-Identifier: Apache-2.0
"""Where the tests of the smaller tiers are, so that ``pytest -m kafka`` need not import the thousands of others."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.checkout import ROOT

PLACES: Final[Mapping[str, tuple[Path, ...]]] = {
    "browser": (
        ROOT / "tests/planted",
        ROOT / "tests/tools/report",
        ROOT / "tests/tools/simulate/test_page_in_browser.py",
    ),
    "kafka": (ROOT / "tests/kafka",),
    "spark": (ROOT / "tests/spark", ROOT / "tests/tools/test_documents.py"),
}
"""Files and directories by marker; a test elsewhere may not have it."""
WORDS: Final = ("slow", "volume")
"""Markers that tests anywhere may have."""


def is_elsewhere(path: Path, marker: str) -> bool:
    """Whether no test in a file or directory may have a marker. The directories above those that may are looked at.

    Tests of some tiers may be anywhere, but only in files that have the tier's word.
    """
    if marker in WORDS:
        return path.suffix == ".py" and marker not in path.read_text("utf-8")
    places = PLACES.get(marker)
    return places is not None and not any(path.is_relative_to(each) or each.is_relative_to(path) for each in places)
