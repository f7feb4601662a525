# SPDX-License-Identifier: Apache-2.0
"""JSON lines: bytes and names are text or base64, and each object is one line to every reader."""

import base64
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.terminal.json_lines import json_line, path_list_member, path_member, text_or_base64

NAMES = st.binary().map(os.fsdecode)


def _bytes_of(member: dict[str, str | None]) -> bytes | None:
    """Return the bytes that a member ``x`` or ``x_base64`` holds."""
    ((name, value),) = member.items()
    if value is None:
        return None
    return base64.b64decode(value, validate=True) if name == "x_base64" else value.encode()


@pytest.mark.parametrize(
    ("data", "member"),
    [
        (None, {"x": None}),
        (b"", {"x": ""}),
        (b"text", {"x": "text"}),
        ("\u00fc\u20ac\U0001f600".encode(), {"x": "\u00fc\u20ac\U0001f600"}),
        (b"a\nb", {"x_base64": "YQpi"}),
        (b"\0", {"x_base64": "AA=="}),
        (b"\x7f", {"x_base64": "fw=="}),
        ("\x85".encode(), {"x_base64": "woU="}),
        (b"\xff\xfe", {"x_base64": "//4="}),
        (b"\xed\xa0\x80", {"x_base64": "7aCA"}),
    ],
)
def test_bytes_are_text_or_base64(data: bytes | None, member: dict[str, str | None]) -> None:
    """Bytes are text where they are UTF-8 without control characters, else base64 under another name."""
    assert text_or_base64("x", data) == member


@given(st.binary())
def test_the_rule_for_bytes_loses_nothing(data: bytes) -> None:
    """Any bytes can be recovered from their member."""
    assert _bytes_of(text_or_base64("x", data)) == data


@given(NAMES)
def test_a_path_is_written_byte_for_byte(path: str) -> None:
    """The name of any file can be recovered from its member."""
    assert _bytes_of(path_member("x", path)) == os.fsencode(path)


def test_no_path_is_null() -> None:
    """A path that is not known is null, under the plain name."""
    assert path_member("x", None) == {"x": None}


@given(st.lists(NAMES, max_size=4))
def test_a_list_of_paths_is_all_text_or_all_base64(paths: list[str]) -> None:
    """One path that is not text makes the whole list base64."""
    ((name, values),) = path_list_member("x", paths).items()
    alone = [path_member("x", path) for path in paths]
    assert (name == "x") == all("x" in member for member in alone)
    decoded = [_bytes_of({name: value}) for value in values]
    assert decoded == [os.fsencode(path) for path in paths]


@given(NAMES | st.none(), st.text(st.characters(codec=None)), st.integers())
def test_an_object_is_one_line_of_utf_8(path: str | None, reason: str, number: int) -> None:
    """Any object is one line for any reader of lines, and reads back equal except for lone surrogates."""
    line = json_line("finding", path, reason=reason, number=number)

    assert line.endswith("\n")
    assert len(line.splitlines()) == 1
    read = json.loads(line.encode())
    assert next(iter(read.items())) == ("kind", "finding")
    assert read["number"] == number
    is_half = {character: "\ud800" <= character <= "\udfff" for character in reason}
    assert read["reason"] == "".join("\ufffd" if is_half[character] else character for character in reason)
    assert ("file" in read or "file_base64" in read) == (path is not None)
