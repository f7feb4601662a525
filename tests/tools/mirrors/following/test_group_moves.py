# SPDX-License-Identifier: Apache-2.0
"""Groups that move to the target and back, against consumers that really read both logs record by record."""

from collections.abc import Iterable

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.following import (
    GroupCheckpoint,
    GroupCommit,
    GroupEvidence,
    OffsetReset,
    PositionOrigin,
    fail_back,
    fail_over,
)
from tests.tools.mirrors.comparing.made_mirrors import Entry
from tests.tools.mirrors.following.made_groups import FOREIGN, NaiveMirror, made_history
from tests.tools.mirrors.following.mirror_groups import corpus_evidence

SEEDS = st.integers(0, 1 << 32)
RESETS: tuple[OffsetReset, ...] = ("earliest", "latest")
COMMIT, CHECKPOINT, RESET, SET = PositionOrigin


@attrs.define
class Consumer:
    """Reads logs one after the other: the naive model. A record is known by its offset on the source.

    Attributes:
        read: what it has read.
        reset: where it begins if it has no offset that the log has.
        again: how many records it has read that it had read, in the last log.
    """

    read: set[int]
    reset: OffsetReset
    again: int = 0

    def begin(self, offset: int | None, log: OffsetRange) -> int:
        """Return where it begins in a log."""
        if offset is not None and offset in range(log.start, log.end + 1):
            return offset
        return {"earliest": log.start, "latest": log.end}[self.reset]

    def consume(self, records: Iterable[int]) -> None:
        """Read records of one log."""
        self.again = 0
        for each in records:
            self.again += each in self.read
            self.read.add(each)


def last_offset(commits: Iterable[GroupCommit], group: str) -> int | None:
    """Return what a group has committed last."""
    return next((each.committed for each in reversed(list(commits)) if each.group == group), None)


def moved(
    evidence: GroupEvidence, mirror: NaiveMirror, group: str, reset: OffsetReset, position: int | None
) -> tuple[tuple[object, ...], tuple[object, ...]]:
    """Move a consumer out and back; return both times where it begins, and what it reads again, skips and misses."""
    copies = {each.content for each in mirror.target} - {FOREIGN}
    everything = copies | {each.offset for each in mirror.source}
    committed = last_offset(evidence.source_commits, group)
    on_target = last_offset(evidence.target_commits, group)
    if on_target is None:
        on_target = next((each.downstream for each in reversed(evidence.checkpoints) if each.group == group), None)
    unread = {each for each in everything if committed is None or each >= committed}
    consumer = Consumer(everything - unread, reset)

    start = consumer.begin(on_target, evidence.target)
    came = [each.content for each in mirror.target if each.offset >= start]
    consumer.consume(each for each in came if each != FOREIGN)
    out = (start, consumer.again, len((unread & copies) - consumer.read), len(unread - copies))

    begin = consumer.begin(committed if position is None else position, evidence.source)
    skipped = len({each for each in unread if each < begin} - consumer.read)
    consumer.consume(each.offset for each in mirror.source if each.offset >= begin)
    back = (begin, consumer.again, skipped, came.count(FOREIGN))
    return (out, back) if committed is not None else ((start, None, None, None), (begin, None, None, None))


@given(SEEDS, st.sampled_from(RESETS), st.data())
def test_groups_read_what_a_consumer_reads(seed: int, reset: OffsetReset, data: st.DataObject) -> None:
    """Positions and counts, out and back, are those of a consumer that moves over both logs."""
    history = made_history(seed)
    history.write_foreign()
    evidence, mirror = history.evidence(*history.cut_front())
    position = data.draw(st.none() | st.integers(0, evidence.source.end + 1))
    out, back = fail_over(evidence, mirror, reset), fail_back(evidence, mirror, reset, position)
    assert [each.group for each in out] == [each.group for each in back] == list(evidence.groups)
    for there, again in zip(out, back, strict=True):
        assert there.committed == last_offset(evidence.source_commits, there.group)
        assert again.committed == evidence.target.end
        found = tuple((each.position, each.read_again, each.skipped, each.missing) for each in (there, again))
        assert found == moved(evidence, mirror, there.group, reset, position)


def made(*, source_start: int = 0, target_start: int = 0, mirrored: int = 10) -> tuple[GroupEvidence, NaiveMirror]:
    """Return ten records, of which the first ones are mirrored, and a group that has read five of them."""
    entries = tuple(Entry(offset, offset) for offset in range(10))
    evidence = GroupEvidence(
        OffsetRange(source_start, 10),
        OffsetRange(target_start, mirrored),
        checkpoints=(GroupCheckpoint("readers", 5, 3, 0, 1000),),
        source_commits=(GroupCommit("readers", 5, 0),),
        newest_source_ms=2000,
        newest_target_ms=1500,
    )
    return evidence, NaiveMirror(entries[source_start:], entries[target_start:mirrored])


def test_a_table_has_both_ways() -> None:
    """The last three of ten records are lag: missing on the way out, and where the way back goes on if it is set."""
    evidence, mirror = made(mirrored=7)
    (out,) = fail_over(evidence, mirror)
    assert (out.group, out.committed, out.translated, out.position, out.origin) == ("readers", 5, 3, 3, CHECKPOINT)
    assert (out.read_again, out.skipped, out.missing) == (2, 0, 3)
    assert (out.newest_source_ms, out.newest_target_ms) == (2000, 1500)
    (back,) = fail_back(evidence, mirror)
    assert (back.committed, back.translated, back.position, back.origin) == (7, 5, 5, COMMIT)
    assert (back.read_again, back.skipped, back.missing) == (2, 0, 0)
    (back,) = fail_back(evidence, mirror, position=7)
    assert (back.position, back.origin, back.read_again, back.skipped) == (7, SET, 0, 0)


@pytest.mark.parametrize(
    ("commits", "origin", "position"),
    [((), CHECKPOINT, 3), ((4,), COMMIT, 4), ((4, None), CHECKPOINT, 3), ((None, 6), COMMIT, 6), ((4, 2), COMMIT, 2)],
)
def test_the_own_commit_counts_more_than_a_checkpoint(
    commits: tuple[int | None, ...], origin: PositionOrigin, position: int
) -> None:
    """A group goes on where it has committed on the target; if it has not, or no longer, where its checkpoint is."""
    evidence, mirror = made()
    target_commits = tuple(GroupCommit("readers", each, number) for number, each in enumerate(commits))
    (out,) = fail_over(attrs.evolve(evidence, target_commits=target_commits), mirror)
    assert (out.origin, out.position, out.read_again) == (origin, position, max(0, 5 - position))


@pytest.mark.parametrize(("reset", "position"), [("earliest", 4), ("latest", 10)])
@pytest.mark.parametrize("offset", [3, 4, 10, 11, None])
def test_an_offset_that_the_log_does_not_have_is_reset(reset: OffsetReset, position: int, offset: int | None) -> None:
    """Retention on the target loses what a group has not read: it begins where its consumers are told to."""
    evidence, mirror = made(target_start=4)
    checkpoints = () if offset is None else (GroupCheckpoint("readers", 5, offset, 0, 1000),)
    (out,) = fail_over(attrs.evolve(evidence, checkpoints=checkpoints), mirror, reset)
    if offset in (4, 10):
        assert (out.origin, out.position) == (CHECKPOINT, offset)
    else:
        assert (out.origin, out.position, out.translated) == (RESET, position, offset)
    assert out.skipped == max(0, out.position - 5)


def test_nothing_is_counted_where_no_commit_is_known() -> None:
    """Without a commit on the source it is unknown what the group has read."""
    evidence, mirror = made()
    evidence = attrs.evolve(evidence, source_commits=(GroupCommit("readers", 5, 0), GroupCommit("readers", None, 1)))
    for each in (*fail_over(evidence, mirror), *fail_back(evidence, mirror)):
        assert (each.read_again, each.skipped, each.missing) == (None, None, None)


@pytest.mark.parametrize(("partition", "position", "again", "back"), [(0, 243, 30, 47), (1, 150, 0, 0)])
def test_real_groups_move(partition: int, position: int, again: int, back: int) -> None:
    """A real group reads 30 records twice on the target; on the source it would read all again that it had read."""
    evidence, mirror = corpus_evidence(partition)
    (there,) = fail_over(evidence, mirror)
    assert (there.group, there.committed, there.origin) == ("readers", 273 if partition == 0 else 150, COMMIT)
    assert (there.position, there.read_again, there.skipped, there.missing) == (position, again, 0, 0)
    assert there.newest_source_ms == there.newest_target_ms is not None
    (home,) = fail_back(evidence, mirror)
    assert (home.committed, home.read_again, home.skipped) == (evidence.target.end, back, 0)
    (home,) = fail_back(evidence, mirror, position=evidence.source.end)
    assert (home.read_again, home.skipped) == (0, 0)
