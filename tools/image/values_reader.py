# SPDX-License-Identifier: Apache-2.0
"""Compiles schemas into functions from a message's bytes to its dict, for reading many messages of few types.

For each version of a message, Python source is generated and compiled: one function per struct, which ends in a dict
display. That takes less than half of the time of ``schema_reader``, but ten times as long to compile.

Only usual messages are read: for anything wrong or rare, an unknown tag included, one of ``NOT_USUAL`` is raised. Then
``schema_reader`` must read the message: it defines the result, and has the text of each error. Few lengths are checked
on the way, as in ``schema_json``: the caller checks that the end is not past the end of the data.
"""

import functools
import struct
import uuid
from collections.abc import Callable
from typing import Any, Final

from raftlog.records.messages.generated_source import (
    FORMATS,
    ReaderGenerator,
    UnusualError,
    indented,
    long_string_length,
    unsigned,
)
from raftlog.records.messages.primitives import FIXED_FORMATS, read_compact_length, read_unsigned
from raftlog.records.messages.schema_text import NEWEST, Field, MessageSchema, Struct

ValuesReader = Callable[[bytes, int], tuple[dict[str, Any], int]]
"""``read(data, position) -> (message, position after the message)``; raises one of ``NOT_USUAL``."""

_SMALL_ARRAY: Final = 64


def compile_values_reader(schema: MessageSchema, version: int, level: str = NEWEST) -> ValuesReader:
    """Make the function for one version of a message, which readers of the level must know.

    It returns what ``MessageType.reader`` does, if it does not raise, and if the end is in the data.
    """
    return _Generator(schema, version, _NAMES, level).message_reader("values")


@functools.lru_cache(maxsize=1 << 16)
def _uuid(data: bytes) -> uuid.UUID:
    """Return the uuid of 16 bytes, cached since those of topics and directories recur."""
    return uuid.UUID(bytes=data)


def _uuids(count: int, data: bytes, position: int) -> list[uuid.UUID]:
    return [_uuid(data[item : item + 16]) for item in range(position, position + 16 * count, 16)]


def _numbers(letter: str, count: int, data: bytes, position: int) -> list[Any]:
    unpack_from = (_kept_unpacker if count <= _SMALL_ARRAY else _unpacker)(letter, count)
    return list(unpack_from(data, position))


def _unpacker(letter: str, count: int) -> Callable[[bytes, int], tuple[Any, ...]]:
    return struct.Struct(f">{count}{letter}").unpack_from


_kept_unpacker: Final = functools.cache(_unpacker)

_NAMES: Final[dict[str, object]] = {
    "Unusual": UnusualError,
    "compact_length": read_compact_length,
    "long_string_length": long_string_length,
    "numbers": _numbers,
    "unpack": struct.unpack_from,
    "unsigned": read_unsigned,
    "uuid": _uuid,
    "uuids": _uuids,
}
"""The names that generated functions may use."""


class _Generator(ReaderGenerator):
    """Generates the functions of a message. Methods that return lines return statements that advance ``at``."""

    def result(self, layout: Struct, variables: dict[str, str]) -> str:
        """Return the expression of the dict: all fields of the schema."""
        shown = (f"{field.name!r}: {self._shown(field, variables[field.name])}" for field in layout.fields)
        return f"{{{', '.join(shown)}}}"

    def _shown(self, field: Field, variable: str) -> str:
        """Return the expression of a field's value: its default if this version does not have it."""
        if not self.is_present(field):
            return self._default(field)
        is_converted = field.type == "uuid" and not field.is_array and not self.is_tagged(field)
        return f"uuid({variable})" if is_converted else variable

    def _default(self, field: Field) -> str:
        """Return the expression of a default; a mutable one is made anew by each evaluation."""
        default = field.default
        if isinstance(default, uuid.UUID):
            return f"uuid({default.bytes!r})"
        if isinstance(default, dict) and default:
            raise UnusualError
        return repr(default)

    def read_value(self, field: Field, variable: str, *, is_nullable: bool) -> list[str]:
        """Read a field of variable size, or one such item of an array."""
        if field.struct is not None:
            lines = [f"{variable}, at = {self.struct_function(field.struct)}(data, at)"]
            return ["raise Unusual"] if is_nullable else lines
        if field.type == "string":
            length = self.read_length("size", field, "h", "long_string_length")
            value = "str(data[at : at + size], 'utf-8')"
        elif field.type == "bytes":
            length = self.read_length("size", field, "i", "compact_length")
            value = "data[at : at + size]"
        else:
            return ["raise Unusual"]
        return [*length, *_unless_null("size", variable, [f"{variable} = {value}", "at += size"], is_nullable)]

    def read_array(self, field: Field, variable: str) -> list[str]:
        """Read an array, which becomes a list."""
        lines = ["if count > len(data) - at:", "    raise Unusual"]
        if field.type == "uuid":
            lines.append(f"{variable} = uuids(count, data, at)")
        elif field.type in FIXED_FORMATS:
            lines.append(f"{variable} = numbers('{FORMATS[field.type]}', count, data, at)")
        else:
            item = f"item_{variable}"
            read_item = self.read_value(field, item, is_nullable=False)
            lines += [f"{variable} = []", "for _ in range(count):"]
            lines += indented([*read_item, f"{variable}.append({item})"])
        if field.type in FORMATS:
            lines.append(f"at += {struct.calcsize(FORMATS[field.type])} * count")
        length = self.read_length("count", field, "i", "compact_length")
        return [*length, *_unless_null("count", variable, lines, self.version in field.nullable)]

    def read_tags(self, layout: Struct, variables: dict[str, str]) -> list[str]:
        """Read tagged fields, after setting all of them to their defaults."""
        present = [field for field in layout.fields if self.is_present(field) and self.is_tagged(field)]
        tag = [*unsigned("tag"), *unsigned("size")]
        for field in present:
            tag += [f"if tag == {field.tag}:", *indented([*self._tagged(field, variables[field.name]), "continue"])]
        return [
            *(f"{variables[field.name]} = {self._default(field)}" for field in present),
            *unsigned("tags"),
            "for _ in range(tags):",
            *indented([*tag, "raise Unusual"]),
        ]

    def _tagged(self, field: Field, variable: str) -> list[str]:
        if field.type not in FORMATS or field.is_array:
            return self.read_field(field, variable)
        read = self.read_fixed([field], {field.name: variable})
        return [*read, f"{variable} = uuid({variable})"] if field.type == "uuid" else read


def _unless_null(length: str, variable: str, lines: list[str], is_nullable: bool) -> list[str]:
    """Wrap lines in a check for null, which is refused unless the field may be null."""
    if not is_nullable:
        return [f"if {length} < 0:", "    raise Unusual", *lines]
    return [f"if {length} < 0:", f"    {variable} = None", "else:", *indented(lines)]
