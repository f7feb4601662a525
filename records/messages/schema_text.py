# SPDX-License-Identifier: Apache-2.0
"""Parses ``schemas/*.txt``, which have one line per field. The head of each file describes the notation."""

import re
from typing import Any, Final

import attrs

from raftlog.records.messages.primitives import FIXED_FORMATS
from raftlog.records.messages.releases import LEVELS
from raftlog.uuid_text import ZERO_UUID

NEWEST: Final = LEVELS[-1]

UNKNOWN_TAGS: Final = "unknownTaggedFields"
"""The key under which a message keeps tagged fields that its schema does not have: a dict of tag to bytes."""

_NO_END = 0x7FFF
_FIELD = re.compile(r"(\w+): (\[\])?(\w+)")


@attrs.frozen
class Versions:
    """A range of versions, both ends inclusive."""

    lowest: int
    highest: int

    def __contains__(self, version: int) -> bool:
        return self.lowest <= version <= self.highest

    def nearest(self, version: int) -> int:
        """Return the version of the range that is nearest to ``version``."""
        return max(self.lowest, min(version, self.highest))

    @classmethod
    def parse(cls, text: str) -> "Versions":
        """Read ``2``, ``0-4``, ``1+`` or ``none``."""
        if text == "none":
            return NEVER
        lowest, _, highest = text.partition("-")
        if lowest.endswith("+"):
            return cls(int(lowest[:-1]), _NO_END)
        return cls(int(lowest), int(highest or lowest))


NEVER: Final = Versions(1, 0)
ALWAYS: Final = Versions(0, _NO_END)


@attrs.frozen(eq=False)
class Field:
    """One field of a struct.

    Attributes:
        type: the type, or that of an item if the field is an array; ``struct`` for a struct.
        struct: the struct, or None.
        tag: the tag, or None if the field is never tagged.
        tagged: the versions in which it is a tagged field.
        default: the value of an absent field; for a struct, the defaults of its fields. Copy it before passing it on.
        has_default_note: whether the schema states the default; otherwise it follows from the type.
        ignorable: whether a version that lacks the field drops its value without error.
        flexible: False if the field keeps the classic form in flexible versions too.
        since: the first level whose readers know the field.
    """

    name: str
    type: str
    is_array: bool
    struct: "Struct | None"
    versions: Versions
    nullable: Versions
    tag: int | None
    tagged: Versions
    default: Any
    has_default_note: bool
    ignorable: bool
    flexible: bool
    since: str


@attrs.frozen(eq=False)
class Struct:
    """A named group of fields.

    Attributes:
        is_shared: whether it is defined by ``struct X``. Kafka's readers of such structs do not check the version.
    """

    name: str
    fields: tuple[Field, ...]
    is_shared: bool = False

    def defaults(self) -> dict[str, Any]:
        """Make a value with every field at its default."""
        return {field.name: fresh(field.default) for field in self.fields}


@attrs.frozen(eq=False)
class MessageSchema:
    """A message: its struct, and the properties in its heading.

    Attributes:
        kind: ``rpc``, ``header``, ``data``, ``metadata``, ``coordinator``, ``mirror``, ``storage``, ``embedded`` or
            ``json file``.
        topic: for coordinator records, the topic that has them.
        api_key: the number that identifies it in frames, or None.
        flexible: the versions with compact lengths and tagged fields.
        since: the first level whose readers know it.
    """

    kind: str
    topic: str | None
    api_key: int | None
    versions: Versions
    flexible: Versions
    since: str
    struct: Struct

    @property
    def name(self) -> str:
        """The name, as Kafka spells it."""
        return self.struct.name

    def versions_at(self, level: str) -> Versions:
        """Return the versions that readers of a level know, without versions that exist only for newer fields."""
        newer = [field.versions.lowest for field in self.struct.fields if not knows(level, field.since)]
        opened = [lowest for lowest in newer if lowest > max(self.versions.lowest, self.flexible.lowest)]
        return Versions(self.versions.lowest, min([self.versions.highest + 1, *opened]) - 1)


def knows(level: str, since: str) -> bool:
    """Return whether readers of ``level`` know what the level ``since`` introduced."""
    return LEVELS.index(level) >= LEVELS.index(since)


def fresh(default: Any) -> Any:
    """Copy a default, so that the caller may change it."""
    if isinstance(default, dict):
        return {name: fresh(value) for name, value in default.items()}
    return list(default) if isinstance(default, list) else default


@attrs.frozen
class _Line:
    """A line without its comment, its notes, and the lines indented under it."""

    text: str
    notes: dict[str, str]
    children: "list[_Line]"

    def versions(self, note: str, default: Versions) -> Versions:
        return Versions.parse(self.notes[note]) if note in self.notes else default


def parse_schemas(text: str) -> dict[str, MessageSchema]:
    """Read all messages of a text, by name.

    Raises:
        ValueError: a line is not in the notation.
    """
    messages = (_message(line) for line in _tree(text))
    return {message.name: message for message in messages}


def _tree(text: str) -> list[_Line]:
    top: list[_Line] = []
    open_lists = [top]
    for raw in text.splitlines():
        head, _, notes = raw.partition(";")
        if not head.strip() or head.startswith("#"):
            continue
        depth = (len(head) - len(head.lstrip())) // 2
        line = _Line(head.strip(), _notes(notes), [])
        del open_lists[depth + 1 :]
        open_lists[depth].append(line)
        open_lists.append(line.children)
    return top


def _notes(text: str) -> dict[str, str]:
    words = (note.strip().partition(" ") for note in text.split(",") if note.strip())
    return {word: rest for word, _, rest in words}


def _message(line: _Line) -> MessageSchema:
    shared = {child.text.removeprefix("struct "): child.children for child in line.children if _is_struct(child)}
    kind, rest = next(iter(line.notes.items()))
    return MessageSchema(
        kind=f"{kind} {rest}".strip(),
        topic=line.notes.get("topic"),
        api_key=int(line.notes["key"]) if "key" in line.notes else None,
        versions=Versions.parse(line.notes["versions"]),
        flexible=Versions.parse(line.notes["flexible"]),
        since=line.notes.get("since", LEVELS[0]),
        struct=_struct(line.text, line.children, shared),
    )


def _is_struct(line: _Line) -> bool:
    return line.text.startswith("struct ")


def _struct(name: str, lines: list[_Line], shared: dict[str, list[_Line]]) -> Struct:
    is_shared = not lines and name in shared
    own = shared[name] if is_shared else lines
    return Struct(name, tuple(_field(line, shared) for line in own if not _is_struct(line)), is_shared)


def _field(line: _Line, shared: dict[str, list[_Line]]) -> Field:
    match = _FIELD.fullmatch(line.text)
    if match is None:
        raise ValueError(f"not a field: {line.text!r}")
    name, array, type_name = match.groups()
    struct = None
    if type_name[0].isupper():
        struct = _struct(type_name, line.children, shared)
    tag, _, tagged = line.notes.get("tag", "").partition(" in ")
    return Field(
        name=name,
        type="struct" if struct else type_name,
        is_array=array is not None,
        struct=struct,
        versions=line.versions("in", ALWAYS),
        nullable=line.versions("nullable", NEVER),
        tag=int(tag) if tag else None,
        tagged=Versions.parse(tagged) if tag else NEVER,
        default=_default(line.notes.get("default"), "array" if array else type_name, struct),
        has_default_note="default" in line.notes,
        ignorable="ignorable" in line.notes,
        flexible=line.notes.get("flexible") != "none",
        since=line.notes.get("since", LEVELS[0]),
    )


def _default(text: str | None, type_name: str, struct: Struct | None) -> Any:
    if text == "null":
        return None
    if type_name == "array":
        return []
    if struct is not None:
        return struct.defaults()
    if type_name == "bool":
        return text == "true"
    if type_name in FIXED_FORMATS:
        return float(text or 0) if type_name == "float64" else int(text or "0", 0)
    return {"string": "", "bytes": b"", "records": b"", "uuid": ZERO_UUID}[type_name]
