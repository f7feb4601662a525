# SPDX-License-Identifier: Apache-2.0
"""Groups, heartbeats and pairs of topics of two clusters that are judged too hard, or not hard enough."""

from itertools import pairwise
from typing import Any, Final

import attrs

from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.following import checkpoints, group_moves, group_offsets, heartbeats, topic_pairs
from raftlog.tools.mirrors.following.group_moves import PositionOrigin
from raftlog.tools.mirrors.naming import classify
from tests.mutants.planting import Mutant, instead, swapped

CHECKPOINTS: Final = "tests/tools/mirrors/following/test_checkpoints.py"
MOVES: Final = "tests/tools/mirrors/following/test_group_moves.py"
HEARTBEATS: Final = "tests/tools/mirrors/following/test_heartbeats.py"
PAIRS: Final = "tests/tools/mirrors/following/test_topic_pairs.py"
AHEAD: Final = f"{CHECKPOINTS}::test_a_checkpoint_after_an_unread_record_is_ahead"
BEYOND: Final = f"{CHECKPOINTS}::test_a_checkpoint_after_the_end_is_ahead"
GAPS: Final = f"{HEARTBEATS}::test_gaps_are_the_times_without_heartbeats"
MOVED: Final = f"{MOVES}::test_groups_read_what_a_consumer_reads"


def _one_before(right: Any) -> Any:
    return lambda each, *rest: right(attrs.evolve(each, downstream=each.downstream - 1), *rest)


def _end_inclusive(right: Any) -> Any:
    def wrong(each: Any, evidence: Any, mirrored: Any) -> Any:
        target = OffsetRange(evidence.target.start, evidence.target.end + 1)
        return right(each, attrs.evolve(evidence, target=target), mirrored)

    return wrong


def _strictly_after(right: Any) -> Any:
    return lambda each, *rest: right(attrs.evolve(each, upstream=each.upstream + 1), *rest)


class _FirstCopies:
    """Knows the first copies alone, as the offset syncs of one lifetime do."""

    def __init__(self, mirrored: Any) -> None:
        self._mirrored = mirrored

    def first_mirrored_from(self, upstream: int) -> Any:
        found = self._mirrored.first_mirrored_from(upstream)
        if found is None:
            return None
        first = min(each.offset for each in self._mirrored.target if each.content == found.upstream)
        return found._replace(last_copy=first)


def _by_first_copies(right: Any) -> Any:
    return lambda each, evidence, mirrored: right(each, evidence, _FirstCopies(mirrored))


def _exact_syncs_alone(right: Any) -> Any:
    def wrong(evidence: Any, mirrored: Any) -> Any:
        at = {each.downstream for each in evidence.syncs}
        for each in right(attrs.evolve(evidence, syncs=()), mirrored):
            if each.target is None or each.target.start not in at or "sync" not in each.reason:
                yield each

    return wrong


def _other_groups_commits(right: Any) -> Any:
    def wrong(evidence: Any, mirrored: Any) -> Any:
        groups = {each.group for each in evidence.checkpoints}
        commits = [attrs.evolve(each, group=group) for each in evidence.source_commits for group in sorted(groups)]
        return right(attrs.evolve(evidence, source_commits=tuple(commits)), mirrored)

    return wrong


def _with(**changes: Any) -> Any:
    return lambda right: lambda evidence, *rest: right(attrs.evolve(evidence, **changes), *rest)


def _first_of_each(found: Any) -> Any:
    return {each.group: each for each in reversed(list(found))}


def _deleted_ones_too(commits: Any) -> Any:
    return {each.group: each for each in commits if each.committed is not None}


def _without_end(right: Any) -> Any:
    def wrong(_: Any, translated: Any, origin: Any, log: Any, reset: Any) -> Any:
        if translated == log.end:
            return right(group_moves._Position, None, origin, log, "earliest")
        return right(group_moves._Position, translated, origin, log, reset)

    return wrong


def _never_reset(cls: Any, translated: Any, origin: Any, log: Any, reset: Any) -> Any:
    if translated is not None:
        return cls(translated, translated, origin)
    return cls(translated, log.start if reset == "earliest" else log.end, PositionOrigin.RESET)


def _checkpoint_first(right: Any) -> Any:
    def wrong(evidence: Any, group: str, reset: Any) -> Any:
        known = {each.group for each in evidence.checkpoints}
        commits = tuple(each for each in evidence.target_commits if each.group not in known)
        return right(attrs.evolve(evidence, target_commits=commits), group, reset)

    return wrong


def _on_target_alone(counts: Any, evidence: Any, committed: int, came: int, position: int) -> Any:
    return counts.mirrored_count(max(position, committed), came)


def _all_between(counts: Any, evidence: Any, committed: int, came: int, position: int) -> Any:
    return max(0, position - committed)


def _each_next_one(heartbeats: Any, missing: Any) -> Any:
    return pairwise(heartbeats)


def _forwards_alone(right: Any) -> Any:
    return lambda beats, missing: right(beats, ())


def _at_least(right: Any) -> Any:
    def wrong(beats: Any, interval_ms: Any, missing: Any) -> Any:
        found = list(right(beats, interval_ms, missing))
        if interval_ms is not None and not found:
            found = list(right(beats, interval_ms - 1, missing))
        return found

    return wrong


def _each_pair(right: Any) -> Any:
    def wrong(beats: Any, interval_ms: Any, missing: Any) -> Any:
        for start in range(len(beats) - 1):
            yield from right(beats[start : start + 2], interval_ms, missing)

    return wrong


def _nearest_alone(right: Any) -> Any:
    return lambda topic, policy: list(right(topic, policy))[:1]


def _as_kafka_strips(topic: str, policy: Any) -> Any:
    while (source := policy.topic_source(topic)) is not None and (upstream := policy.upstream_topic(topic)) != topic:
        yield source
        topic = upstream


def _any_name(topic: str, flow: Any, mirrored: Any) -> Any:
    return classify(topic, flow.policy).upstream


MUTANTS: Final = (
    Mutant(
        "R-mirror-ahead",
        "a checkpoint is before the last copy of the first record that is not read",
        "OffsetSyncStore#translateDownstream",
        swapped(checkpoints, "_ahead", _one_before),
        (AHEAD,),
    ),
    Mutant(
        "R-mirror-ahead-copy",
        "the last copy of a record counts",
        "KIP-382",
        swapped(checkpoints, "_ahead", _by_first_copies),
        (f"{CHECKPOINTS}::test_what_mirrormaker_writes_is_sound", CHECKPOINTS),
    ),
    Mutant(
        "R-mirror-ahead-committed",
        "the record at the committed offset is not read",
        "KafkaConsumer#commitSync",
        swapped(checkpoints, "_ahead", _strictly_after),
        (AHEAD, CHECKPOINTS),
    ),
    Mutant(
        "R-mirror-ahead-end",
        "a checkpoint is not after the target's end",
        "KIP-382",
        swapped(checkpoints, "_ahead", _end_inclusive),
        (BEYOND,),
    ),
    Mutant(
        "R-mirror-odd-step",
        "an offset that is not exactly at a sync is translated to one more",
        "OffsetSyncStore#translateDownstream",
        swapped(checkpoints, "_of_checkpoints", _exact_syncs_alone),
        (f"{CHECKPOINTS}::test_what_mirrormaker_writes_is_sound", CHECKPOINTS),
    ),
    Mutant(
        "R-mirror-odd-syncs",
        "syncs that compaction has removed are no fault",
        "MirrorUtils#createCompactedTopic",
        swapped(checkpoints, "_of_checkpoints", _with(has_all_syncs=True)),
        (f"{CHECKPOINTS}::test_an_offset_that_follows_from_no_sync_is_odd",),
    ),
    Mutant(
        "R-mirror-odd-group",
        "what another group has committed is not a group's own",
        "MirrorCheckpointTask#checkpointsForGroup",
        swapped(checkpoints, "_of_checkpoints", _other_groups_commits),
        (f"{CHECKPOINTS}::test_an_offset_that_was_never_committed_is_odd",),
    ),
    Mutant(
        "R-mirror-odd-commits",
        "commits that compaction has removed are no fault",
        "GroupMetadataManager",
        swapped(checkpoints, "_of_checkpoints", _with(groups_with_gaps=frozenset())),
        (f"{CHECKPOINTS}::test_an_offset_that_was_never_committed_is_odd",),
    ),
    Mutant(
        "R-mirror-former",
        "checkpoints of former topics count only as long as no newer one does",
        "MirrorCheckpointTask",
        swapped(checkpoints, "_of_checkpoints", _with(since_ms=None)),
        (f"{CHECKPOINTS}::test_old_checkpoints_of_former_topics_do_not_count",),
    ),
    Mutant(
        "R-mirror-newest",
        "the newest checkpoint of a group counts",
        "RemoteClusterUtils#translateOffsets",
        instead(group_offsets, "newest_checkpoints", _first_of_each),
        (MOVED,),
    ),
    Mutant(
        "R-mirror-deleted",
        "a commit that is deleted is none",
        "OffsetMetadataManager#replay",
        instead(group_offsets, "commits_in_force", _deleted_ones_too),
        (f"{CHECKPOINTS}::test_an_offset_without_a_checkpoint_is_odd",),
    ),
    Mutant(
        "R-mirror-reset",
        "a consumer begins elsewhere if the log does not have its offset",
        "auto.offset.reset",
        swapped(group_moves._Position, "of", lambda _: _never_reset),
        (f"{MOVES}::test_an_offset_that_the_log_does_not_have_is_reset",),
    ),
    Mutant(
        "R-mirror-reset-end",
        "the end of a log is an offset to begin at",
        "auto.offset.reset",
        swapped(group_moves._Position, "of", _without_end),
        (f"{MOVES}::test_an_offset_that_the_log_does_not_have_is_reset",),
    ),
    Mutant(
        "R-mirror-own-commit",
        "what a group has committed on the target counts more than a checkpoint",
        "KafkaConsumer",
        swapped(group_moves, "_on_target", _checkpoint_first),
        (f"{MOVES}::test_the_own_commit_counts_more_than_a_checkpoint",),
    ),
    Mutant(
        "R-mirror-read-again",
        "on the way back, what a group read before it moved is read again as well",
        "KIP-382",
        instead(group_moves, "_read_before", _on_target_alone),
        (MOVED,),
    ),
    Mutant(
        "R-mirror-skipped",
        "on the way back, what a group has read on the target is not skipped",
        "KIP-382",
        instead(group_moves, "_not_read_before", _all_between),
        (MOVED,),
    ),
    Mutant(
        "R-mirror-beats-missing",
        "what compaction has removed proves nothing",
        "MirrorUtils#createCompactedTopic",
        swapped(heartbeats, "_following", _forwards_alone),
        (f"{HEARTBEATS}::test_compaction_makes_no_gap",),
    ),
    Mutant(
        "R-mirror-beats-back",
        "time that runs backwards is no gap, and no distance",
        "MirrorHeartbeatTask",
        instead(heartbeats, "_following", _each_next_one),
        (f"{HEARTBEATS}::test_few_heartbeats_have_no_gap", HEARTBEATS),
    ),
    Mutant(
        "R-mirror-beats-repeat",
        "a time that the topic has elsewhere is in no gap",
        "MirrorHeartbeatTask",
        swapped(heartbeats, "_gaps_of_flow", _each_pair),
        (f"{HEARTBEATS}::test_time_that_runs_backwards_is_no_gap", GAPS),
    ),
    Mutant(
        "R-mirror-beats-limit",
        "three intervals are no gap yet",
        "emit.heartbeats.interval.seconds",
        swapped(heartbeats, "_gaps_of_flow", _at_least),
        (f"{HEARTBEATS}::test_a_gap_is_longer_than_three_intervals",),
    ),
    Mutant(
        "R-mirror-round",
        "every source of a topic may be its own cluster",
        "MirrorSourceConnector#isCycle",
        swapped(topic_pairs, "_sources", _nearest_alone),
        (f"{PAIRS}::test_a_chain_that_names_its_own_cluster_is_a_cycle",),
    ),
    Mutant(
        "R-mirror-round-alias",
        "only known aliases are sources",
        "MirrorSourceConnector#isCycle",
        instead(topic_pairs, "_sources", _as_kafka_strips),
        (f"{PAIRS}::test_names_in_cluster_a",),
    ),
    Mutant(
        "R-mirror-round-filter",
        "a flow whose filter is not known mirrors nothing for sure",
        "MirrorSourceConnector",
        swapped(
            topic_pairs.MirrorFlow,
            "mirrors",
            lambda right: lambda self, topic: self.topic_filter is None or right(self, topic),
        ),
        (f"{PAIRS}::test_two_flows_of_the_same_names_are_a_cycle",),
    ),
    Mutant(
        "R-mirror-unpaired",
        "a name that does not change does not make a mirror",
        "IdentityReplicationPolicy",
        instead(topic_pairs, "_upstream", _any_name),
        (f"{PAIRS}::test_a_name_that_does_not_change_says_nothing", PAIRS),
    ),
)
