# SPDX-License-Identifier: Apache-2.0
"""Converts messages to typed values and back, for any struct of a schema and the attrs class that represents it.

The schema drives the conversion. A field ``fetchOffset`` is the attribute ``fetch_offset``, an array is a tuple, and a
nested struct is the class that the attribute's type names. A class also has ``unknown_tags``. The list of fields exists
only in the schema, so a class that lacks a field of its schema is refused on first use.
"""

import re
import typing
from collections.abc import Callable
from typing import Any, Final

import attrs

from raftlog.errors import InvariantViolation
from raftlog.records.messages.primitives import invalid
from raftlog.records.messages.schema import UNKNOWN_TAGS, Message, UnknownTags
from raftlog.records.messages.schema_text import Field, Struct

Convert = Callable[[Any], Any]

_WORD_START: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_TAGS_ATTRIBUTE: Final = "unknown_tags"


@attrs.frozen
class StructConversion:
    """The two directions for one struct.

    Attributes:
        to_message: converts a typed value to a message; raises InvalidRecordError for a value of another class.
        from_message: converts a message to a typed value, with defaults for missing fields; raises InvalidRecordError
            for a message that is not a dict, or has fields that the schema lacks.
    """

    to_message: Convert
    from_message: Convert


@attrs.frozen
class _Plan:
    """How one field is converted."""

    name: str
    attribute: str
    default: Any
    to_message: Convert
    from_message: Convert


def attribute_name(field_name: str) -> str:
    """Return the name of the attribute for a field: ``kRaftVersionFeature`` is ``kraft_version_feature``."""
    return _WORD_START.sub("_", field_name.replace("kRaft", "kraft")).lower()


def nested_class(annotation: object) -> type | None:
    """Return the attrs class in the type of an attribute, also inside a tuple or an optional type, or None."""
    if isinstance(annotation, type) and attrs.has(annotation):
        return annotation
    return next(filter(None, map(nested_class, typing.get_args(annotation))), None)


def struct_conversion(kind: type, layout: Struct) -> StructConversion:
    """Return the conversions between the values of an attrs class and the messages of a struct.

    Raises:
        InvariantViolation: the class and the struct do not have the same fields.
    """
    types = {attribute.name: attribute.type for attribute in attrs.fields(kind)}
    wanted = {attribute_name(field.name) for field in layout.fields} | {_TAGS_ATTRIBUTE}
    if types.keys() != wanted:
        raise InvariantViolation(f"{kind.__name__} and its schema differ in {sorted(types.keys() ^ wanted)}")
    plans = tuple(_plan(field, types[attribute_name(field.name)]) for field in layout.fields)
    return StructConversion(_to_message(kind, plans), _from_message(kind, plans))


def _plan(field: Field, annotation: object) -> _Plan:
    to_message: Convert = _same
    from_message: Convert = _same
    if field.struct is not None:
        kind = nested_class(annotation)
        if kind is None:
            raise InvariantViolation(f"the attribute of {field.name} names no class for {field.struct.name}")
        nested = struct_conversion(kind, field.struct)
        to_message, from_message = _unless_none(nested.to_message), _unless_none(nested.from_message)
    if field.is_array:
        to_message = _items(field.name, list, to_message)
        from_message = _items(field.name, tuple, from_message)
    return _Plan(field.name, attribute_name(field.name), field.default, to_message, from_message)


def _same(value: Any) -> Any:
    return value


def _unless_none(convert: Convert) -> Convert:
    """Convert all but None, which the writer of messages accepts or refuses, depending on the version."""
    return lambda value: None if value is None else convert(value)


def _items(name: str, make: Callable[[Any], Any], convert: Convert) -> Convert:
    def convert_items(value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, list | tuple):
            raise invalid(f"field {name} takes array, not {value!r:.60}")
        return make(value) if convert is _same else make(map(convert, value))

    return convert_items


def _to_message(kind: type, plans: tuple[_Plan, ...]) -> Convert:
    def convert(value: Any) -> Message:
        if type(value) is not kind:
            raise invalid(f"{kind.__name__} is wanted, not {value!r:.60}")
        message = {plan.name: plan.to_message(getattr(value, plan.attribute)) for plan in plans}
        tags = getattr(value, _TAGS_ATTRIBUTE)
        if tags:
            message[UNKNOWN_TAGS] = _tags_by_number(tags)
        return message

    return convert


def _from_message(kind: type, plans: tuple[_Plan, ...]) -> Convert:
    names = {plan.name for plan in plans} | {UNKNOWN_TAGS}

    def convert(message: Any) -> Any:
        if not isinstance(message, dict):
            raise invalid(f"{kind.__name__} is made of a dict, not of {message!r:.60}")
        if not message.keys() <= names:
            raise invalid(f"{kind.__name__} has no field {sorted(map(str, message.keys() - names))}")
        values = {plan.attribute: plan.from_message(message.get(plan.name, plan.default)) for plan in plans}
        return kind(**values, unknown_tags=_sorted_tags(message.get(UNKNOWN_TAGS)))

    return convert


def _sorted_tags(tags: Any) -> UnknownTags:
    if not tags:
        return ()
    try:
        return tuple(sorted(tags.items()))
    except (AttributeError, TypeError):
        raise invalid(f"{UNKNOWN_TAGS} are a dict of tag to bytes, not {tags!r:.60}") from None


def _tags_by_number(tags: Any) -> dict[int, bytes]:
    """Return the dict of a message, or raise InvalidRecordError; the writer checks each tag and its bytes."""
    try:
        by_number = dict(tags)
    except (TypeError, ValueError):
        raise invalid(f"unknown_tags are pairs of a tag and bytes, not {tags!r:.60}") from None
    if len(by_number) != len(tags):
        raise invalid(f"unknown_tags have a tag twice: {tags!r:.60}")
    return by_number
