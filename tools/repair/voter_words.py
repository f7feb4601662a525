# SPDX-License-Identifier: Apache-2.0
"""A plan to rewrite voters, and what was made of it, in sentences for operators."""

from collections.abc import Iterator, Sequence

from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.repair.repair_verb import audit_words
from raftlog.tools.repair.sources import Source
from raftlog.tools.repair.voter_rewrite import Disk, PlannedVoter, VoterRewrite
from raftlog.tools.terminal.shell_quoting import shell_quoted
from raftlog.tools.terminal.value_text import ids_text, time_text

VERB = "rewrite-voters"


def plan_words(rewrite: VoterRewrite, sources: Sequence[Source], plan_path: str) -> Iterator[str]:
    """Yield what a plan says, line by line.

    Args:
        rewrite: the plan's content.
        sources: its sources.
        plan_path: of its file.
    """
    yield f"Plan: rewrite the voters of cluster {rewrite.cluster_id}. Nothing is changed yet."
    yield ""
    yield from _kept_lines(rewrite, sources)
    yield from _record_lines(rewrite)
    yield f"Election state: epoch {rewrite.quorum_epoch}, above all that a source has seen; no leader, no vote."
    yield ""
    given_up = f"voters {ids_text(rewrite.given_up)}" if rewrite.given_up else "no voter"
    yield f"Given up for good: {given_up}."
    yield f"{rewrite.verdict}."
    yield f"Proven to be committed: {rewrite.proven}."
    if rewrite.given_up:
        yield f"Records after offset {rewrite.end_offset - 1} that only these voters have are lost, committed or not."
    yield from (f"Dropped: {line}" for line in rewrite.dropped)
    yield ""
    yield from warning_words(rewrite, sources)
    yield ""
    yield "To make the new directory, which is audited before it gets its name:"
    node = "" if len(rewrite.voters) == 1 else f" --node-id {rewrite.voters[0].id}"
    yield f"  raftlog {VERB} --apply {shell_quoted(plan_path)} --out NEW{node}"
    if len(rewrite.voters) > 1:
        nodes = ids_text(voter.id for voter in rewrite.voters)
        yield f"Make one for each of the nodes {nodes}, from this plan, before any of them starts."


def _kept_lines(rewrite: VoterRewrite, sources: Sequence[Source]) -> Iterator[str]:
    role = "a voter" if rewrite.is_kept_voter else "no voter"
    yield f"Kept: the log in {sources[0].directory}, of node {rewrite.kept_node}, {role}:"
    snapshot = "no snapshot"
    if rewrite.snapshot is not None:
        snapshot = f"newest snapshot up to offset {rewrite.snapshot[0]} (exclusive) of epoch {rewrite.snapshot[1]}"
    offsets = f"offsets {rewrite.start_offset} to {rewrite.end_offset} (exclusive), last epoch {rewrite.epoch}"
    yield f"  {offsets}; {snapshot}; {sources[0].size_bytes:,} bytes."
    for name in rewrite.left_out:
        yield f"Not kept: {sources[0].path(name)}: by its name it ends inside a batch of the log: it was renamed."
    others = [source.directory for source in sources[1:]]
    yield f"Read as evidence too: {ids_text(others) or 'no other directory'}."


def _record_lines(rewrite: VoterRewrite) -> Iterator[str]:
    if not rewrite.writes_record:
        yield "Voters: kraft.version is 0, so that no record names voters. They become those of this line, in the"
        yield "configuration of every controller and every broker:"
        yield f"  {rewrite.config_line}"
        return
    where = "" if rewrite.before_offset is None else f" of offset {rewrite.before_offset}"
    time = time_text(rewrite.timestamp_ms)
    yield f"New record: offset {rewrite.end_offset}, epoch {rewrite.epoch}, of {time}: the voters"
    yield f"  {ids_text(rewrite.before)}{where} become"
    for voter in rewrite.voters:
        yield f"  {voter} (listener {voter.listener})"
    if rewrite.is_seen:
        yield "  The audit reports it as voters-rewritten (suspicious)."
    else:
        yield "  The audit cannot tell it from a change that a leader has written."


def warning_words(rewrite: VoterRewrite, sources: Sequence[Source]) -> Iterator[str]:
    """Yield which disks must never start again, and which logs must be moved aside before anything starts."""
    for disk in rewrite.never_start:
        yield f"Must never start again: node {disk.node}{_place(disk, sources, 'wherever it is')}: {disk.reason}."
    for disk in rewrite.move_aside:
        place = _place(disk, sources, "")
        yield f"Move __cluster_metadata-0 aside before it starts: node {disk.node}{place}: {disk.reason}."
    offset = rewrite.end_offset
    yield (
        f"Every other node, brokers too, whose metadata log has a record at offset {offset} or above: move its"
        " __cluster_metadata-0 aside before it starts. It has another record there of the same epoch, and neither side"
        " would notice. 'raftlog quorum DIR' shows where a log ends."
    )


def _place(disk: Disk, sources: Sequence[Source], unknown: str) -> str:
    text = unknown if disk.source is None else f"on {sources[disk.source].directory}"
    return f", {text}" if text else ""


def made_words(
    rewrite: VoterRewrite, sources: Sequence[Source], out: str, voter: PlannedVoter, findings: Sequence[Finding]
) -> Iterator[str]:
    """Yield what was made, what the audit says of it, and what to do next."""
    yield f"Made: {out}, for node {voter.id} with directory id {voter.directory_id}."
    yield from audit_words(findings)
    yield ""
    yield from warning_words(rewrite, sources)
    yield ""
    yield f"Next: let metadata.log.dir or log.dirs of node {voter.id} name {out}, or move it to theirs; then start it."
    yield (
        "If the node is a broker too, keep its directory, and put only the __cluster_metadata-0 of the new one there,"
        f" in place of its own; its meta.properties must have directory.id={voter.directory_id}."
    )
    yield "All files of it must belong to the user that the node runs as: chown them if that is not you."
    if not rewrite.writes_record:
        yield f"Configure every controller and every broker with {rewrite.config_line}"
        return
    servers = ",".join(str(each.address) for each in rewrite.voters)
    yield f"Its controller.quorum.bootstrap.servers, and the brokers', must name {servers}."
    yield "When it leads and the brokers have joined, add controllers one by one, on empty directories:"
    server = f"--bootstrap-controller {rewrite.voters[0].address}"
    yield f"  bin/kafka-metadata-quorum.sh {server} --command-config controller.properties add-controller"
