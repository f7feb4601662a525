# SPDX-License-Identifier: Apache-2.0
"""The tables of an image: dicts of entries, which the replay of records changes in place.

``Tables`` is the plain form. ``watched`` returns tables with the same entries that report each entry that is set or
removed; entries are immutable, so what they report stays as it was.
"""

from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar
from uuid import UUID

import attrs

from raftlog.tools.image.entries import (
    Acl,
    Broker,
    Controller,
    DelegationToken,
    PartitionEntry,
    ScramCredential,
    Topic,
)

Resource = tuple[int, str]
"""Owner of configs: Kafka's number of its type, and its name; empty for the default of all of that type."""
QuotaEntity = frozenset[tuple[str, str | None]]
"""Owner of quotas: types and names of what a client must be; None for the default of a type."""
Key = tuple[Hashable, ...]
"""The identity of an entry: the name of its table, and its keys there."""
Watcher = Callable[[Key, Any, Any], None]
"""Called with the key of an entry, and the entry before and after; None if there is none."""

PRODUCER_IDS: Final = "next_producer_id"
"""The only key of the table of producer ids."""

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


@attrs.define
class Tables:
    """The entries of an image. Replay changes them.

    Attributes:
        features: levels by name of the feature, ``metadata.version`` among them.
        topics: by topic id.
        partitions: by topic id, then by number. Each topic has an item.
        configs: by owner, then by name of the config.
        brokers, controllers: by node id.
        acls: by id.
        scram: by user and Kafka's number of the mechanism.
        quotas: by owner, then by name of the quota.
        delegation_tokens: by token id.
        producer_ids: the first producer id that no broker has been given, under ``PRODUCER_IDS``.
        topic_ids: ids by name; of two topics of one name, the one that was made last.
        shared: lists that many partitions have, which share one object.
        by_id_bytes: items of ``partitions`` by the bytes of the topic id; not all need be there.
    """

    features: dict[str, int] = attrs.field(factory=dict)
    topics: dict[UUID, Topic] = attrs.field(factory=dict)
    partitions: dict[UUID, dict[int, PartitionEntry]] = attrs.field(factory=dict)
    configs: dict[Resource, dict[str, str]] = attrs.field(factory=dict)
    brokers: dict[int, Broker] = attrs.field(factory=dict)
    controllers: dict[int, Controller] = attrs.field(factory=dict)
    acls: dict[UUID, Acl] = attrs.field(factory=dict)
    scram: dict[tuple[str, int], ScramCredential] = attrs.field(factory=dict)
    quotas: dict[QuotaEntity, dict[str, float]] = attrs.field(factory=dict)
    delegation_tokens: dict[str, DelegationToken] = attrs.field(factory=dict)
    producer_ids: dict[str, int] = attrs.field(factory=dict)
    topic_ids: dict[str, UUID] = attrs.field(factory=dict, eq=False)
    shared: dict[tuple[Any, ...], tuple[Any, ...]] = attrs.field(factory=dict, eq=False, repr=False)
    by_id_bytes: dict[bytes, dict[int, PartitionEntry]] = attrs.field(factory=dict, eq=False, repr=False)

    def inner(self, _table: str, _owner: Hashable) -> dict[Any, Any]:
        """Make the dict of one owner's entries in a table of two levels."""
        return {}


@attrs.define
class WatchedTables(Tables):
    """Tables that report each entry that is set or removed."""

    watcher: Watcher = attrs.field(kw_only=True, eq=False, repr=False)

    def inner(self, table: str, owner: Hashable) -> dict[Any, Any]:
        """Make the dict of one owner's entries, which reports changes."""
        return _WatchedDict((table, owner), self.watcher)


class _WatchedDict(dict[_K, _V]):
    """A dict that reports what ``replay`` does to it: nothing else may change it."""

    __slots__ = ("_prefix", "_watcher")

    def __init__(self, prefix: Key, watcher: Watcher, entries: dict[_K, _V] | None = None) -> None:
        super().__init__(entries or {})
        self._prefix = prefix
        self._watcher = watcher

    def __setitem__(self, key: _K, value: _V) -> None:
        before = self.get(key)
        super().__setitem__(key, value)
        if before != value:
            self._watcher((*self._prefix, key), before, value)

    def pop(self, key: _K, default: Any = None) -> Any:
        before = super().pop(key, default)
        if before is not None:
            self._watcher((*self._prefix, key), before, None)
        return before

    def clear(self) -> None:
        for key in list(self):
            self.pop(key)


_FLAT: Final = (
    "features",
    "topics",
    "brokers",
    "controllers",
    "acls",
    "scram",
    "delegation_tokens",
    "producer_ids",
)
"""The tables of one level."""
_NESTED: Final = ("partitions", "configs", "quotas")
"""The tables of two levels."""


def watched(tables: Tables, watcher: Watcher) -> WatchedTables:
    """Return tables with the same entries, of which each later change is reported.

    Args:
        tables: are not changed by a replay over the result.
        watcher: is called with each change.
    """
    found = WatchedTables(topic_ids=dict(tables.topic_ids), watcher=watcher)
    for name in _FLAT:
        setattr(found, name, _WatchedDict((name,), watcher, getattr(tables, name)))
    for name in _NESTED:
        owners = getattr(tables, name).items()
        setattr(found, name, {owner: _WatchedDict((name, owner), watcher, inner) for owner, inner in owners})
    return found


def copied(tables: Tables) -> Tables:
    """Return tables with the same entries, which change independently: the dicts are copied, the entries shared."""
    found = Tables(topic_ids=dict(tables.topic_ids), shared=tables.shared)
    for name in _FLAT:
        setattr(found, name, dict(getattr(tables, name)))
    for name in _NESTED:
        setattr(found, name, {owner: dict(inner) for owner, inner in getattr(tables, name).items()})
    found.by_id_bytes.update((topic_id.bytes, inner) for topic_id, inner in found.partitions.items())
    return found
