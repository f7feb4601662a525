# SPDX-License-Identifier: Apache-2.0
"""The typed control records have every field of every version that their schemas have."""

import pkgutil
import uuid
from typing import Any

import pytest

from raftlog.records.messages import control
from raftlog.records.messages.control import ControlRecordType, EndTxnMarker
from raftlog.records.messages.schema import UNKNOWN_TAGS, Message
from raftlog.records.messages.schema_text import MessageSchema, Struct, parse_schemas
from tests.records.messages.test_control import GOLDEN

VERSIONS = {
    "LeaderChangeMessage": (0, 1),
    "SnapshotHeaderRecord": (0, 0),
    "SnapshotFooterRecord": (0, 0),
    "KRaftVersionRecord": (0, 0),
    "VotersRecord": (0, 0),
}
"""The versions of each record that its class and ``voters/kraft_version.py`` know."""


def schema_text() -> str:
    """Return the schemas of the control records as they ship."""
    text = pkgutil.get_data("raftlog.records.messages.schemas", "control-records.txt")
    assert text is not None
    return text.decode()


def full_message(layout: Struct, start: int = 1) -> Message:
    """Return a message in which every field of any version has a value of its own."""
    message: Message = {UNKNOWN_TAGS: {start: b"tag"}}
    for number, field in enumerate(layout.fields, start):
        value: Any = {"uuid": uuid.UUID(int=number), "string": f"text {number}"}.get(field.type, number)
        if field.struct is not None:
            value = full_message(field.struct, 10 * number)
        message[field.name] = [value] if field.is_array else value
    return message


def lost_fields(schemas: dict[str, MessageSchema]) -> list[str]:
    """Return the fields, by path, that a message loses on its way to a typed value and back."""
    return [
        path
        for kind, from_message in control._FROM_MESSAGE.items()
        for full in [full_message(schemas[kind.__name__].struct)]
        for path in differences(kind.__name__, full, control._to_message(from_message(full)))
    ]


def differences(path: str, before: Any, after: Any) -> list[str]:
    """Return the paths at which two messages differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = before.keys() | after.keys()
        return [
            found
            for key in sorted(keys, key=str)
            for found in differences(f"{path}.{key}", before.get(key), after.get(key))
        ]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [found for one, other in zip(before, after, strict=True) for found in differences(path, one, other)]
    return [] if before == after else [path]


def test_every_field_has_an_attribute() -> None:
    """A message with all fields of all versions comes back whole from the typed value."""
    assert lost_fields(parse_schemas(schema_text())) == []


def test_every_record_of_raft_has_a_class_and_known_versions() -> None:
    """Each control record type but the markers has a class, and each schema has the versions that are known."""
    kinds = {ControlRecordType.ABORT, ControlRecordType.COMMIT} | set(control._TYPES.values())
    assert kinds == set(ControlRecordType)
    schemas = parse_schemas(schema_text())
    found = {kind.__name__: schemas[kind.__name__].versions for kind in control._TYPES}
    assert {name: (versions.lowest, versions.highest) for name, versions in found.items()} == VERSIONS


def test_every_version_has_a_golden() -> None:
    """Each version of each record is among the bytes that are written, read and printed as Kafka does."""
    goldens = {(type(value).__name__, value.version) for value, *_ in GOLDEN if not isinstance(value, EndTxnMarker)}
    assert goldens == {(name, version) for name, (low, high) in VERSIONS.items() for version in range(low, high + 1)}


@pytest.mark.parametrize(
    ("before", "after", "path"),
    [
        (
            "    voterDirectoryId: uuid  ; in 1+\n",
            "    voterDirectoryId: uuid  ; in 1+\n    rack: string  ; in 1+\n",
            "LeaderChangeMessage.voters.rack",
        ),
        ("      port: uint16\n", "      port: uint16\n      zone: string\n", "VotersRecord.voters.endpoints.zone"),
        ("  kRaftVersion: int16\n", "  kRaftVersion: int16\n  note: string\n", "KRaftVersionRecord.note"),
        (
            "  lastContainedLogTimestamp: int64\n",
            "  lastContainedLogTimestamp: int64\n  size: int64\n",
            "SnapshotHeaderRecord.size",
        ),
    ],
)
def test_a_field_that_a_class_lacks_is_named(before: str, after: str, path: str) -> None:
    """A field that is added to a schema, and to no class, is found by its path."""
    assert before in schema_text()
    assert lost_fields(parse_schemas(schema_text().replace(before, after, 1)))[-1:] == [path]
