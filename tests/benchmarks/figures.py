# SPDX-License-Identifier: Apache-2.0
"""All comparisons: those of ``works``, and those of whole programs, of the machine's limits, of memory."""

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final, Literal

from tests.benchmarks.audit_figures import AuditFigures
from tests.benchmarks.log_figures import LogFigures
from tests.benchmarks.measure import MODES, Comparison, Contender, Limit, Mode
from tests.benchmarks.mirror_figures import MirrorFigures
from tests.benchmarks.operations import Peak, Speed, Worker
from tests.benchmarks.programs import KAFKA_RELEASE, RAFTLOG, Command, FirstLine, kafka_dump_log
from tests.benchmarks.query_figures import QueryFigures
from tests.benchmarks.quorum_figures import QuorumFigures
from tests.benchmarks.state_figures import StateFigures
from tests.benchmarks.works import METADATA_LIKE, METADATA_LOG, THOUSANDS, UNCOMPRESSED, WORKS, Sizes, Work

_START_ALLOWANCE_MS: Final = 80
_MEMORY_LIMIT_MIB: Final = 64
_MEMORY_READ_SHARE: Final = 0.6
_DIGESTS_SHARE: Final = 1 / 1.5


class Figures:
    """All comparisons.

    Args:
        folder: for outputs.
        workers: a process for each mode.
        sizes: of the inputs.
    """

    def __init__(self, folder: Path, workers: Mapping[Mode, Worker], sizes: Sizes) -> None:
        self._folder = folder
        self._output = folder / "output"
        self._workers = workers
        self._sizes = sizes

    def comparisons(self, only: str, *, with_java: bool) -> Iterator[Comparison]:
        """Yield them, in the order of the goals: those whose id starts with ``only``."""
        for row, build in self._all(with_java=with_java):
            if row.startswith(only):
                yield build(row)

    def _all(self, *, with_java: bool) -> Iterator[tuple[str, Callable[[str], Comparison]]]:
        shapes, sizes = self._sizes.shapes, self._sizes
        for work in WORKS:
            for shape in filter(shapes.__contains__, work.shapes):
                yield f"{work.id}-{shape}", partial(self._in_process, work, shape)
        for shape in filter(shapes.__contains__, UNCOMPRESSED):
            yield f"dump-text-{shape}", partial(self._text_lines, shape)
        if with_java:
            yield "dump-batches", partial(self._kafka_lines, "batch lines", 2, ())
            options = ("--cluster-metadata-decoder",)
            yield "dump-metadata", partial(self._kafka_lines, "metadata decoder", 1.5, options)
        for shape in filter(shapes.__contains__, THOUSANDS):
            yield f"share-{shape}", partial(self._share_of_memory_read, shape)
        for shape in filter(shapes.__contains__, THOUSANDS):
            yield f"digests-{shape}", partial(self._digests, shape)
        for mode, size_mib in sizes.many_segments.items():
            yield "two-processes", partial(self._two_processes, mode, size_mib)
        yield from LogFigures(self._workers, sizes).all()
        yield from QuorumFigures(self._workers, sizes).all()
        yield from AuditFigures(self._folder, self._workers, sizes).all(with_java=with_java)
        if with_java:
            yield from StateFigures(self._folder, sizes.metadata_records).all()
        yield from QueryFigures(self._folder, self._workers, sizes.queried).all()
        yield from MirrorFigures(self._folder, self._workers, sizes.mirrored).all()
        yield "start", self._start
        yield "memory", self._memory

    def limits(self) -> dict[str, tuple[Contender, str]]:
        """Return what the machine can do, with units."""
        worker, size = self._workers["compiled"], self._sizes.memory
        return {
            "memory read": (Speed(worker, "machine memory read", "small", size, "size_bytes", 2**30), "GiB/s"),
            "CRC-32C of 1 MiB": (Speed(worker, "machine crc", "small", size, "size_bytes", 2**30), "GiB/s"),
            "append of 200 B and fdatasync": (
                Speed(worker, "machine sync", METADATA_LIKE, 0, unit=1, clock="wall_s"),
                "a second",
            ),
        }

    def _in_process(self, work: Work, shape: str, row: str) -> Comparison:
        def speed(contender: str, operation: str) -> Speed:
            worker = self._workers["interpreted" if contender == "interpreted" else "compiled"]
            sizes = self._sizes.by_contender
            if work.is_by_size:
                return Speed(worker, operation, shape, sizes["compiled"], "size_bytes", 2**20)
            return Speed(worker, operation, shape, sizes[contender])

        goals: dict[tuple[Mode, str], float] = {("compiled", peer): goal for peer, goal in work.goals.items()}
        goals.update({("interpreted", peer): goal for peer, goal in work.interpreted_goals.items()})
        return Comparison(
            row,
            f"{work.what}, {shape}",
            "MiB/s" if work.is_by_size else "M records/s",
            {mode: speed(mode, f"raftlog {work.ours}") for mode in MODES},
            {peer: speed(peer, f"{peer} {work.theirs}") for peer in work.goals},
            goals,
        )

    def _dump(self, mode: Mode, shape: str, size_mib: float, counted: str, *options: str) -> Command:
        worker = self._workers["compiled"]
        amount = worker.run(f"raftlog {counted}", shape, size_mib)["count"] / 1e6
        command = [RAFTLOG, "dump-log", *options, "--files", worker.input(shape, size_mib)]
        return Command(command, mode, amount, self._output)

    def _text_lines(self, shape: str, row: str) -> Comparison:
        size = self._sizes.by_contender["kafka-python"]
        peer = Speed(self._workers["compiled"], "kafka-python decode", shape, size)
        return Comparison(
            row,
            f"dump-log, text lines, whole process, {shape}",
            "M records/s",
            {mode: self._dump(mode, shape, self._sizes.dumped[mode], "columns", "--print-data-log") for mode in MODES},
            {"kafka-python decoding alone": peer},
            {("compiled", "kafka-python decoding alone"): 2},
        )

    def _kafka_lines(self, what: str, goal: float, options: tuple[str, ...], row: str) -> Comparison:
        counted, unit, rounds = ("columns", "M records/s", 1) if options else ("scan", "M batches/s", 3)
        size_mib = self._sizes.metadata_log
        interpreted = self._sizes.by_contender["interpreted"]
        ours: dict[Mode, Command] = {
            "compiled": self._dump("compiled", METADATA_LOG, size_mib, counted, *options),
            "interpreted": self._dump("interpreted", METADATA_LOG, interpreted, counted, *options),
        }
        path = self._workers["compiled"].input(METADATA_LOG, size_mib)
        command = [*kafka_dump_log(), *options, "--files", path]
        java = Command(command, "compiled", ours["compiled"].amount, self._output)
        name = f"kafka-dump-log {KAFKA_RELEASE}"
        what = f"dump-log, {what}, whole process, real metadata log of {size_mib:g} MiB"
        return Comparison(row, what, unit, ours, {name: java}, {("compiled", name): goal}, most_rounds=rounds)

    def _share_of_memory_read(self, shape: str, row: str) -> Comparison:
        of: Literal["size_bytes"] = "size_bytes"
        sizes: dict[Mode, float] = {
            "compiled": self._sizes.memory,
            "interpreted": self._sizes.by_contender["compiled"],
        }
        limit = Speed(self._workers["compiled"], "machine memory read", shape, self._sizes.memory, of, 2**20)
        return Comparison(
            row,
            f"scan and CRC, share of the machine's limit, {shape}",
            "MiB/s",
            {mode: Speed(self._workers[mode], "raftlog scan", shape, sizes[mode], of, 2**20) for mode in MODES},
            {"memory read": limit},
            {("compiled", "memory read"): _MEMORY_READ_SHARE},
        )

    def _digests(self, shape: str, row: str) -> Comparison:
        """Compare reading with digests to reading alone: digests shall cost at most half of it."""
        sizes = self._sizes.by_contender
        return Comparison(
            row,
            f"columns, CRC and digests of all records, {shape}",
            "M records/s",
            {mode: Speed(self._workers[mode], "raftlog digests", shape, sizes[mode]) for mode in MODES},
            {"columns and CRC": Speed(self._workers["compiled"], "raftlog columns", shape, sizes["compiled"])},
            {("compiled", "columns and CRC"): _DIGESTS_SHARE},
        )

    def _two_processes(self, mode: Mode, size_mib: float, row: str) -> Comparison:
        two, one = (
            Speed(self._workers[mode], f"raftlog {count}", "small-zstd", size_mib, clock="wall_s")
            for count in ("two processes", "one process")
        )
        return Comparison(
            row,
            "columns of many zstd segments in two processes",
            "M records/s",
            {mode: two},
            {"one process": one},
            {("compiled", "one process"): 1.8},
        )

    def _start(self, row: str) -> Comparison:
        command = [RAFTLOG, "dump-log", "--files", self._workers["compiled"].input(METADATA_LIKE, 0)]
        against = f"python -c pass, and {_START_ALLOWANCE_MS} ms"
        return Comparison(
            row,
            "start to first line of dump-log, a log of one batch",
            "ms",
            {mode: FirstLine(command, mode) for mode in MODES},
            {against: FirstLine([sys.executable, "-c", "pass"], "compiled", _START_ALLOWANCE_MS)},
            {("compiled", against): 1},
            less_is_better=True,
        )

    def _memory(self, row: str) -> Comparison:
        sizes: dict[Mode, float] = {
            "compiled": self._sizes.largest_segment,
            "interpreted": self._sizes.by_contender["compiled"] / 4,
        }
        against = f"{_MEMORY_LIMIT_MIB} MiB"
        for size in sizes.values():
            self._workers["compiled"].input("small", size)  # Making it takes memory too.
        return Comparison(
            row,
            f"peak memory of columns, a segment of {sizes['compiled']:g} MiB",
            "MiB",
            {mode: Peak(Speed(self._workers[mode], "raftlog segment", "small", sizes[mode])) for mode in MODES},
            {against: Limit(_MEMORY_LIMIT_MIB)},
            {("compiled", against): 1},
            less_is_better=True,
        )
