# SPDX-License-Identifier: Apache-2.0
"""The identity of a log (its cluster and topic ids) by the files beside it.

Offsets and epochs do not identify a log: two clusters' metadata logs may have the same, and so may a topic that was
deleted and created again.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeVar

from raftlog.errors import DecodeError, StorageError
from raftlog.file_paths import join_path, split_path
from raftlog.records.files.file_names import FileKind
from raftlog.records.files.property_files import read_meta_properties, read_partition_metadata
from raftlog.storage.reading.file_source import read_file
from raftlog.tools.spark.source.planning import Partition
from raftlog.tools.terminal.standard_error import unicode_text
from raftlog.uuid_text import uuid_to_text

Identity = Mapping[str, str]
"""The identity in a checkpoint: the ids in files, by the keys of ``NAMES``."""

NAMES: Final = MappingProxyType({"clusterId": "cluster id", "topicId": "topic id"})
"""The words for the ids in an error."""

_LARGEST_FILE: Final = 64 * 1024

Contents = TypeVar("Contents")


def identities(partitions: Mapping[str, Partition]) -> dict[str, Identity]:
    """Return the known identities of logs; ids that no readable file has are left out."""
    directories = {partition.place.log_directory for partition in partitions.values()}
    clusters = {directory: _cluster_id(directory) for directory in directories}
    found = {
        name: {"clusterId": clusters[partition.place.log_directory], "topicId": _topic_id(partition)}
        for name, partition in partitions.items()
    }
    return {name: {key: value for key, value in each.items() if value is not None} for name, each in found.items()}


def difference(then: Mapping[str, object], now: Identity) -> str | None:
    """Return the difference of two identities as a clause, or None. An id that one of them lacks is no difference."""
    for key, name in NAMES.items():
        if key in then and key in now and then[key] != now[key]:
            return f"had {name} {then[key]} there, and has {now[key]} at the path"
    return None


def _cluster_id(directory: str) -> str | None:
    meta = _read(directory, FileKind.META_PROPERTIES, read_meta_properties)
    return None if meta is None or meta.cluster_id is None else unicode_text(meta.cluster_id)


def _topic_id(partition: Partition) -> str | None:
    directory, _ = split_path(partition.segments[0].path)
    metadata = _read(directory, FileKind.PARTITION_METADATA, read_partition_metadata)
    return None if metadata is None else uuid_to_text(metadata.topic_id)


def _read(directory: str, kind: FileKind, contents: Callable[[bytes], Contents]) -> Contents | None:
    try:
        return contents(read_file(join_path(directory, kind.value), _LARGEST_FILE))
    except (StorageError, DecodeError):
        return None
