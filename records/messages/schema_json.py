# SPDX-License-Identifier: Apache-2.0
"""Compiles schemas into functions from a message's bytes straight to its JSON, for printing many messages.

For each version of a message, Python source is generated and compiled: one function per struct, without any dict. For a
TopicRecord it is::

    def read_0(data, at):
        size = data[at] - 1
        at += 1
        if size > 126:
            size, at = long_string_length(data, at - 1)
        if size < 0:
            raise Unusual
        v0 = string(str(data[at : at + size], 'utf-8'))
        at += size
        (v1,) = unpack_16s(data, at)
        at += 16
        tags = data[at]
        ...
        return f'{{"name":{v0},"topicId":{uuid(v1)}}}', at

Only usual messages are read: for anything wrong or rare the result is None. The caller then reads the message by
``schema_reader`` and prints it by ``message_json``, which define the correct result and have the text of each error.

Few lengths are checked on the way. A slice past the end is short, and leaves ``at`` past the end. Since ``at`` only
increases, the next read fails, or else the single check at the end of the message does.
"""

import functools
import json
import struct
import uuid
from collections.abc import Callable
from typing import Final

from raftlog.records.messages.generated_source import (
    FORMATS,
    NOT_USUAL,
    ReaderGenerator,
    UnusualError,
    indented,
    long_string_length,
    unsigned,
)
from raftlog.records.messages.java_text import json_bytes, json_double, json_string, json_uuid
from raftlog.records.messages.message_json import render_default
from raftlog.records.messages.primitives import FIXED_FORMATS, read_compact_length, read_unsigned
from raftlog.records.messages.schema_text import Field, MessageSchema, Struct, knows

JsonReader = Callable[[bytes, int], tuple[str, int] | None]
"""``read(data, position) -> (JSON, position after the message)``, or None if the message is not a usual one."""


def compile_json_reader(schema: MessageSchema, version: int, level: str) -> JsonReader:
    """Make the function for one version of a message, which readers of the level must know."""
    read_message = _Generator(schema, version, _NAMES, level).message_reader("JSON")

    def read(data: bytes, position: int) -> tuple[str, int] | None:
        try:
            text, end = read_message(data, position)
        except NOT_USUAL:
            return None
        return (text, end) if end <= len(data) else None

    return read


_FUNCTIONS: Final = {"bool": "boolean", "float64": "double", "uuid": "uuid"}
"""Functions that make text of fixed-size types, for types that a format string does not render as Kafka does."""


_quoted: Final = json.JSONEncoder(ensure_ascii=False).encode


def _string(text: str) -> str:
    quoted = _quoted(text)
    return json_string(text) if "\\u00" in quoted else quoted  # Kafka's hex digits of control characters are capitals.


@functools.lru_cache(maxsize=4096)
def _uuid(data: bytes) -> str:
    """Return the text of a uuid, cached since those of topics and directories recur."""
    return json_uuid(uuid.UUID(bytes=data))


def _uuids(count: int, data: bytes, position: int) -> str:
    items = [_uuid(data[item : item + 16]) for item in range(position, position + 16 * count, 16)]
    return f"[{','.join(items)}]"


def _integers(letter: str, count: int, data: bytes, position: int) -> str:
    unpack_from, template = (_kept_array if count <= _SMALL_ARRAY else _array)(letter, count)
    return template % unpack_from(data, position)


def _array(letter: str, count: int) -> tuple[Callable[[bytes, int], tuple[int, ...]], str]:
    """Return a function that unpacks an array, and the template of its text."""
    return struct.Struct(f">{count}{letter}").unpack_from, f"[{','.join(['%d'] * count)}]"


_SMALL_ARRAY: Final = 64
_kept_array: Final = functools.cache(_array)


def _boolean(value: bool) -> str:
    return "true" if value else "false"


_NAMES: Final[dict[str, object]] = {
    "Unusual": UnusualError,
    "base64": json_bytes,
    "boolean": _boolean,
    "compact_length": read_compact_length,
    "double": json_double,
    "integers": _integers,
    "long_string_length": long_string_length,
    "string": _string,
    "unpack": struct.unpack_from,
    "unsigned": read_unsigned,
    "uuid": _uuid,
    "uuids": _uuids,
}
"""The names that generated functions may use."""


class _Generator(ReaderGenerator):
    """Generates the functions of a message. Methods that return lines return statements that advance ``at``."""

    def read_value(self, field: Field, variable: str, *, is_nullable: bool) -> list[str]:
        """Read a field of variable size, or one such item of an array."""
        null = "null" if is_nullable else None
        if field.struct is not None:
            lines = [f"{variable}, at = {self.struct_function(field.struct)}(data, at)"]
            return ["mark = data[at]", "at += 1", *_unless("mark > 127", variable, null, lines)] if null else lines
        length = self.read_length("size", field, "i", "compact_length")
        if field.type == "string":
            length = self.read_length("size", field, "h", "long_string_length")
            shown = "string(str(data[at : at + size], 'utf-8'))"
        elif field.type == "bytes":
            shown = "base64(data[at : at + size])"
        else:  # For record batches only the size is shown, with a label of its own.
            null = f'"{field.name}":null' if null else None
            shown = f"""'"{field.name}SizeInBytes":' + str(size)"""
        return [*length, *_unless("size < 0", variable, null, [f"{variable} = {shown}", "at += size"])]

    def read_array(self, field: Field, variable: str) -> list[str]:
        """Read an array, which becomes its text."""
        lines = ["if count > len(data) - at:", "    raise Unusual"]
        if field.type == "uuid":
            lines.append(f"{variable} = uuids(count, data, at)")
        elif field.type in FIXED_FORMATS:
            lines.append(f"{variable} = integers('{FORMATS[field.type]}', count, data, at)")
        else:
            read_item = self.read_value(field, "item", is_nullable=False)
            lines += ["items = []", "for _ in range(count):", *indented([*read_item, "items.append(item)"])]
            lines.append(f"{variable} = '[' + ','.join(items) + ']'")
        if field.type in FORMATS:
            lines.append(f"at += {struct.calcsize(FORMATS[field.type])} * count")
        null = "null" if self.version in field.nullable else None
        length = self.read_length("count", field, "i", "compact_length")
        return [*length, *_unless("count < 0", variable, null, lines)]

    def read_tags(self, layout: Struct, variables: dict[str, str]) -> list[str]:
        """Read tagged fields: the variable of each is its label and text, or empty if it is at its default."""
        shown = [field for field in layout.fields if self.version in field.versions and self.is_tagged(field)]
        known = [field for field in layout.fields if field.tag is not None and knows(self.level, field.since)]
        tag = [*unsigned("tag"), *unsigned("size")]
        for field in known:
            tag += [
                f"if tag == {field.tag}:",
                *indented([*self._tagged_field(field, variables[field.name]), "continue"]),
            ]
        unknown = ["if size < 0:", "    raise Unusual", "at += size"]
        return [
            *(f"{variables[field.name]} = ''" for field in shown),
            *unsigned("tags"),
            "for _ in range(tags):",
            *indented([*tag, *unknown]),
        ]

    def _tagged_field(self, field: Field, variable: str) -> list[str]:
        is_default_by_text = field.is_array or (field.struct is None and field.type not in ("float64", "records"))
        if not (self.is_present(field) and self.is_tagged(field) and is_default_by_text):
            return ["raise Unusual"]
        if field.type in FORMATS and not field.is_array:
            read = [
                *self.read_fixed([field], {field.name: variable}),
                f"{variable} = str({_shown(field, variable)})",
            ]
        else:
            read = self.read_field(field, variable)
        default = render_default(field, self.version)
        label = repr(f',"{field.name}":')
        return [*read, f"{variable} = {label} + {variable} if {variable} != {default!r} else ''"]

    # Showing

    def result(self, layout: Struct, variables: dict[str, str]) -> str:
        """Return the expression of the JSON: all fields of the version, also those that the level does not read."""
        shown = [field for field in layout.fields if self.version in field.versions]
        parts = "".join(self._part(field, variables[field.name]) for field in shown)
        if shown and self.is_tagged(shown[0]):  # Known only at run time: whether a comma comes first.
            return f"'{{' + f{parts!r}[1:] + '}}'"
        return f"f{'{{' + parts[1:] + '}}'!r}"

    def _part(self, field: Field, variable: str) -> str:
        if self.is_tagged(field):
            return f"{{{variable}}}"
        if not self.is_present(field):
            default = render_default(field, self.version)
            return f',"{field.name}":{default.replace("{", "{{").replace("}", "}}")}'
        if field.type == "records":
            return f",{{{variable}}}"
        return f',"{field.name}":{{{_shown(field, variable)}}}'


def _shown(field: Field, variable: str) -> str:
    """Return the expression of a field's text: fields of a fixed size are converted, all others are text already."""
    function = None if field.is_array else _FUNCTIONS.get(field.type)
    return variable if function is None else f"{function}({variable})"


def _unless(condition: str, variable: str, null: str | None, lines: list[str]) -> list[str]:
    """Wrap lines in a check for null, which becomes the text ``null``, or is refused if there is none."""
    if null is None:
        return [f"if {condition}:", "    raise Unusual", *lines]
    return [f"if {condition}:", f"    {variable} = {null!r}", "else:", *indented(lines)]
