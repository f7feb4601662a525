# SPDX-License-Identifier: Apache-2.0
"""The classes of typed messages, and where they differ from their schema, field by field and version by version."""

import uuid
from collections.abc import Iterator
from typing import Any

import attrs

from raftlog.records.messages.raft import (
    api_versions_messages,
    election_messages,
    endpoints,
    fetch_messages,
    voter_messages,
)
from raftlog.records.messages.raft.typed_structs import attribute_name, nested_class
from raftlog.records.messages.schema import UnknownTags
from raftlog.records.messages.schema_text import Field, MessageSchema, Struct

TYPES: dict[str, Any] = {
    "bool": bool,
    "int8": int,
    "int16": int,
    "int32": int,
    "int64": int,
    "uint16": int,
    "string": str,
    "uuid": uuid.UUID,
    "records": bytes | memoryview,
}
TAGS = "unknown_tags"

CLASSES: dict[str, Any] = {
    name: each
    for module in (api_versions_messages, election_messages, endpoints, fetch_messages, voter_messages)
    for name, each in vars(module).items()
    if isinstance(each, type) and attrs.has(each)
}
"""The classes of messages, and of the structs nested in them, by their names."""


def mismatches(kind: type, schema: MessageSchema) -> list[str]:
    """Return a line for each difference between a class, with the classes nested in it, and a message in all versions.

    A line starts with the path of the field: ``VoteRequest.topics.partitions.preVote``.
    """
    return list(_struct_mismatches(kind, schema, schema.struct, schema.name))


def _struct_mismatches(kind: type, schema: MessageSchema, layout: Struct, path: str) -> Iterator[str]:
    attributes = attrs.fields_dict(kind)
    if kind.__name__ not in {layout.name, schema.name + layout.name}:
        yield f"{path}: {kind.__name__} stands for {layout.name}"
    if "__slots__" not in vars(kind) or not _is_frozen(kind):
        yield f"{path}: {kind.__name__} is not frozen, or has no slots"
    tags = attributes.pop(TAGS, None)
    if tags is None or tags.type != UnknownTags or tags.default != ():
        yield f"{path}: {kind.__name__}.{TAGS} is not of type UnknownTags, or not () by default"
    for field in layout.fields:
        attribute = attributes.pop(attribute_name(field.name), None)
        if attribute is None:
            yield f"{path}.{field.name}: {kind.__name__} has no attribute {attribute_name(field.name)}"
        else:
            yield from _field_mismatches(attribute, schema, field, f"{path}.{field.name}")
    for name in attributes:
        yield f"{path}: the schema has no field for {kind.__name__}.{name}"


def _is_frozen(kind: type) -> bool:
    try:
        setattr(object.__new__(kind), TAGS, ())
    except attrs.exceptions.FrozenInstanceError:
        return True
    except AttributeError:  # it has no such slot
        pass
    return False


def _field_mismatches(
    attribute: "attrs.Attribute[Any]", schema: MessageSchema, field: Field, path: str
) -> Iterator[str]:
    item: Any = TYPES.get(field.type)
    if field.struct is not None:
        item = nested_class(attribute.type)
        if item is None:
            yield f"{path}: {attribute.type} names no class"
            return
        yield from _struct_mismatches(item, schema, field.struct, path)
    versions = range(schema.versions.lowest, schema.versions.highest + 1)
    null_in = [version for version in versions if version in field.versions and version in field.nullable]
    wanted: Any = tuple[item, ...] if field.is_array else item
    if null_in or field.default is None:
        wanted = wanted | None
    if attribute.type != wanted:
        null = f"null in versions {null_in}" if null_in else "never null"
        yield f"{path}: {attribute.type} is the type, not {wanted}: the field is {null}"
    yield from _default_mismatches(attribute, field, [each for each in versions if each not in field.versions], path)


def _default_mismatches(
    attribute: "attrs.Attribute[Any]", field: Field, absent_in: list[int], path: str
) -> Iterator[str]:
    may_be_left_out = field.has_default_note or field.tag is not None or bool(absent_in)
    has_default = attribute.default is not attrs.NOTHING
    if may_be_left_out and not has_default:
        yield f"{path}: no default, although the schema has one, or versions {absent_in} or a tag may leave it out"
    if has_default and not may_be_left_out:
        yield f"{path}: a default of {attribute.default!r}, although every version has the field"
    if may_be_left_out and has_default:
        ours, theirs = _plain(attribute.default), _in_snake_case(field.default)
        if (type(ours), ours) != (type(theirs), theirs):
            yield f"{path}: {ours!r} is the default, not {theirs!r}"


def _plain(default: Any) -> Any:
    if attrs.has(type(default)):
        return {name: _plain(getattr(default, name)) for name in attrs.fields_dict(type(default)) if name != TAGS}
    return list(default) if isinstance(default, tuple) else default


def _in_snake_case(default: Any) -> Any:
    if isinstance(default, dict):
        return {attribute_name(name): _in_snake_case(value) for name, value in default.items()}
    return default
