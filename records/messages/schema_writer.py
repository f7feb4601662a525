# SPDX-License-Identifier: Apache-2.0
"""Compiles schemas into writers: one closure per struct and version.

A message may leave out fields, which then have their defaults, but may not have fields that its schema lacks. A field
that the version lacks must have its default too, unless it is ignorable.

Source: the ``write`` methods that Kafka generates.
"""

from collections.abc import Callable
from typing import Any

import attrs

from raftlog.errors import UnsupportedVersionError
from raftlog.records.messages.primitives import (
    FIXED_FORMATS,
    Writer,
    array_writer,
    bytes_writer,
    compact_length,
    fixed_writer,
    int16_length,
    int32_length,
    invalid,
    string_writer,
    uuid_writer,
    write_unsigned,
)
from raftlog.records.messages.schema_text import UNKNOWN_TAGS, Field, MessageSchema, Struct

IsDefault = Callable[[Any], bool]


def compile_writer(schema: MessageSchema, version: int) -> Writer:
    """Return the writer of one version of a message, which must be known."""
    return _Compiler(schema.name, version, flexible=version in schema.flexible).struct_writer(schema.struct)


def default_check(field: Field) -> IsDefault:
    """Return the function that compares a field's value with its default, as Kafka does."""
    if field.default is None:
        return lambda value: value is None
    if field.is_array:
        return lambda value: value is not None and len(value) == 0
    if field.struct is None:
        return lambda value: bool(value == field.default)
    checks = [(nested.name, nested.default, default_check(nested)) for nested in field.struct.fields]

    def is_default(value: Any) -> bool:
        if value is None or value.get(UNKNOWN_TAGS):
            return False
        return all(check(value.get(name, default)) for name, default, check in checks)

    return is_default


@attrs.frozen
class _Plan:
    """How a field is handled: written if the version has it, else checked to have its default."""

    name: str
    default: Any
    write: Writer
    is_default: IsDefault
    tag: int


class _Compiler:
    """Compiles the structs of one message."""

    def __init__(self, message: str, version: int, *, flexible: bool) -> None:
        self._message = message
        self._version = version
        self._flexible = flexible

    def struct_writer(self, layout: Struct) -> Writer:
        present = [field for field in layout.fields if self._version in field.versions]
        plain = [self._plan(field) for field in present if not self._is_tagged(field)]
        tagged = [self._plan(field) for field in present if self._is_tagged(field)]
        checked = [self._plan(field) for field in layout.fields if field not in present and not field.ignorable]
        names = {field.name for field in layout.fields} | {UNKNOWN_TAGS}
        write_tags = _tags_writer(tagged) if self._flexible else self._refuse_tags

        def write(out: bytearray, value: Any) -> None:
            if not isinstance(value, dict) or not value.keys() <= names:
                raise _not_a(layout.name, value, names)
            for plan in plain:
                plan.write(out, value.get(plan.name, plan.default))
            for plan in checked:
                if not plan.is_default(value.get(plan.name, plan.default)):
                    raise self._unsupported(plan.name)
            write_tags(out, value)

        return write

    def _is_tagged(self, field: Field) -> bool:
        return self._version in field.tagged

    def _plan(self, field: Field) -> _Plan:
        return _Plan(field.name, field.default, self._field_writer(field), default_check(field), field.tag or 0)

    def _field_writer(self, field: Field) -> Writer:
        nullable = self._version in field.nullable
        if not field.is_array:
            return self._value_writer(field, field.name, nullable=nullable)
        encode_count = compact_length if self._flexible and field.flexible else int32_length
        write_item = self._value_writer(field, f"{field.name} element", nullable=False)
        return array_writer(field.name, encode_count, write_item, nullable=nullable)

    def _value_writer(self, field: Field, name: str, *, nullable: bool) -> Writer:
        """Return the writer of a field that is not an array, or of one item of an array."""
        if field.struct is not None:
            write = self.struct_writer(field.struct)
            return _nullable_writer(write, tagged=self._is_tagged(field)) if nullable else write
        if field.type in FIXED_FORMATS:
            return fixed_writer(name, field.type)
        if field.type == "uuid":
            return uuid_writer(name)
        flexible = self._flexible and field.flexible
        if field.type == "string":
            return string_writer(name, compact_length if flexible else int16_length, nullable=nullable)
        return bytes_writer(name, compact_length if flexible else int32_length, nullable=nullable)

    def _refuse_tags(self, _out: bytearray, value: dict[str, Any]) -> None:
        if value.get(UNKNOWN_TAGS):
            raise self._unsupported(UNKNOWN_TAGS)

    def _unsupported(self, name: str) -> UnsupportedVersionError:
        problem = f"Attempted to write a non-default {name} at version {self._version} of {self._message}"
        return UnsupportedVersionError(problem, "message-version")


def _tags_writer(tagged: list[_Plan]) -> Writer:
    def write(out: bytearray, value: Any) -> None:
        unknown: dict[int, bytes] = value.get(UNKNOWN_TAGS) or {}
        entries = dict(unknown)
        for plan in tagged:
            item = value.get(plan.name, plan.default)
            if plan.is_default(item):
                continue
            if plan.tag in unknown:
                raise invalid(f"tag {plan.tag} is both {plan.name} and unknown")
            data = bytearray()
            plan.write(data, item)
            entries[plan.tag] = bytes(data)
        _write_entries(out, entries)

    return write


def _write_entries(out: bytearray, entries: dict[int, bytes]) -> None:
    if any(not isinstance(tag, int) or not isinstance(data, bytes) or tag >> 32 for tag, data in entries.items()):
        raise invalid("tags are integers of 32 bits without sign, and their values bytes")
    write_unsigned(out, len(entries))
    for tag, data in sorted(entries.items()):
        write_unsigned(out, tag)
        write_unsigned(out, len(data))
        out += data


def _nullable_writer(write: Writer, *, tagged: bool) -> Writer:
    """Return the writer of a nullable struct. A mark precedes it: 1 if present; for null 0 in a tag, else -1."""
    null = b"\x00" if tagged else b"\xff"

    def write_nullable(out: bytearray, value: Any) -> None:
        if value is None:
            out += null
        else:
            out += b"\x01"
            write(out, value)

    return write_nullable


def _not_a(struct_name: str, value: object, names: set[str]) -> Exception:
    if not isinstance(value, dict):
        return invalid(f"{struct_name} takes a dict, not {value!r:.60}")
    return invalid(f"{struct_name} has no field {sorted(map(str, value.keys() - names))}")
