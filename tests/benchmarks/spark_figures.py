# SPDX-License-Identifier: Apache-2.0
"""Comparisons on Spark: the source with tuples, the audit with the local engine, two workers with one."""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Literal, Self

import attrs

from raftlog.tools.spark.audit_job import SETTINGS
from tests.benchmarks.audit_figures import partitions_of
from tests.benchmarks.measure import Comparison, Contender, Limit, Mode, Row
from tests.benchmarks.mirror_figures import commands
from tests.benchmarks.operations import Worker
from tests.benchmarks.programs import RAFTLOG
from tests.benchmarks.spark_contenders import DriverPeak, MeanSpeed, SparkPeak, SparkProcess, SparkSpeed, WatchedProgram
from tests.benchmarks.works import SPARK
from tests.spark.standalone_cluster import standalone_cluster

MIB_IN_TB: Final = 1e12 / 2**20
_READ_SHAPES: Final = ("small", "tiny")
_LEAST_M_ROWS: Final = 4
_LEAST_RATIO_TO_TUPLES: Final = 10
_LEAST_GAIN_OF_A_WORKER: Final = 1.7
_PROCESSORS: Final = 2
_WARM_UPS: Final = 10
"""Of an audit on a cluster, until it no longer gets faster; each of two workers sees but half of it."""
_REPEATS: Final = 3
_WORKERS_OF_THE_PLAN: Final = 10
_DISK_MIB_S: Final = 200
"""Of a worker, in the plan: what a spinning disk or a share of a network gives."""
_MEMORY_LIMITS_MIB: Final[dict[Literal["program", "java", "task"], int]] = {"program": 512, "java": 2048, "task": 512}
_MIRROR_LIMIT_MIB: Final = 1024
_NAMES: Final = {"program": "the driver's Python", "java": "Java, driver and tasks", "task": "a task's Python"}
_SESSION_S: Final = "session"
_LOCAL_JAVA: Final = {"spark.driver.extraJavaOptions": "-XX:+UseParallelGC -XX:+UseTransparentHugePages"}
"""As docs/spark.md advises where queries are all that runs."""


@attrs.frozen
class Segments:
    """What is audited.

    Attributes:
        segment_mib: the size of each segment.
        count: how many there are, each in a partition of its own.
    """

    segment_mib: float
    count: int

    def __str__(self) -> str:
        return f"{self.mib / 1024:.3g} GiB in {self.count} segments"

    @property
    def mib(self) -> float:
        """The size of all."""
        return self.segment_mib * self.count


@attrs.frozen
class SparkSizes:
    """How much is measured on Spark.

    Attributes:
        rows_mib: the size of each segment that the source reads.
        row_segments: how many there are: half of usual batches, half of tiny records.
        audited: what is audited.
        larger: what is audited on clusters alone.
        mirrored_mib: the size of a log of tiny records that is compared with its mirror.
        rounds: of which the median counts.
    """

    rows_mib: float
    row_segments: int
    audited: Segments
    larger: Segments
    mirrored_mib: float
    rounds: int


# 280 MiB are ten million tiny records.
FULL: Final = SparkSizes(256, 8, Segments(4 * 1024 / 2000, 2000), Segments(256, 250), 280, 5)
QUICK: Final = SparkSizes(16, 2, Segments(1, 20), Segments(16, 4), 8, 1)


class SparkFigures:
    """All comparisons on Spark. Use it as a context manager.

    Args:
        folder: for inputs and outputs.
        sizes: of the inputs.
    """

    def __init__(self, folder: Path, sizes: SparkSizes) -> None:
        self._folder = folder
        self._sizes = sizes
        self._stack = contextlib.ExitStack()
        self._processes: dict[str, SparkProcess] = {}
        self._mirrors_on_spark: WatchedProgram | None = None

    def comparisons(self, only: str) -> Iterator[Comparison]:
        """Yield those whose id starts with ``only``, in the order of the goals."""
        for row, build in self._all():
            if row.startswith(only):
                yield build(row)

    def _all(self) -> Iterator[tuple[str, Callable[[str], Comparison]]]:
        yield f"{SPARK}source", self._source
        yield f"{SPARK}source-of-a-record", self._source_of_a_record
        yield f"{SPARK}audit-program", self._audit_program
        yield f"{SPARK}audit-session", self._audit_session
        for kind in _MEMORY_LIMITS_MIB:
            yield f"{SPARK}memory-{kind}", partial(self._memory, kind)
        yield f"{SPARK}mirror", self._mirror
        yield f"{SPARK}mirror-memory", self._mirror_memory
        yield f"{SPARK}workers", self._workers
        yield f"{SPARK}workers-larger", self._workers_at_more

    def start_s(self) -> float:
        """Return how long a session took to start, and to run a first task."""
        return self._local().start_s

    def _source(self, row: str) -> Comparison:
        fewer = self._partitions(_READ_SHAPES, self._sizes.rows_mib / 4, 2)
        tuples = SparkSpeed(self._local(), "tuples", fewer, warm_ups=1)  # Python has nothing to warm.
        return self._reads("arrow", "all of a consumer's columns", {"the same rows as tuples": tuples}, row)

    def _source_of_a_record(self, row: str) -> Comparison:
        return self._reads("arrow-of-a-record", "key, value, offset and timestamp", {}, row)

    def _reads(self, operation: str, columns: str, tuples: Mapping[str, Contender], row: str) -> Comparison:
        sizes = self._sizes
        logs = self._partitions(_READ_SHAPES, sizes.rows_mib, sizes.row_segments)
        least = f"{_LEAST_M_ROWS} M records/s"
        goals: dict[tuple[Mode, str], float] = {("compiled", other): _LEAST_RATIO_TO_TUPLES for other in tuples}
        return Comparison(
            row,
            f"Spark source, {columns} of {sizes.rows_mib * sizes.row_segments:g} MiB, {_PROCESSORS} processors",
            "M records/s",
            {"compiled": SparkSpeed(self._local(), operation, logs, warm_ups=5)},
            {least: Limit(_LEAST_M_ROWS), **tuples},
            {("compiled", least): 1, **goals},
        )

    def _audit_program(self, row: str) -> Comparison:
        audited = self._sizes.audited
        on_spark = self._audit(audited, "--engine", "spark", "--master", f"local[{_PROCESSORS}]")
        local = {"local engine": self._locally(audited)}
        what = f"audit of {audited}, Spark's local mode, whole program"
        return Comparison(row, what, "MiB/s", {"compiled": on_spark}, local, {})

    def _audit_session(self, row: str) -> Comparison:
        local = {"local engine, whole program": self._locally(self._sizes.audited)}
        on_spark = self._audit_in(self._local(), self._sizes.audited)
        return Comparison(
            row,
            f"audit of {self._sizes.audited}, Spark's local mode, in a session that is there",
            "MiB/s",
            {"compiled": on_spark},
            local,
            {},
        )

    def _memory(self, kind: Literal["program", "java", "task"], row: str) -> Comparison:
        limit = _MEMORY_LIMITS_MIB[kind]
        return Comparison(
            row,
            f"peak memory of {_NAMES[kind]}, at all of the above",
            "MiB",
            {"compiled": SparkPeak(self._local(), kind)},
            {f"{limit} MiB": Limit(limit)},
            {("compiled", f"{limit} MiB"): 1},
            less_is_better=True,
        )

    def _mirror(self, row: str) -> Comparison:
        size_mib = self._sizes.mirrored_mib
        what = f"verify-mirror, two logs of {size_mib:g} MiB each, tiny, Spark's local mode, whole program"
        local = {"local engine": self._mirrored("local")}
        return Comparison(row, what, "MiB/s", {"compiled": self._mirrored_on_spark()}, local, {})

    def _mirror_memory(self, row: str) -> Comparison:
        limit = f"{_MIRROR_LIMIT_MIB} MiB"
        return Comparison(
            row,
            f"peak memory of verify-mirror's driver, two logs of {self._sizes.mirrored_mib:g} MiB each",
            "MiB",
            {"compiled": DriverPeak(self._mirrored_on_spark())},
            {limit: Limit(_MIRROR_LIMIT_MIB)},
            {("compiled", limit): 1},
            less_is_better=True,
        )

    def _mirrored_on_spark(self) -> WatchedProgram:
        if self._mirrors_on_spark is None:
            self._mirrors_on_spark = self._mirrored("spark", "--master", f"local[{_PROCESSORS}]")
        return self._mirrors_on_spark

    def _mirrored(self, *engine: str) -> WatchedProgram:
        """Return the comparison of a log with its mirror by an engine."""
        size_mib = self._sizes.mirrored_mib
        ours, _ = commands(self._folder, "tiny", size_mib)
        return WatchedProgram([*ours, "--engine", *engine], 2 * size_mib)

    def _workers(self, row: str) -> Comparison:
        return self._two_workers(self._sizes.audited, {}, row, _WARM_UPS, _REPEATS)

    def _workers_at_more(self, row: str) -> Comparison:
        audited = self._sizes.larger
        return self._two_workers(audited, {"local engine": self._locally(audited)}, row, warm_ups=1)

    def _two_workers(
        self, audited: Segments, others: Mapping[str, Contender], row: str, warm_ups: int, repeats: int = 1
    ) -> Comparison:
        processors = sorted(os.sched_getaffinity(0))[:_PROCESSORS]
        if len(processors) < _PROCESSORS:
            raise RuntimeError(f"{_PROCESSORS} workers of one processor each need as many processors")
        clusters = [processors, *([processor] for processor in processors)]
        two, *ones = (self._audit_in(self._on_cluster(*each), audited, warm_ups, repeats) for each in clusters)
        return Comparison(
            row,
            f"audit of {audited}, two workers of one processor each",
            "MiB/s",
            {"compiled": two},
            {"one worker": MeanSpeed(ones), **others},
            {("compiled", "one worker"): _LEAST_GAIN_OF_A_WORKER},
        )

    def _locally(self, audited: Segments) -> WatchedProgram:
        return self._audit(audited, "--engine", "local", "-j", str(_PROCESSORS))

    def _audit(self, audited: Segments, *options: str) -> WatchedProgram:
        directory = self._directory(audited)
        command = [RAFTLOG, "audit", str(directory), "--out", f"{directory}-{options[1]}", "--fresh", *options]
        return WatchedProgram([*command, "--fail-on", "damaged"], audited.mib)

    def _audit_in(self, process: SparkProcess, audited: Segments, warm_ups: int = 3, repeats: int = 1) -> SparkSpeed:
        return SparkSpeed(process, "audit", self._directory(audited), audited.mib, warm_ups, repeats)

    def _directory(self, audited: Segments) -> Path:
        return self._partitions(("small",), audited.segment_mib, audited.count)

    def _partitions(self, shapes: Sequence[str], size_mib: float, count: int) -> Path:
        with Worker(self._folder, "compiled") as worker:
            segments = [Path(worker.input(shape, size_mib)) for shape in shapes]
        return partitions_of(self._folder, segments, count)

    def _local(self) -> SparkProcess:
        return self._process(_SESSION_S, f"local[{_PROCESSORS}]", {}, _LOCAL_JAVA)

    def _on_cluster(self, *processors: int) -> SparkProcess:
        """Return a process with a cluster of a worker for each of some processors."""
        name = "-".join(["cluster", *map(str, processors)])
        if name not in self._processes:
            folder = self._folder / name
            folder.mkdir()
            cluster = self._stack.enter_context(standalone_cluster(folder, processors))
            self._process(name, cluster.url, cluster.environment, SETTINGS)
        return self._processes[name]

    def _process(self, name: str, master: str, variables: Mapping[str, str], java: Mapping[str, str]) -> SparkProcess:
        if name not in self._processes:
            configuration = {"spark.sql.shuffle.partitions": str(_PROCESSORS), **java}
            self._processes[name] = self._stack.enter_context(SparkProcess(master, configuration, variables))
        return self._processes[name]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()


def plan(rows: Sequence[Row], start_s: float) -> str:
    """Return what the measured speeds say about ten workers, or nothing if they were not measured.

    Args:
        rows: what was measured.
        start_s: how long a session takes to start.
    """
    found = {row.id.removeprefix(SPARK): row for row in rows}
    local, workers = found.get("workers-larger-local-engine"), found.get("workers-larger-one-worker")
    if local is None or workers is None:
        return ""
    here, one = local.theirs, workers.theirs
    many = one * _WORKERS_OF_THE_PLAN * workers.ratio / 2
    pays_mib = max(0.0, start_s / (1 / here - 1 / many)) if many > here else float("inf")
    share, each = workers.ratio / 2, many / _WORKERS_OF_THE_PLAN
    minutes, from_disks = (MIB_IN_TB * 10 / speed / 60 for speed in (many, _DISK_MIB_S * _WORKERS_OF_THE_PLAN))
    lines = (
        f"A worker of one processor audits {one:.0f} MiB/s. Two are {workers.ratio:.2f} times as fast, and",
        f"{_WORKERS_OF_THE_PLAN} are assumed to do {share:.0%} of what each could do alone: {many:.0f} MiB/s.",
        f"This machine alone audits {here:.0f} MiB/s in {_PROCESSORS} processes, startup included. A session",
        f"takes {start_s:.0f} s to start: {_WORKERS_OF_THE_PLAN} workers win from {pays_mib / 1024:.1f} GiB on.\n",
        f"10 TB take {_WORKERS_OF_THE_PLAN} workers of one processor {minutes:.0f} minutes, if disks or network give",
        f"each of them {each:.0f} MiB/s; where they give {_DISK_MIB_S}, {from_disks:.0f} minutes, limited by these.",
    )
    return "\n".join(lines) + "\n"
