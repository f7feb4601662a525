# SPDX-License-Identifier: Apache-2.0
"""Finds the topics in log directories: their names, partitions, topic ids, and the clusters that they belong to.

Only names of directories, ``partition.metadata`` and ``meta.properties`` are read. Directories that Kafka has set aside
or renamed (``-delete``, ``-stray``, ``-future``) are left out: their names may be cut.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar
from uuid import UUID

import attrs

from raftlog.errors import DecodeError, MissingFileError, StorageError
from raftlog.file_paths import join_path, name_of
from raftlog.records.files.file_names import FileKind, parse_directory_name
from raftlog.records.files.property_files import MetaProperties, read_meta_properties, read_partition_metadata
from raftlog.storage.reading.directory_listing import DirectoryListing, EntryKind
from raftlog.storage.reading.file_source import read_file
from raftlog.tools.auditing.survey.found_directories import DirectorySearch, FoundDirectory
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.input.inputs import LARGEST_SMALL_FILE_BYTES

_Contents = TypeVar("_Contents")


@attrs.frozen
class SearchedDirectory:
    """A log directory.

    Attributes:
        path: of the directory.
        cluster_id, node_id: from its ``meta.properties``; None if that is not there, or cannot be read.
    """

    path: str
    cluster_id: str | None = None
    node_id: int | None = None


@attrs.frozen(order=True)
class TopicReplica:
    """A partition's directory.

    Attributes:
        partition: the number of the partition.
        directory: the number of its log directory, from 1.
    """

    partition: int
    directory: int


@attrs.frozen
class FoundTopic:
    """A topic of one cluster. Directories of one name and cluster with several topic ids are several topics.

    Attributes:
        name: of the topic.
        cluster_id: of the cluster; None if it is not known.
        topic_id: from ``partition.metadata``; None if that is not there, or cannot be read.
        replicas: where its partitions are, in order of partitions and directories.
    """

    name: str
    cluster_id: str | None
    topic_id: UUID | None
    replicas: tuple[TopicReplica, ...]

    @property
    def partitions(self) -> tuple[int, ...]:
        """The numbers of its partitions, ascending, each once."""
        return tuple(dict.fromkeys(each.partition for each in self.replicas))

    @property
    def directories(self) -> tuple[int, ...]:
        """The numbers of its log directories, ascending, each once."""
        return tuple(sorted({each.directory for each in self.replicas}))


@attrs.frozen
class FoundTopics:
    """What was found under some paths.

    Attributes:
        directories: the log directories in order of their paths; their numbers count from 1.
        topics: those of a cluster together, by name; of one name in order of their log directories.
        unnamed: directories of partitions whose names are not Kafka's, and which are left out.
        problems: findings: what could not be read, is damaged, or is empty.
    """

    directories: Sequence[SearchedDirectory]
    topics: Sequence[FoundTopic]
    unnamed: Sequence[str]
    problems: Sequence[Finding]


def find_topics(paths: Sequence[str]) -> FoundTopics:
    """Find the topics under paths: log directories, directories of these, or directories of partitions.

    Raises:
        StorageError: a path is not a directory.
    """
    return _TopicSearch().found(paths)


class _TopicSearch:
    """Reads directories, and collects what cannot be read."""

    def __init__(self) -> None:
        self._listing = DirectoryListing()
        self._problems: list[Finding] = []

    def found(self, paths: Sequence[str]) -> FoundTopics:
        for path in paths:
            if self._listing.status(path).kind is not EntryKind.DIRECTORY:
                raise StorageError(path, "read", "not a directory")
        search = DirectorySearch(self._listing)
        search.add(paths)
        found = search.directories()
        partitions = [each for each in found if each.is_partition]
        named = [each for each in partitions if each.place.partition >= 0]
        places = {each.place.log_directory for each in [*named, *(each for each in found if not each.is_partition)]}
        directories = [self._log_directory(path) for path in sorted(places)]
        topics = self._topics(named, directories)
        unnamed = [each.path for each in partitions if _is_unnamed(each)]
        return FoundTopics(directories, topics, unnamed, [*search.problems, *self._problems])

    def _topics(self, found: Sequence[FoundDirectory], directories: Sequence[SearchedDirectory]) -> list[FoundTopic]:
        numbers = {directory.path: number for number, directory in enumerate(directories, 1)}
        replicas: dict[tuple[str | None, str, UUID | None], list[TopicReplica]] = {}
        for each in found:
            number = numbers[each.place.log_directory]
            key = (directories[number - 1].cluster_id, each.place.topic, self._topic_id(each.path))
            replicas.setdefault(key, []).append(TopicReplica(each.place.partition, number))
        topics = [
            FoundTopic(name, cluster_id, topic_id, tuple(sorted(of_topic)))
            for (cluster_id, name, topic_id), of_topic in replicas.items()
        ]
        clusters = {each.cluster_id: number for number, each in reversed(list(enumerate(directories)))}
        return sorted(topics, key=lambda topic: (clusters[topic.cluster_id], topic.name, topic.directories))

    def _log_directory(self, path: str) -> SearchedDirectory:
        meta = self._contents(path, FileKind.META_PROPERTIES, read_meta_properties) or MetaProperties(0)
        return SearchedDirectory(path, meta.cluster_id, meta.node_id)

    def _topic_id(self, path: str) -> UUID | None:
        metadata = self._contents(path, FileKind.PARTITION_METADATA, read_partition_metadata)
        return None if metadata is None else metadata.topic_id

    def _contents(self, directory: str, kind: FileKind, read: Callable[[bytes], _Contents]) -> _Contents | None:
        """Return what a small file says; None if it is not there, or cannot be read, which is a finding."""
        path = join_path(directory, kind.value)
        try:
            if self._listing.exists(path):
                return read(read_file(path, LARGEST_SMALL_FILE_BYTES))
        except DecodeError as error:
            self._problems.append(Finding.of_error(error, path))
        except MissingFileError:
            pass  # A running node has deleted it meanwhile.
        except StorageError as error:
            self._problems.append(Finding(path, "file-unreadable", f"it cannot be read: {error.cause}"))
        return None


def _is_unnamed(found: FoundDirectory) -> bool:
    return found.place.partition < 0 and parse_directory_name(name_of(found.path)) is None
