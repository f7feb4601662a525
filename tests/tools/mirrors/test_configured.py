# SPDX-License-Identifier: Apache-2.0
"""A policy is made from MirrorMaker's properties as Kafka makes it."""

import pytest

from raftlog.errors import NamingPolicyError
from raftlog.tools.mirrors.naming import DefaultPolicy, IdentityPolicy, configured_policy
from raftlog.tools.mirrors.naming.configured import (
    CLASS_PROPERTY,
    DEFAULT_CLASS,
    IDENTITY_CLASS,
    INTERNAL_SEPARATOR_PROPERTY,
    SEPARATOR_PROPERTY,
    SOURCE_PROPERTY,
)


def test_without_properties_it_is_the_default_policy() -> None:
    """Other properties do not matter, nor does a source cluster."""
    assert configured_policy({}) == DefaultPolicy()
    given = {CLASS_PROPERTY: DEFAULT_CLASS, SOURCE_PROPERTY: "A", "topics": ".*"}
    assert configured_policy(given, "3.x", ["A"]) == DefaultPolicy(kafka_level="3.x", aliases=("A",))


def test_each_property_is_read() -> None:
    """Class, separator, internal separator and source."""
    given = {
        CLASS_PROPERTY: IDENTITY_CLASS,
        SEPARATOR_PROPERTY: "_",
        INTERNAL_SEPARATOR_PROPERTY: "false",
        SOURCE_PROPERTY: "A",
    }
    assert configured_policy(given) == IdentityPolicy("A", "_", False)
    assert configured_policy({SEPARATOR_PROPERTY: "_"}) == DefaultPolicy("_")
    assert configured_policy({CLASS_PROPERTY: IDENTITY_CLASS}) == IdentityPolicy()


@pytest.mark.parametrize(("text", "expected"), [("true", True), ("TRUE", True), ("false", False), ("yes", False)])
def test_a_switch_is_on_only_as_true(text: str, expected: bool) -> None:
    """Java's ``Boolean.parseBoolean``."""
    policy = configured_policy({SEPARATOR_PROPERTY: "_", INTERNAL_SEPARATOR_PROPERTY: text})
    assert policy == DefaultPolicy("_", expected)


def test_other_classes_are_refused() -> None:
    """Somebody's own policy names topics in a way that is not known."""
    with pytest.raises(NamingPolicyError, match=r"'com\.example\.Mine' is not one of Kafka's two"):
        configured_policy({CLASS_PROPERTY: "com.example.Mine"})
    with pytest.raises(NamingPolicyError, match="the separator is empty"):
        configured_policy({SEPARATOR_PROPERTY: ""})
