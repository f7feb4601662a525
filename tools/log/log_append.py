# SPDX-License-Identifier: Apache-2.0
"""``raftlog log append``: win an election, append records from standard input, and make them durable.

Each run leads an epoch of its own: the epoch is written to quorum-state before the log has a record of it, and its part
of the log begins with a LeaderChange record. If the directory has ``bootstrap.checkpoint``, and the log has no data
yet, the records of Kafka's first leader come next (``bootstrap_records``). For a quorum of one voter, the result is the
same as Kafka's own.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from raftlog.errors import BatchTooLargeError, DecodeError, FencedEpochError, VoterSetError
from raftlog.log.control_records import KRaftControlRecordStateMachine, update_state
from raftlog.records import limits
from raftlog.records.batches.accumulator import BatchAccumulator
from raftlog.records.batches.compression import CompressionType
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.records.messages.control import ControlValue, KRaftVersionRecord, LeaderChangeMessage, Voter
from raftlog.records.messages.metadata import read_metadata_record
from raftlog.records.messages.voters import voters_record
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.storage.state.leading import lead_epoch
from raftlog.tools.log.bootstrap_records import first_records, has_bootstrap_file, has_data
from raftlog.tools.log.opened_log import DEFAULT_LISTENER_NAME, OpenedLog, add_static_voters_option, opened_local_log
from raftlog.tools.log.record_input import read_record_values
from raftlog.tools.terminal.exit_codes import EXIT_CLEAN
from raftlog.tools.terminal.verb_output import Fact, add_format_option, write_facts
from raftlog.voters.voter_set import DynamicVoter, VoterSet

_APPENDED_AT_ONCE: Final = 500


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``raftlog log append``."""
    parser.epilog = (
        'Each line of standard input is a record: {"type":"TOPIC_RECORD","version":0,"data":{...}} as dump-log --format'
        ' jsonl prints it, {"value":"text"} or {"value_base64":"..."}. All are read before anything is written; lines'
        f" of dump-log that are not data records are ignored. {parser.epilog}"
    )
    parser.add_argument("--epoch", type=int, metavar="N", help="the epoch to append in (default: the next one)")
    parser.add_argument(
        "--batch-records", type=int, default=2**31 - 1, metavar="N", help="put no more than N records in a batch"
    )
    codecs = {codec.name.lower(): codec for codec in CompressionType}
    parser.add_argument(
        "--compression-type", choices=codecs, default="none", help="how to compress batches (default: %(default)s)"
    )
    parser.add_argument(
        "--voters",
        metavar="ID@HOST:PORT:DIRECTORY-ID,...",
        help="make these the voters, after the records; at most one is new and one removed, and all majorities overlap",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="append even if this is not the only voter, and even records that Kafka cannot read",
    )
    add_static_voters_option(parser)
    add_format_option(parser)


def run(given: argparse.Namespace, now_ms: int) -> int:
    """Append, and return the exit code.

    Raises:
        ValueError: an option or a line of standard input is wrong, or the directory is for Kafka and a record is not a
            metadata record. Nothing was changed.
        VoterSetError: this is not the only voter, or the new voters may not follow the present ones. Nothing was
            changed.
        FencedEpochError: the epoch is not above all earlier ones. Nothing was changed.
        QuarantinedLogError: the log is damaged. Nothing was changed.
        DecodeError: the records of ``bootstrap.checkpoint`` are due, and it cannot be read. Nothing was changed.
        BatchTooLargeError: a record is larger than a batch may be. Nothing was changed.
        RaftLogError: as for ``opened_local_log`` and ``FileLog``.
    """
    voters = _parse_voters(given.voters)
    values = list(read_record_values(() if sys.stdin is None else sys.stdin.buffer))  # Standard input may be closed.
    _check_sizes(values)
    with opened_local_log(given.directory, given.controller_quorum_voters) as opened:
        opened.check_is_only_voter(is_forced=given.force)
        if not given.force and has_bootstrap_file(LocalFileSystem(), opened.directory.path):
            _check_metadata(values)
        if voters is not None:
            _check_change(opened.state_machine, voters)
        first_offset = opened.log.end_offset.offset
        accumulator = BatchAccumulator(
            _next_epoch(opened, given.epoch),
            first_offset,
            linger_ms=None,
            max_batch_records=given.batch_records,
            compression_type=CompressionType[given.compression_type.upper()],
            voters_in_force=opened.state_machine.voters_in_force,
        )
        accumulator.append_control_records(_first_records(opened), now_ms)
        bootstrap = [] if has_data(opened.log) else first_records(LocalFileSystem(), opened.directory.path)
        _begin_epoch(opened, accumulator.epoch)
        _append_bootstrap(accumulator, bootstrap, now_ms)
        _append_values(opened, accumulator, values, now_ms)
        if voters is not None:
            accumulator.append_voters(voters_record(voters), now_ms)
        _write(opened, accumulator)
        opened.commit_all()
        update_state(opened.state_machine, opened.log)
        write_facts(given.format, [_fact(opened, accumulator.epoch, first_offset, len(values), len(bootstrap))])
    return EXIT_CLEAN


def _parse_voters(text: str | None) -> VoterSet | None:
    if text is None:
        return None
    return VoterSet.of(DynamicVoter.parse(voter).to_voter_node(DEFAULT_LISTENER_NAME) for voter in text.split(","))


def _check_sizes(values: Iterable[bytes]) -> None:
    most = limits.MAX_BATCH_SIZE - limits.BATCH_OVERHEAD - limits.MIN_RECORD_SIZE - 2 * 5  # Two lengths grow.
    largest = max(map(len, values), default=0)
    if largest > most:
        raise BatchTooLargeError(f"a record of {largest} bytes, and {most} are the most")


def _check_metadata(values: Iterable[bytes]) -> None:
    """Refuse records that would crash Kafka's controllers.

    Raises:
        ValueError: one of them is not a metadata record.
    """
    for number, value in enumerate(values, 1):
        try:
            read_metadata_record(value)
        except DecodeError as error:
            reason = "which Kafka's controllers could not read; use --force to append it"
            raise ValueError(f"record {number} is not a metadata record of Kafka: {error}, {reason}") from None


def _check_change(machine: KRaftControlRecordStateMachine, voters: VoterSet) -> None:
    if not machine.last_kraft_version.is_reconfiguration_supported:
        raise VoterSetError("--voters needs kraft.version 1: at level 0 the configuration names the voters")
    machine.check_voter_set(voters)


def _next_epoch(opened: OpenedLog, wanted: int | None) -> int:
    epoch = opened.epoch + 1 if wanted is None else wanted
    if epoch <= opened.epoch:
        raise FencedEpochError(f"epoch {epoch} is over: this replica knows of {opened.epoch}")
    return epoch


def _begin_epoch(opened: OpenedLog, epoch: int) -> None:
    """Store durably that this replica leads an epoch, then enter it: the log is never ahead of quorum-state.

    Raises:
        QuarantinedLogError: the log is damaged. Nothing was changed.
    """
    if opened.state_machine.last_voter_set.is_only_voter(opened.replica_key):
        opened.quorum_state.accept_loss()  # Either the user forced it, or no other voter counts votes.
    # A vote may be forgotten: ``check_is_only_voter`` has allowed it, or the user has forced it.
    lead_epoch(opened.log, opened.quorum_state, _leader_state(opened, epoch), is_forced=True)


def _leader_state(opened: OpenedLog, epoch: int) -> QuorumStateData:
    leader_id = opened.replica_key.id
    if opened.state_machine.last_kraft_version.is_reconfiguration_supported:
        return QuorumStateData(1, leader_id=leader_id, leader_epoch=epoch)
    before = opened.quorum_state.state
    static_ids = tuple(opened.state_machine.last_voter_set.voters) or (leader_id,)
    voter_ids = static_ids if before is None else before.current_voters
    return QuorumStateData(0, leader_id=leader_id, leader_epoch=epoch, current_voters=voter_ids)


def _first_records(opened: OpenedLog) -> list[ControlValue]:
    """Return the first records of the epoch; they include the voters if only the bootstrap snapshot has them.

    Source: LeaderState#appendStartOfEpochControlRecords.
    """
    state = opened.state_machine
    leader = Voter(opened.replica_key.id)
    voters = tuple(map(Voter, state.last_voter_set.voters)) or (leader,)
    records: list[ControlValue] = [LeaderChangeMessage(leader.id, voters, (leader,))]
    if state.last_voter_set_offset == -1:
        records.append(KRaftVersionRecord(state.last_kraft_version.value))
        records.append(voters_record(state.last_voter_set))
    return records


def _append_bootstrap(accumulator: BatchAccumulator, values: list[bytes], now_ms: int) -> None:
    """Append the records of Kafka's first leader, in one batch of their own, so that a crash cannot leave only some."""
    if values:
        most, accumulator.max_batch_records = accumulator.max_batch_records, len(values)
        accumulator.append(accumulator.epoch, values, now_ms)
        accumulator.force_drain()
        accumulator.max_batch_records = most


def _append_values(opened: OpenedLog, accumulator: BatchAccumulator, values: list[bytes], now_ms: int) -> None:
    remaining = iter(values)
    while some := list(islice(remaining, min(_APPENDED_AT_ONCE, accumulator.max_batch_records))):
        for group in _fitting(some):
            accumulator.append(accumulator.epoch, group, now_ms)
            if accumulator.needs_drain(now_ms):
                _write(opened, accumulator)


def _fitting(values: list[bytes]) -> Iterator[list[bytes]]:
    """Yield values in groups that fit in one batch."""
    yield from [values] if sum(map(len, values)) < limits.MAX_BATCH_SIZE // 2 else ([value] for value in values)


def _write(opened: OpenedLog, accumulator: BatchAccumulator) -> None:
    for batch in accumulator.drain():
        opened.log.append_as_leader(batch.data, accumulator.epoch)
        batch.release()


def _fact(opened: OpenedLog, epoch: int, first_offset: int, record_count: int, bootstrap_count: int) -> Fact:
    end_offset = opened.log.end_offset.offset
    text = f"epoch {epoch}: offsets {first_offset} to {end_offset - 1}, of which {record_count} are records"
    text += f", after the {bootstrap_count} of bootstrap.checkpoint" if bootstrap_count else ""
    members = {
        "epoch": epoch,
        "base_offset": first_offset,
        "last_offset": end_offset - 1,
        "record_count": record_count,
        "bootstrap_record_count": bootstrap_count,
        "end_offset": end_offset,
    }
    return Fact(text, "appended", members)
