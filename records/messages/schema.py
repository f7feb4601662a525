# SPDX-License-Identifier: Apache-2.0
"""Reads, writes and prints messages by name.

A message is a plain dict of the schema's field names to values: int, bool, float, str, bytes, uuid.UUID, list, dict or
None. Reading returns every field of the schema, with defaults for those that the version lacks; writing fills in
defaults for missing fields. Tagged fields that the schema does not know are kept under ``UNKNOWN_TAGS`` and written
back.

>>> vote = message_type("VoteResponse")
>>> vote.write({"errorCode": 3}, version=2).hex()
'00030100'
>>> vote.to_json(vote.decode(bytes.fromhex("00030100"), version=2), version=2)
'{"errorCode":3,"topics":[]}'

Readers, writers and renderers are compiled on first use, once per version. Writers and renderers are also imported on
first use, since reading a log needs neither.
"""

import errno
import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from raftlog.errors import InvalidRecordError, StorageError, TooManyOpenFilesError, UnsupportedVersionError
from raftlog.invariants import present
from raftlog.records.messages.primitives import RULE, Buffer, Reader, Writer
from raftlog.records.messages.schema_reader import compile_reader
from raftlog.records.messages.schema_text import (
    NEWEST,
    UNKNOWN_TAGS,
    MessageSchema,
    Versions,
    knows,
    parse_schemas,
)

if TYPE_CHECKING:
    from raftlog.records.messages.message_json import Renderer
    from raftlog.records.messages.schema_json import JsonReader

__all__ = [
    "FILES",
    "NEWEST",
    "UNKNOWN_TAGS",
    "Message",
    "MessageType",
    "UnknownTags",
    "message_type",
    "message_types",
]

Message = dict[str, Any]

UnknownTags = tuple[tuple[int, bytes], ...]
"""Tagged fields that the schema does not have, by ascending tag, as typed values keep them; they are written back."""

FILES: Final = ("control-records", "metadata-records", "coordinator-records", "mirror-records", "raft-rpcs")
"""The schema texts, each parsed when one of its messages is first requested."""


class MessageType:
    """One kind of message, in all its versions."""

    def __init__(self, schema: MessageSchema) -> None:
        self.schema = schema
        self._readers: dict[tuple[int, str], Reader] = {}
        self._writers: dict[int, Writer] = {}
        self._renderers: dict[int, Renderer] = {}
        self._json_readers: dict[tuple[int, str], JsonReader] = {}

    def __repr__(self) -> str:
        return f"<MessageType {self.name} {self.versions.lowest}-{self.versions.highest}>"

    @property
    def name(self) -> str:
        """The name, as Kafka spells it."""
        return self.schema.name

    @property
    def api_key(self) -> int | None:
        """The number that identifies the message in frames, or None."""
        return self.schema.api_key

    @property
    def versions(self) -> Versions:
        """The versions that can be read and written."""
        return self.schema.versions

    @property
    def flexible(self) -> Versions:
        """The versions with compact lengths and tagged fields."""
        return self.schema.flexible

    def is_known(self, level: str) -> bool:
        """Return whether readers of a Kafka release know the message."""
        return knows(level, self.schema.since)

    def default(self) -> Message:
        """Make a message with every field at its default."""
        return self.schema.struct.defaults()

    def reader(self, version: int, level: str = NEWEST, *, nearest: bool = False) -> Reader:
        """Return the function ``read(buffer, position) -> (message, position after it)`` of a version.

        Args:
            version: the version.
            level: the Kafka release to read as; its readers treat newer tagged fields as unknown.
            nearest: read a version that the level does not know by the nearest layout, as Kafka's readers do. Above the
                highest known version, an element of a nested struct is then an error.

        Raises:
            UnsupportedVersionError: the level does not know the version.
        """
        known = self._readers.get((version, level))
        if known is not None:
            return known
        if version not in self.schema.versions_at(level):
            if not nearest:
                raise self._unknown(version)
            return compile_reader(self.schema, version, level)  # not kept: there are too many wrong versions
        return self._readers.setdefault((version, level), compile_reader(self.schema, version, level))

    def read(self, buffer: Buffer, position: int = 0, *, version: int, level: str = NEWEST) -> tuple[Message, int]:
        """Read a message, and return it with the position after it. Bytes may follow.

        Raises:
            UnsupportedVersionError: the version is not known.
            InvalidRecordError: a field breaks the format.
            TruncatedBatchError: the bytes end inside the message.
        """
        return self.reader(version, level)(buffer, position)

    def decode(self, data: Buffer, *, version: int, level: str = NEWEST) -> Message:
        """Read a message that must fill the bytes.

        Raises:
            UnsupportedVersionError: the version is not known.
            InvalidRecordError: a field breaks the format, or bytes are left over.
            TruncatedBatchError: the bytes end inside the message.
        """
        message, end = self.read(data, version=version, level=level)
        if end != len(data):
            raise InvalidRecordError(f"{len(data) - end} bytes are left after {self.name}", RULE, position=end)
        return message

    def write(self, message: Message, *, version: int) -> bytes:
        """Write a message; missing fields are written with their defaults.

        Raises:
            UnsupportedVersionError: the version is not known, or lacks a field that is not at its default.
            InvalidRecordError: a field is unknown or takes another value.
        """
        write = self._writers.get(version)
        if write is None:
            if version not in self.versions:
                raise self._unknown(version)
            from raftlog.records.messages.schema_writer import compile_writer

            write = self._writers.setdefault(version, compile_writer(self.schema, version))
        out = bytearray()
        write(out, message)
        return bytes(out)

    def to_json(self, message: Message, *, version: int) -> str:
        """Render a message as Kafka's tools print it; an unknown version is shown as the nearest known one."""
        shown = self.versions.nearest(version)
        render = self._renderers.get(shown)
        if render is None:
            from raftlog.records.messages.message_json import compile_renderer

            render = self._renderers.setdefault(shown, compile_renderer(self.schema, shown))
        return render(message)

    def json_reader(self, version: int, level: str = NEWEST) -> "JsonReader":
        """Return a fast function ``read(data, position) -> (JSON, position after it)``.

        It returns the same as ``reader`` and ``to_json`` together, or None for an unusual message, which they must
        read.

        Raises:
            UnsupportedVersionError: the level does not know the version.
        """
        known = self._json_readers.get((version, level))
        if known is not None:
            return known
        if version not in self.schema.versions_at(level):
            raise self._unknown(version)
        from raftlog.records.messages.schema_json import compile_json_reader

        return self._json_readers.setdefault((version, level), compile_json_reader(self.schema, version, level))

    def to_object(self, message: Message, *, version: int) -> dict[str, Any]:
        """Return what ``to_json`` renders, as JSON values: uuids and bytes are text."""
        import json

        rendered: dict[str, Any] = json.loads(self.to_json(message, version=version))
        return rendered

    def _unknown(self, version: int) -> UnsupportedVersionError:
        return UnsupportedVersionError(f"{self.name} has no version {version}", "message-version")


@functools.cache
def message_types(file: str) -> Mapping[str, MessageType]:
    """Return all messages of one schema text, by name.

    Args:
        file: a name in FILES; or ``early-share-records``, which has other layouts of messages that a text in FILES has
            too.

    Raises:
        TooManyOpenFilesError: the process has no file descriptor left to read the text; try again later.
        StorageError: the text cannot be read.
    """
    import pkgutil  # Imported on first use; importlib.resources would take five times as long.

    name = f"{file}.txt"
    try:
        text = pkgutil.get_data("raftlog.records.messages.schemas", name)
    except OSError as error:
        kind = TooManyOpenFilesError if error.errno in (errno.EMFILE, errno.ENFILE) else StorageError
        raise kind(name, "open", error.strerror or str(error)) from error
    schemas = parse_schemas(present(text, name).decode("utf-8"))
    return {name: MessageType(schema) for name, schema in schemas.items()}


@functools.cache
def message_type(name: str) -> MessageType:
    """Return the message type of a name, such as ``VoteRequest``.

    Raises:
        LookupError: there is none.
    """
    for file in FILES:
        if name in message_types(file):
            return message_types(file)[name]
    raise LookupError(f"no message is called {name}")
