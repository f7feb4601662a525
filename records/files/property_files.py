# SPDX-License-Identifier: Apache-2.0
r"""``meta.properties``, which identifies a log directory's node, and ``partition.metadata``, which identifies a topic.

::

    #                                     meta.properties is a file of Java properties
    #Sat Nov 21 10:49:43 UTC 2026
    node.id=1                             broker.id in version 0
    directory.id=3PbC-lOLRFo6CVJVw2Qd_A
    version=1
    cluster.id=MkU3OEVBNTcwNTJENDM2Qg

    version: 0\n                          partition.metadata, without a newline at its end
    topic_id: AAAAAAAAAAAAAAAAAAAAAQ

Source: MetaProperties, PropertiesUtils, java.util.Properties, PartitionMetadataFile.
"""

import re
import uuid
from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from raftlog.errors import DecodeError, UnsupportedVersionError
from raftlog.invariants import present
from raftlog.uuid_text import ZERO_UUID, uuid_from_text, uuid_to_text

_INT32_MAX = (1 << 31) - 1
_NUMBER = re.compile(r"-?[0-9]{1,10}")


@attrs.frozen
class Property:
    """One key and value of a properties file, unescaped, and the byte position of its line if it was read."""

    key: str
    value: str
    position: int | None = attrs.field(default=None, eq=False)


@attrs.frozen
class JavaProperties:
    """A properties file: its complete comment lines, and its properties in order."""

    comments: tuple[str, ...] = ()
    properties: tuple[Property, ...] = ()

    def by_key(self) -> dict[str, Property]:
        """Return the properties by key; if a key occurs twice, the later property wins, as in Java."""
        return {each.key: each for each in self.properties}


@attrs.frozen
class MetaProperties:
    """The contents of ``meta.properties``.

    Attributes:
        version: 0 or 1.
        cluster_id: the cluster; None only in version 0.
        node_id: the node, called broker id in version 0; None only in version 0.
        directory_id: the id of this directory, or None.
        others: all other keys and values, in order.

    Raises:
        UnsupportedVersionError: the version is not 0 or 1.
        ValueError: the node id does not fit in 32 bits, or version 1 lacks its cluster or node id.
    """

    version: int
    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: uuid.UUID | None = None
    others: tuple[tuple[str, str], ...] = ()

    def __attrs_post_init__(self) -> None:
        if self.version not in (0, 1):
            raise UnsupportedVersionError(f"unknown meta.properties version {self.version}")
        if self.version == 1 and (self.cluster_id is None or self.node_id is None):
            raise ValueError("cluster.id or node.id is missing")
        if self.node_id is not None and not -_INT32_MAX - 1 <= self.node_id <= _INT32_MAX:
            raise ValueError(f"not a node id: {self.node_id}")


@attrs.frozen
class PartitionMetadata:
    """The contents of ``partition.metadata``: its version, and the id of the topic.

    Raises:
        ValueError: the version is negative or does not fit in 32 bits, or the topic id is zero.
    """

    version: int
    topic_id: uuid.UUID

    def __attrs_post_init__(self) -> None:
        if not 0 <= self.version <= _INT32_MAX:
            raise ValueError(f"not a version: {self.version}")
        if self.topic_id == ZERO_UUID:
            raise ValueError("the topic id is zero")


def read_meta_properties(data: bytes) -> MetaProperties:
    """Read ``meta.properties``; without a version it is version 0, as in Kafka.

    Raises:
        DecodeError: the file is not a Java properties file, or a required property is missing or malformed.
        UnsupportedVersionError: the version is not 0 or 1.
    """
    known = read_java_properties(data).by_key()
    version = known.pop("version", None)
    number = _number(version) if version else 0
    node_id = known.pop(_node_key(number), None)
    cluster_id = known.pop("cluster.id", None)
    directory_id = known.pop("directory.id", None)
    try:
        return MetaProperties(
            number,
            cluster_id=cluster_id.value if cluster_id else None,
            node_id=_number(node_id) if node_id else None,
            directory_id=_uuid(directory_id) if directory_id else None,
            others=tuple((key, each.value) for key, each in known.items()),
        )
    except UnsupportedVersionError as error:
        error.rule = "file-format"
        raise error.located(position=version.position if version else 0) from None
    except ValueError as error:
        raise DecodeError(str(error), "file-format", position=0) from None


def write_meta_properties(meta: MetaProperties, comments: Iterable[str] = ("#",)) -> bytes:
    """Return the bytes of ``meta.properties`` as Kafka writes them.

    Args:
        meta: the contents.
        comments: the lines at the top; Java writes ``#`` and a line with the date.

    Raises:
        ValueError: a comment is not one line that starts with ``#`` or ``!``.
    """
    # Kafka writes the keys in the order of Java's hash table. This is that order, for all keys that exist.
    in_order = {
        _node_key(meta.version): None if meta.node_id is None else str(meta.node_id),
        "directory.id": None if meta.directory_id is None else uuid_to_text(meta.directory_id),
        "version": str(meta.version),
        "cluster.id": meta.cluster_id,
    }
    known = [Property(key, value) for key, value in in_order.items() if value is not None]
    others = [Property(key, value) for key, value in meta.others]
    return write_java_properties(JavaProperties(tuple(comments), (*known, *others)))


def read_partition_metadata(data: bytes) -> PartitionMetadata:
    """Read ``partition.metadata``. Like Kafka, accept any non-negative version, and ignore lines after the second.

    Raises:
        DecodeError: the file is malformed, or its topic id is zero.
    """
    lines = data.splitlines(keepends=True)[:2]
    if len(lines) < 2:
        raise DecodeError(f"{len(lines)} lines, not 2", "file-format", position=len(data))
    version = _labelled(lines[0], "version", 0)
    topic_id = _labelled(lines[1], "topic_id", len(lines[0]))
    try:
        return PartitionMetadata(_number(version), _uuid(topic_id))
    except ValueError as error:
        raise DecodeError(str(error), "file-format", position=0) from None


def write_partition_metadata(metadata: PartitionMetadata) -> bytes:
    """Return the bytes of ``partition.metadata`` as Kafka writes them."""
    return f"version: {metadata.version}\ntopic_id: {uuid_to_text(metadata.topic_id)}".encode()


_LINE_END = re.compile(r"\r\n|\r|\n")
_BLANK: Final = " \t\f"
_KEY_AND_VALUE = re.compile(r"((?:[^\\=: \t\f]|\\.)*)[ \t\f]*(?:[=:][ \t\f]*)?(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_ESCAPED_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_CONTROL_ESCAPED = {control: f"\\{letter}" for letter, control in _ESCAPED_CONTROL.items()}


def read_java_properties(data: bytes) -> JavaProperties:
    r"""Read any properties file: comments, continued lines, ``=``, ``:`` or a blank between key and value, and escapes.

    The bytes are ISO 8859-1, as for Java's reader.

    Raises:
        DecodeError: a ``\\u`` is not followed by four hexadecimal digits, or is half of a surrogate pair.
    """
    comments: list[str] = []
    properties: list[Property] = []
    for position, line, is_comment in _logical_lines(data.decode("latin-1")):
        if is_comment:
            comments.append(line)
            continue
        # A backslash at the end was removed before, and all other text matches.
        match = present(_KEY_AND_VALUE.fullmatch(line), "a line as key and value")
        properties.append(Property(_unescape(match[1], position), _unescape(match[2], position), position))
    return JavaProperties(tuple(comments), tuple(properties))


def write_java_properties(file: JavaProperties) -> bytes:
    r"""Return the bytes of a properties file, comments first.

    Characters other than printable ASCII are written as ``\\u`` escapes. Kafka writes them as UTF-8, and reads them
    back as other text; nothing that Kafka puts in ``meta.properties`` needs either.

    Raises:
        ValueError: a comment is not one line of ISO 8859-1 that starts with ``#`` or ``!``, or a value has half of a
            surrogate pair.
    """
    for comment in file.comments:
        if comment[:1] not in ("#", "!") or _LINE_END.search(comment):
            raise ValueError(f"not a comment: {comment!r}")
    lines = [f"{_escape(each.key, in_key=True)}={_escape(each.value, in_key=False)}" for each in file.properties]
    return "".join(f"{line}\n" for line in (*file.comments, *lines)).encode("latin-1")


def _logical_lines(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield each comment and each property, joined from its lines: position, text, whether it is a comment."""
    start = 0
    pieces: list[str] = []
    for position, line in _natural_lines(text):
        if not pieces:
            if line[:1] in ("#", "!"):
                yield position, line, True
                continue
            start = position
        backslashes = len(line) - len(line.rstrip("\\"))
        pieces.append(line[:-1] if backslashes % 2 else line)
        if backslashes % 2 == 0:
            if any(pieces):
                yield start, "".join(pieces), False
            pieces = []
    if any(pieces):
        yield start, "".join(pieces), False


def _natural_lines(text: str) -> Iterator[tuple[int, str]]:
    position = 0
    for end in _LINE_END.finditer(text):
        yield position, text[position : end.start()].lstrip(_BLANK)
        position = end.end()
    yield position, text[position:].lstrip(_BLANK)


def _unescape(text: str, position: int) -> str:
    def replacement(match: re.Match[str]) -> str:
        escaped = match[1]
        if escaped == "u":
            raise DecodeError("a \\u without four hexadecimal digits", "file-format", position=position)
        if len(escaped) > 1:
            return chr(int(escaped[1:], 16))
        return _ESCAPED_CONTROL.get(escaped, escaped)

    unescaped = _ESCAPE.sub(replacement, text)
    try:
        return unescaped.encode("utf-16-be", "surrogatepass").decode("utf-16-be")
    except UnicodeDecodeError:
        raise DecodeError("half of a surrogate pair", "file-format", position=position) from None


def _escape(text: str, *, in_key: bool) -> str:
    escaped = "".join([_escape_character(character) for character in text])
    if in_key:
        return escaped.replace(" ", "\\ ")
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


def _escape_character(character: str) -> str:
    if character in "\\=:#!":
        return f"\\{character}"
    if character in _CONTROL_ESCAPED:
        return _CONTROL_ESCAPED[character]
    if " " <= character <= "~":
        return character
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02X}{units[at + 1]:02X}" for at in range(0, len(units), 2))


def _node_key(version: int) -> str:
    return "broker.id" if version == 0 else "node.id"


def _labelled(line: bytes, label: str, position: int) -> Property:
    match = re.fullmatch(rf"{label}:\s+(\S+)\s*", line.decode("latin-1"))
    if match is None:
        raise DecodeError(f"not a line of {label}: {line[:80]!r}", "file-format", position=position)
    return Property(label, match[1], position)


def _number(each: Property) -> int:
    if not _NUMBER.fullmatch(each.value):
        raise DecodeError(f"{each.key} is not a number: {each.value[:40]!r}", "file-format", position=each.position)
    return int(each.value)


def _uuid(each: Property) -> uuid.UUID:
    try:
        return uuid_from_text(each.value)
    except ValueError as error:
        raise DecodeError(f"{each.key} is {error}", "file-format", position=each.position) from None
