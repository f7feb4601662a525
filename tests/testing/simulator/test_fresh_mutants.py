# SPDX-License-Identifier: Apache-2.0
"""What mutants that no schedule finds come to, counted in all small cases."""

from collections.abc import Iterator, Sequence

from raftlog.log import decisions
from raftlog.log.epochs import LeaderEpochs
from raftlog.log.state import LogState
from raftlog.offsets import OffsetAndEpoch, ValidationKind
from tests.testing.simulator.fresh_mutants import take_any_epoch_at_start

Records = tuple[int, ...]
"""The epochs of the records of a log, from offset 0 on."""


def _histories(epochs: int, logs: frozenset[Records] = frozenset({()}), epoch: int = 1) -> Iterator[frozenset[Records]]:
    """Yield all sets of logs that there may be after some epochs: each leader adds one record or two to one of them."""
    if epoch > epochs:
        yield logs
        return
    for log in logs:
        for added in ((epoch,), (epoch, epoch)):
            new = {log + added[:count] for count in range(1, len(added) + 1)}
            yield from _histories(epochs, logs | new, epoch + 1)


def _log_of(records: Records, start_offset: int, snapshot_ends: Sequence[int]) -> LogState:
    epochs = LeaderEpochs()
    for offset, epoch in enumerate(records):
        epochs = epochs.with_epoch(epoch, offset)
    ids = tuple(OffsetAndEpoch(end, records[end - 1]) for end in snapshot_ends if end)
    return LogState(start_offset, len(records), start_offset, epochs.truncated_from_start(start_offset), ids)


def test_an_epoch_at_the_start_of_a_log_is_set_right_at_once() -> None:
    """``F6-epoch-at-the-start`` never calls a diverging log valid.

    It says that the log diverges, which then is truncated below the leader's start, and to no less than what the two
    have in common; after that it is named the same snapshot as without the mutant.
    """
    pairs = {(one, other) for logs in _histories(4) for one in logs for other in logs if one[: len(other)] != other}
    asked = differing = 0
    for leaders, followers in pairs:
        start = len(followers)
        if len(leaders) < start or leaders[start - 1] == followers[-1]:
            continue
        common = next(offset for offset in range(start) if leaders[offset] != followers[offset])
        for later in ((), *((end,) for end in range(start + 1, len(leaders) + 1))):
            log = _log_of(leaders, start, (start, *later))
            right = decisions.validate_offset_and_epoch(log, start, followers[-1])
            wrong = take_any_epoch_at_start(log, start, followers[-1])
            asked, differing = asked + 1, differing + (wrong != right)
            if wrong == right:
                continue
            assert (right.kind, wrong.kind) == (ValidationKind.SNAPSHOT, ValidationKind.DIVERGING)
            for first in range(common + 1):
                end = decisions.truncation_offset(_log_of(followers, first, (first,)), wrong.offset_and_epoch)
                left = _log_of(followers[:end], first, (first,))
                assert common <= end < start
                assert take_any_epoch_at_start(log, end, left.last_fetched_epoch) == right
    assert (asked, differing) == (1303, 748)
