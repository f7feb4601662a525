# SPDX-License-Identifier: Apache-2.0
"""``raftlog log info``: show the contents of a log directory.

The directory is opened as its owner would open it, but all writes stay in memory. So the recovery report shows what the
next startup will find and do. No lock is taken: a log that is being written is shown in its current state.
"""

import argparse
import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

from raftlog.errors import DecodeError, MissingFileError
from raftlog.file_system import FileSystem
from raftlog.records.messages.control import control_json
from raftlog.records.messages.voters import voters_record
from raftlog.snapshot.directory import SnapshotDirectory
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.storage.recovery.leader_epoch_checkpoint import LeaderEpochCheckpoint
from raftlog.storage.recovery.recovery_report import ActionKind, RecoveryReport
from raftlog.storage.state.quorum_state_store import StoredQuorumState
from raftlog.tools.log.bootstrap_records import has_bootstrap_file, has_data, sets_metadata_version
from raftlog.tools.log.opened_log import OpenedLog, add_static_voters_option, opened_log
from raftlog.tools.log.overlay_file_system import OverlayFileSystem
from raftlog.tools.terminal.exit_codes import EXIT_CLEAN, EXIT_DAMAGE, EXIT_SUSPICIOUS
from raftlog.tools.terminal.json_lines import path_member
from raftlog.tools.terminal.verb_output import Fact, add_format_option, write_facts
from raftlog.uuid_text import uuid_to_text
from raftlog.voters.voter_set import VoterSet

_DAMAGE: Final = frozenset({ActionKind.SET_ASIDE, ActionKind.IGNORED, ActionKind.LOST})


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``raftlog log info``."""
    parser.epilog = f"Nothing is written, and no lock is taken. {parser.epilog}"
    add_static_voters_option(parser)
    add_format_option(parser)


def run(given: argparse.Namespace, now_ms: int) -> int:
    """Show the contents; return the exit code for damage, a torn tail or a missing metadata.version, or neither.

    Raises:
        RaftLogError: as for ``opened_log``.
    """
    with (
        closing(OverlayFileSystem(LocalFileSystem())) as file_system,
        opened_log(file_system, given.directory, given.controller_quorum_voters) as opened,
    ):
        lacks_version = _lacks_metadata_version(file_system, opened)
        write_facts(given.format, list(_facts(file_system, opened, lacks_version=lacks_version)))
        return _exit_code(opened.log.recovery, opened.quorum_state.recovered, lacks_version=lacks_version)


def _lacks_metadata_version(file_system: FileSystem, opened: OpenedLog) -> bool:
    """Whether Kafka would not start on its own log, because no record sets metadata.version.

    False for a damaged log, since the damage may have destroyed that record.
    """
    if opened.log.quarantine is not None or not has_bootstrap_file(file_system, opened.directory.path):
        return False
    return has_data(opened.log) and not sets_metadata_version(opened.log)


def _exit_code(report: RecoveryReport, quorum_state: StoredQuorumState, *, lacks_version: bool) -> int:
    kinds = {action.kind for action in report.actions}
    if report.quarantine is not None or kinds & _DAMAGE or any(map(_is_damage, quorum_state.problems)):
        return EXIT_DAMAGE
    return EXIT_SUSPICIOUS if ActionKind.CUT in kinds or lacks_version else EXIT_CLEAN


def _is_damage(problem: Exception) -> bool:
    return isinstance(problem, DecodeError)


def _facts(file_system: FileSystem, opened: OpenedLog, *, lacks_version: bool) -> Iterator[Fact]:
    yield _directory(opened)
    yield _log(opened)
    yield from _epochs(file_system, opened)
    yield from _snapshots(file_system, opened)
    yield from _voters(opened)
    if lacks_version:
        reason = "no record sets metadata.version, as bootstrap.checkpoint does: Kafka does not start on this log"
        yield Fact(reason, "metadata_version_missing", {})
    yield _quorum_state(opened)
    yield from _recovery(opened.log.recovery)


def _directory(opened: OpenedLog) -> Fact:
    meta = opened.directory.meta
    directory_id = None if meta.directory_id is None else uuid_to_text(meta.directory_id)
    members = {
        **path_member("directory", opened.directory.path),
        "cluster_id": meta.cluster_id,
        "node_id": meta.node_id,
        "directory_id": directory_id,
    }
    text = f"{opened.directory.path}: node {meta.node_id}, directory {directory_id}, cluster {meta.cluster_id}"
    return Fact(text, "log_directory", members)


def _log(opened: OpenedLog) -> Fact:
    log, report = opened.log, opened.log.recovery
    members: dict[str, Any] = {
        "start_offset": log.start_offset,
        "end_offset": log.end_offset.offset,
        "epoch": log.last_fetched_epoch,
        "kraft_version": opened.state_machine.last_kraft_version.value,
        "durable_end_offset": report.durable_end_offset,
        "was_closed": report.was_closed,
    }
    text = f"{report.lines()[0]}; epoch {members['epoch']}, kraft.version {members['kraft_version']}"
    return Fact(text, "log", members)


def _epochs(file_system: FileSystem, opened: OpenedLog) -> Iterator[Fact]:
    try:
        entries = LeaderEpochCheckpoint(file_system, opened.directory.log_path).load().entries
    except MissingFileError:
        return  # A log without batches has no epochs.
    for entry in entries:
        members = {"epoch": entry.epoch, "start_offset": entry.start_offset}
        yield Fact(f"epoch {entry.epoch} from offset {entry.start_offset} on", "epoch", members)


def _snapshots(file_system: FileSystem, opened: OpenedLog) -> Iterator[Fact]:
    snapshots = SnapshotDirectory(file_system, opened.directory.log_path)
    for snapshot_id in opened.log.snapshot_ids:
        summary = snapshots.verify(snapshot_id)
        members = {
            "end_offset": snapshot_id.offset,
            "epoch": snapshot_id.epoch,
            "size_bytes": summary.size_bytes,
            "batch_count": summary.batch_count,
            "record_count": summary.record_count,
            "last_contained_log_timestamp": summary.header.last_contained_log_timestamp,
        }
        text = f"snapshot up to offset {snapshot_id.offset} (exclusive), epoch {snapshot_id.epoch}"
        yield Fact(f"{text}: {summary.record_count} records, {summary.size_bytes} bytes", "snapshot", members)


def _voters(opened: OpenedLog) -> Iterator[Fact]:
    static = opened.state_machine.static_voters
    if static:
        ignored = "" if opened.state_machine.last_voter_set_offset is None else ", which records have replaced"
        yield Fact(f"static voters {static}{ignored}", "static_voters", {"voters": _voters_json(static)})
    for entry in opened.state_machine.voter_sets():
        members = {"offset": entry.offset, "voters": _voters_json(entry.value)}
        yield Fact(f"voters {entry.value} from offset {entry.offset} on", "voters", members)
    for violation in opened.state_machine.violations():
        members = {
            "offset": violation.offset,
            "previous_offset": violation.previous_offset,
            "problems": [problem.value for problem in violation.problems],
        }
        yield Fact(f"voters that should not have been written: {violation}", "voters_violation", members)


def _voters_json(voters: VoterSet) -> Any:
    return json.loads(control_json(voters_record(voters)))["voters"]


def _quorum_state(opened: OpenedLog) -> Fact:
    recovered = opened.quorum_state.recovered
    state = recovered.state
    members: dict[str, Any] = {"origin": recovered.origin.value, "may_vote": recovered.may_vote}
    text = f"quorum-state: {recovered.origin.value}"
    if state is not None:
        voted = None if state.voted_key is None else str(state.voted_key)
        members |= {"leader_id": state.leader_id, "leader_epoch": state.leader_epoch, "voted": voted}
        text = f"quorum-state: epoch {state.leader_epoch}, leader {state.leader_id}, voted for {voted}"
    text += "" if recovered.may_vote else "; it may have forgotten a vote, and must not vote"
    members["problems"] = [str(problem) for problem in recovered.problems]
    return Fact("; ".join([text, *members["problems"]]), "quorum_state", members)


def _recovery(report: RecoveryReport) -> Iterator[Fact]:
    for action in report.actions:
        members = {
            "action": action.kind.value,
            **path_member("file", action.path),
            "detail": action.detail,
            **path_member("copy", action.copy),
        }
        yield Fact(f"the next start: {action}", "recovery_action", members)
    if report.quarantine is not None:
        bad = report.quarantine
        place: dict[str, Any] = {
            "first_bad_offset": bad.first_bad_offset,
            "durable_end_offset": bad.durable_end_offset,
            **path_member("file", bad.path),
            "position": bad.position,
            "reason": bad.reason,
        }
        yield Fact(report.lines()[-1], "quarantine", place)
