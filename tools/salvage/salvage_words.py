# SPDX-License-Identifier: Apache-2.0
"""A plan to salvage a log, and what was made of it, in sentences for operators."""

from collections.abc import Iterator, Sequence
from typing import Final

from raftlog.tools.auditing.history.verdict_words import offsets_text
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.repair.repair_verb import audit_words
from raftlog.tools.repair.sources import Source
from raftlog.tools.salvage.merging import Conflict
from raftlog.tools.salvage.salvage_plan import Loss, Salvage
from raftlog.tools.terminal.shell_quoting import shell_quoted
from raftlog.tools.terminal.value_text import ids_text

VERB: Final = "salvage"
_MOST_LINES: Final = 20
_ASIDE: Final = "move the __cluster_metadata-0 aside before it starts, or nothing would notice."


def plan_words(salvage: Salvage, sources: Sequence[Source], plan_path: str) -> Iterator[str]:
    """Yield what a plan says, line by line.

    Args:
        salvage: the plan's content.
        sources: its sources.
        plan_path: of its file.
    """
    yield f"Plan: salvage the metadata log of cluster {salvage.cluster_id or '?'}. Nothing is changed yet."
    yield ""
    yield from _log_lines(salvage, sources)
    yield ""
    yield f"{salvage.verdict}."
    yield f"Proven to be committed: {salvage.proven}."
    yield from _loss_lines(salvage)
    yield from _damaged_lines(salvage, sources)
    yield from (_conflict_line(conflict, sources) for conflict in salvage.conflicts)
    yield from (f"Not used: {line}" for line in salvage.dropped)
    yield from (f"Nothing vouches for its place or epoch: {line}" for line in salvage.doubted)
    yield from _flaw_lines(salvage, sources)
    yield from _replacement_lines(salvage, sources)
    if not salvage.sets_version:
        yield "No record anywhere sets metadata.version: if this is a log of Kafka, Kafka 4 does not start on it."
    yield from _given_up_lines(salvage, sources)
    yield ""
    yield from _owner_lines(salvage, sources)
    yield ""
    yield "To make the new directory, which is audited before it gets its name:"
    yield f"  raftlog {VERB} --apply {shell_quoted(plan_path)} --out NEW"


def _log_lines(salvage: Salvage, sources: Sequence[Source]) -> Iterator[str]:
    if salvage.pieces:
        offsets = f"offsets {salvage.start_offset} to {salvage.end_offset} (exclusive), last epoch {salvage.epoch}"
    else:
        offsets = f"empty, from offset {salvage.start_offset} on, after the snapshot"
    yield f"The log: {offsets}. It is taken from"
    for number, source in enumerate(sources):
        size = salvage.size_from(number)
        names = [snapshot.name.rpartition("/")[2] for snapshot in salvage.snapshots if snapshot.source == number]
        found = [f"{size:,} bytes of batches"] if size else []
        found += [f"the snapshots {ids_text(names)}" if len(names) > 1 else f"the snapshot {names[0]}"] if names else []
        yield f"  {source.directory}: {' and '.join(found) or 'nothing'}"
    if salvage.start_offset > 0:
        yield f"Records below offset {salvage.start_offset} are in the snapshot alone."


def _loss_lines(salvage: Salvage) -> Iterator[str]:
    if salvage.end_offset < salvage.proven_end:
        lost = offsets_text(salvage.end_offset, salvage.proven_end)
        yield f"COMMITTED RECORDS ARE LOST: {lost} are proven to be committed, and the result does not have them."
    if not salvage.losses:
        vouched = "that can be vouched for, but see below" if salvage.gives_up else "that a source shows"
        yield f"Lost of this lineage: nothing {vouched}."
    for loss in salvage.losses:
        yield _loss_line(loss)
        yield from (f"  {line}" for line in loss.words)


def _loss_line(loss: Loss) -> str:
    size = f" ({loss.size_bytes:,} bytes)" if loss.size_bytes else ""
    return f"Lost: {offsets_text(loss.start_offset, loss.end_offset)}{size}: {loss.reason}."


def _damaged_lines(salvage: Salvage, sources: Sequence[Source]) -> Iterator[str]:
    """Yield which bytes may have been records after the end, which nobody can read; the first of them."""
    for each in salvage.damaged_after[:_MOST_LINES]:
        size = "1 byte is" if each.size_bytes == 1 else f"{each.size_bytes:,} bytes are"
        yield (
            f"Not readable: {sources[each.source].directory}: from byte {each.position} of {each.file} on, {size} no"
            f" sound batch: {each.reason}. Records there would be of offset {each.start_offset} or later."
        )
    if len(salvage.damaged_after) > _MOST_LINES:
        yield f"And {len(salvage.damaged_after) - _MOST_LINES:,} more of these; the plan has all."


def _flaw_lines(salvage: Salvage, sources: Sequence[Source]) -> Iterator[str]:
    """Yield which batches are not as a leader writes them: those that are left out, and what the result will have."""
    for each in salvage.flaws[:_MOST_LINES]:
        what = f"the batch of offset {each.offset} in {sources[each.source].directory}: {each.reason} [{each.rule}]"
        if each.is_taken:
            yield f"In the result, where the audit will find it, as no source has another: {what}."
        else:
            yield f"Not used, as no leader has written it, and another source has one that is right: {what}."
    if len(salvage.flaws) > _MOST_LINES:
        yield f"And {len(salvage.flaws) - _MOST_LINES:,} more of these; the plan has all."


def _replacement_lines(salvage: Salvage, sources: Sequence[Source]) -> Iterator[str]:
    if salvage.passed:
        offsets = ids_text(salvage.passed)
        yield f"Passed: the log begins after the records at {offsets}: what they have done is in the snapshot alone."
    for each in salvage.replacements:
        yield f"Replaced: {ids_text(each.offsets)} by a no-op, at the same offset and in the same epoch. It was:"
        yield from (f"  {line}" for line in each.words)
        holders = ids_text(sources[number].directory for number in each.holders)
        yield (
            f"  {holders} have the record itself, as every other node may whose log reaches offset {each.offsets[0]}:"
            " brokers, too. Move their __cluster_metadata-0 aside before they start: they would have other bytes there,"
            " and nothing would notice."
        )


def _conflict_line(conflict: Conflict, sources: Sequence[Source]) -> str:
    kept, left_out = (
        ids_text(sources[number].directory for number in numbers) for numbers in (conflict.kept, conflict.left_out)
    )
    settled = "the former is taken, which a majority has, or which alone can follow the batch before it"
    taken = settled if conflict.is_settled else "none is taken"
    advice = "" if conflict.is_settled else " If you know which is right, plan again without the others' directories."
    return (
        f"Conflict: at offset {conflict.offset}, {kept} and {left_out} have sound batches of epoch {conflict.epoch}"
        f" with different bytes: {taken}, and no record from there on is taken from {left_out}.{advice}"
    )


def _given_up_lines(salvage: Salvage, sources: Sequence[Source]) -> Iterator[str]:
    if salvage.gives_up:
        yield (
            f"If a node that was not given has records at offset {salvage.end_offset} or above, plan again with its"
            " directory first."
        )
        yield (
            f"Records at offset {salvage.end_offset} and above, and those of other lineages, are given up. Every other"
            " node that has some in its log or in a snapshot, brokers too, must have its __cluster_metadata-0 moved"
            " aside before it starts: a voter that has them could be elected."
        )
    for name in sorted({sources[flaw.source].directory for flaw in salvage.flaws if not flaw.is_taken}):
        yield f"{name}: other bytes than the result has: {_ASIDE}"
    for conflict in salvage.conflicts:
        names = ids_text(sources[number].directory for number in conflict.left_out)
        yield (f"{names}: other bytes than the result has, from offset {conflict.offset} on: {_ASIDE}")


def _owner_lines(salvage: Salvage, sources: Sequence[Source]) -> Iterator[str]:
    owner = salvage.owner
    if owner is None:
        yield (
            "Only the log is made, without an identity (--node-id): put it in place of the __cluster_metadata-0 of a"
            " stopped node, with that node's own quorum-state."
        )
    elif owner.state_source is None:
        yield f"For node {owner.node_id}, with the new directory id {owner.directory_id}: {_NO_STATE}"
    else:
        directory = sources[owner.state_source].directory
        yield (
            f"For node {owner.node_id}, with directory id {owner.directory_id} and the quorum-state of {directory}."
            " That directory must never start again beside the new one."
        )


_NO_STATE: Final = (
    "its quorum-state is not here, and under its old id it could vote twice in an epoch. It is no voter until it is"
    " added."
)


def made_words(salvage: Salvage, sources: Sequence[Source], out: str, findings: Sequence[Finding]) -> Iterator[str]:
    """Yield what was made, what the audit says of it, and what to do next."""
    yield f"Made: {out}, with the log up to offset {salvage.end_offset} (exclusive)."
    yield from audit_words(findings)
    yield ""
    yield from _replacement_lines(salvage, sources)
    yield from _owner_lines(salvage, sources)
    yield from _next_lines(salvage, sources, out)


def _next_lines(salvage: Salvage, sources: Sequence[Source], out: str) -> Iterator[str]:
    owner = salvage.owner
    if owner is not None:
        yield f"Let metadata.log.dir or log.dirs of node {owner.node_id} name {out}, or move it to theirs."
        yield (
            "If the node is a broker too, keep its directory, and put only the __cluster_metadata-0 of the new one"
            f" there, in place of its own; its meta.properties must have directory.id={owner.directory_id}."
        )
    yield "All files of it must belong to the user that the node runs as: chown them if that is not you."
    yield from _given_up_lines(salvage, sources)
    yield "'raftlog quorum' says who can be elected with it. If no majority is left: raftlog rewrite-voters."
