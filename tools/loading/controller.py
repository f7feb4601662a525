# SPDX-License-Identifier: Apache-2.0
"""What a controller of Kafka remembers and checks beyond the image: it is stricter than the loader.

Each rule is a row of ``RULES``. A rule looks at the state before its record, and changes nothing.

Source: QuorumController#replay and the managers that each rule names, of 3.9.2, 4.0.2, 4.1.2, 4.2.1, 4.3.1, 4.4.0.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

import attrs

from raftlog.tools.image import nodes
from raftlog.tools.image.entries import Broker
from raftlog.tools.image.nodes import SECURITY_PROTOCOLS
from raftlog.tools.image.replay import Replay
from raftlog.tools.image.settings import SCRAM_MECHANISMS
from raftlog.tools.image.tables import PRODUCER_IDS, Tables, copied
from raftlog.tools.loading.acl_contents import AclContents
from raftlog.tools.loading.features import CHECKED_RELEASES, unsupported_level
from raftlog.uuid_text import uuid_to_text

Message = Mapping[str, Any]

_BROKER_RESOURCE: Final = 4
"""Kafka's number of the owner of a broker's configs."""
_ZK_MIGRATION_STATES: Final = range(5)
_NUMBER: Final = re.compile(r"([+-]?)0*(\d{1,10})")
"""What may be a 32-bit number: Java reads any count of zeros before it, and Python's own limit is not met."""
_MOST_SHOWN: Final = 40
"""Characters of a name that is wrong."""
_INT32: Final = range(-(1 << 31), 1 << 31)


@attrs.define
class ControllerState:
    """A controller's state.

    Attributes:
        tables: the image; a controller has the same things.
        directories: the brokers of log directories, by directory id.
        acls: contents of ACLs.
        migration_state: Kafka's number of how far the migration from ZooKeeper is.
    """

    tables: Tables = attrs.field(factory=Tables)
    directories: dict[UUID, int] = attrs.field(factory=dict)
    acls: AclContents = attrs.field(factory=AclContents)
    migration_state: int = 0

    def copy(self) -> "ControllerState":
        """Return a state with the same entries, which changes independently."""
        return ControllerState(copied(self.tables), dict(self.directories), self.acls.copy(), self.migration_state)

    def moved(self, broker_id: int, after: Iterable[UUID]) -> dict[UUID, int | None]:
        """Return which directories get which broker if a broker is to have the given ones; None: no broker.

        Raises:
            ValueError: another broker has one of them, or one that the broker has is not its own.
        """
        broker = self.tables.brokers.get(broker_id)
        changes: dict[UUID, int | None] = {}
        for each in () if broker is None else broker.directories:
            if changes.get(each, self.directories.get(each)) != broker_id or each in changes:
                raise ValueError(f"directory {uuid_to_text(each)} is not assigned to broker {broker_id}")
            changes[each] = None
        for each in after:
            owner = changes[each] if each in changes else self.directories.get(each)
            if owner not in (None, broker_id):
                raise ValueError(f"directory {uuid_to_text(each)} is that of broker {owner} already")
            changes[each] = broker_id
        return changes


class LoadRule(NamedTuple):
    """A condition in which a controller refuses a record.

    Attributes:
        name: of the rule, in output.
        source: the method of Kafka.
        problem: returns what is wrong with a record in a state for a release, or None.
        since: the first release that has the rule.
        last: the last one; empty if the newest has it.
    """

    name: str
    source: str
    problem: Callable[[ControllerState, Message, str], str | None]
    since: str = CHECKED_RELEASES[0]
    last: str = ""

    def applies_to(self, release: str) -> bool:
        """Whether a release has the rule."""
        at = CHECKED_RELEASES.index(release)
        return CHECKED_RELEASES.index(self.since) <= at <= CHECKED_RELEASES.index(self.last or CHECKED_RELEASES[-1])


def _duplicate_topic(state: ControllerState, message: Message, _release: str) -> str | None:
    before = state.tables.topic_ids.get(message["name"])
    if before is None:
        return None
    ids = f"{uuid_to_text(before)}, and {uuid_to_text(message['topicId'])} here"
    return f"there is a topic {message['name']} already: its id is {ids}"


def _unknown_level(_state: ControllerState, message: Message, release: str) -> str | None:
    return unsupported_level(release, message["name"], message["featureLevel"])


def _unknown_security_protocol(_state: ControllerState, message: Message, _release: str) -> str | None:
    for each in message["endPoints"]:
        if each["securityProtocol"] not in SECURITY_PROTOCOLS:
            return f"listener {each['name']} has security protocol {each['securityProtocol']}, which is not known"
    return None


def _unnamed_listener(_state: ControllerState, message: Message, _release: str) -> str | None:
    return None if all(each["name"] for each in message["endPoints"]) else "a listener has no name"


def _registered_directories(state: ControllerState, message: Message, _release: str) -> str | None:
    return _moved_problem(state, message["brokerId"], message["logDirs"])


def _changed_directories(state: ControllerState, message: Message, _release: str) -> str | None:
    broker = _changed_broker(state, message)
    if broker is None:
        return None  # The loader's rules say so.
    return _moved_problem(state, message["brokerId"], message["logDirs"] or broker.directories)


def _changed_broker(state: ControllerState, message: Message) -> Broker | None:
    broker = state.tables.brokers.get(message["brokerId"])
    return broker if broker is not None and broker.epoch == message["brokerEpoch"] else None


def _unregistered_directories(state: ControllerState, message: Message, _release: str) -> str | None:
    return _moved_problem(state, message["brokerId"], ())


def _kept_directories(state: ControllerState, message: Message, _release: str) -> str | None:
    broker = state.tables.brokers.get(message["id"])
    return None if broker is None else _moved_problem(state, message["id"], broker.directories)


def _moved_problem(state: ControllerState, broker_id: int, after: Iterable[UUID]) -> str | None:
    try:
        state.moved(broker_id, after)
    except ValueError as error:
        return str(error)
    return None


def _unregistered_broker(state: ControllerState, message: Message, _release: str) -> str | None:
    broker = state.tables.brokers.get(message["brokerId"])
    if broker is None:
        return f"broker {message['brokerId']} is not registered"
    if broker.epoch != message["brokerEpoch"]:
        epoch = message["brokerEpoch"]
        return f"it is about epoch {epoch} of broker {message['brokerId']}, which has epoch {broker.epoch}"
    return None


def _unregistered_controller(state: ControllerState, message: Message, _release: str) -> str | None:
    number = message["controllerId"]
    return None if number in state.tables.controllers else f"controller {number} is not registered"


def _acl_is_gone(state: ControllerState, message: Message, release: str) -> str | None:
    acl = state.tables.acls.get(message["id"])
    if acl is None or state.acls.has(acl, release):
        return None  # The loader's rules say so if there is no such id.
    return f"ACL {uuid_to_text(message['id'])} was removed with another one that says the same"


def _no_credential(state: ControllerState, message: Message, _release: str) -> str | None:
    mechanism = message["mechanism"] if message["mechanism"] in SCRAM_MECHANISMS else 0
    if (message["name"], mechanism) in state.tables.scram:
        return None
    return f"there is no credential of {message['name']!r} for {SCRAM_MECHANISMS[mechanism]}"


def _used_producer_ids(state: ControllerState, message: Message, _release: str) -> str | None:
    before = state.tables.producer_ids.get(PRODUCER_IDS)
    if before is None or message["nextProducerId"] > before:
        return None
    return f"the next producer id is {message['nextProducerId']}, and was {before} before"


def _broker_without_number(state: ControllerState, message: Message, _release: str) -> str | None:
    kind, name = message["resourceType"], message["resourceName"]
    if kind != _BROKER_RESOURCE or not name or (kind, name) in state.tables.configs:
        return None
    number = _NUMBER.fullmatch(name)
    if number is not None and int("".join(number.groups())) in _INT32:
        return None
    shown = name if len(name) <= _MOST_SHOWN else f"{name[:_MOST_SHOWN]}..."
    return f"a config is that of broker {shown!r}, which is no number"


def _unknown_migration_state(_state: ControllerState, message: Message, _release: str) -> str | None:
    number = message["zkMigrationState"]
    return None if number in _ZK_MIGRATION_STATES else f"there is no ZooKeeper migration state {number}"


_CLUSTER: Final = "ClusterControlManager"
_DIRECTORIES: Final = "ClusterControlManager#updateDirectories"

RULES: Final[Mapping[str, tuple[LoadRule, ...]]] = {
    "TopicRecord": (LoadRule("duplicate-topic", "ReplicationControlManager#replay", _duplicate_topic),),
    "FeatureLevelRecord": (LoadRule("feature-level", "FeatureControlManager#replay", _unknown_level),),
    "RegisterBrokerRecord": (
        LoadRule("security-protocol", "ListenerInfo#fromBrokerRegistrationRecord", _unknown_security_protocol),
        LoadRule("listener-name", "BrokerRegistration", _unnamed_listener, "4.1"),
        LoadRule("directory-owner", _DIRECTORIES, _registered_directories),
    ),
    "BrokerRegistrationChangeRecord": (LoadRule("directory-owner", _DIRECTORIES, _changed_directories),),
    "FenceBrokerRecord": (LoadRule("directory-owner", _DIRECTORIES, _kept_directories),),
    "UnfenceBrokerRecord": (LoadRule("directory-owner", _DIRECTORIES, _kept_directories),),
    "UnregisterBrokerRecord": (
        LoadRule("broker-epoch", f"{_CLUSTER}#replay", _unregistered_broker),
        LoadRule("directory-owner", _DIRECTORIES, _unregistered_directories),
    ),
    "RegisterControllerRecord": (
        LoadRule("security-protocol", "ControllerRegistration$Builder", _unknown_security_protocol),
    ),
    "UnregisterControllerRecord": (LoadRule("controller-id", f"{_CLUSTER}#replay", _unregistered_controller, "4.4"),),
    "RemoveAccessControlEntryRecord": (LoadRule("acl-content", "AclControlManager#replay", _acl_is_gone),),
    "RemoveUserScramCredentialRecord": (LoadRule("scram-credential", "ScramControlManager#replay", _no_credential),),
    "ProducerIdsRecord": (LoadRule("producer-ids", "ProducerIdControlManager#replay", _used_producer_ids),),
    "ConfigRecord": (LoadRule("broker-config", "ConfigurationControlManager#replay", _broker_without_number, "4.0"),),
    "ZkMigrationStateRecord": (
        LoadRule("zk-migration-state", "FeatureControlManager#replay", _unknown_migration_state, last="3.9"),
    ),
}
"""By the name of the record's schema."""

REPLAYS_AFTER_RULES: Final[Mapping[str, Replay]] = {"RegisterBrokerRecord": nodes.registered_broker}
"""Effects of records whose loader refuses no more than the rules here, which only some releases have."""


def prepared(state: ControllerState, name: str, message: Message) -> Callable[[], None] | None:
    """Return what a record changes beyond the image, to be called after the image has changed; None for nothing."""
    match name:
        case "RegisterBrokerRecord":
            changes = state.moved(message["brokerId"], message["logDirs"])
        case "UnregisterBrokerRecord":
            changes = state.moved(message["brokerId"], ())
        case "BrokerRegistrationChangeRecord" if message["logDirs"] and _changed_broker(state, message):
            changes = state.moved(message["brokerId"], message["logDirs"])
        case "ZkMigrationStateRecord":
            return lambda: setattr(state, "migration_state", message["zkMigrationState"])
        case "AccessControlEntryRecord":
            return lambda: state.acls.add(state.tables.acls[message["id"]])
        case "RemoveAccessControlEntryRecord":
            gone = state.tables.acls.get(message["id"])
            return None if gone is None else lambda: state.acls.discard(gone)
        case _:
            return None
    return lambda: _move(state.directories, changes)


def _move(directories: dict[UUID, int], changes: Mapping[UUID, int | None]) -> None:
    for directory, broker_id in changes.items():
        if broker_id is None:
            directories.pop(directory, None)
        else:
            directories[directory] = broker_id
