# SPDX-License-Identifier: Apache-2.0
"""The names and settings of the table that real replication policies filled (tests/kafka/recorded_policies.py)."""

from collections.abc import Iterator
from typing import Final

import attrs

from raftlog.tools.mirrors.naming import KAFKA_LEVELS, KafkaLevel, NamingPolicy, TopicFilter, configured_policy
from raftlog.tools.mirrors.naming.configured import (
    CLASS_PROPERTY,
    DEFAULT_CLASS,
    IDENTITY_CLASS,
    INTERNAL_SEPARATOR_PROPERTY,
    SEPARATOR_PROPERTY,
    SOURCE_PROPERTY,
)

RELEASES: Final[dict[str, KafkaLevel]] = {"3.9.1": "3.x", "4.3.1": "4.0"}
"""The releases that answered, with the level of each."""
assert tuple(RELEASES.values()) == KAFKA_LEVELS
TARGET: Final = "B"
"""The cluster that the connectors mirror to."""


def _words(text: str) -> list[str]:
    return text.split(" ")


_BASES: Final = _words(
    "orders tx.orders heartbeats myheartbeats my.heartbeats heartbeat checkpoints.internal checkpoints_internal "
    "internal-looking orders.internal orders-internal orders_internal orders.replica mm2 mm2-x mm2foo.internal "
    "mm2foo_internal mm2-offset-syncs.B.internal mm2-offset-syncs_B_internal mm2-offset-syncs..internal "
    "mm2-offsets.A.internal mm2-status.A.internal mm2-configs.A.internal mm2-offsets_A_internal __consumer_offsets "
    "__cluster_metadata __transaction_state _schemas internal"
)
_PREFIXES: Final = ("", "A.", "B.", "A.B.", "B.A.", "A_", "B_A_", ".", "_", "A__", "a.b.")
_MORE: Final = _words(
    " a. a.. a._ . .. ... _ __ ___ a_ a__ a___b a____b A-orders B-A-orders A--orders A|orders A|B|orders A*orders "
    "A\\Eorders A\\E\\Eorders A\\orders A+orders A[.]orders A..orders A...orders A.-B A:orders A.A.A.orders B.B.orders "
    "A.checkpoints_internal A_checkpoints.internal .checkpoints.internal _checkpoints_internal A.internal.checkpoints "
    "mm2.internal mm2_internal mm2-offsets..internal mm2.checkpoints.internal heartbeats. heartbeats.heartbeats "
    "A.heartbeats. heartbeats_ Heartbeats orders.Internal ä.orders orders.ä 日本.注文 A.日本 \U0001f600.orders "
    "Amm2orders mm2 ammm2b"
)
_EXTRA: Final = (f"{'A.' * 40}orders", f"{'B_' * 40}orders", f"A.{'x' * 247}", "." * 50, "_" * 50)
NAMES: Final = tuple(dict.fromkeys([*(f"{prefix}{base}" for base in _BASES for prefix in _PREFIXES), *_MORE, *_EXTRA]))
"""Every name, once."""
ALIASES: Final = ("A", "B", "A.B", "A_B", "", "mm2", "__a", "ä")
ALIASED: Final = ("orders", "tx.orders", "heartbeats", "myheartbeats", "A.orders", "", ".", "_schemas")
"""The topics that are named for each alias."""


@attrs.frozen
class Setting:
    """The configuration of a policy; None for what is not configured."""

    identity: bool = False
    separator: str | None = None
    internal: str | None = None
    source: str | None = None
    topics: str | None = None
    exclude: str | None = None
    heartbeats: str | None = None

    @property
    def properties(self) -> dict[str, str]:
        """What Kafka's classes are configured with."""
        given = {
            CLASS_PROPERTY: IDENTITY_CLASS if self.identity else DEFAULT_CLASS,
            SEPARATOR_PROPERTY: self.separator,
            INTERNAL_SEPARATOR_PROPERTY: self.internal,
            SOURCE_PROPERTY: self.source,
            "topics": self.topics,
            "topics.exclude": self.exclude,
            "heartbeats.replication.enabled": self.heartbeats,
        }
        return {name: value for name, value in given.items() if value is not None}

    def policy(self, level: KafkaLevel, *aliases: str) -> NamingPolicy:
        """Our policy."""
        return configured_policy(self.properties, level, aliases)

    def topic_filter(self, level: KafkaLevel) -> TopicFilter:
        """Our filter."""
        default = TopicFilter.of_level(level)
        topics = ",".join(default.topics) if self.topics is None else self.topics
        exclude = ",".join(default.exclude) if self.exclude is None else self.exclude
        return TopicFilter.of_lists(topics, exclude)


SETTINGS: Final = (
    Setting(),
    Setting(internal="false"),
    Setting(separator="_"),
    Setting(separator="_", internal="false"),
    Setting(separator="-", internal="TRUE"),
    Setting(separator="__", topics="A.*, B.*", exclude=".*-internal"),
    Setting(separator="..", topics="orders,.*heartbeats ,x", exclude=""),
    Setting(separator="|", topics="", exclude="x"),
    Setting(separator="\\E", exclude=" __.* "),
    Setting(separator="mm2", internal="yes"),
    Setting(identity=True),
    Setting(identity=True, source="A"),
    Setting(identity=True, source=TARGET, separator="_"),
    Setting(identity=True, source="A", separator="_", internal="false"),
)


def lines_to_ask(setting: Setting, names: tuple[str, ...] = NAMES) -> Iterator[str]:
    """Yield the lines that ask Kafka's policy for everything (MirrorNames.java)."""
    kind = "identity" if setting.identity else "default"
    yield "\t".join(["policy", kind, TARGET, *(text for pair in setting.properties.items() for text in pair)])
    yield from (f"name\t{name}" for name in names)
    yield from (f"alias\t{alias}\t{topic}" for alias in ALIASES for topic in ALIASED)
