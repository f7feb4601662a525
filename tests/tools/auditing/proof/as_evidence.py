# SPDX-License-Identifier: Apache-2.0
"""The directories of a small quorum, as an audit's surveys would report them."""

import uuid
from collections.abc import Sequence

from raftlog.records.messages.voters import voters_record
from raftlog.tools.auditing.evidence import BatchSeen, PartitionEvidence
from raftlog.tools.catalogue.findings import Finding
from raftlog.voters.voter_set import Endpoints, ReplicaKey, SupportedVersionRange, VoterNode, VoterSet
from tests.tools.auditing.made_quorum import BATCH_BYTES, START_MS, MadeLog, leader_change, log_directory
from tests.tools.auditing.proof.past import Files, Key


def voter_set(voters: Sequence[Key]) -> VoterSet:
    """Voters as the library has them."""
    return VoterSet.of(_node(each) for each in voters)


def _node(key: Key) -> VoterNode:
    return VoterNode(ReplicaKey(key[0], _directory_id(key[1])), Endpoints.of({}), SupportedVersionRange(0, 1))


def _directory_id(directory: int) -> uuid.UUID | None:
    return uuid.UUID(int=directory) if directory else None


def evidence_of(files: Files) -> list[PartitionEvidence]:
    """The evidence of a directory: its meta.properties, and its metadata log. Each record is a batch."""
    log = MadeLog(start_offset=files.start, node=files.path)
    is_static = any(directory == 0 for _, directory in files.first_voters)
    if files.is_bootstrapped and not is_static:
        log.snapshot(0, epoch=0, named=voter_set(files.first_voters))
    findings = []
    for offset, record in enumerate(files.log[files.start :], files.start):
        if offset == files.rotten:
            position = log.batch_count * BATCH_BYTES
            findings.append(Finding(log.path, "batch-crc", "", position, size_bytes=BATCH_BYTES, offset=offset))
            log.end_offset += offset < len(files.log) - 1
            log.batch_count += 1
            continue
        log.epoch, log.now = record.epoch, record.number
        if record.voters is not None:
            log.write(voters_record(voter_set(record.voters)), epoch=record.epoch)
        elif record.opens:
            ids = [node_id for node_id, _ in files.first_voters]
            log.write(leader_change(ids[0], ids), epoch=record.epoch)
        else:
            log.data()
    for end, epoch, voters in files.snapshots:
        named = voter_set(voters) if voters else None
        last_ms = files.times[end, epoch]
        log.snapshot(end, epoch=epoch, kraft_version=int(bool(voters)), named=named, last_ms=last_ms)
        if files.start < end <= len(files.log) and end - 1 != files.rotten:
            position = (end - 1 - files.start) * BATCH_BYTES
            last = files.log[end - 1]
            is_followed = end < len(files.log) and end != files.rotten
            times = START_MS + last.number, position, START_MS + files.log[end].number if is_followed else -1
            log.snapshot_batches.append(BatchSeen(end, end - 1, end - 1, last.epoch, *times))
    if files.state is not None:
        log.state(*files.state)
    return [log_directory(files.path, files.key[0], _directory_id(files.key[1])), log.evidence(*findings)]
