# SPDX-License-Identifier: Apache-2.0
"""``raftlog quorum``: what ``kafka-metadata-quorum describe`` says of a running quorum, from directories alone."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.quorum_view import Member, QuorumView, quorum_view
from raftlog.tools.auditing.timelines import voters_json
from raftlog.tools.quorum_files import ids_text, show_logs, table
from raftlog.tools.standard_error import printable, unicode_text
from raftlog.tools.verb_output import object_line
from raftlog.uuid_text import uuid_to_text
from raftlog.voter_set import ReplicaKey, VoterNode

_COLUMNS: Final = ("NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastEpoch", "Status", "Directory")
_LABEL_WIDTH: Final = 24


def run(arguments: Sequence[str]) -> int:
    """Run ``raftlog quorum`` with what follows it on the command line, and return the exit code."""
    description = "Show a quorum that is not running: who led, who votes, who could be elected, what may be lost."
    return show_logs("quorum", description, _lines, arguments)


def _lines(log: Sequence[PartitionEvidence], output_format: str) -> Iterable[str] | None:
    view = quorum_view(log)
    if view is None:
        return None
    return _text(view) if output_format == "text" else _objects(view)


# For programs


def _objects(view: QuorumView) -> Iterator[str]:
    yield object_line(
        "quorum",
        {
            "cluster_id": view.cluster_id,
            "leader_id": view.leader_id,
            "leader_epoch": view.leader_epoch,
            "high_watermark_at_least": view.high_watermark,
            "max_follower_lag": view.max_follower_lag,
            "voters": voters_json(view.voters),
            "voters_present": view.present,
            "majority": view.voters.majority_size,
            "has_majority": view.has_majority,
        },
    )
    for member in view.members:
        key = member.key
        yield object_line(
            "replica",
            {
                "node_id": None if key is None else key.id,
                "directory_id": None if key is None else _directory_id(key),
                "directory": None if member.path is None else unicode_text(member.path),
                "log_end_offset": None if member.end is None else member.end.offset,
                "lag": member.lag,
                "last_epoch": None if member.end is None else member.end.epoch,
                "status": member.status,
                "electable": member.electable,
                "electable_with_absent": member.electable_with_absent,
                "at_risk_from": member.at_risk,
                "damaged_from": member.damaged_from,
                "quarantined_from": member.quarantined_from,
            },
        )


def _directory_id(key: ReplicaKey) -> str | None:
    return None if key.directory_id is None else uuid_to_text(key.directory_id)


# For people


def _text(view: QuorumView) -> Iterator[str]:
    yield from _status(view)
    yield ""
    yield from table([_COLUMNS, *map(_row, view.members)])
    yield ""
    yield from view_words(view)


def _status(view: QuorumView) -> Iterator[str]:
    observers = [member.key for member in view.members if member.status == "Observer" and member.key is not None]
    facts: dict[str, Any] = {
        "ClusterId": view.cluster_id or "not known",
        "LeaderId": view.leader_id,
        "LeaderEpoch": view.leader_epoch,
        "HighWatermark": f"{view.high_watermark} or more: {view.committed_by}",
        "MaxFollowerLag": view.max_follower_lag,
        "CurrentVoters": json.dumps([_voter(node) for node in view.voters.voters.values()]),
        "CurrentObservers": json.dumps([_replica(key) for key in observers]),
    }
    for label, value in facts.items():
        yield f"{label + ':':{_LABEL_WIDTH}}{printable(str(value))}"


def _replica(key: ReplicaKey) -> dict[str, Any]:
    directory_id = _directory_id(key)
    return {"id": key.id} | ({} if directory_id is None else {"directoryId": directory_id})


def _voter(node: VoterNode) -> dict[str, Any]:
    addresses = [f"{name}://{address}" for name, address in node.listeners.listeners.items()]
    return _replica(node.voter_key) | ({"endpoints": addresses} if addresses else {})


def _row(member: Member) -> tuple[object, ...]:
    key, end = member.key, member.end
    return (
        "?" if key is None else key.id,
        (key and _directory_id(key)) or "-",
        "-" if end is None else end.offset,
        "-" if member.lag is None else member.lag,
        "-" if end is None else end.epoch,
        member.status,
        member.path or "not given",
    )


def view_words(view: QuorumView) -> Iterator[str]:
    """Yield what follows from a view, in sentences: whether it can go on, who could lead it, what may be lost."""
    majority = view.voters.majority_size
    absent = _names(member for member in view.members if member.status == "Absent")
    missing = f"; {absent} not given" if absent else ""
    missing += f"; {view.quarantined} in quarantine" if view.quarantined else ""
    if not len(view.voters):
        yield "Nothing here says who votes."
    elif view.has_majority:
        yield f"A majority is here: {view.present} of {len(view.voters)} voters, where {majority} suffice{missing}."
        yield from _elections(view)
    else:
        yield f"No majority is here: {view.present} of {len(view.voters)} voters, where {majority} are needed{missing}."
        yield "They can elect nobody, and what the others have above the high watermark is not known."
    yield from _copies(view)
    yield from _damage(view)
    yield from _losses(view)


def _elections(view: QuorumView) -> Iterator[str]:
    able = _names(member for member in view.members if member.electable)
    with_help = _names(member for member in view.members if member.electable is False and member.electable_with_absent)
    whole = [member for member in view.members if member.quarantined_from is None]
    unable = _names(member for member in whole if member.electable_with_absent is False)
    if able:
        yield f"Could be elected: {able}, as no majority here has a longer log."
    if with_help:
        yield f"Could be elected by voters that were not given: {with_help}, if they have no longer log."
    if unable:
        yield f"Could not be elected: {unable}, behind a majority."


def _copies(view: QuorumView) -> Iterator[str]:
    """Yield who was given twice: one of the directories is a copy, and an old one must not be started."""
    paths: dict[ReplicaKey, list[str]] = {}
    for member in view.members:
        if member.key is not None and member.path is not None:
            paths.setdefault(member.key, []).append(printable(member.path))
    for key, found in paths.items():
        if len(found) > 1:
            where = ids_text(found)
            yield f"Given {len(found)} times: {key.id}, in {where}. Only the one that reaches furthest counts."


def _damage(view: QuorumView) -> Iterator[str]:
    """Yield what a start would do to damaged logs: an operator should copy them before."""
    for member in view.members:
        if member.damaged_from is None:
            continue
        yield (
            f"Damaged: the log of {_name(member)} from offset {member.damaged_from} on, which is not counted here."
            " Kafka may cut it there when it starts: copy the directory first."
        )
        if member.quarantined_from is not None:
            yield (
                f"In quarantine: {_name(member)}, as raftlog had made more than that durable. It neither votes nor"
                " leads until a leader has sent it the rest."
            )


def _losses(view: QuorumView) -> Iterator[str]:
    at_risk = [member for member in view.members if member.at_risk is not None and member.end is not None]
    for member in at_risk:
        last = member.end.offset - 1 if member.end is not None else member.at_risk
        offsets = f"offset {last}" if member.at_risk == last else f"offsets {member.at_risk} to {last}"
        yield f"May be lost: {offsets} of {_name(member)}, as somebody could be elected who lacks them."
    if view.has_majority and not at_risk and all(member.damaged_from is None for member in view.members):
        yield "Nothing can be lost: whoever could be elected has all that is here."


def _names(members: Iterable[Member]) -> str:
    return ids_text(_name(member) for member in members)


def _name(member: Member) -> str:
    return str(member.key.id) if member.key is not None else f"the replica in {printable(member.path or '?')}"
