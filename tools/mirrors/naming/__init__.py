# SPDX-License-Identifier: Apache-2.0
"""The names that MirrorMaker gives to topics: Kafka's replication policies, and what a name says of its topic.

>>> from raftlog.tools.mirrors.naming import DefaultPolicy, classify
>>> DefaultPolicy().upstream_topic("A.orders")
'orders'
>>> classify("B.A.orders", DefaultPolicy(aliases=("A", "B"))).original
'orders'
"""

from raftlog.tools.mirrors.naming.configured import configured_policy
from raftlog.tools.mirrors.naming.policies import KAFKA_LEVELS, DefaultPolicy, IdentityPolicy, KafkaLevel, NamingPolicy
from raftlog.tools.mirrors.naming.replication import DEFAULT_EXCLUDES, TopicFilter, is_cycle, should_replicate
from raftlog.tools.mirrors.naming.topic_class import Confidence, TopicClass, TopicKind, classify

__all__ = [
    "DEFAULT_EXCLUDES",
    "KAFKA_LEVELS",
    "Confidence",
    "DefaultPolicy",
    "IdentityPolicy",
    "KafkaLevel",
    "NamingPolicy",
    "TopicClass",
    "TopicFilter",
    "TopicKind",
    "classify",
    "configured_policy",
    "is_cycle",
    "should_replicate",
]
