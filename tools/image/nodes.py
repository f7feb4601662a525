# SPDX-License-Identifier: Apache-2.0
"""Replays the records of brokers and controllers.

Source: ClusterDelta, BrokerRegistration, ControllerRegistration.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final
from uuid import UUID

from raftlog.errors import ReplayRefusedError
from raftlog.tools.image.entries import Broker, Controller, Endpoint, FeatureRange
from raftlog.tools.image.tables import Tables

Message = Mapping[str, Any]

SECURITY_PROTOCOLS: Final = range(4)
"""Kafka's numbers of them. Source: SecurityProtocol#forId."""
_FENCING: Final = {-1: False, 0: None, 1: True}
_SHUTDOWN: Final = {0: None, 1: True}


def register_broker(tables: Tables, message: Message) -> None:
    """Register a broker, whatever was registered before.

    Raises:
        ReplayRefusedError: a listener has no name.
    """
    if not all(each["name"] for each in message["endPoints"]):
        raise ReplayRefusedError("a listener has no name")
    registered_broker(tables, message)


def registered_broker(tables: Tables, message: Message) -> None:
    """Register a broker as releases before 4.1 do, whatever the names of its listeners are."""
    tables.brokers[message["brokerId"]] = Broker(
        message["brokerEpoch"],
        message["incarnationId"],
        _listeners(message),
        _features(message),
        message["rack"],
        message["fenced"],
        message["inControlledShutdown"],
        message["isMigratingZkBroker"],
        _ids(message["logDirs"]),
        None if message["cordonedLogDirs"] is None else tuple(message["cordonedLogDirs"]),
    )


def unregister_broker(tables: Tables, message: Message) -> None:
    """Remove a broker, if it is there: Kafka compares no epoch."""
    tables.brokers.pop(message["brokerId"], None)


def change_broker(tables: Tables, message: Message) -> None:
    """Change a broker: what the record leaves out stays.

    Raises:
        ReplayRefusedError: the broker is not registered, or with another epoch; or the record has an unknown value.
    """
    broker = _broker(tables, message["brokerId"], message["brokerEpoch"])
    try:
        fenced, shutdown = _FENCING[message["fenced"]], _SHUTDOWN[message["inControlledShutdown"]]
    except KeyError as error:
        raise ReplayRefusedError(f"a change of a broker has no value {error}") from None
    cordoned = message["cordonedLogDirs"]
    tables.brokers[message["brokerId"]] = broker._replace(
        fenced=broker.fenced if fenced is None else fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown if shutdown is None else shutdown,
        directories=_ids(message["logDirs"]) or broker.directories,
        cordoned_directories=broker.cordoned_directories if cordoned is None else tuple(cordoned),
    )


def fence_broker(tables: Tables, message: Message) -> None:
    """Fence a broker, as releases before 3.3 said it.

    Raises:
        ReplayRefusedError: the broker is not registered, or with another epoch.
    """
    tables.brokers[message["id"]] = _broker(tables, message["id"], message["epoch"])._replace(fenced=True)


def unfence_broker(tables: Tables, message: Message) -> None:
    """Unfence a broker, as releases before 3.3 said it.

    Raises:
        ReplayRefusedError: the broker is not registered, or with another epoch.
    """
    tables.brokers[message["id"]] = _broker(tables, message["id"], message["epoch"])._replace(fenced=False)


def register_controller(tables: Tables, message: Message) -> None:
    """Register a controller, whatever was registered before.

    Raises:
        ReplayRefusedError: a listener has an unknown security protocol. Kafka's loader lets brokers have one.
    """
    for each in message["endPoints"]:
        if each["securityProtocol"] not in SECURITY_PROTOCOLS:
            problem = f"listener {each['name']} has security protocol {each['securityProtocol']}"
            raise ReplayRefusedError(f"{problem}, which is not known")
    tables.controllers[message["controllerId"]] = Controller(
        message["incarnationId"], message["zkMigrationReady"], _listeners(message), _features(message)
    )


def unregister_controller(tables: Tables, message: Message) -> None:
    """Remove a controller, if it is there."""
    tables.controllers.pop(message["controllerId"], None)


def _broker(tables: Tables, broker_id: int, epoch: int) -> Broker:
    broker = tables.brokers.get(broker_id)
    if broker is None:
        raise ReplayRefusedError(f"broker {broker_id} is not registered")
    if broker.epoch != epoch:
        raise ReplayRefusedError(f"it is about epoch {epoch} of broker {broker_id}, which has epoch {broker.epoch}")
    return broker


def _listeners(message: Message) -> tuple[Endpoint, ...]:
    found = {each["name"]: each for each in message["endPoints"]}
    return tuple(
        Endpoint(name, each["host"], each["port"], each["securityProtocol"]) for name, each in sorted(found.items())
    )


def _features(message: Message) -> tuple[FeatureRange, ...]:
    found = {each["name"]: each for each in message["features"]}
    return tuple(
        FeatureRange(name, each["minSupportedVersion"], each["maxSupportedVersion"])
        for name, each in sorted(found.items())
    )


def _ids(ids: Iterable[UUID]) -> tuple[UUID, ...]:
    return tuple(sorted(ids))
