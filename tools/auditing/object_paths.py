# SPDX-License-Identifier: Apache-2.0
"""Paths of results in an object store, with the few methods of ``pathlib.Path`` that an audit's output needs.

An object appears whole, when its writer closes it: that takes the place of writing to another name and renaming.
"""

import contextlib
import fnmatch
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs

from raftlog.errors import MissingFileError
from raftlog.file_paths import is_remote, join_path, name_of
from raftlog.storage.reading.remote_file_system import locate_remote, remote_failure

T = TypeVar("T")
_STORES: Final = frozenset({"s3", "gcs", "abfs"})
"""Kinds of file systems without directories of their own."""


@attrs.frozen
class ObjectPath:
    """A path in an object store, or in another remote file system.

    Attributes:
        uri: of the path, without credentials.

    Every method raises a ``StorageError`` that names the path if the store fails.
    """

    uri: str

    def __str__(self) -> str:
        return self.uri

    def __truediv__(self, name: str) -> "ObjectPath":
        return ObjectPath(join_path(self.uri, name))

    @property
    def name(self) -> str:
        """The last part."""
        return name_of(self.uri)

    @property
    def stem(self) -> str:
        """The last part, without its suffix."""
        return self.name.rpartition(".")[0] or self.name

    def mkdir(self, *, parents: bool = True, exist_ok: bool = True) -> None:
        """Make a directory with its parents, where the store has directories."""
        self._do("write", lambda store, key: None if store.type_name in _STORES else store.create_dir(key))

    def exists(self) -> bool:
        """Whether there is anything."""
        from pyarrow.fs import FileType

        found = self._do("open", lambda store, key: store.get_file_info([key])[0])
        return bool(found.type != FileType.NotFound)

    def iterdir(self) -> Iterator["ObjectPath"]:
        """Yield what is directly in a directory; nothing if there is none."""
        from pyarrow.fs import FileSelector

        infos = self._do("list", lambda store, key: store.get_file_info(FileSelector(key, allow_not_found=True)))
        yield from (self / info.base_name for info in infos)

    def glob(self, pattern: str) -> Iterator["ObjectPath"]:
        """Yield what is directly in a directory and has a name that matches."""
        return (path for path in self.iterdir() if fnmatch.fnmatchcase(path.name, pattern))

    def read_bytes(self) -> bytes:
        """Return the content of a file."""

        def read(store: Any, key: str) -> bytes:
            with store.open_input_file(key) as file:
                content: bytes = file.read()
                return content

        return self._do("read", read)

    def write_bytes(self, data: bytes) -> None:
        """Write a file."""
        with self.open("wb") as file:
            file.write(data)

    def open(self, mode: str) -> Any:
        """Open a file to read all of it, or to write it."""
        return io.BufferedReader(io.BytesIO(self.read_bytes())) if mode == "rb" else self._written()

    @contextlib.contextmanager
    def _written(self) -> Iterator[Any]:
        buffer = io.BytesIO()  # Closing a stream of pyarrow's would publish what was written before an error.
        yield buffer
        data = buffer.getbuffer()

        def write(store: Any, key: str) -> None:
            with store.open_output_stream(key) as file:
                file.write(data)

        self._do("write", write)

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Remove a file."""
        try:
            self._do("write", lambda store, key: store.delete_file(key))
        except MissingFileError:
            if not missing_ok:
                raise

    def remove_tree(self) -> None:
        """Remove a directory with everything in it, if there is one."""
        with contextlib.suppress(MissingFileError):
            self._do("write", lambda store, key: store.delete_dir(key))

    def _do(self, operation: str, work: Callable[[Any, str], T]) -> T:
        store, key = locate_remote(self.uri)
        try:
            return work(store, key)
        except Exception as error:  # Each of pyarrow's file systems raises its own kinds.
            raise remote_failure(self.uri, operation, error) from error


OutputPath = Path | ObjectPath


def output_path(path: str) -> OutputPath:
    """Return a path of results: of a local file, or of a URI."""
    return ObjectPath(path) if is_remote(path) else Path(path)
