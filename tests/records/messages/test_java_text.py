# SPDX-License-Identifier: Apache-2.0
"""Text as Java's tools print it."""

import base64
import json
import math
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.records.messages.java_text import (
    decode_utf8,
    displayed,
    double_to_string,
    json_bytes,
    json_double,
    json_string,
    json_uuid,
)

many = settings(deadline=None)


@many
@given(st.text(st.characters(codec="utf-8")))
def test_valid_utf8_is_itself(text: str) -> None:
    """Valid UTF-8 decodes as usual, from any kind of buffer."""
    data = text.encode()
    assert decode_utf8(data) == decode_utf8(bytearray(data)) == decode_utf8(memoryview(data)) == text


@many
@given(st.binary())
def test_without_encoded_surrogates_it_is_the_usual_replacement(data: bytes) -> None:
    """Where no byte is ED, malformed parts are cut as Python does."""
    data = data.replace(b"\xed", b"\xe1")
    assert decode_utf8(data) == data.decode("utf-8", "replace")


@many
@given(st.binary())
def test_a_string_shows_the_bytes_it_came_from(data: bytes) -> None:
    """A string of a message is shown as Java decodes its bytes."""
    assert displayed(data.decode("utf-8", "surrogateescape")) == decode_utf8(data)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xed\xa0\x80", "\ufffd"),
        (b"\xed\xa0", "\ufffd"),
        (b"\xed\xa0x", "\ufffdx"),
        (b"\xed\xbf\xbf\x80", "\ufffd\ufffd"),
        (b"\xed\xa0\x80\xed\xb0\x80", "\ufffd\ufffd"),
        (b"\xed\xed\xa0\x80", "\ufffd\ufffd"),
        (b"\xe1\x80\xed\xa0\x80", "\ufffd\ufffd"),
        (b"\xed\x9f\xbf", "\ud7ff"),
        (b"\xed", "\ufffd"),
        (b"a\xff\xe2\x82b", "a\ufffd\ufffdb"),
    ],
)
def test_an_encoded_surrogate_is_one_malformed_part(data: bytes, text: str) -> None:
    """ED A0..BF and its continuation byte are replaced together."""
    assert decode_utf8(data) == text


@many
@given(st.text(st.characters(codec="utf-8")))
def test_json_strings_read_back(text: str) -> None:
    """A quoted string is JSON for the text."""
    assert json.loads(json_string(text)) == text


def test_json_strings_escape_little() -> None:
    """Quotes, backslashes and controls are escaped, in capitals; nothing else is."""
    assert json_string('"\\\b\t\n\f\r\x00\x1f') == r'"\"\\\b\t\n\f\r\u0000\u001F"'
    assert json_string("/\x7f\u2028\U0001f600") == '"/\x7f\u2028\U0001f600"'
    assert json_string("a\udcff") == '"a\ufffd"'


@many
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_read_back(value: float) -> None:
    """A double's text reads back as the same double, and has an exponent only outside 0.001 to 10 million."""
    text = double_to_string(value)
    assert math.copysign(1, float(text)) == math.copysign(1, value)
    assert float(text) == value
    assert ("E" in text) == (value != 0 and not 1e-3 <= abs(value) < 1e7)
    assert "." in text
    digits = repr(abs(value)).partition("e")[0].replace(".", "").strip("0")
    assert len(digits) <= 1 or text.partition("E")[0].lstrip("-").replace(".", "").strip("0") == digits


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (1024.0, "1024.0"),
        (1048576.0, "1048576.0"),
        (10485760.0, "1.048576E7"),
        (9999999.999999998, "9999999.999999998"),
        (1e7, "1.0E7"),
        (0.001, "0.001"),
        (0.0009, "9.0E-4"),
        (123.456, "123.456"),
        (0.0125, "0.0125"),
        (2e23, "2.0E23"),
        (5e-324, "4.9E-324"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (-1.5e-10, "-1.5E-10"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
    ],
)
def test_doubles_look_like_javas(value: float, text: str) -> None:
    """Known doubles, as Double.toString writes them from JDK 19 on; in JSON the infinities are strings."""
    assert double_to_string(value) == text
    assert json_double(value) == (text if math.isfinite(value) else f'"{text}"')


@many
@given(st.binary(), st.uuids())
def test_bytes_and_uuids_are_base64(data: bytes, value: uuid.UUID) -> None:
    """Bytes are base64 with padding; a uuid is its 16 bytes in base64url without."""
    assert base64.b64decode(json.loads(json_bytes(data))) == data
    text = json.loads(json_uuid(value))
    assert len(text) == 22
    assert base64.urlsafe_b64decode(text + "==") == value.bytes
