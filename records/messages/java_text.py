# SPDX-License-Identifier: Apache-2.0
"""Text as Kafka's Java tools print it: decoded bytes, JSON strings, doubles, base64.

A string that was read from a message keeps invalid UTF-8 as lone surrogates (``surrogateescape``), so that it can be
written back. Only rendering turns it into the text that Java would show.
"""

import binascii
import math
import re
import uuid

from raftlog.uuid_text import uuid_to_text

_ENCODED_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_REPLACEMENT = "\ufffd".encode()

_ESCAPED = re.compile(r'["\\\x00-\x1f]')
_ESCAPES = {chr(code): f"\\u{code:04X}" for code in range(0x20)}
_ESCAPES |= {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def decode_utf8(data: bytes | bytearray | memoryview) -> str:
    """Decode bytes as Java's ``new String(bytes, UTF_8)`` does: each malformed part becomes one U+FFFD.

    Malformed parts are delimited as Unicode recommends and Python does, with one exception: an encoded surrogate (ED
    A0..BF, with the continuation byte that follows, if there is one) is a single part.
    """
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        return _ENCODED_SURROGATE.sub(_REPLACEMENT, bytes(data)).decode("utf-8", "replace")


def displayed(text: str) -> str:
    """Return the text that Java would show for a message's string; lone surrogates are bytes that were not UTF-8."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return decode_utf8(text.encode("utf-8", "surrogateescape"))
    return text


def json_string(text: str) -> str:
    """Quote a string of a message for JSON: only ``"``, the backslash and controls below 0x20 are escaped."""
    return f'"{_ESCAPED.sub(_escape, displayed(text))}"'


def _escape(match: re.Match[str]) -> str:
    return _ESCAPES[match.group()]


def double_to_string(value: float) -> str:
    """Write a double as Java's ``Double.toString`` does from JDK 19 on: the shortest digits that read back.

    From 0.001 up to 10 million it is plain, with at least one digit after the point; otherwise it has an exponent.
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign, digits, exponent = _shortest(value)
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return _plain(sign, digits, exponent)
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _shortest(value: float) -> tuple[str, str, int]:
    """Split a double into sign, significant digits (without trailing zeros) and the power of ten of the first digit."""
    # Java prefers the closest two digits even if one digit suffices: 4.9E-324, for Python's 5e-324.
    two_digits = format(value, ".1e")
    digits, exponent = _digits(two_digits if float(two_digits) == value else repr(value))
    return "-" if math.copysign(1, value) < 0 else "", digits, exponent


def _digits(number: str) -> tuple[str, int]:
    """Return the significant digits of a decimal, and the power of ten of the first."""
    mantissa, _, power = number.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading_zeros = len(whole + fraction) - len(digits)
    return digits.rstrip("0") or "0", (len(whole) - 1 - leading_zeros + int(power or 0)) if digits else 0


def _plain(sign: str, digits: str, exponent: int) -> str:
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    return f"{sign}{whole}.{digits[exponent + 1 :] or '0'}"


def json_double(value: float) -> str:
    """Write a double for JSON: NaN and the infinities as strings."""
    text = double_to_string(value)
    return text if math.isfinite(value) else f'"{text}"'


def json_bytes(value: bytes) -> str:
    """Quote bytes for JSON in base64, with padding."""
    return f'"{binascii.b2a_base64(value, newline=False).decode()}"'


def json_uuid(value: uuid.UUID) -> str:
    """Quote a uuid for JSON."""
    return f'"{uuid_to_text(value)}"'
