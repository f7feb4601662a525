# SPDX-License-Identifier: Apache-2.0
"""A follower of a growing log that misses what was taken back, or says what is not so."""

from typing import Any, Final

from raftlog.tools.follow import follower, segment_end
from raftlog.tools.follow.follower import LogFollower
from raftlog.tools.follow.remembered_batches import RememberedBatch, fingerprint
from tests.mutants.planting import Mutant, Wrong, instead, missing, swapped

FOLLOWER: Final = "tests/tools/follow/test_follower.py"
VERB: Final = "tests/tools/dump/test_follow_log.py"


def _by_size(batch: RememberedBatch, source: Any) -> bool:
    return bool(source.size() >= batch.end_position)


def _whatever_its_size(batch: RememberedBatch, source: Any) -> bool:
    return fingerprint(source.read_at(batch.position, batch.head_size)) == batch.fingerprint


def _never_known(right: Wrong) -> Wrong:
    def look(self: LogFollower, *, is_last: bool = False) -> Any:
        self._idle = None
        return right(self, is_last=is_last)

    return look


MUTANTS: Final = (
    Mutant(
        "R-follow-growth-again",
        "the last batch is read again, since a log that was truncated may have grown to the same size",
        "raftlog, decision 85",
        instead(follower, "_is_intact", _by_size),
        (f"{FOLLOWER}::test_growth_again_to_the_same_size_is_noticed",),
    ),
    Mutant(
        "R-follow-cut-batch",
        "a batch whose end was cut off is not in place, although its header is",
        "raftlog, decision 85",
        instead(follower, "_is_intact", _whatever_its_size),
        (f"{FOLLOWER}::test_a_batch_that_is_cut_after_it_was_printed",),
    ),
    Mutant(
        "R-follow-begun-anew",
        "a log that begins inside of what was printed was replaced by a snapshot",
        "raftlog, decision 85",
        missing(LogFollower, "_begun_anew"),
        (f"{FOLLOWER}::test_histories",),
    ),
    Mutant(
        "R-follow-confirmed",
        "a fault that two reads make together is told if two looks find it",
        "raftlog, decision 85",
        instead(LogFollower, "_is_confirmed", lambda *_: True),
        (f"{FOLLOWER}::test_a_segment_that_goes_during_a_look_leaves_no_gap",),
    ),
    Mutant(
        "R-follow-idle",
        "an idle look reads two headers, and does not search the end of the log again",
        "raftlog, decision 85",
        swapped(LogFollower, "look", _never_known),
        (f"{FOLLOWER}::test_an_idle_look_reads_two_headers",),
    ),
    Mutant(
        "R-follow-parts",
        "a batch of which a part is written has to be looked for again when it has grown",
        "raftlog, decision 85",
        instead(follower, "idle_end", lambda _, segment, position: segment_end.IdleEnd(segment, position, 0, b"")),
        (f"{VERB}::test_a_batch_that_is_written_in_parts",),
    ),
)
