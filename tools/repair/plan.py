# SPDX-License-Identifier: Apache-2.0
"""The plan of a repair: what it was made of, and what is to be done, in a file that both steps use.

::

    {"kind": "raftlog-repair-plan", "version": 1, "verb": "rewrite-voters",
     "sources": [{"directory": "/disks/n1", "files": [{"name": "meta.properties", "size_bytes": 113, ...}]}],
     "content": {...}, "crc32c": 305419896}

The content is the verb's: an attrs value, whose fields are numbers, texts, and tuples of such values. The CRC covers
all but itself, so that a plan that was edited by hand is refused: what it asks for was never checked.
"""

import json
import os
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs

from raftlog.errors import CorruptFileError, LogDirectoryError, StorageError, UnsupportedVersionError
from raftlog.records.checksum import crc32c
from raftlog.storage.state.log_directory import METADATA_DIRECTORY_NAME
from raftlog.tools.own_file import is_own, write_whole
from raftlog.tools.repair.sources import Source, SourceFile
from raftlog.tools.terminal.json_lines import path_member

KIND: Final = "raftlog-repair-plan"
VERSION: Final = 1
_MAX_SIZE_BYTES: Final = 256 << 20
_HEAD: Final = f'{{\n  "kind": "{KIND}"'

C = TypeVar("C")


@attrs.frozen
class RepairPlan:
    """A plan.

    Attributes:
        verb: that made it, and carries it out.
        sources: what it was made of; the first is the directory that is kept, the others are evidence.
        content: what the verb does: members by name, of JSON values.
    """

    verb: str
    sources: tuple[Source, ...]
    content: dict[str, Any]

    @classmethod
    def of(cls, verb: str, sources: tuple[Source, ...], content: object) -> "RepairPlan":
        """Return the plan of a verb whose content is an attrs value."""
        return cls(verb, sources, _converter().unstructure(content))

    def content_as(self, kind: type[C]) -> C:
        """Return the content as the attrs value that it was made of.

        Raises:
            CorruptFileError: it is not of that kind.
        """
        from cattrs.errors import BaseValidationError

        try:
            found: C = _converter().structure(self.content, kind)
            return found
        except (BaseValidationError, KeyError, TypeError, ValueError) as error:
            raise CorruptFileError(f"not a plan of {self.verb}: {type(error).__name__}") from error

    def to_json(self) -> str:
        """Return the text of the file."""
        members = {
            "kind": KIND,
            "version": VERSION,
            "verb": self.verb,
            "sources": [_source_members(source) for source in self.sources],
            "content": self.content,
        }
        return json.dumps(members | {"crc32c": _crc(members)}, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "RepairPlan":
        """Read the text of the file.

        Raises:
            CorruptFileError: it is not a plan, or was edited.
            UnsupportedVersionError: it is a plan of another version of raftlog.
        """
        try:
            members = json.loads(text)
        except (ValueError, RecursionError):
            members = None
        if not isinstance(members, dict) or members.get("kind") != KIND:
            raise CorruptFileError("not a plan of raftlog")
        if members.get("version") != VERSION:
            raise UnsupportedVersionError(f"a plan of version {members.get('version')!r}, and {VERSION} is known")
        if members.pop("crc32c", None) != _crc(members):
            raise CorruptFileError("the plan was changed after it was made: make it again")
        try:
            sources = tuple(map(_source, members["sources"]))
            return cls(members["verb"], sources, members["content"])
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptFileError(f"a plan without {error}") from error

    def save(self, path: str) -> None:
        """Write the file, completely or not at all. An older plan is replaced, no other file is.

        Raises:
            LogDirectoryError: the path exists and is not a plan; it is unchanged.
            StorageError: it cannot be written. An older plan is unchanged.
        """
        target = Path(path)
        try:
            is_other = os.path.lexists(target) and not is_own(target, _HEAD.encode())
        except OSError as error:
            raise StorageError(path, "write", error.strerror or str(error)) from error
        if is_other:
            raise LogDirectoryError(f"{path} exists and is not a plan of raftlog: it is not overwritten")
        write_whole(path, self.to_json().encode("ascii"))


def load_plan(path: str, verb: str) -> RepairPlan:
    """Read the plan of a verb from its file.

    Raises:
        CorruptFileError: it is not a plan of that verb, or was edited.
        UnsupportedVersionError: it is a plan of another version of raftlog.
        StorageError: it cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(_MAX_SIZE_BYTES + 1)
    except OSError as error:
        raise StorageError(path, "read", error.strerror or str(error)) from error
    try:
        plan = RepairPlan.from_json(data.decode("ascii", "replace"))
    except (CorruptFileError, UnsupportedVersionError) as error:
        raise error.located(path=path) from None
    if plan.verb != verb:
        raise CorruptFileError(f"a plan of {plan.verb}, not of {verb}", path=path)
    return plan


def _crc(members: dict[str, Any]) -> int:
    return crc32c(json.dumps(members, sort_keys=True, separators=(",", ":")).encode("ascii"))


def _source_members(source: Source) -> dict[str, Any]:
    log = {} if source.log_name == METADATA_DIRECTORY_NAME else {"log": source.log_name}
    files = [attrs.asdict(file) for file in source.files]
    return {**path_member("directory", source.directory), **log, "files": files}


def _source(members: dict[str, Any]) -> Source:
    import base64

    if "directory" in members:
        directory = members["directory"]
    else:
        directory = base64.b64decode(members["directory_base64"]).decode("utf-8", "surrogateescape")
    files = tuple(SourceFile(**file) for file in members["files"])
    return Source(directory, files, members.get("log", METADATA_DIRECTORY_NAME))


def _converter() -> Any:
    from cattrs.preconf.json import make_converter  # Slow to import.

    return make_converter(forbid_extra_keys=True)
