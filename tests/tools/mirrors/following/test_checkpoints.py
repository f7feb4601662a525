# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: those that MirrorMaker would write, every kind of fault, and those that a real one has written."""

import random
from collections.abc import Sequence

import attrs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from raftlog.records.rules import Severity
from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.comparing.lifetimes import Sync
from raftlog.tools.mirrors.following import (
    GroupCheckpoint,
    GroupCommit,
    GroupEvidence,
    MirrorFinding,
    check_checkpoints,
)
from tests.tools.mirrors.comparing.made_mirrors import Entry, MemoryLog, Task
from tests.tools.mirrors.following.made_groups import History, NaiveMirror, made_history
from tests.tools.mirrors.following.mirror_groups import corpus_evidence, corpus_syncs
from tests.tools.mirrors.following.offset_sync_store import ThinnedSyncs

AHEAD, ODD = "mirror.checkpoint-ahead", "mirror.checkpoint-odd"
SEEDS = st.integers(0, 1 << 32)


def places(findings: Sequence[MirrorFinding]) -> list[tuple[object, ...]]:
    """Return findings without their words."""
    return [(each.rule, each.subject, each.source, each.target, each.evidence) for each in findings]


def at(offset: int) -> OffsetRange:
    """Return a place between two records."""
    return OffsetRange(offset, offset)


def history_with_checkpoint(seed: int) -> tuple[GroupEvidence, NaiveMirror, int]:
    """Return a history, its counts and the index of one of its checkpoints."""
    history = made_history(seed)
    assume(history.checkpoints)
    return *history.evidence(), random.Random(seed).randrange(len(history.checkpoints))


def with_checkpoint(evidence: GroupEvidence, index: int, downstream: int) -> GroupEvidence:
    """Return the same with another offset in a checkpoint."""
    changed = list(evidence.checkpoints)
    changed[index] = attrs.evolve(changed[index], downstream=downstream)
    return attrs.evolve(evidence, checkpoints=tuple(changed))


@given(SEEDS)
def test_what_mirrormaker_writes_is_sound(seed: int) -> None:
    """Restarts, skipped records, groups that go back, late and lost syncs, and retention give no finding."""
    history = made_history(seed)
    starts = history.cut_front()
    history.write_foreign()
    assert check_checkpoints(*history.evidence(*starts)) == ()


@given(SEEDS, st.data())
def test_a_checkpoint_after_an_unread_record_is_ahead(seed: int, data: st.DataObject) -> None:
    """A checkpoint after the last copy of the first mirrored record that is not read is found, and nothing else is."""
    evidence, mirror, index = history_with_checkpoint(seed)
    checkpoint = evidence.checkpoints[index]
    first = mirror.first_mirrored_from(checkpoint.upstream)
    assume(first is not None)
    assert first is not None
    downstream = data.draw(st.integers(first.last_copy + 1, evidence.target.end + 2))
    (found,) = check_checkpoints(with_checkpoint(evidence, index, downstream), mirror)
    source, target = OffsetRange(checkpoint.upstream, first.upstream + 1), OffsetRange(first.last_copy, downstream)
    assert places([found]) == [(AHEAD, checkpoint.group, source, target, index)]
    assert found.severity is Severity.DATA_LOSS
    assert ("ends at" in found.reason) == (downstream > evidence.target.end)
    exact = with_checkpoint(attrs.evolve(evidence, has_all_syncs=False), index, first.last_copy)
    assert check_checkpoints(exact, mirror) == ()


@given(SEEDS, st.integers(1, 3))
def test_a_checkpoint_after_the_end_is_ahead(seed: int, beyond: int) -> None:
    """Where nothing is mirrored from the committed offset on, the target's end is the last that may be."""
    evidence, mirror, index = history_with_checkpoint(seed)
    upstream, end = evidence.source.end, evidence.target.end
    assert mirror.first_mirrored_from(upstream) is None
    checkpoint = attrs.evolve(evidence.checkpoints[index], upstream=upstream, downstream=end + beyond)
    commits = (*evidence.source_commits, GroupCommit(checkpoint.group, upstream, 0))
    evidence = attrs.evolve(evidence, checkpoints=(checkpoint,), source_commits=commits, target_commits=())
    found = check_checkpoints(evidence, mirror)
    assert places(found) == [(AHEAD, checkpoint.group, at(upstream), OffsetRange(end, end + beyond), index)]
    assert not [each for each in check_checkpoints(with_checkpoint(evidence, 0, end), mirror) if each.rule == AHEAD]


@given(SEEDS, st.data())
def test_an_offset_that_follows_from_no_sync_is_odd(seed: int, data: st.DataObject) -> None:
    """A checkpoint where no sync is, and before which none is, is found, if all syncs are there."""
    evidence, mirror, index = history_with_checkpoint(seed)
    checkpoint = evidence.checkpoints[index]
    first = mirror.first_mirrored_from(checkpoint.upstream)
    last = evidence.target.end if first is None else first.last_copy
    syncs = {each.downstream for each in evidence.syncs}
    choices = [offset for offset in range(last + 1) if not {offset, offset - 1} & syncs]
    assume(choices)
    downstream = data.draw(st.sampled_from(choices))
    planted = with_checkpoint(evidence, index, downstream)
    (found,) = check_checkpoints(planted, mirror)
    assert places([found]) == [(ODD, checkpoint.group, at(checkpoint.upstream), at(downstream), index)]
    assert found.severity is Severity.SUSPICIOUS
    assert check_checkpoints(attrs.evolve(planted, has_all_syncs=False), mirror) == ()


@given(SEEDS)
def test_an_offset_that_was_never_committed_is_odd(seed: int) -> None:
    """Each checkpoint of an offset that its group has not committed is found, if all its commits are there."""
    evidence, mirror, index = history_with_checkpoint(seed)
    group, upstream = evidence.checkpoints[index].group, evidence.checkpoints[index].upstream
    left = tuple(each for each in evidence.source_commits if (each.group, each.committed) != (group, upstream))
    planted = attrs.evolve(evidence, source_commits=left)
    assert places(check_checkpoints(planted, mirror)) == [
        (ODD, group, at(upstream), at(each.downstream), each.offset)
        for each in evidence.checkpoints
        if (each.group, each.upstream) == (group, upstream)
    ]
    assert check_checkpoints(attrs.evolve(planted, groups_with_gaps=frozenset({group})), mirror) == ()


@given(SEEDS, st.integers(0, 200))
def test_an_offset_without_a_checkpoint_is_odd(seed: int, offset: int) -> None:
    """A group that has an offset on the target and no checkpoint is found, unless that offset is deleted again."""
    history = made_history(seed)
    evidence, mirror = history.evidence()
    number = len(evidence.target_commits)
    planted = attrs.evolve(evidence, target_commits=(*evidence.target_commits, GroupCommit("local", offset, number)))
    assert places(check_checkpoints(planted, mirror)) == [(ODD, "local", None, at(offset), number)]
    assert check_checkpoints(attrs.evolve(planted, has_checkpoints=False, checkpoints=()), mirror) == ()
    deleted = (*planted.target_commits, GroupCommit("local", None, number + 1))
    assert check_checkpoints(attrs.evolve(planted, target_commits=deleted), mirror) == ()


def test_a_checkpoint_while_a_restart_copies_again_is_ahead() -> None:
    """A task that starts anew and dies early leaves a checkpoint after the only copy of a record."""
    entries = tuple(Entry(offset, offset) for offset in range(100))
    history = History(random.Random(1), MemoryLog(entries, 0, 100), Task(), 0)
    history.task.mirror(entries)
    history.source_commits.append(GroupCommit("readers", 50, 0))
    history.task.restart()
    history.task.mirror(entries[:5])
    store = ThinnedSyncs.loaded(history.task.syncs, has_checkpoints=True)
    downstream = store.translated(50)
    assert downstream == 101
    history.checkpoints.append(GroupCheckpoint("readers", 50, downstream, 0, 1000))
    found = check_checkpoints(*history.evidence())
    assert places(found) == [(AHEAD, "readers", OffsetRange(50, 51), OffsetRange(50, 101), 0)]
    history.task.mirror(entries[5:])
    assert check_checkpoints(*history.evidence()) == ()


@pytest.mark.parametrize(("since_ms", "count"), [(None, 2), (1000, 2), (1001, 1), (1002, 1), (9999, 1)])
def test_old_checkpoints_of_former_topics_do_not_count(since_ms: int | None, count: int) -> None:
    """Of the time before topics were made anew, a group's newest checkpoint alone is judged."""
    entries = tuple(Entry(offset, offset) for offset in range(10))
    checkpoints = tuple(GroupCheckpoint("readers", 5, 9, number, 1000 + number) for number in range(2))
    commits = (GroupCommit("readers", 5, 0),)
    evidence = GroupEvidence(
        OffsetRange(0, 10), OffsetRange(0, 10), (Sync(0, 0, 1, 0),), checkpoints, commits, since_ms=since_ms
    )
    found = check_checkpoints(evidence, NaiveMirror(entries, entries))
    assert [each.evidence for each in found] == [0, 1][2 - count :]


@pytest.mark.parametrize(
    ("partition", "expected"), [(0, [(61, 1), (273, 243)]), (1, [(150, 144), (150, 150)])], ids=["orders-0", "orders-1"]
)
def test_real_checkpoints_equal_a_replay_of_the_store(partition: int, expected: list[tuple[int, int]]) -> None:
    """Each checkpoint of a real MirrorMaker is what Kafka's store gives for the syncs of that time, and is sound."""
    evidence, mirror = corpus_evidence(partition)
    assert [(each.upstream, each.downstream) for each in evidence.checkpoints] == expected
    for each in evidence.checkpoints:
        store = ThinnedSyncs.loaded(corpus_syncs(partition, each.timestamp_ms), has_checkpoints=True)
        assert store.translated(each.upstream) == each.downstream
    assert check_checkpoints(evidence, mirror) == ()


@pytest.mark.parametrize("partition", [0, 1])
def test_every_other_offset_of_a_real_checkpoint_is_judged(partition: int) -> None:
    """Anywhere else a real checkpoint is ahead, odd, or a later or earlier translation, as its offset says."""
    evidence, mirror = corpus_evidence(partition)
    end = evidence.target.end
    known = {each.downstream + step for each in evidence.syncs for step in (0, 1)}
    for index, each in enumerate(evidence.checkpoints):
        for downstream in range(end + 3):
            found = check_checkpoints(with_checkpoint(evidence, index, downstream), mirror)
            rules = [(one.rule, one.evidence) for one in found]
            if downstream > each.upstream:  # The mirror has the offsets of the source.
                assert rules == [(AHEAD, each.offset)]
                assert found[0].target == OffsetRange(min(each.upstream, end), downstream)
            else:
                assert rules == [(ODD, each.offset)] * (downstream not in known)


@given(st.lists(st.integers(0, 1 << 62), max_size=80, unique=True).map(sorted), st.integers(0, 1 << 62))
def test_the_store_gives_no_later_offset_than_all_syncs(upstreams: list[int], wanted: int) -> None:
    """The oracle is sane: it holds the last sync, and translates no offset beyond what all syncs would give."""
    syncs = [Sync(upstream, 3 * number, 1, number) for number, upstream in enumerate(upstreams)]
    store = ThinnedSyncs.loaded(syncs, has_checkpoints=True)
    known = [each for each in syncs if each.upstream <= wanted]
    found = store.translated(wanted)
    assert not syncs or store.held[0] is syncs[-1]
    if not known:
        assert found in (-1, None)
    else:
        assert found is not None
        assert -1 <= found <= known[-1].downstream + (known[-1].upstream != wanted)
