# SPDX-License-Identifier: Apache-2.0
"""Uuids as Kafka writes them: 22 characters of URL-safe base64, without padding.

The zero uuid, ``AAAAAAAAAAAAAAAAAAAAAA``, means "no id" wherever an id may be absent.
"""

import base64
import re
import uuid
from typing import Final

ZERO_UUID: Final = uuid.UUID(int=0)
"""What Kafka writes for an absent id."""

_TEXT = re.compile(r"[A-Za-z0-9_-]{22}(?:==)?", re.ASCII)


def uuid_to_text(value: uuid.UUID) -> str:
    """Write a uuid as Kafka does.

    Source: Uuid#toString.
    """
    return base64.urlsafe_b64encode(value.bytes)[:22].decode("ascii")


def uuid_from_text(text: str) -> uuid.UUID:
    """Read a uuid as leniently as Kafka: with or without ``==`` padding, and with any spare bits in the last character.

    Raises:
        ValueError: the text is not 22 characters of URL-safe base64.

    Source: Uuid#fromString.
    """
    if not _TEXT.fullmatch(text):
        raise ValueError(f"not a uuid in base64: {text[:40]!r}")
    return uuid.UUID(bytes=base64.urlsafe_b64decode(text[:22] + "=="))
