# SPDX-License-Identifier: Apache-2.0
"""Renders messages as JSON text, byte for byte as Kafka's JSON converters print them.

The text is compact, in schema order, with only the fields of the version. A tagged field at its default is left out;
every other field is present. Unknown tagged fields are not shown. For record batches only the size is shown.

Source: JsonConverterGenerator, dump-log's output.
"""

from collections.abc import Callable, Mapping
from typing import Any

from raftlog.records.messages.java_text import json_bytes, json_double, json_string, json_uuid
from raftlog.records.messages.primitives import FIXED_FORMATS
from raftlog.records.messages.schema_text import Field, MessageSchema, Struct
from raftlog.records.messages.schema_writer import IsDefault, default_check

Renderer = Callable[[Any], str]

_NO_RENDERERS: Mapping[str, Renderer] = {}


def compile_renderer(schema: MessageSchema, version: int, special: Mapping[str, Renderer] = _NO_RENDERERS) -> Renderer:
    """Return a function that renders a message by one of its versions; for an unknown version, by the nearest.

    ``special`` has renderers by field name, for fields that are not shown according to their type.
    """
    return _struct_renderer(schema.struct, schema.versions.nearest(version), special)


def render_default(field: Field, version: int) -> str:
    """Render the value of a field that is left out."""
    return _field_renderer(field, version, _NO_RENDERERS)(field.default)


def _struct_renderer(layout: Struct, version: int, special: Mapping[str, Renderer]) -> Renderer:
    plans = [_plan(field, version, special) for field in layout.fields if version in field.versions]

    def render(value: Any) -> str:
        shown = []
        for name, default, label, render_field, is_default in plans:
            item = value.get(name, default)
            if is_default is None or not is_default(item):
                shown.append(label + render_field(item))
        return "{" + ",".join(shown) + "}"

    return render


def _plan(
    field: Field, version: int, special: Mapping[str, Renderer]
) -> tuple[str, Any, str, Renderer, IsDefault | None]:
    is_default = default_check(field) if version in field.tagged else None
    if field.type == "records":
        return field.name, field.default, "", _records_renderer(field.name), is_default
    return field.name, field.default, f'"{field.name}":', _field_renderer(field, version, special), is_default


def _records_renderer(name: str) -> Renderer:
    """Return the renderer of record batches, which have a label of their own unless they are null."""
    return lambda value: f'"{name}":null' if value is None else f'"{name}SizeInBytes":{len(value)}'


def _field_renderer(field: Field, version: int, special: Mapping[str, Renderer]) -> Renderer:
    if field.struct is not None:
        render = _struct_renderer(field.struct, version, special)
    else:
        render = special.get(field.name) or _RENDERERS[field.type]
    if field.is_array:
        render = _array_renderer(render)
    return _nullable_renderer(render) if version in field.nullable else render


def _array_renderer(render_item: Renderer) -> Renderer:
    return lambda items: "[" + ",".join(map(render_item, items)) + "]"


def _nullable_renderer(render: Renderer) -> Renderer:
    return lambda value: "null" if value is None else render(value)


def _render_bool(value: Any) -> str:
    return "true" if value else "false"


_RENDERERS: dict[str, Renderer] = {
    **dict.fromkeys(FIXED_FORMATS, str),
    "bool": _render_bool,
    "float64": json_double,
    "string": json_string,
    "bytes": json_bytes,
    "uuid": json_uuid,
}
