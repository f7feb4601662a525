# SPDX-License-Identifier: Apache-2.0
"""The timelines of a report: voters, leaders, and the offsets that each replica has, over the offsets of one log."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

from raftlog.records.rules import Severity
from raftlog.tools.auditing.history.timelines import EpochLead, VoterChange
from raftlog.tools.auditing.history.voter_changes import VoterDifference
from raftlog.tools.report.advice import replica_name
from raftlog.tools.report.drawing import Bar, Lane, Mark, Scale, lanes_figure, legend
from raftlog.tools.report.gathering import LogFacts, ReplicaFacts
from raftlog.tools.report.markup import Markup, element, joined
from raftlog.tools.report.tables import Cell, plain_list, table
from raftlog.tools.terminal.value_text import duration_text, seen_text, time_text
from raftlog.uuid_text import uuid_to_text
from raftlog.voters.voter_set import VoterSet

_MOST_LANES: Final = 24
_MOST_ROWS: Final = 240
_REPLICA_COLUMNS: Final = (
    "Replica",
    "Log start",
    "Log end",
    "End after recovery",
    "Epoch there",
    "Snapshots end at",
    "Damaged at offsets",
)


def timelines(log: LogFacts) -> Markup:
    """Return the timelines of a log, each with its table."""
    scale = _scale(log)
    return joined([_voters(log, scale), _epochs(log, scale), _replicas(log, scale)])


def _scale(log: LogFacts) -> Scale:
    starts = [replica.start_offset for replica in log.replicas] + [lead.start_offset for lead in log.leads]
    ends = [replica.end_offset for replica in log.replicas] + [lead.end_offset for lead in log.leads]
    start, end = min(starts, default=0), max(ends, default=0)
    if log.changes:
        start = min(start, max(0, log.changes[0].offset))
    return Scale(start, max(end, start + 1))


# Voters


def _voters(log: LogFacts, scale: Scale) -> Markup | None:
    if not log.is_raft:
        return None
    if not log.changes:
        return joined([element("h3", "Voters"), element("p", "No record, snapshot or leader names voters here.")])
    ids = sorted({voter_id for change in log.changes for voter_id in change.voters.voter_ids})
    lanes = list(_voter_lanes(ids[:_MOST_LANES], log.changes, scale))
    title = f"Who voted: {len(ids)} voters from offset {scale.start} to {scale.end}"
    figure = element(
        "figure",
        element("figcaption", "Who voted, by offset. A line is a record that names the voters."),
        lanes_figure(title, lanes, scale),
        legend([("plain", "voter"), ("fork", "voter in a log that another one contradicts")]),
        _left_out(len(ids), _MOST_LANES, "voters are not drawn"),
    )
    columns = ("Offset", "Epoch", "Time (UTC)", "kraft.version", "Voters", "Added", "Removed", "Updated", "Seen in")
    rows = table("Voter sets, oldest first", columns, map(_voter_row, log.changes), (0, 1, 3))
    more = _left_out(log.change_count, len(log.changes), "older voter sets are not shown")
    return joined([element("h3", "Voters"), figure, rows, more, _members(log.changes[-1].voters)])


def _voter_lanes(ids: Sequence[int], changes: Sequence[VoterChange], scale: Scale) -> Iterator[Lane]:
    spans = list(_spans(changes, scale.end))
    for voter_id in ids:
        bars = [_voter_bar(voter_id, *span) for span in spans if voter_id in span[0].voters.voters]
        touched = [change for change in changes if voter_id in {*change.added, *change.removed, *change.updated}]
        yield Lane(f"voter {voter_id}", bars, [Mark(max(0, change.offset), _change_text(change)) for change in touched])


def _spans(changes: Sequence[VoterChange], end: int) -> Iterator[tuple[VoterChange, int, bool]]:
    """Yield each set with the exclusive end of its offsets, and whether a later entry contradicts it."""
    for change, following in itertools.zip_longest(changes, changes[1:]):
        is_denied = following is not None and following.offset <= change.offset
        yield change, end if following is None or is_denied else following.offset, is_denied


def _voter_bar(voter_id: int, change: VoterChange, end: int, is_denied: bool) -> Bar:
    start = max(0, change.offset)
    addresses = change.voters.voters[voter_id].listeners.listeners
    where = ", ".join(f"{name}://{address}" for name, address in addresses.items()) or "address not known"
    title = f"voter {voter_id}, offsets {start} to {end - 1}: {where}"
    return Bar(start, end, "fork" if is_denied else "plain", title)


def _change_text(change: VoterChange) -> str:
    difference = VoterDifference(change.added, change.removed, change.updated)
    return f"offset {change.offset}, epoch {change.epoch}: {difference if len(difference) else 'nothing changed'}"


def _voter_row(change: VoterChange) -> tuple[Cell, ...]:
    return (
        change.offset,
        change.epoch,
        time_text(change.timestamp),
        change.kraft_version,
        plain_list(change.voters.voter_ids),
        plain_list(change.added),
        plain_list(change.removed),
        plain_list(change.updated),
        seen_text(change.seen_in),
    )


def _members(voters: VoterSet) -> Markup:
    rows = (
        (
            voter_id,
            None if node.voter_key.directory_id is None else uuid_to_text(node.voter_key.directory_id),
            plain_list(f"{name}://{address}" for name, address in node.listeners.listeners.items()),
            f"{node.supported_kraft_versions.minimum} to {node.supported_kraft_versions.maximum}",
        )
        for voter_id, node in itertools.islice(voters.voters.items(), _MOST_ROWS)
    )
    shown = table("Voters in force at the end", ("Voter", "Directory id", "Endpoints", "kraft.version"), rows)
    return joined([shown, _left_out(len(voters), _MOST_ROWS, "voters are not shown")])


# Epochs


def _epochs(log: LogFacts, scale: Scale) -> Markup:
    if not log.leads:
        return joined([element("h3", "Epochs"), element("p", "No batch of this log is here.")])
    lanes = list(_epoch_lanes(log, scale))
    title = f"{log.lead_count} epochs from offset {scale.start} to {scale.end}"
    figure = element(
        "figure",
        element("figcaption", f"{'Who led' if log.is_raft else 'Epochs'}, by offset; numbers are epochs."),
        lanes_figure(title, lanes[:_MOST_LANES], scale),
        legend([("plain", "epoch"), ("fork", "contradicts another epoch"), ("gap", "in no sound batch here")]),
        _left_out(len(lanes), _MOST_LANES, "lanes are not drawn"),
    )
    more = _left_out(log.lead_count, len(log.leads), "older epochs are not shown")
    heading = element("h3", "Epochs and leaders" if log.is_raft else "Epochs")
    return joined([heading, figure, _epoch_table(log), more])


def _epoch_table(log: LogFacts) -> Markup:
    columns = ["Epoch", "From", "To", "Start (UTC)", "Lasted", "Seen in"]
    if log.is_raft:
        columns += ["Records", "Leader", "Granted by", "Of voters"]
    rows = (_epoch_row(lead)[: len(columns)] for lead in log.leads)
    return table("Epochs, oldest first; To is exclusive", columns, rows, (0, 1, 2, 4, 6, 7))


def _epoch_lanes(log: LogFacts, scale: Scale) -> Iterator[Lane]:
    denied = _denied(log.leads)
    leaders = sorted({lead.leader_id for lead in log.leads}, key=lambda leader: (leader is None, leader))
    for leader_id in leaders:
        name = f"leader {leader_id}" if leader_id is not None else "leader not known" if log.is_raft else "epochs"
        bars = [_epoch_bar(lead, lead in denied) for lead in log.leads if lead.leader_id == leader_id]
        yield Lane(name, bars)
    if gaps := list(_gaps(log, scale)):
        yield Lane("no records", gaps)


def _denied(leads: Sequence[EpochLead]) -> set[EpochLead]:
    """Return the epochs that occur twice, or overlap a later one."""
    found = set()
    for lead, following in itertools.pairwise(leads):
        if lead.epoch == following.epoch:
            found |= {lead, following}
        elif lead.end_offset > following.start_offset:
            found.add(lead)
    return found


def _epoch_bar(lead: EpochLead, is_denied: bool) -> Bar:
    leader = "" if lead.leader_id is None else f", led by {lead.leader_id}"
    title = f"epoch {lead.epoch}{leader}: offsets {lead.start_offset} to {lead.end_offset - 1}"
    return Bar(lead.start_offset, lead.end_offset, "fork" if is_denied else "plain", title, str(lead.epoch))


def _gaps(log: LogFacts, scale: Scale) -> Iterator[Bar]:
    end = scale.start
    for lead in sorted(log.leads, key=lambda each: each.start_offset):
        if lead.start_offset > end:
            yield Bar(
                end, lead.start_offset, "gap", f"offsets {end} to {lead.start_offset - 1} are in no sound batch here"
            )
        end = max(end, lead.end_offset)
    if end < scale.end and log.leads:
        yield Bar(end, scale.end, "gap", f"offsets {end} to {scale.end - 1} are in no sound batch here")


def _epoch_row(lead: EpochLead) -> tuple[Cell, ...]:
    return (
        lead.epoch,
        lead.start_offset,
        lead.end_offset,
        time_text(lead.start_timestamp),
        duration_text(lead.duration_ms),
        seen_text(lead.seen_in),
        lead.record_count,
        lead.leader_id,
        plain_list(lead.granting_voters),
        plain_list(lead.voters),
    )


# Replicas


def _replicas(log: LogFacts, scale: Scale) -> Markup:
    lanes = [_replica_lane(replica) for replica in log.replicas[:_MOST_LANES]]
    figure = element(
        "figure",
        element("figcaption", "Which offsets each replica has, and where they are damaged."),
        lanes_figure(f"Offsets {scale.start} to {scale.end} on {len(log.replicas)} replicas", lanes, scale),
        legend([("plain", "in segments"), ("snapshot", "in a snapshot alone")], (Severity.DAMAGED, Severity.DATA_LOSS)),
        _left_out(len(log.replicas), _MOST_LANES, "replicas are not drawn"),
    )
    rows = table("Replicas", _REPLICA_COLUMNS, map(_replica_row, log.replicas[:_MOST_ROWS]), (1, 2, 3, 4))
    more = _left_out(len(log.replicas), _MOST_ROWS, "replicas are not shown")
    return joined([element("h3", "Replicas"), figure, rows, more])


def _replica_lane(replica: ReplicaFacts) -> Lane:
    start, end = replica.start_offset, replica.end_offset
    newest = max((offset for offset, _ in replica.snapshot_ends), default=0)
    bars = [Bar(start, end, "plain", f"offsets {start} to {end - 1} are in segments")]
    if start:
        bars.append(Bar(0, min(start, newest), "snapshot", f"offsets below {min(start, newest)} are in a snapshot"))
    marks = [
        Mark(finding.offset, f"offset {finding.offset}: {finding.severity.value}: {finding.reason}", finding.severity)
        for finding in replica.damage
        if finding.offset is not None
    ]
    return Lane(replica_name(replica), bars, marks)


def _replica_row(replica: ReplicaFacts) -> tuple[Cell, ...]:
    offsets = sorted({finding.offset for finding in replica.damage if finding.offset is not None})
    return (
        replica_name(replica),
        replica.start_offset,
        replica.end_offset,
        replica.reach.offset,
        None if replica.reach.epoch < 0 else replica.reach.epoch,
        plain_list(offset for offset, _ in replica.snapshot_ends),
        plain_list(offsets),
    )


def _left_out(count: int, shown: int, what: str) -> Markup | None:
    return element("p", f"{count - shown:,} {what}.", class_="note") if count > shown else None
