# SPDX-License-Identifier: Apache-2.0
"""Tests of the rule for names of tests, and that pytest asks it."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.changing_names import name_changes
from tests.conftest import pytest_collection_modifyitems


@pytest.mark.parametrize(
    ("value", "changes"),
    [
        (lambda: set(), False),
        (lambda: {"one"}, False),
        (lambda: {"one", "two"}, True),
        (lambda: (1, {"one", "two"}), True),
        (lambda: frozenset(("one", "two")), True),
        (lambda: {"one": 1, "two": 2}, False),
        (dict, False),
        (lambda: ["one", "two"], False),
        (lambda: object(), True),
        (lambda: "reserved at 0x10", False),
    ],
    ids=["empty", "one", "two", "nested", "frozen", "dictionary", "empty dictionary", "list", "object", "position"],
)
def test_what_changes(value: Any, changes: bool) -> None:
    """A set of two elements and an address do, anywhere in a name; all else stays."""
    assert name_changes(f"test_it[{value()}]") is changes


def test_a_changing_name_is_refused() -> None:
    """Beside a test whose name stays, which is not named."""
    items: Any = [SimpleNamespace(name=name, nodeid=f"file::{name}") for name in ("test_a", "test_b[{1, 2}]")]
    with pytest.raises(pytest.UsageError) as refusal:
        pytest_collection_modifyitems(items)
    assert "test_b" in str(refusal.value)
    assert "test_a" not in str(refusal.value)
