# SPDX-License-Identifier: Apache-2.0
"""The notation of the schema texts."""

import pytest

from raftlog.records.messages.schema_text import NEVER, Versions, fresh, parse_schemas

TEXT = """
# a comment
Thing  ; data, key 7, versions 0-2, flexible 1+, since 4.1
  id: int32  ; default -1
  names: []string  ; in 1+, nullable 1+
  port: uint16  ; default 0x10
  child: Child  ; nullable 0+, tag 3 in 1+, default null, ignorable
    value: float64
  others: []Other  ; flexible none
  struct Other  ; versions 0+
    flag: bool  ; default true
    deeper: []Deeper
  struct Deeper  ; versions 0+
    data: bytes
"""


def test_a_message_is_read_as_it_is_noted() -> None:
    """Names, versions, tags, defaults, nested and shared structs all come out."""
    thing = parse_schemas(TEXT)["Thing"]
    assert (thing.kind, thing.api_key, thing.since) == ("data", 7, "4.1")
    assert (thing.versions, thing.flexible) == (Versions(0, 2), Versions.parse("1+"))
    number, names, port, child, others = thing.struct.fields
    assert (number.default, port.default, child.default) == (-1, 16, None)
    assert (names.type, names.is_array, 0 in names.versions, 1 in names.nullable) == ("string", True, False, True)
    assert (child.tag, 1 in child.tagged, child.ignorable, others.flexible) == (3, True, True, False)
    assert child.struct is not None
    assert [field.name for field in child.struct.fields] == ["value"]
    assert others.struct is not None
    assert others.struct.defaults() == {"flag": True, "deeper": []}


@pytest.mark.parametrize(
    ("text", "versions"),
    [("2", Versions(2, 2)), ("0-4", Versions(0, 4)), ("3+", Versions(3, 0x7FFF)), ("none", NEVER)],
)
def test_ranges_of_versions(text: str, versions: Versions) -> None:
    """All four forms of a range are read."""
    assert Versions.parse(text) == versions


def test_nothing_is_in_no_versions() -> None:
    """No version is in the empty range, and the nearest version is inside a range."""
    assert not any(version in NEVER for version in range(-2, 5))
    assert [Versions(1, 3).nearest(version) for version in (-1, 2, 9)] == [1, 2, 3]


def test_a_line_out_of_the_notation_is_refused() -> None:
    """A field without a type is a ValueError."""
    with pytest.raises(ValueError, match="not a field"):
        parse_schemas("Thing  ; data, versions 0, flexible 0+\n  id\n")


def test_fresh_defaults_share_nothing() -> None:
    """A copied default is equal, and its lists and dicts are others."""
    default = {"a": [], "b": {"c": []}, "d": 1}
    copy = fresh(default)
    assert copy == default
    copy["b"]["c"].append(1)
    assert default["b"] == {"c": []}
