# SPDX-License-Identifier: Apache-2.0
"""What the generators of Python source for messages share: they turn a schema into functions without dicts or plans.

Generated functions handle usual messages only, and fail with one of ``NOT_USUAL`` for anything wrong or rare. Then the
caller goes by ``schema_reader`` or ``schema_writer``, which define the result and have the text of each error.
"""

import abc
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from raftlog.errors import DecodeError
from raftlog.records.messages.primitives import FIXED_FORMATS, MAX_STRING_SIZE, Buffer, read_compact_length
from raftlog.records.messages.schema_text import Field, MessageSchema, Struct, knows

FORMATS: Final = {**FIXED_FORMATS, "uuid": "16s"}
"""The types of a fixed size, and their struct formats."""


class UnusualError(Exception):
    """A message is wrong or rare, and must be handled by the code that defines the result."""


NOT_USUAL: Final = (UnusualError, DecodeError, IndexError, ValueError, struct.error)
"""What generated functions may raise."""


def long_string_length(data: Buffer, position: int) -> tuple[int, int]:
    """Read the compact length of a string that needs more than one byte, and return it with the position after it."""
    size, position = read_compact_length(data, position)
    if size > MAX_STRING_SIZE:
        raise UnusualError
    return size, position


def unsigned(target: str) -> list[str]:
    """Return the lines that read an unsigned varint into a variable."""
    return [
        f"{target} = data[at]",
        "at += 1",
        f"if {target} > 127:",
        f"    {target}, at = unsigned(data, at - 1)",
    ]


def indented(lines: Iterable[str]) -> list[str]:
    """Return lines one level deeper."""
    return [f"    {line}" for line in lines]


class SourceGenerator:
    """Collects the functions of one version of a message. Methods that return lines advance ``at`` in ``data``.

    Args:
        schema: of the message.
        version: of the message, which must be known.
        names: that the functions may use.
    """

    def __init__(self, schema: MessageSchema, version: int, names: Mapping[str, object]) -> None:
        self.schema = schema
        self.version = version
        self.is_flexible = version in schema.flexible
        self.names: dict[str, Any] = dict(names)
        self._functions: list[str] = []

    def add_function(self, prefix: str, parameters: str, lines: Iterable[str]) -> str:
        """Add a function, and return its name."""
        name = f"{prefix}_{len(self._functions)}"
        self._functions.append("\n".join([f"def {name}({parameters}):", *indented(lines)]))
        return name

    def compiled(self, name: str, what: str) -> Callable[..., Any]:
        """Compile all functions, and return the one of a name."""
        code = compile("\n".join(self._functions), f"<{what} of {self.schema.name}, version {self.version}>", "exec")
        exec(code, self.names)  # noqa: S102 - only names and numbers of our schemas are in it
        function: Callable[..., Any] = self.names[name]
        return function

    def is_tagged(self, field: Field) -> bool:
        """Whether a field is a tagged one in this version."""
        return self.version in field.tagged

    def layout(self, formats: str) -> struct.Struct:
        """Return the layout of values in a row. ``pack_F`` and ``unpack_F`` are then names for functions."""
        layout = struct.Struct(">" + formats)
        self.names[self.packer(formats)] = layout.pack
        self.names[self.unpacker(formats)] = layout.unpack_from
        return layout

    @staticmethod
    def packer(formats: str) -> str:
        """Return the name of the function that packs values in a row."""
        return f"pack_{formats.replace('?', 't')}"

    @staticmethod
    def unpacker(formats: str) -> str:
        """Return the name of the function that unpacks values in a row."""
        return f"unpack_{formats.replace('?', 't')}"

    def read_fixed(self, fields: list[Field], variables: Mapping[str, str]) -> list[str]:
        """Return the lines that read adjacent fields of a fixed size at once."""
        if not fields:
            return []
        formats = "".join(FORMATS[field.type] for field in fields)
        targets = "".join(f"{variables[field.name]}, " for field in fields)
        size = self.layout(formats).size
        return [f"({targets.rstrip()}) = {self.unpacker(formats)}(data, at)", f"at += {size}"]

    def read_length(self, target: str, field: Field, classic: str, long_length: str) -> list[str]:
        """Return the lines that read the length of a field, or the count of its items; null is below 0."""
        if not self.is_flexible or not field.flexible:
            return [f"({target},) = unpack('>{classic}', data, at)", f"at += {struct.calcsize('>' + classic)}"]
        return [
            f"{target} = data[at] - 1",
            "at += 1",
            f"if {target} > 126:",
            f"    {target}, at = {long_length}(data, at - 1)",
        ]


class ReaderGenerator(SourceGenerator, abc.ABC):
    """Generates functions that read a message, one per struct: ``read(data, at)`` returns a result and the new ``at``.

    A subclass says what the fields of variable size, the tagged ones and the result are.

    Args:
        schema, version, names: as for ``SourceGenerator``.
        level: whose fields are read; those that it does not know are not in the bytes.
    """

    def __init__(self, schema: MessageSchema, version: int, names: Mapping[str, object], level: str) -> None:
        super().__init__(schema, version, names)
        self.level = level

    def message_reader(self, what: str) -> Callable[..., Any]:
        """Compile all functions, and return the one for the message; ``what`` it makes is in tracebacks."""
        return self.compiled(self.struct_function(self.schema.struct), what)

    def struct_function(self, layout: Struct) -> str:
        """Generate the function of a struct, after those that it calls, and return its name."""
        variables = {field.name: f"v{index}" for index, field in enumerate(layout.fields)}
        lines = [*self._plain_fields(layout, variables)]
        if self.is_flexible:
            lines += self.read_tags(layout, variables)
        lines.append(f"return {self.result(layout, variables)}, at")
        return self.add_function("read", "data, at", lines)

    def is_present(self, field: Field) -> bool:
        """Whether a field is in this version, as the level knows it."""
        return self.version in field.versions and knows(self.level, field.since)

    def _plain_fields(self, layout: Struct, variables: dict[str, str]) -> Iterable[str]:
        """Read untagged fields; adjacent fields of a fixed size at once."""
        together: list[Field] = []
        for field in layout.fields:
            if not self.is_present(field) or self.is_tagged(field):
                continue
            if field.type in FORMATS and not field.is_array:
                together.append(field)
                continue
            yield from self.read_fixed(together, variables)
            together = []
            yield from self.read_field(field, variables[field.name])
        yield from self.read_fixed(together, variables)

    def read_field(self, field: Field, variable: str) -> list[str]:
        """Return the lines that read a field of variable size."""
        if field.is_array:
            return self.read_array(field, variable)
        return self.read_value(field, variable, is_nullable=self.version in field.nullable)

    @abc.abstractmethod
    def read_value(self, field: Field, variable: str, *, is_nullable: bool) -> list[str]:
        """Return the lines that read a field of variable size, or one such item of an array."""

    @abc.abstractmethod
    def read_array(self, field: Field, variable: str) -> list[str]:
        """Return the lines that read an array."""

    @abc.abstractmethod
    def read_tags(self, layout: Struct, variables: dict[str, str]) -> list[str]:
        """Return the lines that read the tagged fields of a struct."""

    @abc.abstractmethod
    def result(self, layout: Struct, variables: dict[str, str]) -> str:
        """Return the expression of what a struct is read to."""
