# SPDX-License-Identifier: Apache-2.0
"""Compares what a real broker has acted on with the metadata log beside it."""

from collections import Counter
from pathlib import Path
from uuid import UUID

from raftlog.records.files.checkpoint_files import read_leader_epoch_checkpoint
from raftlog.records.files.file_names import METADATA_TOPIC, parse_directory_name
from raftlog.records.files.property_files import read_meta_properties, read_partition_metadata
from raftlog.records.messages.metadata import read_metadata_record
from raftlog.tools.auditing.acts.acted_records import LeaderEpochBegun, TopicCreated, acted_records
from raftlog.tools.auditing.acts.broker_directory import BrokerDirectory
from raftlog.tools.auditing.batch_reader import read_batches
from raftlog.tools.auditing.evidence import PartitionEvidence
from tests.tools.auditing.contents.test_records_at_risk import raft_log


def check_acts(directory: Path, *, is_registered: bool) -> None:
    """Check that all that a broker acted on is found in its log, and that its directory shows nothing that is not.

    Args:
        directory: its only log directory. What is older than its metadata log is not checked.
        is_registered: whether it was shut down cleanly, so that its broker epoch is there.
    """
    log, shown = raft_log(directory), BrokerDirectory(str(directory))
    records = acted_records(log, log.start_offset, log.end_offset, read_batches)
    topics = {(each.name, each.topic_id) for each in records if isinstance(each, TopicCreated)}
    begun: dict[tuple[UUID, int], set[int]] = {}
    for each in records:
        if isinstance(each, LeaderEpochBegun):
            begun.setdefault((each.topic_id, each.partition), set()).add(each.leader_epoch)
    checked: Counter[str] = Counter()
    for path in directory.iterdir():
        name = parse_directory_name(path.name)
        if name is None or name.topic == METADATA_TOPIC or not (path / "partition.metadata").exists():
            continue
        topic_id = read_partition_metadata((path / "partition.metadata").read_bytes()).topic_id
        checked["topics"] += (name.topic, topic_id) in topics
        assert (name.topic, topic_id) in topics or log.start_offset > 0
        assert shown.topic(name.topic, topic_id) is not None
        epochs = read_leader_epoch_checkpoint((path / "leader-epoch-checkpoint").read_bytes())
        known = begun.get((topic_id, name.partition), set())
        for entry in epochs:
            checked["leader epochs"] += entry.epoch in known
            assert entry.epoch in known or (log.start_offset > 0 and entry.epoch < min(known, default=1 << 31))
            assert shown.leader_epoch(name.topic, topic_id, name.partition, entry.epoch) is not None
        last = max((entry.epoch for entry in epochs), default=-1)
        assert shown.leader_epoch(name.topic, topic_id, name.partition, last + 1) is None
    assert min(checked["topics"], checked["leader epochs"]) > 0
    if is_registered:
        _check_registration(directory, log, shown)


def _check_registration(directory: Path, log: PartitionEvidence, shown: BrokerDirectory) -> None:
    """Check that the broker epoch of the last shutdown is that of the last registration in the log or its snapshot."""
    node_id = read_meta_properties((directory / "meta.properties").read_bytes()).node_id
    assert node_id is not None
    files = (*log.snapshots[-1:], *log.segments)
    messages = (
        read_metadata_record(record.value)
        for file in files
        for batch in read_batches(file, 0, 1 << 62)
        if not batch.is_control
        for record in batch.records()
    )
    found = (
        each.message["brokerEpoch"]
        for each in messages
        if each.type.name == "RegisterBrokerRecord" and each.message["brokerId"] == node_id
    )
    epochs = list(dict.fromkeys(found))  # A record may be in the snapshot, and still in the log.
    assert [epoch for epoch in epochs if shown.registration(node_id, epoch) is not None] == epochs[-1:]
