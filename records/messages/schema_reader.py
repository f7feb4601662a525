# SPDX-License-Identifier: Apache-2.0
"""Compiles schemas into readers: one closure per struct, version and level.

A struct's reader is a short list of steps. Adjacent numbers and bools are one step, because one call of the struct
module reads them all; any other field is a step of its own.

Source: the ``read`` methods that Kafka generates. As there, the size of a known tagged field is not checked, a tag that
only other versions have is an error, and a version above the highest known one is read by the highest layout, except
that an element of a nested struct that is not shared is an error.
"""

import struct
from collections.abc import Callable, Iterable
from typing import Any

from raftlog.errors import UnsupportedVersionError
from raftlog.records.messages.primitives import (
    FIXED_FORMATS,
    Buffer,
    LengthReader,
    Reader,
    array_reader,
    begin_message,
    bytes_reader,
    count_items,
    ended,
    fixed_array_reader,
    fixed_reader,
    invalid,
    read_compact_length,
    read_int16_length,
    read_int32_length,
    read_unsigned,
    read_uuid,
    string_reader,
    too_short,
)
from raftlog.records.messages.schema_text import UNKNOWN_TAGS, Field, MessageSchema, Struct, fresh, knows

Step = Callable[[Buffer, int, dict[str, Any]], int]


def compile_reader(schema: MessageSchema, version: int, level: str) -> Reader:
    """Return the reader of one version of a message at a level; an unknown version is read by the nearest one."""
    read = _Compiler(schema, version, level).struct_reader(schema.struct)

    def read_message(buffer: Buffer, position: int) -> tuple[dict[str, Any], int]:
        begin_message()
        return read(buffer, position)

    return read_message


class _Compiler:
    """Compiles the structs of one message: holds the layout to read by, and the requested version."""

    def __init__(self, schema: MessageSchema, version: int, level: str) -> None:
        known = schema.versions_at(level)
        self._asked = version
        self._layout = known.nearest(version)
        self._too_new = version > known.highest
        self._flexible = self._layout in schema.flexible
        self._level = level

    def struct_reader(self, layout: Struct) -> Reader:
        present = [field for field in layout.fields if self._is_present(field)]
        tagged = [field for field in present if self._is_tagged(field)]
        steps = tuple(self._steps([field for field in present if field not in tagged]))
        if self._flexible:
            steps += (self._tags_step(layout),)
        absent = [field for field in layout.fields if field not in present or field in tagged]
        return _struct_reader(steps, layout.defaults(), [field for field in absent if _is_mutable(field.default)])

    def _is_present(self, field: Field) -> bool:
        return self._layout in field.versions and knows(self._level, field.since)

    def _is_tagged(self, field: Field) -> bool:
        return self._layout in field.tagged

    def _steps(self, fields: list[Field]) -> Iterable[Step]:
        numbers: list[Field] = []
        for field in fields:
            if field.type in FIXED_FORMATS and not field.is_array:
                numbers.append(field)
                continue
            if numbers:
                yield _numbers_step(numbers)
                numbers = []
            yield _field_step(field.name, self._field_reader(field))
        if numbers:
            yield _numbers_step(numbers)

    def _field_reader(self, field: Field) -> Reader:
        nullable = self._layout in field.nullable
        flexible = self._flexible and field.flexible
        if not field.is_array:
            return self._value_reader(field, field.name, nullable=nullable)
        read_count = read_compact_length if flexible else read_int32_length
        if field.type in FIXED_FORMATS:
            return fixed_array_reader(field.name, read_count, field.type, nullable=nullable)
        read_item = self._value_reader(field, f"{field.name} element", nullable=False)
        return array_reader(field.name, read_count, read_item, nullable=nullable)

    def _value_reader(self, field: Field, name: str, *, nullable: bool) -> Reader:
        """Return the reader of a field that is not an array, or of one item of an array."""
        if field.struct is not None:
            return self._nested_reader(field, field.struct, nullable=nullable)
        if field.type in FIXED_FORMATS:
            return fixed_reader(field.type)
        if field.type == "uuid":
            return read_uuid
        flexible = self._flexible and field.flexible
        if field.type == "string":
            return string_reader(name, read_compact_length if flexible else read_int16_length, nullable=nullable)
        return bytes_reader(name, read_compact_length if flexible else read_int32_length, nullable=nullable)

    def _nested_reader(self, field: Field, layout: Struct, *, nullable: bool) -> Reader:
        refused = self._too_new and not layout.is_shared
        read = _too_new_reader(layout.name, self._asked) if refused else self.struct_reader(layout)
        if not nullable:
            return read
        if self._is_tagged(field):
            return _nullable_reader(read_unsigned, 1, read)
        return _nullable_reader(_read_int8, 0, read)

    def _tags_step(self, layout: Struct) -> Step:
        known = [field for field in layout.fields if field.tag is not None and knows(self._level, field.since)]
        return _tags_step({field.tag: (field.name, self._tag_reader(field)) for field in known})

    def _tag_reader(self, field: Field) -> Reader:
        if self._is_present(field) and self._is_tagged(field):
            return self._field_reader(field)
        return _wrong_tag_reader(field.tag, self._asked)


_read_int8: LengthReader = fixed_reader("int8")


def _is_mutable(default: object) -> bool:
    return isinstance(default, list | dict)


def _struct_reader(steps: tuple[Step, ...], defaults: dict[str, Any], absent: list[Field]) -> Reader:
    def read(buffer: Buffer, position: int) -> tuple[dict[str, Any], int]:
        values = defaults.copy()
        for name, default in mutable:
            values[name] = fresh(default)
        for step in steps:
            position = step(buffer, position, values)
        return values, position

    mutable = [(field.name, field.default) for field in absent]
    return read


def _numbers_step(fields: list[Field]) -> Step:
    layout = struct.Struct(">" + "".join(FIXED_FORMATS[field.type] for field in fields))
    unpack_from, size, names = layout.unpack_from, layout.size, tuple(field.name for field in fields)

    def step(buffer: Buffer, position: int, values: dict[str, Any]) -> int:
        try:
            numbers = unpack_from(buffer, position)
        except struct.error:
            raise ended(position) from None
        values.update(zip(names, numbers, strict=True))
        return position + size

    return step


def _field_step(name: str, read: Reader) -> Step:
    def step(buffer: Buffer, position: int, values: dict[str, Any]) -> int:
        values[name], position = read(buffer, position)
        return position

    return step


def _tags_step(known: dict[int | None, tuple[str, Reader]]) -> Step:
    def step(buffer: Buffer, position: int, values: dict[str, Any]) -> int:
        if buffer[position : position + 1] == b"\x00":  # nearly all have none
            return position + 1
        count, position = read_unsigned(buffer, position)
        for _ in range(count):
            tag, at = read_unsigned(buffer, position)
            size, position = read_unsigned(buffer, at)
            if tag in known:
                name, read = known[tag]
                values[name], position = read(buffer, position)
            else:
                count_items(1, position)
                data, position = _read_unknown(buffer, position, size)
                values.setdefault(UNKNOWN_TAGS, {})[tag & 0xFFFFFFFF] = data
        return position

    return step


def _read_unknown(buffer: Buffer, position: int, size: int) -> tuple[bytes, int]:
    end = position + size
    if size < 0:
        raise invalid(str(size), position)  # Java's whole message
    if end > len(buffer):
        raise too_short(size, len(buffer) - position, position)
    return bytes(buffer[position:end]), end


def _nullable_reader(read_mark: LengthReader, least: int, read: Reader) -> Reader:
    """Return the reader of a nullable struct, which is preceded by a mark; one below ``least`` means null."""

    def read_nullable(buffer: Buffer, position: int) -> tuple[Any, int]:
        mark, position = read_mark(buffer, position)
        return read(buffer, position) if mark >= least else (None, position)

    return read_nullable


def _too_new_reader(name: str, version: int) -> Reader:
    def read(_buffer: Buffer, position: int) -> tuple[Any, int]:
        raise UnsupportedVersionError(f"Can't read version {version} of {name}", "message-version", position=position)

    return read


def _wrong_tag_reader(tag: int | None, version: int) -> Reader:
    def read(_buffer: Buffer, position: int) -> tuple[Any, int]:
        raise invalid(f"Tag {tag} is not valid for version {version}", position)

    return read
