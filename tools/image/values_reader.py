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
from raftlog.records.messages.primitives import read_compact_length, read_unsigned
from raftlog.records.messages.schema_text import NEWEST, Field, MessageSchema, Struct

ValuesReader = Callable[[bytes, int], tuple[dict[str, Any], int]]
"""``read(data, position) -> (message, position after the message)``; raises one of ``NOT_USUAL``."""

_MOST_ARRAYS: Final = 1 << 16
"""How many arrays of one type are kept."""
_LONGEST_KEPT: Final = 256
"""The bytes of the longest array that is kept."""


def compile_values_reader(schema: MessageSchema, version: int, level: str = NEWEST) -> ValuesReader:
    """Make the function for one version of a message, which readers of the level must know.

    It returns what ``MessageType.reader`` does, if it does not raise, and if the end is in the data. But arrays of
    numbers and of uuids are tuples, and equal ones are mostly one object.
    """
    return ValuesSource(schema, version, level).message_reader("values")


@functools.lru_cache(maxsize=1 << 16)
def _uuid(data: bytes) -> uuid.UUID:
    """Return the uuid of 16 bytes, cached since those of topics and directories recur."""
    return uuid.UUID(bytes=data)


class _Arrays(dict[bytes, tuple[Any, ...]]):
    """Arrays of items of one type by their bytes: equal ones are one object, as those of many partitions are equal."""

    def __init__(self, type_: str) -> None:
        super().__init__()
        self._item = struct.Struct(">" + FORMATS[type_])
        self._is_uuid = type_ == "uuid"

    def __missing__(self, data: bytes) -> tuple[Any, ...]:
        if len(self) >= _MOST_ARRAYS:
            self.clear()
        items = (item for (item,) in self._item.iter_unpack(data))
        found = tuple(map(_uuid, items)) if self._is_uuid else tuple(items)
        if len(data) <= _LONGEST_KEPT:
            self[data] = found
        return found


_NAMES: Final[dict[str, object]] = {
    "Unusual": UnusualError,
    "compact_length": read_compact_length,
    "long_string_length": long_string_length,
    "unpack": struct.unpack_from,
    "unsigned": read_unsigned,
    "uuid": _uuid,
    **{f"arrays_of_{type_}": _Arrays(type_) for type_ in FORMATS},
}
"""The names that generated functions may use."""


class ValuesSource(ReaderGenerator):
    """Generates the functions of a message. Methods that return lines return statements that advance ``at``."""

    def __init__(self, schema: MessageSchema, version: int, level: str = NEWEST) -> None:
        super().__init__(schema, version, _NAMES, level)

    def result(self, layout: Struct, variables: dict[str, str]) -> str:
        """Return the expression of the dict: all fields of the schema."""
        shown = (f"{field.name!r}: {self._shown(field, variables[field.name])}" for field in layout.fields)
        return f"{{{', '.join(shown)}}}"

    def _shown(self, field: Field, variable: str) -> str:
        """Return the expression of a field's value: its default if this version does not have it."""
        if not self.is_present(field):
            return self.default(field)
        is_converted = field.type == "uuid" and not field.is_array and not self.is_tagged(field)
        return f"uuid({variable})" if is_converted else variable

    def default(self, field: Field) -> str:
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
        if field.type in FORMATS:
            size = struct.calcsize(">" + FORMATS[field.type])
            if size > 1:
                lines = [f"if {size} * count > len(data) - at:", "    raise Unusual"]
            lines += [f"end = at + {size} * count", f"{variable} = {self.array(field, 'data[at:end]')}", "at = end"]
        else:
            item = f"item_{variable}"
            read_item = self.read_value(field, item, is_nullable=False)
            lines += [f"{variable} = []", "for _ in range(count):"]
            lines += indented([*read_item, f"{variable}.append({item})"])
        length = self.read_length("count", field, "i", "compact_length")
        return [*length, *_unless_null("count", variable, lines, self.version in field.nullable)]

    def arrays(self, field: Field) -> dict[bytes, tuple[Any, ...]]:
        """Return what has the tuple of each array of such items by its bytes."""
        found: dict[bytes, tuple[Any, ...]] = self.names[f"arrays_of_{field.type}"]
        return found

    @staticmethod
    def array(field: Field, data: str) -> str:
        """Return the expression of an array of items of a fixed size, by that of its bytes."""
        return f"arrays_of_{field.type}[{data}]"

    def read_tags(self, layout: Struct, variables: dict[str, str]) -> list[str]:
        """Read tagged fields, after setting all of them to their defaults."""
        present = [field for field in layout.fields if self.is_present(field) and self.is_tagged(field)]
        tag = [*unsigned("tag"), *unsigned("size")]
        for field in present:
            tag += [f"if tag == {field.tag}:", *indented([*self._tagged(field, variables[field.name]), "continue"])]
        return [
            *(f"{variables[field.name]} = {self.default(field)}" for field in present),
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
