# SPDX-License-Identifier: Apache-2.0
"""A tier finds all its tests, though it looks only where they are."""

import pytest

from tests.checkout import ROOT
from tests.conftest import pytest_collection_modifyitems
from tests.tiers import PLACES, is_elsewhere


@pytest.mark.parametrize("marker", PLACES)
def test_places_are_there(marker: str) -> None:
    """Each is looked at with the directories above it and what is in it; nothing beside it is."""
    for place in PLACES[marker]:
        assert place.exists()
        assert not any(is_elsewhere(each, marker) for each in (place, place / "test_x.py", *place.parents))
        assert is_elsewhere(place.with_name("elsewhere"), marker)


def test_other_markers_may_be_anywhere() -> None:
    """So may tests that an expression of markers selects."""
    assert not is_elsewhere(ROOT / "tests/test_x.py", "slow")
    assert not is_elsewhere(ROOT / "tests/test_x.py", "not kafka")


def test_a_misplaced_test_is_refused(request: pytest.FixtureRequest) -> None:
    """Whichever tests are run, the one is named that its tier would not find."""
    pytest_collection_modifyitems([request.node])
    request.node.add_marker("browser")
    with pytest.raises(pytest.UsageError, match=r"\ntests/test_tiers\.py::test_a_misplaced_test_is_refused$"):
        pytest_collection_modifyitems([request.node])
