# SPDX-License-Identifier: Apache-2.0
"""Comparisons of the audit, with limits and with Kafka's own dump tool, which checks less."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from tests.benchmarks import inputs
from tests.benchmarks.measure import Comparison, Limit, Mode
from tests.benchmarks.operations import Speed, Worker
from tests.benchmarks.programs import KAFKA_RELEASE, RAFTLOG, Command, kafka_dump_log
from tests.benchmarks.works import Sizes

_LEAST_VERIFIED_MIB: Final = {"small": 1.2 * 1024, inputs.RAFT_LOG: 700}
"""A second, by shape."""
_LEAST_RATIO_TO_KAFKA: Final = {"small": 1.5, inputs.RAFT_METADATA_LOG: 30}
_LEAST_GAIN_OF_A_PROCESS: Final = 1.7
_SEGMENTS: Final = 192
"""How many segments many are: enough that the start of a process does not count."""
_NAMES: Final = {
    "small": "usual batches",
    inputs.RAFT_LOG: "a metadata-like log",
    inputs.RAFT_METADATA_LOG: "a real metadata log",
}


class AuditFigures:
    """All comparisons of the audit.

    Args:
        folder: for outputs.
        workers: a process for each mode.
        sizes: of the inputs.
    """

    def __init__(self, folder: Path, workers: Mapping[Mode, Worker], sizes: Sizes) -> None:
        self._folder = folder
        self._output = folder / "verified"
        self._workers = workers
        self._sizes = sizes

    def all(self, *, with_java: bool) -> Iterator[tuple[str, Callable[[str], Comparison]]]:
        """Yield the start of the ids of their rows, and what makes a comparison, given that."""
        yield "verify-small", partial(self._verify, "small", self._sizes.largest_segment)
        yield f"verify-{inputs.RAFT_LOG}", partial(self._verify, inputs.RAFT_LOG, self._sizes.memory)
        if with_java:
            yield "verify-process-small", partial(self._beside_kafka, "small", self._sizes.dumped["compiled"])
            yield (
                "verify-process-metadata-log",
                partial(self._beside_kafka, inputs.RAFT_METADATA_LOG, self._sizes.metadata_log),
            )
        if "compiled" in self._sizes.many_segments:
            yield "verify-two-processes", partial(self._two_processes, self._sizes.many_segments["compiled"])

    def _verify(self, shape: str, size_mib: float, row: str) -> Comparison:
        sizes: dict[Mode, float] = {"compiled": size_mib, "interpreted": self._sizes.by_contender["interpreted"]}
        least = _LEAST_VERIFIED_MIB[shape]
        against = f"{least:g} MiB/s"
        return Comparison(
            row,
            f"verify {_NAMES[shape]}, {size_mib:g} MiB in the page cache, one process",
            "MiB/s",
            {
                mode: Speed(self._workers[mode], "raftlog verify", shape, size, "size_bytes", 2**20)
                for mode, size in sizes.items()
            },
            {against: Limit(least)},
            {("compiled", against): 1},
        )

    def _beside_kafka(self, shape: str, size_mib: float, row: str) -> Comparison:
        path = self._workers["compiled"].input(shape, size_mib)
        verify = Command([RAFTLOG, "verify", path], "compiled", size_mib, self._output)
        dump = Command([*kafka_dump_log(), "--files", path], "compiled", size_mib, self._output)
        name = f"kafka-dump-log {KAFKA_RELEASE}, batch lines"
        what = f"verify {_NAMES[shape]}, whole process, {size_mib:g} MiB"
        goals: dict[tuple[Mode, str], float] = {("compiled", name): _LEAST_RATIO_TO_KAFKA[shape]}
        return Comparison(row, what, "MiB/s", {"compiled": verify}, {name: dump}, goals, most_rounds=3)

    def _two_processes(self, size_mib: float, row: str) -> Comparison:
        segment = Path(self._workers["compiled"].input("small", size_mib))
        directory = partitions_of(self._folder, [segment], _SEGMENTS)
        two, one = (
            Command(
                [RAFTLOG, "verify", "-j", count, "--fail-on", "damaged", str(directory)],
                "compiled",
                _SEGMENTS * size_mib,
                self._output,
            )
            for count in ("2", "1")
        )
        return Comparison(
            row,
            f"verify {_SEGMENTS} segments of {size_mib:g} MiB in two processes, whole process",
            "MiB/s",
            {"compiled": two},
            {"one process": one},
            {("compiled", "one process"): _LEAST_GAIN_OF_A_PROCESS},
        )


def partitions_of(folder: Path, segments: Sequence[Path], count: int) -> Path:
    """Return a directory of partitions that have these segments in turn: all are in the page cache anyway."""
    directory = folder / f"{count}-of-{'-'.join(segment.parent.parent.name for segment in segments)}"
    for number, segment in zip(range(count), itertools.cycle(segments), strict=False):
        partition = directory / f"orders-{number}"
        if not partition.exists():
            partition.mkdir(parents=True)
            (partition / segment.name).symlink_to(segment)
    return directory
