# SPDX-License-Identifier: Apache-2.0
"""Logs of real controllers: the voters and the kraft.version at every offset, as Kafka's own tools print them."""

import functools
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from raftlog.log.control_records import KRaftControlRecordStateMachine
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.snapshot.paths import parse_snapshot_name
from raftlog.snapshot.reader import RecordsSnapshotReader
from raftlog.uuid_text import uuid_from_text
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import Endpoints, ReplicaKey, SupportedVersionRange, VoterNode, VoterSet
from tests.golden_files import GOLDEN, golden_id
from tests.log.control_batches import Change, State, run_of, states_at, voters

STATIC = voters(1, 2, 3)
PRINTED = re.compile(rb"^\| offset: (\d+) .*? (KRaftVersion|KRaftVoters) (\{.*\})$", re.MULTILINE)
REPLICAS = sorted(
    path
    for path in GOLDEN.glob("*/*/*/__cluster_metadata-0")
    if path.parts[-4] in {"dynamic-quorum", "static-upgrade", "killed", "wire"}
)


def voters_of(node: dict[str, Any]) -> VoterNode:
    """Read a voter as the dump tool prints it."""
    feature = node["kRaftVersionFeature"]
    return VoterNode(
        ReplicaKey(node["voterId"], uuid_from_text(node["voterDirectoryId"])),
        Endpoints.of({each["name"]: (each["host"], each["port"]) for each in node["endpoints"]}),
        SupportedVersionRange(feature["minSupportedVersion"], feature["maxSupportedVersion"]),
    )


@functools.cache
def printed(path: Path) -> list[Change]:
    """Read the changes in one output of the dump tool, with the offsets that it prints."""
    found: list[Change] = []
    for offset, kind, text in PRINTED.findall(path.read_bytes()):
        value = json.loads(text)
        is_version = kind == b"KRaftVersion"
        state = KRaftVersion(value["kRaftVersion"]) if is_version else VoterSet.of(map(voters_of, value["voters"]))
        found.append((int(offset), state))
    return found


def printed_states(scenario: Path, snapshot_id: OffsetAndEpoch | None, end_offset: int) -> dict[int, State]:
    """Return the state at every offset by all outputs of one quorum: of a snapshot, then of the log after it."""
    first = 0 if snapshot_id is None else snapshot_id.offset
    changes: list[Change] = []
    if snapshot_id is not None:
        name = f"{snapshot_id.offset:020}-{snapshot_id.epoch:010}"
        output = sorted(scenario.glob(f"expected/*.__cluster_metadata-0.{name}.checkpoint.deep.txt"))[0]
        changes += [(first - 1, state) for _, state in printed(output)]
    logs = sorted(scenario.glob("expected/*.__cluster_metadata-0.*.log.deep.txt"))
    in_logs = itertools.chain.from_iterable(map(printed, logs))
    changes += sorted((change for change in in_logs if change[0] >= first), key=lambda change: change[0])
    return states_at(changes, first - 1, end_offset)


@functools.cache
def batches_of(replica: Path) -> list[RecordBatch]:
    """Read all segments of a replica, as far as they are whole."""
    data = b"".join(path.read_bytes() for path in sorted(replica.glob("*.log")))
    return [piece for piece in split(BufferSource(data)) if isinstance(piece, RecordBatch)]


def machines_of(replica: Path) -> Iterator[tuple[OffsetAndEpoch | None, KRaftControlRecordStateMachine]]:
    """Begin with each snapshot of a replica, and with none if its log starts at 0; then read the log after it."""
    snapshots = sorted(replica.glob("*.checkpoint"))
    batches = batches_of(replica)
    for path in [None, *snapshots] if batches[0].base_offset == 0 else snapshots:
        machine = KRaftControlRecordStateMachine(STATIC)
        snapshot_id = None
        if path is not None:
            name = parse_snapshot_name(path.name)
            assert name is not None
            snapshot_id = name.snapshot_id
            machine.handle_snapshot(RecordsSnapshotReader(BufferSource(path.read_bytes()), snapshot_id))
        behind = [bytes(batch.buffer) for batch in batches if batch.base_offset >= max(0, machine.next_offset)]
        machine.handle_run(run_of(behind))
        yield snapshot_id, machine


def states_of(machine: KRaftControlRecordStateMachine) -> dict[int, State]:
    """Ask a state machine about every offset that it knows."""
    offsets = range(machine.start_offset, machine.next_offset)
    return {each: (machine.voter_set_at_offset(each), machine.kraft_version_at_offset(each)) for each in offsets}


@pytest.mark.parametrize("replica", REPLICAS, ids=golden_id)
def test_every_offset_of_every_replica_is_as_kafka_prints_it(replica: Path) -> None:
    """From each snapshot on, and from the start of the log where it is there."""
    for snapshot_id, machine in machines_of(replica):
        if snapshot_id is not None and not list(replica.parents[2].glob(f"expected/*{snapshot_id.offset:020}-*")):
            continue  # Nobody printed it.
        assert states_of(machine) == printed_states(replica.parents[2], snapshot_id, machine.next_offset)
        assert machine.next_offset == batches_of(replica)[-1].next_offset


@pytest.mark.parametrize("scenario", ["dynamic-quorum", "static-upgrade", "wire"])
def test_the_replicas_of_a_quorum_agree(scenario: str) -> None:
    """If two of them know an offset, they agree on it, whatever each of them began with."""
    said: dict[int, State] = {}
    count = 0
    for replica in REPLICAS:
        if replica.parts[-4:-2] == (scenario, "data"):
            for snapshot_id, machine in machines_of(replica):
                bootstraps = snapshot_id is not None and snapshot_id.offset == 0  # It says more, of the first offsets.
                for offset, state in states_of(machine).items():
                    if not (bootstraps and offset < 2):
                        assert said.setdefault(offset, state) == state
                count += 1
    assert count >= 10
    assert len({known for known, _ in said.values()}) >= 2


@pytest.mark.parametrize("output", sorted(GOLDEN.glob("dynamic-quorum/expected/quorum-*.txt")), ids=golden_id)
def test_the_voters_are_those_that_the_quorum_was_seen_to_have(output: Path) -> None:
    """kafka-metadata-quorum named the same voters while the cluster ran."""
    status = dict(re.findall(r"^(HighWatermark|CurrentVoters): +(.*)$", output.read_text(), re.MULTILINE))
    if not status:
        return
    wanted = {
        (each["id"], each["directoryId"], tuple(each["endpoints"])) for each in json.loads(status["CurrentVoters"])
    }
    for replica in REPLICAS:
        if replica.parts[-4:-1] == ("dynamic-quorum", "data", "n3"):
            _, machine = next(machines_of(replica))
            known = machine.voter_set_at_offset(int(status["HighWatermark"]) - 1)
            assert known is not None
            assert {key for key, _, _ in wanted} == known.voter_ids
            for voter_id, directory_id, endpoints in wanted:
                assert known.is_voter(ReplicaKey(voter_id, uuid_from_text(directory_id)))
                address = known.listeners(voter_id).address("CONTROLLER")
                assert endpoints == (f"CONTROLLER://{address}".replace("[", "").replace("]", ""),)
