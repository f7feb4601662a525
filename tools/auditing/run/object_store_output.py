# SPDX-License-Identifier: Apache-2.0
"""The output of ``raftlog audit`` in an object store, and the choice between that and a directory."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from raftlog.errors import LogDirectoryError, MissingFileError, StorageError
from raftlog.file_paths import RemotePath, is_remote, local_or_remote, remote_path
from raftlog.tools.auditing.object_paths import ObjectPath, OutputPath
from raftlog.tools.auditing.run.audit_output import (
    EVIDENCE,
    OF_AUDIT,
    REPORT,
    STORE,
    SUMMARY,
    WORK,
    AuditOutput,
    OutputKind,
    is_of_this_format,
)
from raftlog.tools.own_file import check_outside


class ObjectStoreOutput(AuditOutput):
    """The output of an audit in an object store; a context manager.

    Results are written to a temporary directory, and uploaded when the run is complete: the tables, then the row in
    ``runs``, then page and summary. The evidence of runs on one machine is fetched first, and uploaded whenever the
    block ends. There is no lock, since object stores have none.

    Args:
        uri: of the output.
        run_id: of the run that writes to it.
        kind: of which verb it is.

    Raises:
        LogDirectoryError: there is something else under the URI.
        StorageError: the store fails.
    """

    def __init__(self, uri: str, run_id: str, kind: OutputKind = OF_AUDIT) -> None:
        self._target = ObjectPath(uri)
        _claim_prefix(self._target, kind)
        self._stored = b""
        with contextlib.suppress(MissingFileError):
            self._stored = (self._target / STORE).read_bytes()
        self._folder = tempfile.mkdtemp(prefix="raftlog-audit-")
        try:
            super().__init__(str(Path(self._folder, "out")), run_id, kind)
            if self._stored:
                Path(self.store_path).write_bytes(self._stored)
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    @property
    def evidence_folder(self) -> OutputPath:
        """Folder of the evidence for runs on Spark, in which several machines write."""
        return self._target / EVIDENCE

    @property
    def work_folder(self) -> OutputPath:
        """Folder by which driver and workers pass work and outcomes to each other."""
        return self._target / WORK

    def complete(self, summary: dict[str, Any], report: str) -> None:
        """Upload all files: the run is complete when this returns, and not before; raises as ``AuditOutput`` does."""
        super().complete(summary, report)
        names = [f"{table}/{self._run_id}.parquet" for table in reversed(self._kind.tables)]
        for name in (*names, REPORT, SUMMARY):
            folder, _, file = name.rpartition("/")
            target = self._target / folder if folder else self._target
            target.mkdir()
            (target / file).write_bytes((self._directory / name).read_bytes())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, traceback)
        try:
            store = Path(self.store_path)
            if store.exists() and (data := store.read_bytes()) != self._stored:
                (self._target / STORE).write_bytes(data)
        except StorageError:
            if kind is None:  # Else the error that ended the run matters more.
                raise
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)


def open_output(path: str, run_id: str, kind: OutputKind = OF_AUDIT) -> AuditOutput:
    """Return the output at a path, or at a URI; raises as the classes above do."""
    return ObjectStoreOutput(path, run_id, kind) if is_remote(path) else AuditOutput(path, run_id, kind)


def checked_output(path: str, sources: Iterable[str]) -> str:
    """Check that results are not written to an audited directory, and return the path of the output, normalised.

    Raises:
        LogDirectoryError: they would be; or the path is a ``file:`` URI.
        StorageError: a URI holds credentials.
    """
    output, given = local_or_remote(path), list(map(local_or_remote, sources))
    if is_remote(output):
        for source in filter(is_remote, given):
            if _is_below(remote_path(output), remote_path(source)):
                raise LogDirectoryError(f"{path} is in {source}: an audited directory is not written to")
        return output
    check_outside(path, given)
    return path


def _is_below(path: RemotePath, root: RemotePath) -> bool:
    """Whether a path is another one, or in it; the queries of their URIs may differ."""
    same_store = path.root.partition("?")[0] == root.root.partition("?")[0]
    return same_store and (not root.key or f"{path.key}/".startswith(f"{root.key}/"))


def _claim_prefix(target: ObjectPath, kind: OutputKind) -> None:
    """Mark a prefix of an object store as an output of a verb, or check that it is one."""
    marker = target / kind.marker
    try:
        content = marker.read_bytes()
    except MissingFileError:
        if any(True for _ in target.iterdir()):
            reason = f"{target} exists, is not empty and is not the output of raftlog {kind.verb}"
            raise LogDirectoryError(reason) from None
        target.mkdir()
        content = kind.marked.encode()
        marker.write_bytes(content)
    if not is_of_this_format(content):
        raise LogDirectoryError(f"{target} is the output of another version of raftlog {kind.verb}")
