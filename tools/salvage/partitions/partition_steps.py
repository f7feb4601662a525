# SPDX-License-Identifier: Apache-2.0
"""The two steps of ``raftlog salvage --partition``: a plan, and a new log directory with the partition."""

import argparse
import os
from collections.abc import Iterator

import attrs

from raftlog.errors import RepairRefusedError, SourceChangedError
from raftlog.file_paths import is_remote, local_or_remote
from raftlog.records.files.file_names import DirectoryName, parse_directory_name
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.tools.repair.applying import check_is_outside, check_target, make_directory
from raftlog.tools.repair.plan import RepairPlan
from raftlog.tools.repair.repair_verb import check_sources, finding_members, source_members
from raftlog.tools.repair.sources import (
    check_is_stopped,
    check_unchanged,
    distinct_directories,
    log_directory_of,
    read_partition_source,
)
from raftlog.tools.salvage.partitions.partition_belief import Belief, read_belief
from raftlog.tools.salvage.partitions.partition_building import build_partition, review_partition
from raftlog.tools.salvage.partitions.partition_plan import PartitionSalvage
from raftlog.tools.salvage.partitions.partition_planning import PartitionRequest, plan_partition
from raftlog.tools.salvage.partitions.partition_words import made_words, plan_words
from raftlog.tools.terminal.json_lines import path_member
from raftlog.tools.terminal.verb_output import Fact

_VERB = "salvage"


def plan_partition_step(given: argparse.Namespace) -> Fact:
    """Plan, write the plan, and return what it says.

    Args:
        given: the command line, whose options go together.

    Raises:
        RaftLogError: as for ``plan_partition`` and ``read_belief``, or a source is not what it must be.
    """
    partition = _name(given.partition)
    log_name = str(partition)
    found = (log_directory_of(each, log_name) for each in given.directories)
    directories = distinct_directories(found, log_name)
    sources = tuple(read_partition_source(each, log_name) for each in directories)
    check_is_outside(given.plan, sources)
    for source in sources:
        check_is_stopped(source)
    metadata = tuple(_absolute(each) for each in given.metadata)
    belief = read_belief(metadata, partition, given.processes, beside=directories) if metadata else None
    check_is_outside(given.plan, (), _local_directories(belief))
    request = PartitionRequest(partition, belief, metadata, given.step_over, given.assume_topic_id)
    salvage = plan_partition(sources, request)
    for source in sources:
        check_unchanged(source, reads=False)
    RepairPlan.of(_VERB, sources, salvage).save(given.plan)
    members = {**path_member("plan", given.plan), "sources": source_members(sources), **attrs.asdict(salvage)}
    return Fact(plan_words(salvage, sources, given.plan), "partition_salvage_plan", members)


def apply_partition_step(given: argparse.Namespace, plan: RepairPlan) -> Fact:
    """Carry a plan out, and return what was made.

    Args:
        given: the command line.
        plan: of a partition.

    Raises:
        SourceChangedError: a source has changed, or the metadata say something else of the partition by now.
        RaftLogError: as for ``make_directory``.
    """
    salvage = plan.content_as(PartitionSalvage)
    target = check_target(given.out, plan.sources, _local_directories(salvage.belief))
    check_sources(plan.sources)
    if salvage.belief is not None:
        _check_belief(salvage, salvage.belief, given.processes)
    file_system = LocalFileSystem()
    findings = make_directory(
        file_system,
        target,
        lambda directory: build_partition(file_system, plan.sources, salvage, directory),
        lambda directory: review_partition(directory, plan.sources, salvage),
    )
    members = {
        **path_member("directory", target),
        "partition": salvage.partition,
        "is_proven": salvage.is_proven,
        "start_offset": salvage.start_offset,
        "end_offset": salvage.end_offset,
        "findings": finding_members(findings),
    }
    return Fact(made_words(salvage, target, findings), "partition_salvaged", members)


def _absolute(path: str) -> str:
    """Return a path of metadata as a plan has it, which may be carried out from elsewhere."""
    found = local_or_remote(path)
    return found if is_remote(found) else os.path.abspath(found)  # noqa: PTH100 - links are not followed


def _local_directories(belief: Belief | None) -> Iterator[str]:
    """Yield the log directories on this machine that metadata were read from."""
    return (each for each in (() if belief is None else belief.read_from) if not is_remote(each))


def _check_belief(salvage: PartitionSalvage, belief: Belief, processes: int) -> None:
    """Check that the metadata still say what the plan was made of."""
    now = read_belief(salvage.metadata, _name(salvage.partition), processes)
    if not now.is_same(belief):
        reason = f"its records say something else of {salvage.partition} since the plan was made: make a new plan"
        raise SourceChangedError(now.directory, reason)


def _name(text: str) -> DirectoryName:
    found = parse_directory_name(text)
    if found is None:
        raise RepairRefusedError(f"{text} is no name of a partition")
    return found
