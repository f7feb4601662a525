# SPDX-License-Identifier: Apache-2.0
"""Identifies a log by the cluster id and topic id in the files beside it.

Offsets and epochs are not enough: the metadata log of another cluster, or a topic that was deleted and created again,
may have the same epochs at the same offsets.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, TypeVar

from raftlog.errors import DecodeError, StorageError
from raftlog.file_paths import join_path, split_path
from raftlog.records.files.file_names import FileKind
from raftlog.records.files.property_files import read_meta_properties, read_partition_metadata
from raftlog.storage.reading.file_source import read_file
from raftlog.tools.spark.rows.exhaustion import is_exhaustion
from raftlog.tools.spark.source.planning import Partition
from raftlog.tools.terminal.standard_error import unicode_text
from raftlog.uuid_text import uuid_to_text

Identity = Mapping[str, str]
"""Ids by the keys of ``NAMES``, as in a checkpoint; unknown ids are left out."""

TOPIC_ID: Final = "topicId"
"""The key of the id that changes if a topic is deleted and created again."""

NAMES: Final = MappingProxyType({"clusterId": "cluster id", TOPIC_ID: "topic id"})
"""The name of each id in error messages, by its key in a checkpoint."""

_LARGEST_FILE: Final = 64 * 1024

Contents = TypeVar("Contents")


def identities(partitions: Mapping[str, Partition]) -> dict[str, Identity]:
    """Return the identities of logs. Ids that no file has, or whose file cannot be read, are left out."""
    directories = {partition.place.log_directory for partition in partitions.values()}
    clusters = {directory: _cluster_id(directory) for directory in directories}
    found = {
        name: {"clusterId": clusters[partition.place.log_directory], TOPIC_ID: _topic_id(partition)}
        for name, partition in partitions.items()
    }
    return {name: {key: value for key, value in each.items() if value is not None} for name, each in found.items()}


class Difference(NamedTuple):
    """An id that differs: its key in a checkpoint, and a clause about it."""

    key: str
    reason: str


def difference(then: Mapping[str, object], now: Identity) -> Difference | None:
    """Return the first id that differs, or None. An id that only one of them has is ignored."""
    for key, name in NAMES.items():
        if key in then and key in now and then[key] != now[key]:
            return Difference(key, f"had {name} {then[key]} there, and has {now[key]} under the path")
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
    except DecodeError:
        return None
    except StorageError as error:
        if is_exhaustion(error):
            raise
        return None
