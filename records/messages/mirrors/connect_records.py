# SPDX-License-Identifier: Apache-2.0
"""The records in which Connect's workers, those of MirrorMaker 2 among them, keep source offsets and configurations.

::

    source offset    key:   ["connector",{...the partition of the source...}], as JSON
                     value: {...the offset there...}, as JSON
    configuration    key:   session-key, connector-<name>, task-<name>-<number>, commit-<name>, ..., as text
                     value: an object, as JSON

A null value is a tombstone. JSON is Python's, without NaN and infinities, and with at most ``MAX_NESTING`` levels.

Source: OffsetUtils#processPartitionKey, OffsetStorageWriter, KafkaConfigBackingStore, MirrorUtils#wrapPartition.
"""

import enum
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, NoReturn, TypeGuard

import attrs

from raftlog.errors import InvalidRecordError
from raftlog.records.messages.primitives import RULE, Buffer

MAX_NESTING: Final = 64
"""How many arrays and objects may be inside each other: Kafka writes three."""

_MIRROR_SOURCE: Final = "MirrorSourceConnector"
_FRAME_RULE: Final = "message-frame"
_INT32_END: Final = 1 << 31
_INT64_END: Final = 1 << 63

JsonObject = Mapping[str, Any]
"""A JSON object: values by name. Of a name that is there twice, the last counts, as in Java."""


@attrs.frozen
class SourcePartition:
    """What a partition's offset is about, if a MirrorSourceConnector wrote it.

    Attributes:
        cluster: the alias of the source cluster.
        topic: the name there.
        partition: the number of the partition.
    """

    cluster: str
    topic: str
    partition: int


@attrs.frozen
class SourceOffset:
    """How far a source connector has come.

    Attributes:
        connector: the name of the connector.
        partition: what of its source; its members depend on the connector.
        offset: how far; its members depend on the connector. None for a tombstone.
    """

    connector: str
    partition: JsonObject
    offset: JsonObject | None

    @property
    def mirrored(self) -> SourcePartition | None:
        """The partition whose mirroring this is about; None for other connectors than a MirrorSourceConnector."""
        cluster, topic, number = (self.partition.get(name) for name in ("cluster", "topic", "partition"))
        if len(self.partition) != 3 or not (isinstance(cluster, str) and isinstance(topic, str)):
            return None
        return SourcePartition(cluster, topic, number) if _is_integer(number, _INT32_END) else None

    @property
    def upstream_offset(self) -> int | None:
        """The last offset on the source that was mirrored, inclusive; None for a tombstone and other connectors."""
        number = None if self.offset is None else self.offset.get("offset")
        return number if self.mirrored is not None and _is_integer(number, _INT64_END) else None


class ConfigType(enum.Enum):
    """What a configuration record is about; the value is how its key begins."""

    SESSION_KEY = "session-key"
    CONNECTOR = "connector-"
    TASK = "task-"
    TASKS_COMMIT = "commit-"
    TARGET_STATE = "target-state-"
    TASK_COUNT = "tasks-fencing-"
    RESTART = "restart-connector-"
    LOGGER_LEVEL = "logger-cluster-"
    UNKNOWN = ""

    @classmethod
    def of_key(cls, key: str) -> "ConfigType":
        """Return the type of a record by its key."""
        if key == cls.SESSION_KEY.value:
            return cls.SESSION_KEY
        return next(each for each in cls if each is not cls.SESSION_KEY and key.startswith(each.value))


@attrs.frozen
class ConnectConfig:
    """A configuration record.

    Attributes:
        key: its whole key.
        value: its members; None for a tombstone. It may hold secrets.
    """

    key: str
    value: JsonObject | None

    @property
    def type(self) -> ConfigType:
        """What it is about."""
        return ConfigType.of_key(self.key)

    @property
    def name(self) -> str:
        """The name of the connector, of the task with its number, or of the logger; empty for the session key."""
        return "" if self.type is ConfigType.SESSION_KEY else self.key.removeprefix(self.type.value)

    @property
    def properties(self) -> JsonObject | None:
        """The configuration of a connector or task: texts or nulls by name; None if it has none."""
        properties = None if self.value is None else self.value.get("properties")
        return properties if isinstance(properties, Mapping) else None


def read_source_offset(key: Buffer | None, value: Buffer | None) -> SourceOffset:
    """Read a record of a topic of source offsets, such as ``mm2-offsets.A.internal``.

    Raises:
        InvalidRecordError: the key is null; key or value is not JSON, or does not have the members that it must have.
    """
    if key is None:
        raise InvalidRecordError("the source offset has no key", _FRAME_RULE)
    what = "the key of the source offset"
    parts = read_json(key, what)
    if not (isinstance(parts, list) and len(parts) == 2 and isinstance(parts[0], str) and isinstance(parts[1], dict)):
        raise InvalidRecordError(f"{what} is not an array of a connector's name and an object", RULE)
    read = SourceOffset(parts[0], parts[1], None if value is None else _read_object(value, "a source offset"))
    if read.connector == _MIRROR_SOURCE and read.mirrored is None:
        raise InvalidRecordError(f"{what} does not name cluster, topic and partition", RULE)
    if read.connector == _MIRROR_SOURCE and read.offset is not None and read.upstream_offset is None:
        raise InvalidRecordError("the value of the source offset has no offset", RULE)
    return read


def read_connect_config(key: Buffer | None, value: Buffer | None) -> ConnectConfig:
    """Read a record of a topic of configurations, such as ``mm2-configs.A.internal``.

    Raises:
        InvalidRecordError: the key is null or not UTF-8, the value is not a JSON object, or the properties of a
            connector or task are not an object of texts and nulls. The reason quotes nothing of the value.
    """
    if key is None:
        raise InvalidRecordError("the configuration record has no key", _FRAME_RULE)
    name = _text(key, "the key of the configuration record")
    read = ConnectConfig(name, None if value is None else _read_object(value, "a configuration record"))
    if read.value is not None and read.type in (ConfigType.CONNECTOR, ConfigType.TASK):
        properties = read.properties
        if properties is None or not all(each is None or isinstance(each, str) for each in properties.values()):
            raise InvalidRecordError("the properties are not an object of texts", RULE)
    return read


def read_json(data: Buffer, what: str) -> Any:
    """Read JSON that must fill some bytes.

    Raises:
        InvalidRecordError: it is not JSON, or nested deeper than ``MAX_NESTING``. The reason quotes nothing of it.
    """
    text = _text(data, what)
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except json.JSONDecodeError as error:
        position = len(text[: error.pos].encode())
        raise InvalidRecordError(f"{what} is not JSON", RULE, position=position) from None
    except ValueError:
        raise InvalidRecordError(f"{what} has a number that is not finite, or too long", RULE) from None
    except RecursionError:
        raise _too_deep(what) from None
    if _is_deeper(value, MAX_NESTING):
        raise _too_deep(what)
    return value


def _read_object(value: Buffer, what: str) -> JsonObject:
    read = read_json(value, f"the value of {what}")
    if not isinstance(read, dict):
        raise InvalidRecordError(f"the value of {what} is not a JSON object", RULE)
    return read


def _text(data: Buffer, what: str) -> str:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise InvalidRecordError(f"{what} is not UTF-8", RULE, position=error.start) from None


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refuse(digits)


def _is_integer(value: object, end: int) -> TypeGuard[int]:
    """Whether a JSON value is an integer from -end, inclusive, to end, exclusive."""
    return type(value) is int and -end <= value < end


def _too_deep(what: str) -> InvalidRecordError:
    return InvalidRecordError(f"{what} has more than {MAX_NESTING} levels", RULE)


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether a JSON value has more levels of arrays and objects."""
    level = _containers([value])
    for _ in range(levels):
        if not level:
            return False
        level = _containers(item for each in level for item in (each.values() if isinstance(each, dict) else each))
    return bool(level)


def _containers(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if isinstance(value, dict | list)]
