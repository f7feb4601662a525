# SPDX-License-Identifier: Apache-2.0
"""Compares the controllers that a metadata log has registered with its voters."""

from collections.abc import Iterator

from raftlog.tools.auditing.evidence import ControllerSeen, FileEvidence, PartitionEvidence
from raftlog.tools.auditing.history.replicas import newest_sound_snapshot, replicas, voters_in_force
from raftlog.tools.catalogue.findings import Finding


def judge_controllers(partition: PartitionEvidence) -> Iterator[Finding]:
    """Report registered controllers that are no voters, and support less than every voter does.

    A registration stays when its controller is removed from the voters. Kafka raises metadata.version only to a level
    that all registered controllers support, so that one that is gone keeps a cluster from an upgrade.

    Args:
        partition: a metadata log with its snapshots, whose messages were read; without registrations nothing is found.

    Source: ClusterControlManager#controllerSupportedFeatures, KIP-1312.
    """
    if not any(file.controllers for file in partition.files):
        return
    registered = _registered(partition)
    voter_ids = voters_in_force(replicas([partition])[0]).voter_ids
    levels = [seen.level for seen, _ in registered.values() if seen.controller_id in voter_ids]
    if not levels:
        return
    for controller_id, (seen, file) in sorted(registered.items()):
        if controller_id not in voter_ids and seen.level < min(levels):
            reason = f"controller {controller_id} is registered, though no voter, and supports metadata.version up to "
            reason += f"{seen.level}; the voters support {min(levels)}, to which it bars the way"
            yield Finding(
                file.task.path, "controller-caps", reason, seen.position, offset=seen.offset, epoch=seen.epoch
            )


def _registered(partition: PartitionEvidence) -> dict[int, tuple[ControllerSeen, FileEvidence]]:
    """Return the last registration of each controller, with its file, after the newest snapshot and the log."""
    newest, start_offset = newest_sound_snapshot(partition), 0
    found: dict[int, tuple[ControllerSeen, FileEvidence]] = {}
    if newest is not None:
        start_offset = newest.offset
        snapshot = partition.snapshots_by_id[newest]
        found = {seen.controller_id: (seen, snapshot) for seen in snapshot.controllers}
    for file in partition.segments:
        for seen in file.controllers:
            if seen.offset >= start_offset:
                found[seen.controller_id] = seen, file
    return {controller_id: last for controller_id, last in found.items() if last[0].level >= 0}
