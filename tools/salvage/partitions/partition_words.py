# SPDX-License-Identifier: Apache-2.0
"""A plan to salvage a topic's partition, and what was made of it, in sentences for operators."""

from collections.abc import Iterator, Sequence
from typing import Final

from raftlog.tools.auditing.history.verdict_words import offsets_text
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.repair.repair_verb import audit_words
from raftlog.tools.repair.sources import Source
from raftlog.tools.salvage.merging import Conflict
from raftlog.tools.salvage.partitions.partition_belief import Belief
from raftlog.tools.salvage.partitions.partition_plan import PartitionSalvage
from raftlog.tools.terminal.shell_quoting import shell_quoted
from raftlog.tools.terminal.value_text import ids_text

_MARKER: Final = "whether a marker that is missing has committed or aborted them, nobody knows"


def plan_words(salvage: PartitionSalvage, sources: Sequence[Source], plan_path: str) -> Iterator[str]:
    """Yield what a plan says, line by line.

    Args:
        salvage: the plan's content.
        sources: its sources.
        plan_path: of its file.
    """
    topic = f"{salvage.partition} (topic id {salvage.topic_id or '?'})"
    yield f"Plan: salvage {topic} of cluster {salvage.cluster_id or '?'}. Nothing is changed yet."
    yield ""
    yield from _choice_lines(salvage, sources)
    yield ""
    yield from _log_lines(salvage, sources)
    yield from _loss_lines(salvage)
    yield from (_conflict_line(each, sources) for each in salvage.conflicts)
    for each in salvage.left_out:
        yield f"Left out: {sources[each.source].path(salvage.partition)}: {each.reason}."
    yield from (f"Not used: {line}" for line in salvage.dropped)
    yield from (f"Nothing vouches for its place or epoch: {line}" for line in salvage.doubted)
    yield from _caution_lines(salvage)
    yield ""
    yield "To make the new directory, which is audited before it gets its name:"
    yield f"  raftlog salvage --apply {shell_quoted(plan_path)} --out NEW"


def _choice_lines(salvage: PartitionSalvage, sources: Sequence[Source]) -> Iterator[str]:
    base = sources[salvage.base].path(salvage.partition)
    if salvage.belief is not None:
        yield from _belief_lines(salvage.belief)
    if salvage.is_proven:
        yield f"Where copies differ, {base} is right: its broker holds all that was committed. The choice is PROVEN."
        return
    yield f"Where copies differ, {base} is taken to be right. The choice is UNPROVEN:"
    yield from (f"  {reason}." for reason in salvage.unproven)


def _belief_lines(belief: Belief) -> Iterator[str]:
    leader = f"leader {belief.leader}" if belief.leader >= 0 else "no leader"
    elr = f", eligible leaders {ids_text(belief.elr)}" if belief.elr else ""
    isr = f"ISR {ids_text(belief.isr)}" if belief.isr else "no ISR"
    yield f"The metadata of {belief.directory} say, up to offset {belief.end_offset}: {leader}, {isr}{elr},"
    yield f"leader epoch {belief.leader_epoch}, replicas {ids_text(belief.replicas)}."
    if belief.proven_end < belief.end_offset:
        where = offsets_text(belief.proven_end, belief.end_offset)
        yield f"Of these metadata, {where} are not proven to be committed: give the directories of all controllers."


def _log_lines(salvage: PartitionSalvage, sources: Sequence[Source]) -> Iterator[str]:
    offsets = f"offsets {salvage.start_offset} to {salvage.end_offset} (exclusive)"
    batches = "1 batch" if salvage.batch_count == 1 else f"{salvage.batch_count:,} batches"
    yield f"The log: {offsets}, {batches}, last leader epoch {salvage.epoch}. It is taken from"
    for number, source in enumerate(sources):
        size = salvage.size_from(number)
        found = f"{size:,} bytes of batches" if size else "nothing"
        yield f"  {source.path(salvage.partition)}: {found}"


def _loss_lines(salvage: PartitionSalvage) -> Iterator[str]:
    if not salvage.losses:
        yield "Lost: nothing that a source shows."
    for loss in salvage.losses:
        size = f" ({loss.size_bytes:,} bytes)" if loss.size_bytes else ""
        yield f"Lost: {offsets_text(loss.start_offset, loss.end_offset)}{size}: {loss.reason}."
        yield from (f"  {line}" for line in loss.words)
    if salvage.has_lost_end:
        yield (
            "Every copy that counts is damaged at its end: nobody knows whether records after offset"
            f" {salvage.known_end - 1} were committed."
        )


def _conflict_line(conflict: Conflict, sources: Sequence[Source]) -> str:
    kept, left_out = (
        ids_text(sources[number].directory for number in numbers) for numbers in (conflict.kept, conflict.left_out)
    )
    taken = "that of the former is taken" if conflict.is_settled else "none is taken, which leaves a hole"
    return (
        f"Conflict: at offset {conflict.offset}, {kept} and {left_out} have sound batches of leader epoch"
        f" {conflict.epoch} with different bytes: {taken}, and nothing from there on is taken from {left_out}."
    )


def _caution_lines(salvage: PartitionSalvage) -> Iterator[str]:
    if salvage.cleaned_apart is not None:
        yield (
            f"The copies were compacted at different times (first seen at offset {salvage.cleaned_apart}), and the"
            " result has batches of more than one: a key that was deleted may have a value again."
        )
    if salvage.is_compacted and salvage.losses:
        yield "The topic is compacted: keys whose last value is lost have an older one, or come back after a deletion."
    if salvage.unsure_transactions:
        producers = ids_text(salvage.unsure_transactions)
        yield f"Transactions of the producers {producers} are open where a hole begins: {_MARKER}. Look at them first."
    if salvage.open_transactions:
        producers = ids_text(salvage.open_transactions)
        yield (
            f"Transactions of the producers {producers} are open at the end: consumers that read what is committed wait"
            " there. 'kafka-transactions.sh find-hanging' shows them, 'abort' ends them."
        )


def made_words(salvage: PartitionSalvage, out: str, findings: Sequence[Finding]) -> Iterator[str]:
    """Yield what was made, what the audit says of it, and what to do next."""
    offsets = f"offsets {salvage.start_offset} to {salvage.end_offset} (exclusive)"
    proof = "" if salvage.is_proven else " The choice of the copy that is right is UNPROVEN."
    yield f"Made: {out}/{salvage.partition}, {offsets}.{proof}"
    yield from audit_words(findings)
    yield ""
    yield (
        f"Put {salvage.partition} in place of that of a stopped broker, with the owner that its files had, and delete"
        " the .kafka_cleanshutdown of that log directory: Kafka then reads the log through, and knows its producers."
    )
    if salvage.losses:
        yield (
            f"Records are lost: a replica of another broker that has other records at or after offset"
            f" {salvage.losses[0].start_offset} must not become leader, or this one truncates itself to it."
        )
