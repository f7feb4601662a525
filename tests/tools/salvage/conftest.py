# SPDX-License-Identifier: Apache-2.0
"""A quorum to salvage."""

from pathlib import Path

import pytest

from tests.tools.repair.repaired import copied


@pytest.fixture
def quorum(tmp_path: Path) -> Path:
    """Log directories of a quorum."""
    return copied(tmp_path)
