# SPDX-License-Identifier: Apache-2.0
"""Comparisons of the log, its snapshots and its control records, with the least that they cost and with limits."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from tests.benchmarks import inputs
from tests.benchmarks.measure import Comparison, Contender, Limit, Mode
from tests.benchmarks.operations import Beside, Duration, Speed, Worker
from tests.benchmarks.works import METADATA_LIKE, Sizes

_LEAST_SHARE_OF_RAW_APPENDS: Final = round(1 / 1.1, 3)
"""An append with sync takes at most 1.1 times as long as the disk needs for it."""
_LEAST_OPENED_GIB: Final = 1
_LEAST_CONTROL_BATCHES_MILLIONS: Final = 1
_LONGEST_LOOK_UP_US: Final = 4
_APPENDED: Final = {"1-KiB-batches": "1 KiB", "small": "100 KiB", "large": "1 MiB"}
"""What batches of a shape take, about."""


class LogFigures:
    """All comparisons of a log.

    Args:
        workers: a process for each mode.
        sizes: of the inputs.
    """

    def __init__(self, workers: Mapping[Mode, Worker], sizes: Sizes) -> None:
        self._workers = workers
        self._sizes = sizes

    def all(self) -> Iterator[tuple[str, Callable[[str], Comparison]]]:
        """Yield the start of the ids of their rows, and what makes a comparison, given that."""
        for shape, size_mib in self._sizes.appended.items():
            yield f"append-sync-{shape}", partial(self._appends, shape, size_mib, " and sync")
        for shape, size_mib in self._sizes.appended.items():
            yield f"append-{shape}", partial(self._appends, shape, size_mib, "")
        small = "1-KiB-batches"
        yield f"follow-{small}", partial(self._appends, small, self._sizes.appended[small], " as follower")
        yield "recovery", partial(self._opening, "raftlog recovery", "recovery of a log that was not closed")
        yield "open", partial(self._opening, "raftlog open", "open a log that was closed")
        yield "take-over", partial(self._opening, "raftlog take over", "open a segment with nothing beside it")
        yield "state-machine", self._state_machine
        yield "voter-set-at-offset", self._voter_set_at_offset
        yield "snapshot-write", self._snapshot_write
        yield "snapshot-verify", self._snapshot_verify
        yield "accumulate", self._accumulate

    def _appends(self, shape: str, size_mib: float, how: str, row: str) -> Comparison:
        is_synced, is_leaders = "sync" in how, "follower" not in how
        worker = self._workers["compiled"]
        ours = Speed(worker, f"raftlog append{how}", shape, size_mib, unit=1, clock="wall_s")
        against = "write and fdatasync" if is_synced else "write"
        what = f"append{how}{' as leader' if is_leaders else ''}, a batch of {_APPENDED[shape]} at a time"
        goals: dict[tuple[Mode, str], float] = {("compiled", against): _LEAST_SHARE_OF_RAW_APPENDS}
        return Comparison(
            row, what, "a second", {"compiled": ours}, {against: Beside(ours)}, goals if is_synced else {}
        )

    def _opening(self, operation: str, what: str, row: str) -> Comparison:
        sizes: dict[Mode, float] = {
            "compiled": self._sizes.largest_segment,
            "interpreted": self._sizes.by_contender["compiled"],
        }
        against = f"{_LEAST_OPENED_GIB} GiB/s"
        return Comparison(
            row,
            f"{what}, {sizes['compiled']:g} MiB in the page cache",
            "GiB/s",
            {
                mode: Speed(self._workers[mode], operation, "small", size, "size_bytes", 2**30, "wall_s")
                for mode, size in sizes.items()
            },
            {against: Limit(_LEAST_OPENED_GIB)},
            {("compiled", against): 1},
        )

    def _state_machine(self, row: str) -> Comparison:
        counts: dict[Mode, int] = {"compiled": self._sizes.control_batches, "interpreted": 20_000}
        against = f"{_LEAST_CONTROL_BATCHES_MILLIONS} M batches/s"
        shape = inputs.CONTROL_BATCHES
        return Comparison(
            row,
            f"state machine reads {counts['compiled']:,} control batches, one in a hundred of a voter set",
            "M batches/s",
            {
                mode: Speed(self._workers[mode], "raftlog control records", shape, inputs.size_mib(shape, count))
                for mode, count in counts.items()
            },
            {against: Limit(_LEAST_CONTROL_BATCHES_MILLIONS)},
            {("compiled", against): 1},
        )

    def _voter_set_at_offset(self, row: str) -> Comparison:
        shape, count = inputs.VOTER_SETS, self._sizes.voter_sets
        against = f"{_LONGEST_LOOK_UP_US} microseconds"
        speed = Speed(self._workers["compiled"], "raftlog voter set at offset", shape, inputs.size_mib(shape, count))
        return Comparison(
            row,
            f"voter_set_at_offset, {count:,} voter sets",
            "µs",
            {"compiled": Duration(speed)},
            {against: Limit(_LONGEST_LOOK_UP_US)},
            {("compiled", against): 1},
            less_is_better=True,
        )

    def _snapshot_write(self, row: str) -> Comparison:
        return self._snapshot(
            row, "write and freeze a snapshot of 1 KiB records", "raftlog snapshot", "machine write all and sync"
        )

    def _snapshot_verify(self, row: str) -> Comparison:
        return self._snapshot(
            row, "verify a snapshot of 1 KiB records", "raftlog verify snapshot", "machine read all and crc"
        )

    def _snapshot(self, row: str, what: str, ours: str, theirs: str) -> Comparison:
        def speed(operation: str) -> Contender:
            worker, size_mib = self._workers["compiled"], self._sizes.snapshot
            return Speed(worker, operation, "1-KiB-batches", size_mib, "size_bytes", 2**20, "wall_s")

        return Comparison(
            row, what, "MiB/s", {"compiled": speed(ours)}, {theirs.removeprefix("machine "): speed(theirs)}, {}
        )

    def _accumulate(self, row: str) -> Comparison:
        size_mib = self._sizes.by_contender["compiled"] / 16

        def speed(operation: str) -> Contender:
            return Speed(self._workers["compiled"], operation, METADATA_LIKE, size_mib)

        return Comparison(
            row,
            "accumulator, appends of 1 to 5 records",
            "M records/s",
            {"compiled": speed("raftlog accumulate")},
            {"encoding alone": speed("raftlog encode as one")},
            {},
        )
