# SPDX-License-Identifier: Apache-2.0
"""What is measured on Spark is what is said, as far as it can be seen without Spark."""

import sys
from pathlib import Path
from subprocess import PIPE

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from raftlog.tools.spark.rows.views import view_schema
from raftlog.tools.spark.source.source import RaftLogDataSource
from tests.benchmarks import inputs, spark_operations
from tests.benchmarks.measure import Comparison, Limit, Row
from tests.benchmarks.process_tree import MemoryWatch
from tests.benchmarks.report import results_without, write_results
from tests.benchmarks.spark_figures import plan
from tests.benchmarks.works import SPARK
from tests.other_processes import started


def row(name: str, against: str, ours: float, theirs: float) -> Row:
    """Return a row of two figures."""
    our, their = Limit(ours), Limit(theirs)
    (found,) = Comparison(f"{SPARK}{name}", "work", "MiB/s", {"compiled": our}, {against: their}, {}).rows(1)
    return found


def test_tuples_are_the_rows_of_the_source(tmp_path: Path) -> None:
    """Both readers, given the same options, see the same records."""
    log = inputs.file(tmp_path, "small", 0.05)
    source = RaftLogDataSource({"path": str(log)})
    schema = from_arrow_schema(view_schema(source._parsed()))
    reader = source.reader(schema)
    tuples = spark_operations.TupleReader(source.reader(schema))
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    rows = [tuple(each.values()) for each in pa.Table.from_batches(batches).to_pylist()]
    assert [each for part in tuples.partitions() for each in tuples.read(part)] == rows


def test_memory_is_that_of_the_program_and_what_it_starts() -> None:
    """A process counts as the program; those that it has not started, such as this one, do not count."""
    with started([sys.executable, "-c", "print(flush=True); input()"], stdin=PIPE, stdout=PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        watch = MemoryWatch(process.pid)
        watch._sample()
        process.communicate(b"\n")
    assert watch.peaks["program"] > 2**20
    assert (watch.peaks["java"], watch.peaks["task"]) == (0, 0)
    assert watch.peak == watch.peaks["program"]


def test_tasks_are_what_java_has_started() -> None:
    """A Python below Java is a task; a script that becomes Java, and Java below Java, are told apart from it."""
    processes = {1: ["0", "9", "python"], 2: ["1", "9", "java"], 3: ["2", "9", "python"], 4: ["3", "9", "python"]}
    watch = MemoryWatch(1)
    assert [watch._kind(number, processes) for number in (1, 2, 3, 4)] == ["program", "java", "task", "task"]
    assert MemoryWatch(7)._kind(4, processes) is None
    starting = processes | {5: ["2", "9", "Executor task l"]}
    assert watch._kind(5, starting) is None


def test_the_plan_follows_from_what_was_measured() -> None:
    """Ten workers of 100 MiB/s, which lose a tenth, are three times a machine of 300, and pay from 27 s of it on."""
    rows = [row("workers-larger", "local engine", 180, 300), row("workers-larger", "one worker", 180, 100)]
    text = plan(rows, start_s=18)
    assert "90% of what each could do alone: 900 MiB/s" in text
    assert f"{10e12 / 2**20 / 900 / 60:.0f} minutes" in text
    assert f"{10e12 / 2**20 / 2000 / 60:.0f} minutes" in text
    assert f"from {18 * 450 / 1024:.1f} GiB on" in text
    assert plan(rows[:1], start_s=18) == ""


@pytest.mark.parametrize("is_spark", [True, False])
def test_each_kind_of_rows_leaves_the_others(tmp_path: Path, is_spark: bool) -> None:
    """Measuring what runs on Spark keeps the other rows in the results file, and the other way round."""
    path = tmp_path / "results.json"
    write_results(path, "a machine", {"memory read": (1.0, "GiB/s")}, [row("x", "y", 1, 1)])
    kept = results_without(path, lambda name: name.startswith(SPARK) == is_spark)
    assert len(kept["rows"]) == (0 if is_spark else 1)
    write_results(path, "a machine", {}, [row("y", "z", 1, 1)], kept)
    again = results_without(path, lambda name: False)
    assert len(again["rows"]) == (1 if is_spark else 2)
    assert list(again["limits"]) == ["memory read"]
