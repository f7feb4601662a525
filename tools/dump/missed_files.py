# SPDX-License-Identifier: Apache-2.0
"""What a dump of a running node's directory lacks: segments that went away, or took the place of others, under it."""

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from raftlog.errors import MissingFileError, StorageError
from raftlog.file_paths import is_remote
from raftlog.records.files.file_names import FileKind
from raftlog.tools.dump.seek import wanted_files
from raftlog.tools.dump.selection import Selection
from raftlog.tools.input.inputs import InputFile, find_files

GONE: Final = "deleted since its directory was listed: the output lacks it"
REPLACED: Final = "put in place of others since its directory was listed: the output lacks it"


@attrs.frozen
class MissedFiles:
    """Remembers which segments were listed, and finds those that a second listing has below the last of them.

    A cleaner deletes segments before the one that it has made of them is in place. A directory that is listed between
    seems to have neither. Segments above the last one are newer than the listing, and not missed.

    Args:
        selection: what is selected from every log; None if that depends on the log.
    """

    _selection: Selection | None
    _listed: dict[str, list[InputFile]] = attrs.field(factory=dict, init=False)
    _selections: dict[str, Selection] = attrs.field(factory=dict, init=False)

    def note(self, file: InputFile) -> None:
        """Remember a file if it is a segment that was found in a local directory."""
        if file.was_listed and file.kind is FileKind.LOG and file.base_offset is not None and not is_remote(file.path):
            self._listed.setdefault(file.directory, []).append(file)

    def note_selection(self, file: InputFile, selection: Selection) -> None:
        """Remember what is selected from the log of a file."""
        self._selections[file.directory] = selection

    def found(self) -> Iterator[InputFile | StorageError]:
        """List all directories again, and yield the segments that were missed; an error if that is impossible.

        Of a directory that is gone, each segment was read, or reported when it was to be read.
        """
        for directory, listed in self._listed.items():
            missed: list[InputFile] = []
            for file in find_files([directory], all_kinds=False):
                if isinstance(file, InputFile):
                    missed += [file] if _is_missed(file, listed) else []
                elif not isinstance(file, MissingFileError):
                    yield file
            if missed and (selection := self._selections.get(directory, self._selection)) is not None:
                all_files = sorted([*listed, *missed], key=_base_offset)
                yield from (file for file, _ in wanted_files(all_files, selection, None) if file in missed)


def _is_missed(file: InputFile, listed: Sequence[InputFile]) -> bool:
    is_segment = file.kind is FileKind.LOG and file.base_offset is not None
    offsets = set(map(_base_offset, listed))
    return is_segment and _base_offset(file) < max(offsets) and _base_offset(file) not in offsets


def _base_offset(file: InputFile) -> int:
    return -1 if file.base_offset is None else file.base_offset
