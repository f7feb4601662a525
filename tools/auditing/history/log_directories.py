# SPDX-License-Identifier: Apache-2.0
"""Identifies the audited log directories by their meta.properties."""

import uuid
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import attrs

from raftlog.records.files.file_names import FileKind
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence
from raftlog.uuid_text import uuid_from_text

T = TypeVar("T")


@attrs.frozen
class DirectoryIdentity:
    """The identity of a log directory in its meta.properties; None for what it does not have.

    Attributes:
        path: of the directory.
        meta: the file, or None.
    """

    path: str
    meta: FileEvidence | None = None
    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: uuid.UUID | None = None

    @property
    def identity_path(self) -> str:
        """What findings about the identity name: the file, or the directory if it has none."""
        return self.path if self.meta is None else self.meta.task.path


def log_directories(evidence: Iterable[PartitionEvidence]) -> dict[str, DirectoryIdentity]:
    """Return the log directories of some places, by path."""
    found: dict[str, DirectoryIdentity] = {}
    for partition in evidence:
        path = partition.place.log_directory
        found.setdefault(path, DirectoryIdentity(path))
        if not partition.place.topic and (meta := partition.small_file(FileKind.META_PROPERTIES)) is not None:
            found[path] = _log_directory(path, meta)
    return found


def by_cluster(values: Iterable[T], cluster_id: Callable[[T], str | None]) -> dict[str, list[T]]:
    """Divide values by cluster. If there is only one cluster, values without a cluster id are taken to belong to it.

    Args:
        values: for instance replicas.
        cluster_id: returns the cluster id of a value; None if it has none.

    Returns:
        The values by cluster id, in their order; an unknown id is empty.
    """
    named = [(cluster_id(value), value) for value in values]
    known = {name for name, _ in named if name is not None}
    only = next(iter(known)) if len(known) == 1 else ""
    found: dict[str, list[T]] = {}
    for name, value in named:
        found.setdefault(name or only, []).append(value)
    return found


def _log_directory(path: str, meta: FileEvidence) -> DirectoryIdentity:
    fields: dict[str, Any] = meta.contents or {}
    directory_id = fields.get("directory_id")
    return DirectoryIdentity(
        path,
        meta,
        fields.get("cluster_id"),
        fields.get("node_id"),
        None if directory_id is None else uuid_from_text(directory_id),
    )
