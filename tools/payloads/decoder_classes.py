# SPDX-License-Identifier: Apache-2.0
"""Decoders of keys and values by the names of Kafka's classes.

Source: org.apache.kafka.tools.api (kafka.serializer before 3.8), for kafka-dump-log, and the deserializers of
org.apache.kafka.common.serialization, for consumers.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from raftlog.tools.terminal.suggestion import suggestion

Decoder = Callable[[bytes], object]
"""Converts bytes to an object that can be shown as text."""

_DECODER_PACKAGES: Final = ("org.apache.kafka.tools.api", "kafka.serializer")
_DESERIALIZER_PACKAGE: Final = "org.apache.kafka.common.serialization"


def class_decoder(name: str) -> Decoder | None:
    """Return the decoder for a class of Kafka; None for a class that shows bytes as text, which is the default.

    Args:
        name: the class name with its package, or the short name of a decoder: String, Default, Integer, Long.

    Raises:
        ValueError: there is no such class.
    """
    try:
        return _DECODERS[name]
    except KeyError:
        near = suggestion(name, _DECODERS)
        known = f"it knows {', '.join(_SHORT)} and MODULE:NAME of Python"
        hint = known if near is None else f"did you mean {near}?"
        raise ValueError(f"{name}: raftlog has no such decoder; {hint}") from None


def _number(data: bytes, size: int, name: str, *, may_be_longer: bool) -> int:
    """Read a signed number, most significant byte first.

    A decoder ignores bytes after the number, as ``ByteBuffer`` does; a deserializer refuses them.
    """
    if len(data) < size or (len(data) > size and not may_be_longer):
        raise ValueError(f"{len(data)} bytes, and {name} takes {size}")
    return int.from_bytes(data[:size], "big", signed=True)


def _decoders() -> dict[str, Decoder | None]:
    decoders: dict[str, Decoder | None] = {}
    for kind, size in _SHORT.items():
        decoder = partial(_number, size=size, name=f"{kind}Decoder", may_be_longer=True) if size else None
        decoders |= {kind: decoder} | {f"{package}.{kind}Decoder": decoder for package in _DECODER_PACKAGES}
    for kind, size in _DESERIALIZED.items():
        name = f"{kind}Deserializer"
        decoder = partial(_number, size=size, name=name, may_be_longer=False) if size else None
        decoders[f"{_DESERIALIZER_PACKAGE}.{name}"] = decoder
    return decoders


_SHORT: Final = {"String": 0, "Default": 0, "Integer": 4, "Long": 8}
"""Kafka's decoders, and the size in bytes of the number that each reads; 0 for text and bytes."""
_DESERIALIZED: Final = {"String": 0, "ByteArray": 0, "Bytes": 0, "ByteBuffer": 0, "Short": 2, "Integer": 4, "Long": 8}
_DECODERS: Final = _decoders()
