# SPDX-License-Identifier: Apache-2.0
"""What the tests of planted faults share."""

import pytest

from tests.planted.plant import Field


@pytest.fixture(scope="session")
def field(tmp_path_factory: pytest.TempPathFactory) -> Field:
    """Where faults are planted."""
    return Field(tmp_path_factory.mktemp("field"))
