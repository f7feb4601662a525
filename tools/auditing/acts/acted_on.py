# SPDX-License-Identifier: Apache-2.0
"""Compares records of a metadata log with what brokers' directories show that they have acted on."""

import functools
from collections.abc import Iterable, Mapping
from typing import Final

from raftlog.records.files.file_names import METADATA_TOPIC
from raftlog.tools.auditing.acts.acted_records import (
    ActedRecord,
    LeaderEpochBegun,
    Registered,
    TopicCreated,
    acted_records,
)
from raftlog.tools.auditing.acts.broker_directory import BrokerDirectory
from raftlog.tools.auditing.batch_reader import BatchReader, read_batches
from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.proof.copies import ActedOn


class BrokerDirectories:
    """Log directories of one cluster, some of which may be brokers'. They are listed when they are first needed.

    Args:
        paths: of the directories.
        read: reads batches of a surveyed file again.
    """

    def __init__(self, paths: Iterable[str], read: BatchReader = read_batches) -> None:
        self._paths: Final = tuple(paths)
        self._read: Final = read

    @functools.cached_property
    def _directories(self) -> Mapping[str, BrokerDirectory]:
        found = {path: BrokerDirectory(path) for path in self._paths}
        return {path: directory for path, directory in found.items() if directory.is_of_broker}

    def last_acted_on(self, log: PartitionEvidence, start: int, end: int) -> ActedOn | None:
        """Return the last record of a metadata log that a broker has acted on, with the file that shows it; or None.

        A topic's id is in one record only, so that any broker's directory proves that record. The number of a broker
        epoch or a leader epoch may be given out again by a leader that does not have the first record: it proves a
        record only in the log beside it, from which the broker had it.

        Args:
            log: a metadata log; of another log nothing is known.
            start: the first offset, inclusive.
            end: exclusive.
        """
        if start >= end or log.place.topic != METADATA_TOPIC or not self._directories:
            return None
        own = self._directories.get(log.place.log_directory)
        for acted in reversed(acted_records(log, start, end, self._read)):
            path = self._shown(acted, own)
            if path is not None:
                return ActedOn(acted.point, path)
        return None

    def _shown(self, acted: ActedRecord, own: BrokerDirectory | None) -> str | None:
        """Return the file that shows that a broker acted on a record; or None."""
        match acted:
            case TopicCreated():
                files = (each.topic(acted.name, acted.topic_id) for each in self._directories.values())
                return next(filter(None, files), None)
            case Registered() if own is not None:
                return own.registration(acted.broker_id, acted.broker_epoch)
            case LeaderEpochBegun() if own is not None:
                return own.leader_epoch(acted.name, acted.topic_id, acted.partition, acted.leader_epoch)
            case _:
                return None
