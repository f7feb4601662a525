# SPDX-License-Identifier: Apache-2.0
"""A worker's collector of garbage passes over what is loaded, and still finds what comes later."""

import gc
import uuid
import weakref
from collections.abc import Iterator

import pytest

from raftlog.tools.spark.worker_gc import settle


class Knot:
    """Garbage that holds itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _thawed() -> Iterator[None]:
    """Leave this process as it was."""
    yield
    gc.unfreeze()


def test_a_worker_settles_once_for_each_kind_of_work() -> None:
    """Loaded objects are excluded from then on; those of a second task of the kind are not added."""
    work = str(uuid.uuid4())
    settle(work)
    frozen = gc.get_freeze_count()
    later = [Knot() for _ in range(100)]
    settle(work)
    assert frozen > 1000
    assert gc.get_freeze_count() <= frozen
    assert len(later) == 100


def test_garbage_is_found() -> None:
    """Garbage that was there before goes as a worker settles, and later garbage goes as ever."""
    before = weakref.ref(Knot())
    settle(str(uuid.uuid4()))
    assert before() is None
    after = weakref.ref(Knot())
    gc.collect()
    assert after() is None
