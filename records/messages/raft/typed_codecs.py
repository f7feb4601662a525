# SPDX-License-Identifier: Apache-2.0
"""Compiles functions that read and write typed messages at once, without the generic message in between.

For each version of a message, Python source is generated, as in ``schema_json``. For FetchRequest, version 18, a part
of the writer is::

    def write_1(out, value):
        if value.__class__ is not Kind_1:
            raise Unusual
        v5 = value.replica_directory_id
        ...
        out.append(pack_iiqiqi(value.partition, value.current_leader_epoch, value.fetch_offset, ...))

Only usual messages are handled: valid ones, with few items in an array, short texts and no unknown tagged fields. For
all others the result is None; ``raft_messages`` then goes by the generic message, which defines the result and has the
text of each error.
"""

import struct
import uuid
from collections.abc import Callable, Iterable
from typing import Any, Final

import attrs

from raftlog.invariants import present
from raftlog.records.messages.generated_source import (
    FORMATS,
    NOT_USUAL,
    SourceGenerator,
    UnusualError,
    indented,
    long_string_length,
    unsigned,
)
from raftlog.records.messages.primitives import Buffer, cached_uuid, read_compact_length, read_unsigned
from raftlog.records.messages.raft.typed_structs import attribute_name, nested_class
from raftlog.records.messages.schema_text import Field, MessageSchema, Struct
from raftlog.records.varint import uvarint

MAX_USUAL_ITEMS: Final = 16
"""How many items an array of a usual message has at most; so few that they need not be counted."""

TypedReader = Callable[[Buffer], Any]
"""``read(data) -> value``, or None if the bytes are not a usual message."""

TypedWriter = Callable[[Any], bytes | None]
"""``write(value) -> bytes``, or None if the value is not a usual message."""

_MAX_SHORT: Final = 126
"""The longest text, and the largest tagged field, whose length takes one byte."""

_EXACT_TYPES: Final = {"bool": "bool", "float64": "float", "uuid": "UUID"}
"""The classes of values that ``pack`` would not check."""

_CLASSIC_LENGTHS: Final = {"string": "h", "bytes": "i", "records": "i"}
"""The struct formats of lengths in versions that are not flexible."""

_READ_NAMES: Final[dict[str, object]] = {
    "Unusual": UnusualError,
    "compact_length": read_compact_length,
    "long_string_length": long_string_length,
    "unpack": struct.unpack_from,
    "unsigned": read_unsigned,
    "uuid": cached_uuid,
}
_WRITE_NAMES: Final[dict[str, object]] = {
    "Unusual": UnusualError,
    "UUID": uuid.UUID,
    "one_byte": tuple(bytes([value]) for value in range(128)),
    "pack": struct.pack,
    "uvarint": uvarint,
}


def compile_typed_reader(kind: type, schema: MessageSchema, version: int) -> TypedReader:
    """Make the function that reads one version of a message, which must be known, as values of an attrs class."""
    read_message = _Reader(schema, version, _READ_NAMES).message_reader(kind)

    def read(data: Buffer) -> Any:
        try:
            value, end = read_message(data, 0)
        except NOT_USUAL:
            return None
        return value if end == len(data) else None

    return read


def compile_typed_writer(kind: type, schema: MessageSchema, version: int) -> TypedWriter:
    """Make the function that writes one version of a message, which must be known, from values of an attrs class."""
    write_message = _Writer(schema, version, _WRITE_NAMES).message_writer(kind)

    def write(value: Any) -> bytes | None:
        out: list[bytes] = []
        try:
            write_message(out, value)
        except (*NOT_USUAL, AttributeError, TypeError):
            return None
        return b"".join(out)

    return write


class _TypedGenerator(SourceGenerator):
    """Knows which class represents which struct."""

    def class_name(self, kind: type) -> str:
        """Return the name by which functions may use a class."""
        name = f"Kind_{kind.__name__}"
        self.names[name] = kind
        return name

    def is_present(self, field: Field) -> bool:
        """Whether this version has a field."""
        return self.version in field.versions

    def nested(self, kind: type, field: Field) -> type:
        """Return the class of a field that is a struct, or whose items are structs."""
        name = attribute_name(field.name)
        return present(nested_class(attrs.fields_dict(kind)[name].type), f"the class of {kind.__name__}.{name}")


class _Reader(_TypedGenerator):
    """Generates the functions that read a message. ``at`` is the position in ``data``."""

    def message_reader(self, kind: type) -> Callable[[Buffer, int], tuple[Any, int]]:
        """Compile all functions, and return the one for the message."""
        return self.compiled(self._struct_function(kind, self.schema.struct), "reader")

    def _struct_function(self, kind: type, layout: Struct) -> str:
        here = [field for field in layout.fields if self.is_present(field)]
        variables = {field.name: f"v{index}" for index, field in enumerate(here)}
        plain = [field for field in here if not self.is_tagged(field)]
        tagged = [field for field in here if self.is_tagged(field)]
        lines = [*self._plain_fields(kind, plain, variables)]
        if self.is_flexible:
            lines += self._tags(kind, tagged, variables)
        arguments = ", ".join(f"{attribute_name(field.name)}={variables[field.name]}" for field in here)
        lines.append(f"return {self.class_name(kind)}({arguments}), at")
        return self.add_function("read", "data, at", lines)

    def _plain_fields(self, kind: type, fields: list[Field], variables: dict[str, str]) -> Iterable[str]:
        together: list[Field] = []
        for field in fields:
            if field.type in FORMATS and not field.is_array:
                together.append(field)
                continue
            yield from self._fixed(together, variables)
            together = []
            yield from self._field(kind, field, variables[field.name])
        yield from self._fixed(together, variables)

    def _fixed(self, fields: list[Field], variables: dict[str, str]) -> list[str]:
        uuids = [variables[field.name] for field in fields if field.type == "uuid"]
        return [*self.read_fixed(fields, variables), *(f"{variable} = uuid({variable})" for variable in uuids)]

    def _field(self, kind: type, field: Field, variable: str) -> list[str]:
        is_nullable = self.version in field.nullable
        if not field.is_array:
            return self._value(kind, field, variable, is_nullable=is_nullable)
        item = self._value(kind, field, "item", is_nullable=False)
        several = ["items = []", "for _ in range(count):", *indented([*item, "items.append(item)"])]
        several.append(f"{variable} = tuple(items)")
        lines = [f"if count > {MAX_USUAL_ITEMS}:", "    raise Unusual"]
        if field.struct is None:
            lines += several
        else:  # Nearly every array of structs has one item.
            lines += ["if count == 1:", *indented([*item, f"{variable} = (item,)"]), "else:", *indented(several)]
        null = f"{variable} = None" if is_nullable else "raise Unusual"
        length = self.read_length("count", field, "i", "compact_length")
        return [*length, "if count < 0:", f"    {null}", "else:", *indented(lines)]

    def _value(self, kind: type, field: Field, variable: str, *, is_nullable: bool) -> list[str]:
        """Read a field that is not an array, or one item of an array."""
        if field.struct is not None:
            function = self._struct_function(self.nested(kind, field), field.struct)
            return ["raise Unusual"] if is_nullable else [f"{variable}, at = {function}(data, at)"]
        if field.type in FORMATS:
            return self._fixed([field], {field.name: variable})
        if field.type == "string":
            length = self.read_length("size", field, "h", "long_string_length")
            shown = "str(data[at : at + size], 'utf-8')"
        else:
            length = self.read_length("size", field, "i", "compact_length")
            shown = "bytes(data[at : at + size])"
        read = [f"{variable} = {shown}", "at += size"]
        if not is_nullable:
            return [*length, "if size < 0:", "    raise Unusual", *read]
        return [*length, "if size < 0:", f"    {variable} = None", "else:", *indented(read)]

    def _tags(self, kind: type, tagged: list[Field], variables: dict[str, str]) -> list[str]:
        if not tagged:
            return ["if data[at]:", "    raise Unusual", "at += 1"]
        one = [*unsigned("tag"), *unsigned("size")]
        for field in tagged:
            variable = variables[field.name]
            is_fixed = field.type in FORMATS and not field.is_array
            read = self._fixed([field], variables) if is_fixed else self._field(kind, field, variable)
            one += [f"{'if' if field is tagged[0] else 'elif'} tag == {field.tag}:", *indented(read)]
        one += ["else:", "    raise Unusual"]
        defaults = [f"{variables[field.name]} = {self._default(kind, field)}" for field in tagged]
        return [*defaults, *unsigned("tags"), "for _ in range(tags):", *indented(one)]

    def _default(self, kind: type, field: Field) -> str:
        name = f"default_{kind.__name__}_{field.name}"
        self.names[name] = attrs.fields_dict(kind)[attribute_name(field.name)].default
        return name


class _Writer(_TypedGenerator):
    """Generates the functions that write a message: each appends parts to the list ``out``."""

    def message_writer(self, kind: type) -> Callable[[list[bytes], Any], None]:
        """Compile all functions, and return the one for the message."""
        return self.compiled(self._struct_function(kind, self.schema.struct), "writer")

    def _struct_function(self, kind: type, layout: Struct) -> str:
        here = [field for field in layout.fields if self.is_present(field)]
        plain = [field for field in here if not self.is_tagged(field)]
        tagged = [field for field in here if self.is_tagged(field)]
        checked = [field for field in layout.fields if field not in here and not field.ignorable]
        lines = [f"if value.__class__ is not {self.class_name(kind)} or value.unknown_tags:", "    raise Unusual"]
        for field in checked:
            name = f"value.{attribute_name(field.name)}"
            lines += [f"if {self._is_not_default(kind, field, name)}:", "    raise Unusual"]
        lines += self._plain_fields(kind, plain)
        if self.is_flexible:
            lines += self._tags(kind, tagged) if tagged else ["out.append(b'\\0')"]
        return self.add_function("write", "out, value", lines)

    def _plain_fields(self, kind: type, fields: list[Field]) -> Iterable[str]:
        together: list[tuple[Field, str]] = []
        for field in fields:
            name = f"value.{attribute_name(field.name)}"
            if field.type in FORMATS and not field.is_array:
                together.append((field, name))
                continue
            yield from self._fixed(together)
            together = []
            yield from self._field(kind, field, name)
        yield from self._fixed(together)

    def _fixed(self, fields: list[tuple[Field, str]]) -> Iterable[str]:
        """Write adjacent fields of a fixed size. A number is checked by ``pack``, all else before it."""
        if not fields:
            return
        for field, name in fields:
            if field.type in _EXACT_TYPES:
                yield from (f"if {name}.__class__ is not {_EXACT_TYPES[field.type]}:", "    raise Unusual")
        formats = "".join(FORMATS[field.type] for field, _ in fields)
        self.layout(formats)
        values = ", ".join(f"{name}.bytes" if field.type == "uuid" else name for field, name in fields)
        yield f"out.append({self.packer(formats)}({values}))"

    def _field(self, kind: type, field: Field, name: str) -> list[str]:
        is_nullable = self.version in field.nullable
        if not field.is_array:
            return self._value(kind, field, name, is_nullable=is_nullable)
        item = self._value(kind, field, "item", is_nullable=False)
        write = [
            f"items = {name}",
            f"if items.__class__ is not tuple or len(items) > {MAX_USUAL_ITEMS}:",
            "    raise Unusual",
            self._length("len(items)", field, "i", is_short=True),
            "for item in items:",
            *indented(item),
        ]
        return self._unless_null(field, name, "i", write) if is_nullable else write

    def _value(self, kind: type, field: Field, name: str, *, is_nullable: bool) -> list[str]:
        """Write a field that is not an array, or one item of an array."""
        if field.struct is not None:
            function = self._struct_function(self.nested(kind, field), field.struct)
            return ["raise Unusual"] if is_nullable else [f"{function}(out, {name})"]
        if field.type in FORMATS:
            return [*self._fixed([(field, name)])]
        if field.type == "string":
            write = [
                f"data = {name}.encode()",
                f"if len(data) > {_MAX_SHORT}:",
                "    raise Unusual",
                self._length("len(data)", field, "h", is_short=True),
                "out.append(data)",
            ]
        else:
            write = [
                f"data = {name}",
                "if data.__class__ is not bytes:",
                "    if data.__class__ is not memoryview:",
                "        raise Unusual",
                "    data = bytes(data)",
                self._length("len(data)", field, "i"),
                "out.append(data)",
            ]
        return self._unless_null(field, name, _CLASSIC_LENGTHS[field.type], write) if is_nullable else write

    def _unless_null(self, field: Field, name: str, classic: str, lines: list[str]) -> list[str]:
        """Wrap lines in a check for null."""
        null = self._length("-1", field, classic, is_short=True)
        return [f"if {name} is None:", f"    {null}", "else:", *indented(lines)]

    def _length(self, size: str, field: Field, classic: str, *, is_short: bool = False) -> str:
        if not self.is_flexible or not field.flexible:
            return f"out.append(pack('>{classic}', {size}))"
        return f"out.append(one_byte[{size} + 1])" if is_short else f"out.append(uvarint({size} + 1))"

    def _tags(self, kind: type, tagged: list[Field]) -> Iterable[str]:
        """Write the tagged fields that are not at their defaults, after their number."""
        yield "tags = []"
        for field in sorted(tagged, key=lambda field: field.tag or 0):
            name = f"value.{attribute_name(field.name)}"
            is_fixed = field.type in FORMATS and not field.is_array
            write = [
                "before, out = out, []",
                *(self._fixed([(field, name)]) if is_fixed else self._field(kind, field, name)),
                "data, out = b''.join(out), before",
                f"if len(data) > {_MAX_SHORT}:",
                "    raise Unusual",
                f"tags += one_byte[{field.tag}], one_byte[len(data)], data",
            ]
            yield f"if {self._is_not_default(kind, field, name)}:"
            yield from indented(write)
        yield "out.append(one_byte[len(tags) // 3])"
        yield "out += tags"

    def _is_not_default(self, kind: type, field: Field, name: str) -> str:
        if field.default is None:
            return f"{name} is not None"
        default = f"default_{kind.__name__}_{field.name}"
        self.names[default] = attrs.fields_dict(kind)[attribute_name(field.name)].default
        return f"{name} is not {default} and {name} != {default}"
