# SPDX-License-Identifier: Apache-2.0
"""Reads messages of one shape with one call: for records of which there are very many, such as those of partitions.

The *shape* of a message is what says where its values are: counts, tags and sizes. A log has few shapes of a type,
since most partitions have as many replicas. For a shape that recurs, a function is generated that unpacks all values at
once, with the bytes of the shape among them, and returns the message if these are as expected.

Only messages of numbers, uuids and arrays of these have shapes. All others are read by ``values_reader``.
"""

import struct
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from raftlog.records.messages.generated_source import FORMATS, NOT_USUAL, UnusualError
from raftlog.records.messages.schema_text import Field, MessageSchema
from raftlog.tools.image.values_reader import ValuesReader, ValuesSource

_WORTH_IT: Final = 64
"""After so many messages of a size that fit no shape, that of one is compiled: it takes as long as to read 300."""
_MOST_SHAPES: Final = 256
"""Of one version of a message. Those that come later are read by ``values_reader``."""
_LONGEST: Final = 126
"""What a compact length of one byte says at most; it has one more."""

_ShapeReader = Callable[[bytes], dict[str, Any] | None]


class FieldPlace(NamedTuple):
    """Where a shape has the value of a field.

    Attributes:
        position: of its first byte in the data.
        size: in bytes.
        arrays: what has the tuple of each array by its bytes; None if the field is no array.
        items: how many items an array has; 1 if it is none.
    """

    position: int
    size: int
    arrays: dict[bytes, tuple[Any, ...]] | None
    items: int


def has_shapes(schema: MessageSchema, version: int) -> bool:
    """Whether the messages of a version have numbers, uuids and arrays of these alone, and their lengths a byte."""
    fields = (field for field in schema.struct.fields if version in field.versions)
    return version in schema.flexible and all(field.type in FORMATS and field.flexible for field in fields)


class ShapedReader:
    """Reads what another reader does, faster if most messages are of few shapes, which it learns.

    Args:
        schema, version: of the messages, which must have shapes.
        general: what ``compile_values_reader`` makes of these.
        position: where each message begins; it ends with its data.
        learned: is called with each shape that was learned.
    """

    def __init__(
        self,
        schema: MessageSchema,
        version: int,
        general: ValuesReader,
        position: int,
        learned: Callable[["Shape"], None] | None = None,
    ) -> None:
        self._schema = schema
        self._version = version
        self._general = general
        self._position = position
        self._learned = learned
        self._shapes: dict[int, list[_ShapeReader]] = {}
        self._misses: dict[int, int] = {}
        self._left = _MOST_SHAPES

    def __call__(self, data: bytes, position: int) -> tuple[dict[str, Any], int]:
        """Return a message and the position after it; raise one of ``NOT_USUAL``, as the general reader does."""
        size = len(data)
        for read in self._shapes.get(size, ()):
            message = read(data)
            if message is not None:
                return message, size
        misses = self._misses[size] = self._misses.get(size, 0) + 1
        if misses % _WORTH_IT == 0 and self._left:
            self._learn(data)
        return self._general(data, position)

    def _learn(self, data: bytes) -> None:
        try:
            shape = Shape(self._schema, self._version, data, self._position)
            read = shape.compiled_reader()
        except NOT_USUAL:
            return
        self._left -= 1
        self._shapes.setdefault(len(data), []).append(read)
        if self._learned is not None:
            self._learned(shape)


class Shape:
    """The shape of a message, as the source of the function that reads messages of it.

    Attributes:
        data: a message of the shape, with what stands before it.
        mask: as long as that; 255 for each byte that belongs to the shape or stands before the message, 0 for others.
        places: of the fields whose values the shape does not say, by name.
        fixed: the values of all other fields, which all messages of the shape have.

    Raises:
        UnusualError, IndexError: the message is not a usual one.
    """

    def __init__(self, schema: MessageSchema, version: int, data: bytes, position: int) -> None:
        self._source = ValuesSource(schema, version)
        self.data = data
        self.places: dict[str, FieldPlace] = {}
        self.fixed: dict[str, Any] = {field.name: field.default for field in schema.struct.fields}
        self._mask = bytearray(b"\xff" * position).ljust(len(data), b"\0")
        self._at = position
        self._formats = [f"{position}x"]
        self._targets: list[str] = []
        self._checks: list[str] = []
        self._shape_start = position
        self._shown = {field.name: self._source.default(field) for field in schema.struct.fields}
        present = [field for field in schema.struct.fields if version in field.versions]
        for field in present:
            if not self._source.is_tagged(field):
                self._take(field)
        self._take_tags({field.tag: field for field in present if self._source.is_tagged(field)})
        self._end_shape()
        if self._at != len(data):
            raise UnusualError

    @property
    def mask(self) -> bytes:
        """The bytes of the shape."""
        return bytes(self._mask)

    def compiled_reader(self) -> _ShapeReader:
        """Compile ``read(data) -> message``, which returns None for a message of another shape."""
        source = self._source
        source.names["unpack_all"] = struct.Struct(">" + "".join(self._formats)).unpack
        lines = [
            f"({', '.join(self._targets)},) = unpack_all(data)",
            f"if {' or '.join(self._checks)}:",
            "    return None",
            f"return {{{', '.join(f'{name!r}: {value}' for name, value in self._shown.items())}}}",
        ]
        return source.compiled(source.add_function("read", "data", lines), "a shape")

    def _take_tags(self, tagged: dict[int | None, Field]) -> None:
        count = self._byte()
        for _ in range(count):
            field, size = tagged.pop(self._byte(), None), self._byte()
            start = self._at
            if field is None or size > _LONGEST:
                raise UnusualError
            self._take(field)
            if self._at - start != size:
                raise UnusualError

    def _take(self, field: Field) -> None:
        """Take a field: its length belongs to the shape, its content does not."""
        if not field.is_array:
            target = self._value(field, FORMATS[field.type])
            self._shown[field.name] = f"uuid({target})" if field.type == "uuid" else target
            return
        count = self._byte() - 1
        if count > _LONGEST or (count < 0 and self._source.version not in field.nullable):
            raise UnusualError
        if count <= 0:
            self.fixed[field.name] = None if count < 0 else ()
            self._shown[field.name] = repr(self.fixed[field.name])
            return
        target = self._value(field, f"{count * struct.calcsize(FORMATS[field.type])}s")
        self._shown[field.name] = self._source.array(field, target)

    def _byte(self) -> int:
        """Take a byte of the shape."""
        self._at += 1
        return self.data[self._at - 1]

    def _value(self, field: Field, format_: str) -> str:
        """Take a value, and return the variable that it is unpacked to."""
        self._end_shape()
        size, arrays = struct.calcsize(">" + format_), self._source.arrays(field) if field.is_array else None
        self.places[field.name] = FieldPlace(self._at, size, arrays, size // struct.calcsize(">" + FORMATS[field.type]))
        self.fixed.pop(field.name, None)
        self._at += size
        self._shape_start = self._at
        return self._target(format_)

    def _end_shape(self) -> None:
        """Let the bytes of the shape since the last value be compared."""
        expected = self.data[self._shape_start : self._at]
        if expected:
            self._mask[self._shape_start : self._at] = b"\xff" * len(expected)
            self._checks.append(f"{self._target(f'{len(expected)}s')} != {expected!r}")

    def _target(self, format_: str) -> str:
        self._formats.append(format_)
        self._targets.append(f"p{len(self._targets)}")
        return self._targets[-1]
