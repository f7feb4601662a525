# SPDX-License-Identifier: Apache-2.0
"""The world of an audit: log directories ``n1``, ``n2``, ... of a quorum that is not running, and what the verbs of
``raftlog`` print about them.

A quorum's history is written with ``lead``, ``data`` and ``voters``; ``on=1,2`` says which replicas have stored it.
Then a directory may be damaged. Each batch of data holds messages that Kafka can read.
"""

import contextlib
import functools
import re
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from raftlog.file_system import join
from raftlog.log.replicated_log import Isolation
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.control_batch import write_control_batch
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.records.messages.control import ControlValue, KRaftVersionRecord, LeaderChangeMessage, Voter
from raftlog.records.messages.voters import voters_record
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.state.log_directory import METADATA_DIRECTORY_NAME, DirectoryFormat, format_log_directory
from raftlog.storage.state.quorum_state_store import QuorumStateStore
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from raftlog.uuid_text import uuid_from_text
from raftlog.voters.voter_set import Endpoints, ReplicaKey, SupportedVersionRange, VoterNode, VoterSet
from tests.file_logs import cut, flip
from tests.scenarios.world import CommandError, World, command
from tests.strategies import TIMESTAMP
from tests.tools.auditing.made_segments import data_batch
from tests.tools.console import run

_CLUSTER_ID: Final = "cluster-of-scenarios-A"
_FIRST_SEGMENT: Final = "00000000000000000000.log"
_BYTE_COUNTS: Final = re.compile(r"\d+ files, \d+ bytes = |\d+ less severe findings")
_BYTE_IN_RECORDS: Final = 65
"""The position of a byte after the header of a batch."""


def _node(node_id: int) -> VoterNode:
    """Return a voter, without endpoints: they would only make lines of output longer."""
    key = ReplicaKey(node_id, uuid_from_text(f"directory-of-node-{node_id}--A"))
    return VoterNode(key, Endpoints.of({}), SupportedVersionRange(0, 1))


def _voter_set(ids: Iterable[int]) -> VoterSet:
    return VoterSet.of(map(_node, ids))


class AuditWorld(World):
    """Log directories, none of them at first."""

    def __init__(self) -> None:
        self._files = MemoryFileSystem()
        self._replicas: list[int] = []
        self._voters = VoterSet()
        self._leader, self._epoch = -1, 0

    # The history of the quorum

    @command
    def format(self, *voters: int, observers: tuple[int, ...] = ()) -> str:
        """Format the log directories of the initial voters, and of observers."""
        self._voters = _voter_set(voters)
        for node_id in (*voters, *observers):
            key = _node(node_id).voter_key
            assert key.directory_id is not None
            initial = self._voters if node_id in voters else None
            directory = DirectoryFormat(_CLUSTER_ID, node_id, key.directory_id, voters=initial)
            format_log_directory(self._files, f"n{node_id}", directory, TIMESTAMP)
            self._replicas.append(node_id)
        return f"directories: {' '.join(f'n{each}' for each in self._replicas)}"

    @command
    def lead(self, leader: int, *, epoch: int, on: tuple[int, ...] = (), votes: tuple[int, ...] = ()) -> str:
        """Begin an epoch with a LeaderChange, and the first epoch with the kraft.version and the voters too.

        Args:
            leader: of the epoch.
            epoch: its number.
            on: the replicas that store it; all of them, if none is named.
            votes: the voters that elected the leader; those that store it, if none is named.
        """
        is_first, self._leader, self._epoch = self._epoch == 0, leader, epoch
        ids = sorted(self._voters.voter_ids)
        granting = sorted(self._voters.voter_ids & set(votes or on or ids))
        values: list[ControlValue] = [LeaderChangeMessage(leader, tuple(map(Voter, ids)), tuple(map(Voter, granting)))]
        values += [KRaftVersionRecord(1), voters_record(self._voters)] if is_first else []
        for node_id in on or self._replicas:
            self._follow(node_id)
        return self._append(functools.partial(self._control_batch, values), on)

    @command
    def data(self, count: int, *, on: tuple[int, ...] = ()) -> str:
        """Append a batch of so many messages."""
        return self._append(lambda base: data_batch(base, self._epoch, count, TIMESTAMP + base), on)

    @command
    def voters(self, *voters: int, on: tuple[int, ...] = ()) -> str:
        """Append a VotersRecord."""
        self._voters = _voter_set(voters)
        return self._append(functools.partial(self._control_batch, [voters_record(self._voters)]), on)

    @command
    def fetch(self, replica: int, *, source: int) -> str:
        """Let a replica store all that it lacks of another one's log."""
        with self._log(source) as leader, self._log(replica) as follower:
            for batch in leader.batches(follower.end_offset.offset, Isolation.UNCOMMITTED):
                follower.append_as_follower(bytes(batch.buffer), batch.partition_leader_epoch)
        self._follow(replica)
        return self._ends()

    def _control_batch(self, values: list[ControlValue], base_offset: int) -> bytes:
        timestamp = TIMESTAMP + base_offset
        return write_control_batch(values, base_offset=base_offset, epoch=self._epoch, timestamp=timestamp)

    def _append(self, make: Callable[[int], bytes], on: tuple[int, ...]) -> str:
        for node_id in on or self._replicas:
            with self._log(node_id) as log:
                log.append_as_follower(make(log.end_offset.offset), self._epoch)
        return self._ends()

    def _ends(self) -> str:
        ends = []
        for node_id in self._replicas:
            with self._log(node_id) as log:
                ends.append(f"n{node_id} at {log.end_offset.offset}@{log.last_fetched_epoch}")
        return f"ends: {', '.join(ends)}"

    def _path(self, node_id: int) -> str:
        return join(f"n{node_id}", METADATA_DIRECTORY_NAME)

    def _log(self, node_id: int) -> FileLog:
        if node_id not in self._replicas:
            raise CommandError(f"there is no replica {node_id}")
        return FileLog.open(self._files, self._path(node_id))

    def _follow(self, node_id: int) -> None:
        """Let a replica note who leads the last epoch; the leader has voted for itself."""
        voted = self._leader if node_id == self._leader else -1
        self._store_state(node_id, self._epoch, self._leader, voted)

    def _store_state(self, node_id: int, epoch: int, leader: int, voted: int) -> None:
        directory_id = None if voted < 0 else _node(voted).voter_key.directory_id
        store = QuorumStateStore.open(self._files, self._path(node_id), has_log=False)
        store.write(QuorumStateData(1, leader, epoch, voted, directory_id))

    # What happens to the directories

    @command
    def vote(self, replica: int, *, candidate: int, epoch: int) -> str:
        """Let a replica vote for a candidate."""
        self._store_state(replica, epoch, -1, candidate)
        return f"n{replica} voted for {candidate} in epoch {epoch}"

    @command
    def flip_bit(self, replica: int, *, offset: int) -> str:
        """Change a bit in the records of the batch that starts at an offset."""
        path, batch = self._batch_at(replica, offset)
        flip(self._files, path, batch.position + _BYTE_IN_RECORDS)
        return f"{path}: changed a bit at position {batch.position + _BYTE_IN_RECORDS}"

    @command
    def lose_tail(self, replica: int, *, offset: int) -> str:
        """Cut the segment of a replica where the batch at an offset starts, as a disk does that lied about a sync."""
        path, batch = self._batch_at(replica, offset)
        cut(self._files, path, batch.position)
        return f"{path}: cut at position {batch.position}"

    @command
    def lose_directory(self, replica: int) -> str:
        """Take a log directory away."""
        self._replicas.remove(replica)
        return f"directories: {' '.join(f'n{each}' for each in self._replicas)}"

    def _batch_at(self, replica: int, offset: int) -> tuple[str, RecordBatch]:
        path = join(self._path(replica), _FIRST_SEGMENT)
        for piece in split(BufferSource(self._files.contents()[path])):
            if isinstance(piece, RecordBatch) and piece.base_offset == offset:
                return path, piece
        raise CommandError(f"no sound batch of replica {replica} starts at {offset}")

    # What the verbs say

    @command
    def verify(self) -> str:
        """Run ``raftlog verify`` on all directories, and print all it says but how many bytes each file has."""
        lines = self._run("verify", "-j", "1").split("\n")
        return "\n".join(line for line in lines if not _BYTE_COUNTS.match(line))

    @command
    def quorum(self) -> str:
        """Run ``raftlog quorum`` on all directories."""
        return self._run("quorum")

    @command
    def voter_sets(self) -> str:
        """Run ``raftlog voters`` on all directories."""
        return self._run("voters")

    @command
    def epochs(self) -> str:
        """Run ``raftlog epochs`` on all directories."""
        return self._run("epochs")

    @command
    def diff(self, first: int, second: int) -> str:
        """Run ``raftlog diff`` on two directories."""
        return self._run("diff", on=(first, second))

    def _run(self, verb: str, *options: str, on: tuple[int, ...] = ()) -> str:
        names = [f"n{node_id}" for node_id in on or self._replicas]
        with tempfile.TemporaryDirectory() as root:
            for path, data in self._files.contents().items():
                if path.partition("/")[0] in names:
                    target = Path(root, path)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(data)
            with contextlib.chdir(root):
                outcome = run(verb, *options, *names)
        return f"{outcome.text}{outcome.messages}exit code {outcome.exit_code}"


AUDIT_WORLDS: Final[dict[str, Callable[[], World]]] = {"directories": AuditWorld}
