# SPDX-License-Identifier: Apache-2.0
"""Decodes a record's key and value to the text that Kafka prints, and to JSON."""

import importlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, runtime_checkable

import attrs

from raftlog.errors import DecodeError
from raftlog.records.batches.legacy import LegacyRecord
from raftlog.records.batches.record import RecordView
from raftlog.records.messages.java_text import decode_utf8
from raftlog.tools.payloads.config_secrets import may_be_config_secret
from raftlog.tools.payloads.decoder_classes import class_decoder
from raftlog.tools.payloads.redaction import may_be_secret

if TYPE_CHECKING:
    from raftlog.records.messages.control import ControlRecord

AnyRecord = RecordView | LegacyRecord

TOPIC_OF_DECODER: Final = {
    "offsets": "__consumer_offsets",
    "transaction-log": "__transaction_state",
    "share-group-state": "__share_group_state",
    "cluster-metadata": "__cluster_metadata",
}
"""The topic that each decoder is for."""
DECODER_OF_TOPIC: Final = {topic: name for name, topic in TOPIC_OF_DECODER.items()}
"""The decoder for the records of each topic."""


class Payload(NamedTuple):
    """A decoded key and value.

    Attributes:
        key_text, value_text: what follows ``key:`` and ``payload:`` in Kafka's words; None if the word is missing too.
        type_name: name of the control or message type, in capitals, or None for plain bytes.
        version: the version of the message, or None.
        key_json, value_json: the decoded messages as JSON, or None to show the bytes.
        control: the control record, if it is one.
        has_secret: whether the message contains a secret.
        is_redacted: whether the value must not be shown as bytes.
        problem: the error if the record could not be decoded, else None.
    """

    key_text: str | None = None
    value_text: str | None = None
    type_name: str | None = None
    version: int | None = None
    key_json: str | None = None
    value_json: str | None = None
    control: "ControlRecord | None" = None
    has_secret: bool = False
    is_redacted: bool = False
    problem: DecodeError | None = None


class PayloadDecoder(Protocol):
    """Decodes a data record into a payload; errors become the payload's ``problem`` and are not raised."""

    def decode(self, record: AnyRecord) -> Payload:
        """Decode a record's key and value."""
        ...


@runtime_checkable
class ValueDecoder(PayloadDecoder, Protocol):
    """A decoder that shows no keys, and can decode many values at a time."""

    def value_texts(self, values: Iterable[bytes | None]) -> list[bytes]:
        """Return the text of each value as ``decode`` gives it, or empty bytes if ``decode`` must handle the value."""
        ...


@attrs.frozen
class PlainDecoder:
    """Shows keys and values as text.

    Attributes:
        redact: whether to hide a value that is a metadata record or a configuration of Connect with a secret, since its
            topic may not be known.
        is_config: whether the topic is one of Connect's configurations, where a value that cannot be read is a secret.
    """

    redact: bool = False
    is_config: bool = False

    def decode(self, record: AnyRecord) -> Payload:
        """Decode a record's key and value."""
        is_secret = (record.key is None and may_be_secret(record.value)) or may_be_config_secret(
            record.value, is_config=self.is_config
        )
        return Payload(
            key_text=None if record.key is None else decode_utf8(record.key),
            value_text=None if record.value is None else decode_utf8(record.value),
            has_secret=is_secret,
            is_redacted=is_secret and self.redact,
        )


@attrs.frozen
class UserDecoder:
    """Shows keys and values by functions of the user: as text, and as JSON.

    Attributes:
        key_decoder, value_decoder: convert bytes to an object that can be shown as text; None shows the bytes.
        redact, is_config: as in ``PlainDecoder``.
    """

    key_decoder: Callable[[bytes], object] | None
    value_decoder: Callable[[bytes], object] | None
    redact: bool = False
    is_config: bool = False

    def decode(self, record: AnyRecord) -> Payload:
        """Decode a record's key and value."""
        payload = PlainDecoder(self.redact, self.is_config).decode(record)
        value_decoder = None if payload.is_redacted else self.value_decoder
        for part, decoder, data in (("key", self.key_decoder, record.key), ("value", value_decoder, record.value)):
            if decoder is None or data is None:
                continue
            try:
                text, json_text = _text_and_json(decoder, data)
            except Exception as error:
                reason = f"the {part} decoder raised {type(error).__name__}: {error}"
                payload = payload._replace(problem=DecodeError(reason, "decoder-raised"))
            else:
                decoded: dict[str, Any] = {f"{part}_text": text, f"{part}_json": json_text}
                payload = payload._replace(**decoded)
        return payload


def _text_and_json(decoder: Callable[[bytes], object], data: bytes) -> tuple[str, str]:
    import json  # Imported here, as most dumps do not need it.

    decoded = decoder(data)
    text = str(decoded)
    text.encode()  # Raises an error if the decoder's text cannot be written.
    return text, json.dumps(decoded, default=str, allow_nan=False)


def load_decoder(name: str) -> Callable[[bytes], object] | None:
    """Return a decoder of bytes; None for a class of Kafka that shows them as text.

    Args:
        name: ``module:name`` of a Python function from bytes to an object that can be shown as text; or a class of
            Kafka.

    Raises:
        ValueError: there is no such function or class.
    """
    if ":" not in name:
        return class_decoder(name)
    module, _, attribute = name.partition(":")
    try:
        decoder = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # A module may raise anything when it is imported.
        raise ValueError(f"{name}: {type(error).__name__}: {error}") from error
    if not callable(decoder):
        raise ValueError(f"{name} is not a function")
    return decoder  # type: ignore[no-any-return]
