# SPDX-License-Identifier: Apache-2.0
"""``raftlog voters``: the voter set from each offset on, by the logs and snapshots of all given replicas."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from raftlog.tools.audit_verbs.quorum_files import make_quorum_parser, show_logs
from raftlog.tools.audit_verbs.two_looks import Reading
from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.history.timelines import VoterChange, voter_timeline
from raftlog.tools.auditing.history.voter_changes import VoterDifference
from raftlog.tools.terminal.argument_parser import Parser
from raftlog.tools.terminal.json_lines import json_line, path_list_member
from raftlog.tools.terminal.table_lines import table
from raftlog.tools.terminal.value_text import ids_text, seen_text, time_text
from raftlog.uuid_text import ZERO_UUID, uuid_to_text
from raftlog.voters.voter_set import VoterSet

_COLUMNS: Final = ("OFFSET", "EPOCH", "TIME", "KRAFT.VERSION", "VOTERS", "CHANGE", "SEEN IN")
_NUMERIC: Final = frozenset({0, 1, 3})


def run(arguments: Sequence[str]) -> int:
    """Run ``raftlog voters`` with what follows it on the command line, and return the exit code."""
    return show_logs(make_parser(), _lines, arguments)


def make_parser() -> Parser:
    """Return the parser of the verb's arguments."""
    return make_quorum_parser(
        "voters", "Show the voter set from each offset on, what each change was, and which files it was found in."
    )


def _lines(log: Sequence[PartitionEvidence], output_format: str, _: Reading) -> Iterable[str]:
    changes = voter_timeline(log)
    if output_format == "text":
        return _text(changes)
    return (
        json_line("voters", None, **change.to_json(), **path_list_member("seen_in", change.seen_in))
        for change in changes
    )


def _text(changes: Sequence[VoterChange]) -> Iterator[str]:
    if not changes:
        yield "No record, snapshot or leader names voters here."
        return
    rows = [_row(change, "nothing changed" if index else "first known") for index, change in enumerate(changes)]
    yield from table([_COLUMNS, *rows], _NUMERIC)
    newest = changes[-1]
    yield ""
    yield f"In force: {len(newest.voters)} voters; {newest.voters.majority_size} are a majority."
    yield from _members(newest.voters)


def _row(change: VoterChange, otherwise: str) -> tuple[object, ...]:
    difference = VoterDifference(change.added, change.removed, change.updated)
    return (
        change.offset,
        change.epoch,
        time_text(change.timestamp),
        change.kraft_version,
        ids_text(change.voters.voter_ids) or "none",
        difference if len(difference) else otherwise,
        seen_text(change.seen_in),
    )


def _members(voters: VoterSet) -> Iterator[str]:
    for voter_id, node in voters.voters.items():
        versions = node.supported_kraft_versions
        addresses = [f"{name}://{address}" for name, address in node.listeners.listeners.items()]
        directory_id = node.voter_key.directory_id or ZERO_UUID
        known = uuid_to_text(directory_id) if directory_id != ZERO_UUID else "directory not known"
        ranges = f"kraft.version {versions.minimum} to {versions.maximum}"
        yield "  ".join((f"  {voter_id}", known, *addresses, ranges))
