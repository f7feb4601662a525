# SPDX-License-Identifier: Apache-2.0
"""Runs a function on workers, once for each of some inputs. Inputs and results are pickled: both are raftlog's own."""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs
import pyarrow as pa

from raftlog.tools.spark.spark_failure import failures_of
from raftlog.tools.spark.worker_gc import settle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Input = TypeVar("_Input")
_Result = TypeVar("_Result")
_INPUTS: Final = pa.schema([("task", pa.int32()), ("number", pa.int32()), ("input", pa.binary())])
_RESULTS: Final = pa.schema([("number", pa.int32()), ("result", pa.binary())])
_RESULT_COLUMNS: Final = "number int, result binary"


def run_on_workers(
    spark: "SparkSession", work: Callable[[_Input], _Result], tasks: Sequence[Sequence[_Input]], what: str
) -> list[_Result]:
    """Return the results of a function for all inputs, in their order.

    Args:
        spark: the session to work in.
        work: the function; workers import it by its name.
        tasks: the inputs of each task.
        what: names the work, for messages.

    Raises:
        SparkJobError: Spark failed, or the function did, four times.
    """
    if not tasks:
        return []
    bins = [number for number, inputs in enumerate(tasks) for _ in inputs]
    inputs = [pickle.dumps(each) for inputs in tasks for each in inputs]
    table = pa.table([bins, list(range(len(inputs))), inputs], _INPUTS)
    with failures_of(what):
        frame = spark.createDataFrame(table).repartitionById(len(tasks), "task")
        found = frame.mapInArrow(_Work(work).__call__, _RESULT_COLUMNS).toArrow()
    results = zip(found["number"].to_pylist(), found["result"], strict=True)
    return [pickle.loads(result.as_py()) for _, result in sorted(results, key=lambda each: each[0])]  # noqa: S301 - by our workers


@attrs.frozen
class _Work:
    """Does the work of a task. Spark pickles it for the workers.

    Attributes:
        work: the function.
    """

    work: Callable[[Any], Any]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read rows of ``_INPUTS``, and yield rows of ``_RESULTS``."""
        for batch in batches:
            for number, given in zip(batch["number"].to_pylist(), batch["input"], strict=True):
                result = pickle.dumps(self.work(pickle.loads(given.as_py())))  # noqa: S301 - by our driver
                yield pa.RecordBatch.from_arrays([pa.array([number], pa.int32()), pa.array([result])], schema=_RESULTS)
        settle(self.work.__name__)
