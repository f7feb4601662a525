# SPDX-License-Identifier: Apache-2.0
"""What is compared with what, and the goals."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal

import attrs

from tests.benchmarks.measure import MODES, Comparison, Contender, Limit, Mode
from tests.benchmarks.operations import Peak, Speed, Worker
from tests.benchmarks.programs import RAFTLOG, Command, FirstLine, kafka_dump_log

METADATA_LIKE: Final = "metadata-like"
METADATA_LOG: Final = "metadata-log"
START_ALLOWANCE_MS: Final = 80
MEMORY_LIMIT_MIB: Final = 64
MEMORY_READ_SHARE: Final = 0.6


@attrs.frozen
class Sizes:
    """How large inputs are, in MiB before compression: a contender that is slow gets the start of a log."""

    by_contender: Mapping[str, float]
    memory: float
    metadata_log: float
    decoded_metadata_log: float
    largest_segment: float


FULL: Final = Sizes(
    {"compiled": 64, "interpreted": 4, "aiokafka": 64, "kafka-python": 4, "kio": 1},
    memory=256,
    metadata_log=200,
    decoded_metadata_log=100,
    largest_segment=1024,
)
QUICK: Final = Sizes(
    {"compiled": 16, "interpreted": 1, "aiokafka": 16, "kafka-python": 1, "kio": 0.25},
    memory=64,
    metadata_log=4,
    decoded_metadata_log=2,
    largest_segment=128,
)


@attrs.frozen
class Work:
    """An operation of raftlog on some shapes, and what the peers do for the same end."""

    id: str
    what: str
    ours: str
    theirs: str
    shapes: tuple[str, ...]
    goals: Mapping[str, float]
    interpreted_goals: Mapping[str, float] = attrs.Factory(dict)
    of: Literal["count", "size_bytes"] = "count"


_THOUSANDS: Final = ("small", "tiny", "large")
_COLUMNS: Final = "columns and CRC, all record fields"
_OBJECTS: Final = "lazy objects, four attributes read"
WORKS: Final = (
    Work("scan", "scan and CRC", "scan", "scan", _THOUSANDS, {"aiokafka": 6, "kafka-python": 1.8}, of="size_bytes"),
    Work("scan", "scan and CRC", "scan", "scan", (METADATA_LIKE,), {"aiokafka": 3, "kafka-python": 17}, of="size_bytes"),
    Work("columns", _COLUMNS, "columns", "decode", ("small", "tiny"), {"aiokafka": 7, "kafka-python": 80, "kio": 0}),
    Work("columns", _COLUMNS, "columns", "decode", ("large",), {"aiokafka": 6, "kafka-python": 30, "kio": 0}),
    Work("columns", _COLUMNS, "columns", "decode", (METADATA_LIKE,), {"aiokafka": 4, "kafka-python": 60, "kio": 0}),
    Work("columns", _COLUMNS, "columns", "decode", ("small-lz4",), {"aiokafka": 2}),
    Work("columns", _COLUMNS, "columns", "decode", ("small-zstd", "small-snappy"), {"aiokafka": 1.5}),
    Work("columns", _COLUMNS, "columns", "decode", ("small-gzip",), {"aiokafka": 1.1}),
    Work("arrow", "Arrow table with keys and values", "arrow", "decode", (*_THOUSANDS, METADATA_LIKE), {"aiokafka": 3}),
    Work(
        "objects",
        _OBJECTS,
        "attributes",
        "attributes",
        _THOUSANDS,
        {"aiokafka": 1.2, "kafka-python": 0},
        {"kafka-python": 1.5},
    ),
    Work(
        "objects",
        _OBJECTS,
        "attributes",
        "attributes",
        (METADATA_LIKE,),
        {"aiokafka": 0.9, "kafka-python": 0},
        {"kafka-python": 1.5},
    ),
    Work(
        "encode",
        "encode 1000-record batches",
        "encode",
        "encode",
        _THOUSANDS,
        {"aiokafka": 5, "kafka-python": 0},
        {"kafka-python": 3},
    ),
)


class Figures:
    """All comparisons.

    Args:
        folder: for outputs.
        workers: a process for each mode.
        sizes: of the inputs.
    """

    def __init__(self, folder: Path, workers: Mapping[Mode, Worker], sizes: Sizes) -> None:
        self._output = folder / "output"
        self._workers = workers
        self._sizes = sizes

    def comparisons(self, *, with_java: bool) -> Iterator[Comparison]:
        """Yield them, in the order of the goals."""
        for work in WORKS:
            for shape in work.shapes:
                yield self._in_process(work, shape)
        for shape in (*_THOUSANDS, METADATA_LIKE):
            yield self._text_lines(shape)
        if with_java:
            yield self._kafka_lines("dump-batches", "dump-log, batch lines", self._sizes.metadata_log, 2)
            decoder = "--cluster-metadata-decoder"
            size = self._sizes.decoded_metadata_log
            yield self._kafka_lines("dump-metadata", "dump-log, metadata decoder", size, 1.5, decoder)
        for shape in _THOUSANDS:
            yield self._share_of_memory_read(shape)
        yield self._two_processes()
        yield self._start()
        yield self._memory()

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

    def _in_process(self, work: Work, shape: str) -> Comparison:
        unit = 1024**2 if work.of == "size_bytes" else 1e6
        size = self._sizes.by_contender
        return Comparison(
            f"{work.id}-{shape}",
            f"{work.what}, {shape}",
            "MiB/s" if work.of == "size_bytes" else "M records/s",
            {
                mode: Speed(self._workers[mode], f"raftlog {work.ours}", shape, size[mode], work.of, unit)
                for mode in MODES
            },
            {
                peer: Speed(self._workers["compiled"], f"{peer} {work.theirs}", shape, size[peer], work.of, unit)
                for peer in work.goals
            },
            {("compiled", peer): goal for peer, goal in work.goals.items()}
            | {("interpreted", peer): goal for peer, goal in work.interpreted_goals.items()},
        )

    def _dump(self, mode: Mode, shape: str, size_mib: float, counted: str, *options: str) -> Command:
        worker = self._workers["compiled"]
        amount = worker.run(f"raftlog {counted}", shape, size_mib)["count"] / 1e6
        command = [RAFTLOG, "dump-log", *options, "--files", worker.input(shape, size_mib)]
        return Command(command, mode, amount, self._output)

    def _text_lines(self, shape: str) -> Comparison:
        size = self._sizes.by_contender
        peer = Speed(self._workers["compiled"], "kafka-python decode", shape, size["kafka-python"])
        return Comparison(
            f"dump-text-{shape}",
            f"dump-log, text lines, whole process, {shape}",
            "M records/s",
            {mode: self._dump(mode, shape, size[mode], "columns", "--print-data-log") for mode in MODES},
            {"kafka-python decoding alone": peer},
            {("compiled", "kafka-python decoding alone"): 2},
        )

    def _kafka_lines(self, row: str, what: str, size_mib: float, goal: float, *options: str) -> Comparison:
        counted, unit = ("columns", "M records/s") if options else ("scan", "M batches/s")
        interpreted = self._sizes.by_contender["interpreted"]
        ours: dict[Mode, Command] = {
            "compiled": self._dump("compiled", METADATA_LOG, size_mib, counted, *options),
            "interpreted": self._dump("interpreted", METADATA_LOG, interpreted, counted, *options),
        }
        path = self._workers["compiled"].input(METADATA_LOG, size_mib)
        command = [*kafka_dump_log("4.3"), *options, "--files", path]
        java = Command(command, "compiled", ours["compiled"].amount, self._output)
        name = "kafka-dump-log 4.3"
        what = f"{what}, whole process, real metadata log of {size_mib:g} MiB"
        return Comparison(row, what, unit, ours, {name: java}, {("compiled", name): goal})

    def _share_of_memory_read(self, shape: str) -> Comparison:
        of: Literal["size_bytes"] = "size_bytes"
        sizes: dict[Mode, float] = {
            "compiled": self._sizes.memory,
            "interpreted": self._sizes.by_contender["compiled"],
        }
        limit = Speed(self._workers["compiled"], "machine memory read", shape, self._sizes.memory, of, 2**20)
        return Comparison(
            f"share-{shape}",
            f"scan and CRC, share of the machine's limit, {shape}",
            "MiB/s",
            {mode: Speed(self._workers[mode], "raftlog scan", shape, sizes[mode], of, 2**20) for mode in MODES},
            {"memory read": limit},
            {("compiled", "memory read"): MEMORY_READ_SHARE},
        )

    def _two_processes(self) -> Comparison:
        shape, sizes = "small-zstd", self._sizes.by_contender

        def speed(mode: Mode, operation: str) -> Speed:
            return Speed(self._workers[mode], operation, shape, sizes[mode], clock="wall_s")

        return Comparison(
            "two-processes",
            "columns of many zstd segments in two processes",
            "M records/s",
            {"compiled": speed("compiled", "raftlog two processes")},
            {"one process": speed("compiled", "raftlog one process")},
            {("compiled", "one process"): 1.8},
        )

    def _start(self) -> Comparison:
        command = [RAFTLOG, "dump-log", "--files", self._workers["compiled"].input(METADATA_LIKE, 0)]
        against = f"python -c pass, and {START_ALLOWANCE_MS} ms"
        return Comparison(
            "start",
            "start to first line of dump-log, a log of one batch",
            "ms",
            {mode: FirstLine(command, mode) for mode in MODES},
            {against: FirstLine([sys.executable, "-c", "pass"], "compiled", START_ALLOWANCE_MS)},
            {("compiled", against): 1},
            less_is_better=True,
        )

    def _memory(self) -> Comparison:
        sizes: dict[Mode, float] = {
            "compiled": self._sizes.largest_segment,
            "interpreted": self._sizes.by_contender["compiled"] / 4,
        }
        against = f"{MEMORY_LIMIT_MIB} MiB"
        for size in sizes.values():
            self._workers["compiled"].input("small", size)  # Making it takes memory too.
        return Comparison(
            "memory",
            f"peak memory of columns, a segment of {sizes['compiled']:g} MiB",
            "MiB",
            {mode: Peak(Speed(self._workers[mode], "raftlog segment", "small", sizes[mode])) for mode in MODES},
            {against: Limit(MEMORY_LIMIT_MIB)},
            {("compiled", against): 1},
            less_is_better=True,
        )
