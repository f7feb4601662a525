# SPDX-License-Identifier: Apache-2.0
"""Comparisons of brokers with metadata that hide a loss, or cry wolf."""

from typing import Any, Final

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.limits import BATCH_OVERHEAD
from raftlog.storage.reading.index_seek import read_head
from raftlog.tools.beliefs import given_files, missing_replicas, partition_directories
from raftlog.tools.beliefs.difference_kinds import REPLICA_LOST
from tests.mutants.planting import Mutant, instead

COMPARISON: Final = "tests/tools/beliefs/test_comparison.py"
EXAMPLES: Final = f"{COMPARISON}::test_each_kind_is_found_where_it_is_and_only_there"
FILES: Final = "tests/tools/beliefs/test_given_files.py"


def _by_name(tables: Any, partition: Any) -> Any:
    topic_id = tables.topic_ids.get(partition.name.topic)
    return tables.partitions.get(topic_id, {}).get(partition.name.partition)


def _without_checkpoint(self: Any, partition: Any, _: Any) -> Any:
    return partition


def _any_id(entry: Any, node_id: int) -> Any:
    return entry.directories[entry.replicas.index(node_id)]


def _in_any_directory(self: Any, key: Any, _: Any) -> bool:
    return not self.has(key)


def _epoch_of_any(_self: Any, source: Any, _path: str, position: int) -> int:
    highest = -1
    while (head := read_head(source.read_at(position, BATCH_OVERHEAD), position)) is not None:
        highest = max(highest, RecordBatch(source.read_at(position, BATCH_OVERHEAD)).partition_leader_epoch)
        position = head.next_position
    return highest


def _as_missing(*, is_aside: bool, is_elsewhere: bool) -> Any:
    del is_aside, is_elsewhere
    return REPLICA_LOST


MUTANTS: Final = (
    Mutant(
        "R-beliefs-name",
        "a directory is that of a topic by its id, not by its name",
        "LogManager#isStrayKraftReplica",
        instead(partition_directories, "_entry", _by_name),
        (EXAMPLES,),
    ),
    Mutant(
        "R-beliefs-given",
        "a replica that may be in a directory that was not given is not missing",
        "KIP-858",
        instead(missing_replicas._Holder, "misses", _in_any_directory),
        (EXAMPLES,),
    ),
    Mutant(
        "R-beliefs-reserved",
        "the first hundred ids are those of no directory",
        "DirectoryId",
        instead(partition_directories, "assigned_directory", _any_id),
        (EXAMPLES, COMPARISON),
    ),
    Mutant(
        "R-beliefs-epoch",
        "leader epochs of a broker's files are compared with the metadata",
        "LeaderEpochFileCache",
        instead(given_files.GivenFiles, "_with_epoch", _without_checkpoint),
        (FILES,),
    ),
    Mutant(
        "R-beliefs-torn",
        "a batch that is not complete, or damaged, has no leader epoch",
        "LogSegment#recover",
        instead(given_files.GivenFiles, "_leader_epoch", _epoch_of_any),
        (f"{FILES}::test_a_torn_batch_and_zeros_do_not_count", f"{FILES}::test_only_batches_whose_crc_holds_count"),
    ),
    Mutant(
        "R-beliefs-lost",
        "records that another directory has are not lost",
        "LogManager#isStrayKraftReplica",
        instead(missing_replicas, "_kind_of_lost", _as_missing),
        (EXAMPLES,),
    ),
)
