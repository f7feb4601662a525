# SPDX-License-Identifier: Apache-2.0
"""Logs that are read in parts, as tasks of Spark read them, but by this process; all is pickled, as it is there."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from raftlog.tools.mirrors.on_spark import spark_summer
from raftlog.tools.mirrors.on_spark.spark_summer import SparkSummer


def over_all(_spark: object, work: Callable[[Any], Any], tasks: Sequence[Sequence[Any]], _what: str) -> list[Any]:
    """Do what workers do, here."""
    return [pickle.loads(pickle.dumps(work(pickle.loads(pickle.dumps(each))))) for inputs in tasks for each in inputs]


def summer_here(part_size: int) -> SparkSummer:
    """What sums logs in parts of a size in bytes; ``over_all`` must be in the place of Spark."""
    none: Any = None
    return SparkSummer(none, part_size)


@contextmanager
def without_spark() -> Iterator[None]:
    """Put ``over_all`` in the place of Spark."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark_summer, "run_on_workers", over_all)
        yield
