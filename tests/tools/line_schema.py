# SPDX-License-Identifier: Apache-2.0
"""Checking JSON lines against the published schema."""

import json
from typing import Any

from jsonschema import Draft202012Validator

from tests.checkout import ROOT

SCHEMA = json.loads((ROOT / "docs" / "dump-log-1.schema.json").read_text())
_BY_KIND = {
    reference["$ref"].rsplit("/", 1)[1]: Draft202012Validator({"$defs": SCHEMA["$defs"], **reference})
    for reference in SCHEMA["oneOf"]
}
"""A validator for each kind of line: the schema's own tries one kind after the other, and is slow."""


_VERBATIM = {"kind", "timestamp_type", "severity", "redacted"}
_seen_shapes: set[Any] = set()


def _shape(value: Any, name: str = "") -> Any:
    """All of a value that the schema can ask about: lines of one shape are checked once."""
    if isinstance(value, dict):
        return tuple((each, _shape(item, each)) for each, item in value.items())
    if isinstance(value, list):
        return frozenset(map(_shape, value))
    if isinstance(value, int) and not isinstance(value, bool):
        return max(value, -2) if value < 0 else value >= 2**32
    return value if name in _VERBATIM else type(value)


def read_lines(output: bytes) -> list[dict[str, Any]]:
    """Read JSON lines as the most careless reader does, and check each against the schema."""
    objects = []
    for line in output.decode().splitlines():
        each = json.loads(line, parse_constant=_refuse)
        shape = _shape(each)
        if shape not in _seen_shapes:
            _BY_KIND[each["kind"]].validate(each)
            _seen_shapes.add(shape)
        objects.append(each)
    return objects


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")
