# SPDX-License-Identifier: Apache-2.0
"""A tier finds all its tests, though it looks only where they are."""

from pathlib import Path

import pytest

from tests.checkout import ROOT
from tests.conftest import pytest_collection_modifyitems
from tests.tiers import PLACES, WORDS, is_elsewhere


@pytest.mark.parametrize("marker", PLACES)
def test_places_are_there(marker: str) -> None:
    """Each is looked at with the directories above it and what is in it; nothing beside it is."""
    for place in PLACES[marker]:
        assert place.exists()
        assert not any(is_elsewhere(each, marker) for each in (place, place / "test_x.py", *place.parents))
        assert is_elsewhere(place.with_name("elsewhere"), marker)


def test_other_markers_may_be_anywhere() -> None:
    """So may tests that an expression of markers selects."""
    assert not is_elsewhere(ROOT / "tests/test_x.py", "packaging")
    assert not is_elsewhere(ROOT / "tests/test_x.py", "not kafka")


@pytest.mark.parametrize("word", WORDS)
def test_some_tests_are_in_files_that_say_so(word: str, tmp_path: Path) -> None:
    """A file without the word is passed over when only tests of its tier are wanted; a directory never is."""
    quick, marked = tmp_path / "test_quick.py", tmp_path / "test_marked.py"
    quick.write_text("def test_it():\n    pass\n", "utf-8")
    marked.write_text(f"@pytest.mark.{word}\ndef test_it():\n    pass\n", "utf-8")
    assert is_elsewhere(quick, word)
    assert not is_elsewhere(quick, f"not {word}")
    assert not is_elsewhere(marked, word)
    assert not is_elsewhere(tmp_path, word)


@pytest.mark.parametrize("word", WORDS)
def test_files_that_are_no_python_are_not_read(word: str, tmp_path: Path) -> None:
    """Such as what the Kafka tier brings below ``tests``: pytest finds no test there."""
    jar = tmp_path / "kafka.jar"
    jar.write_bytes(b"PK\x03\x04\xff")
    assert not is_elsewhere(jar, word)


def test_a_misplaced_test_is_refused(request: pytest.FixtureRequest) -> None:
    """Whichever tests are run, the one is named that its tier would not find."""
    pytest_collection_modifyitems([request.node])
    request.node.add_marker("browser")
    with pytest.raises(pytest.UsageError, match=r"\ntests/test_tiers\.py::test_a_misplaced_test_is_refused$"):
        pytest_collection_modifyitems([request.node])
