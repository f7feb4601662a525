# SPDX-License-Identifier: Apache-2.0
"""The tests that ``make test-asan`` names are there."""

import importlib

from tests.checkout import ROOT
from tests.records.sanitize_kernel import OF_THE_INSTRUCTION, TESTS


def test_what_is_run_and_what_is_left_out_is_there() -> None:
    """pytest says nothing about a test to leave out that does not exist."""
    path, _, name = OF_THE_INSTRUCTION.partition("::")
    assert path in TESTS
    assert all((ROOT / each).is_file() for each in TESTS)
    module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    assert callable(getattr(module, name, None))
