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

_MOST_LINES: Final = 20
_NO_TOPIC_ID: Final = (
    "No source has a partition.metadata that can be read, and so neither has the result: Kafka takes a partition"
    " without it for one that is not its own, and does not use it. Plan with --metadata and --assume-topic-id."
)
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
    yield from _compaction_lines(salvage)
    yield from _gap_lines(salvage)
    yield from (f"Lost: {line}" for line in salvage.elsewhere)
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


def _log_lines(salvage: PartitionSalvage, sources: Sequence[Source]) -> Iterator[str]:
    if not salvage.pieces:
        yield f"The log is empty, and begins and ends at offset {salvage.start_offset}: all records were deleted."
        return
    offsets = f"offsets {salvage.start_offset} to {salvage.end_offset} (exclusive)"
    batches = "1 batch" if salvage.batch_count == 1 else f"{salvage.batch_count:,} batches"
    yield f"The log: {offsets}, {batches}, last leader epoch {salvage.epoch}. It is taken from"
    for number, source in enumerate(sources):
        size = salvage.size_from(number)
        found = f"{size:,} bytes of batches" if size else "nothing"
        yield f"  {source.path(salvage.partition)}: {found}"


def _compaction_lines(salvage: PartitionSalvage) -> Iterator[str]:
    if not salvage.compaction_reason:
        return
    if not salvage.is_compacted:
        yield f"A gap counts as a hole: {salvage.compaction_reason}."
        return
    where = "" if salvage.compacted_below is None else f" below offset {salvage.compacted_below}"
    yield f"A gap{where} counts as left by compaction, not as a hole: {salvage.compaction_reason}."


def _gap_lines(salvage: PartitionSalvage) -> Iterator[str]:
    for start, end in salvage.open_gaps[:_MOST_LINES]:
        yield (
            f"Perhaps lost: {offsets_text(start, end)}: no source has anything whole there, before a file: compaction"
            " or retention has removed it, or a file is missing or damaged."
        )
    if len(salvage.open_gaps) > _MOST_LINES:
        yield f"Perhaps lost: {len(salvage.open_gaps) - _MOST_LINES:,} more of these gaps; the plan's file has all."


def _loss_lines(salvage: PartitionSalvage) -> Iterator[str]:
    if not salvage.losses:
        is_all = not (salvage.open_gaps or salvage.elsewhere)
        yield "Lost: nothing that a source shows." if is_all else "Lost: nothing else that a source shows."
    for loss in salvage.losses[:_MOST_LINES]:
        size = f" ({loss.size_bytes:,} bytes)" if loss.size_bytes else ""
        yield f"Lost: {offsets_text(loss.start_offset, loss.end_offset)}{size}: {loss.reason}."
        yield from (f"  {line}" for line in loss.words)
    if len(salvage.losses) > _MOST_LINES:
        rest = salvage.losses[_MOST_LINES:]
        count = sum(loss.end_offset - loss.start_offset for loss in rest)
        yield f"Lost: {count:,} more offsets in {len(rest):,} places; the plan's file has all."
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
        f" {conflict.epoch} with different bytes: {taken}, and of {left_out} nothing of that epoch"
        " after the last batch that both have in common."
    )


def _caution_lines(salvage: PartitionSalvage) -> Iterator[str]:
    if salvage.topic_id is None:
        yield _NO_TOPIC_ID
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


def _home_words(belief: Belief | None) -> str:
    if belief is None or belief.home is None:
        return "a stopped broker"
    directory = belief.directory_of(belief.home)
    return f"the stopped broker {belief.home}" + ("" if directory is None else f", in its directory {directory}")


def made_words(salvage: PartitionSalvage, out: str, findings: Sequence[Finding]) -> Iterator[str]:
    """Yield what was made, what the audit says of it, and what to do next."""
    offsets = f"offsets {salvage.start_offset} to {salvage.end_offset} (exclusive)"
    proof = "" if salvage.is_proven else " The choice of the copy that is right is UNPROVEN."
    yield f"Made: {out}/{salvage.partition}, {offsets}.{proof}"
    yield from audit_words(findings)
    yield ""
    yield (
        f"Keep a copy of {salvage.partition} of all brokers first: as soon as one leads, the others truncate theirs."
        f" Put the new one in place of that of {_home_words(salvage.belief)}, with the owner that its files had, and"
        " delete the .kafka_cleanshutdown of that log directory: Kafka then reads the log through, and knows its"
        " producers."
    )
    log_start = max(salvage.start_offset, salvage.log_start)
    yield (
        f"If log-start-offset-checkpoint there has {salvage.partition} with an offset above {log_start}, remove the"
        " line, and count one less in the second line of the file: Kafka deletes what is below it."
    )
    yield (
        "Start that broker before the others, and look that it leads the partition (kafka-topics.sh --describe): if a"
        " shorter or damaged replica leads, this one is truncated to it, whatever the ISR says. Then let each other"
        " broker fetch the partition anew, as Kafka does not mend what is damaged there: stop it, move its"
        f" {salvage.partition} out of its log directories, start it, and wait until it is in the ISR."
    )
    if salvage.topic_id is None:
        yield _NO_TOPIC_ID
    if salvage.losses:
        yield (
            f"Records are lost: a replica of another broker that has other records at or after offset"
            f" {salvage.losses[0].start_offset} must not become leader, or this one truncates itself to it."
        )
