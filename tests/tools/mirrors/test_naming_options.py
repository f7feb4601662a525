# SPDX-License-Identifier: Apache-2.0
"""Options choose a policy, and count more than what the clusters' own configuration says."""

import pytest

from raftlog.errors import NamingPolicyError
from raftlog.tools.mirrors.naming import DefaultPolicy, IdentityPolicy
from raftlog.tools.mirrors.naming.configured import (
    CLASS_PROPERTY,
    IDENTITY_CLASS,
    INTERNAL_SEPARATOR_PROPERTY,
    SEPARATOR_PROPERTY,
    SOURCE_PROPERTY,
)
from raftlog.tools.mirrors.naming_options import add_naming_options, naming_policy
from raftlog.tools.terminal.argument_parser import Parser

CONFIGURED = {
    CLASS_PROPERTY: IDENTITY_CLASS,
    SEPARATOR_PROPERTY: "_",
    INTERNAL_SEPARATOR_PROPERTY: "false",
    SOURCE_PROPERTY: "A",
    "topics": ".*",
}


def chosen(*options: str, configured: dict[str, str] | None = None, aliases: tuple[str, ...] = ()) -> object:
    """The policy that options choose."""
    parser = Parser()
    add_naming_options(parser)
    return naming_policy(parser.parse_args(options), configured or {}, aliases)


def test_without_options_the_configuration_counts() -> None:
    """Or Kafka's defaults, if there is none."""
    assert chosen() == DefaultPolicy()
    assert chosen(configured=CONFIGURED, aliases=("A", "B")) == IdentityPolicy("A", "_", False, aliases=("A", "B"))


def test_each_option_counts_more_than_its_property() -> None:
    """One by one, and the others stay as configured."""
    for options, expected in (
        (("--policy", "default"), DefaultPolicy("_", False, "4.0", ("A",))),
        (("--policy", "identity"), IdentityPolicy("A", "_", False, "4.0", ("A",))),
        (("--source", "C"), IdentityPolicy("C", "_", False, "4.0", ("A",))),
        (("--separator", "-"), IdentityPolicy("A", "-", False, "4.0", ("A",))),
        (("--internal-separator", "on"), IdentityPolicy("A", "_", True, "4.0", ("A",))),
        (("--aliases", "X,Y"), IdentityPolicy("A", "_", False, "4.0", ("X", "Y"))),
        (("--kafka-level", "3.x"), IdentityPolicy("A", "_", False, "3.x", ("A",))),
    ):
        assert chosen(*options, configured=CONFIGURED, aliases=("A",)) == expected


def test_a_source_needs_the_identity_policy() -> None:
    """By option or by configuration; that of a configuration does not matter to the default policy."""
    with pytest.raises(NamingPolicyError, match="--source is for --policy identity"):
        chosen("--source", "A")
    with pytest.raises(NamingPolicyError, match="--source is for --policy identity"):
        chosen("--source", "A", "--policy", "default", configured=CONFIGURED)
    assert chosen("--source", "B", "--policy", "identity") == IdentityPolicy("B")
    assert chosen(configured={SOURCE_PROPERTY: "A"}) == DefaultPolicy()
