# SPDX-License-Identifier: Apache-2.0
"""Options that say how MirrorMaker names topics, as properties of Kafka's policies."""

import argparse
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from raftlog.errors import NamingPolicyError
from raftlog.tools.mirrors.naming import KAFKA_LEVELS, DefaultPolicy, IdentityPolicy, configured_policy
from raftlog.tools.mirrors.naming.configured import (
    CLASS_PROPERTY,
    DEFAULT_CLASS,
    IDENTITY_CLASS,
    INTERNAL_SEPARATOR_PROPERTY,
    SEPARATOR_PROPERTY,
    SOURCE_PROPERTY,
)
from raftlog.tools.terminal.argument_parser import Parser

_CLASSES: Final = {"default": DEFAULT_CLASS, "identity": IDENTITY_CLASS}
SAME_OFFSETS: Final = "same-offsets"
"""The value of ``--policy`` for mirrors that have the names and the offsets of their sources."""
_SWITCHES: Final = {"on": "true", "off": "false"}
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


def add_naming_options(parser: Parser) -> None:
    """Add the options that tell a name, none of which has a value unless it is given."""
    add_policy_options(parser)
    parser.add_argument(
        "--aliases",
        type=lambda text: tuple(text.split(",")),
        metavar="A,B",
        help="the aliases of the clusters; without them, a name with a separator may be a mirror, or not",
    )
    parser.add_argument(
        "--source", metavar="ALIAS", help="with --policy identity: the cluster that topics are mirrored from"
    )


def add_policy_options(parser: Parser, *, has_same_offsets: bool = False) -> None:
    """Add the options that choose a policy, none of which has a value unless it is given.

    Args:
        parser: of the verb.
        has_same_offsets: whether the verb knows mirrors with the offsets of their source, too.
    """
    same = ", or same-offsets (as their source, whose offsets they have, too)" if has_same_offsets else ""
    parser.add_argument(
        "--policy",
        choices=(*_CLASSES, SAME_OFFSETS) if has_same_offsets else tuple(_CLASSES),
        help=f"how mirrors are named: default (A.orders) or identity (as their source){same} (default: default)",
    )
    parser.add_argument("--separator", metavar="TEXT", help="what stands between an alias and a topic (default: a dot)")
    parser.add_argument(
        "--internal-separator",
        choices=tuple(_SWITCHES),
        help="whether internal topics have that separator, not dots (default: on)",
    )
    parser.add_argument(
        "--kafka-level",
        choices=KAFKA_LEVELS,
        default="4.0",
        help="which names are internal: before Kafka 4.0, or since (default: %(default)s)",
    )


def naming_policy(
    given: argparse.Namespace, configured: Mapping[str, str] = _NOTHING, known_aliases: Iterable[str] = ()
) -> DefaultPolicy | IdentityPolicy:
    """Return the policy that the options choose.

    Args:
        given: the command line.
        configured: properties that the clusters' own configuration has; an option counts more than its property.
        known_aliases: the aliases that the configuration has, if no option gives some.

    Raises:
        NamingPolicyError: an option has an invalid value, or a source is given to the default policy.
    """
    properties = dict(configured) | policy_properties(given)
    if given.source is not None:
        properties[SOURCE_PROPERTY] = given.source
    if given.source is not None and properties.get(CLASS_PROPERTY) != IDENTITY_CLASS:
        raise NamingPolicyError("--source is for --policy identity: other names have their source in front")
    aliases = known_aliases if given.aliases is None else given.aliases
    return configured_policy(properties, given.kafka_level, aliases)


def policy_properties(given: argparse.Namespace) -> dict[str, str]:
    """Return the properties of the options that choose a policy, and were given."""
    values = {
        CLASS_PROPERTY: _CLASSES.get(given.policy),
        SEPARATOR_PROPERTY: given.separator,
        INTERNAL_SEPARATOR_PROPERTY: _SWITCHES.get(given.internal_separator),
    }
    return {name: value for name, value in values.items() if value is not None}
