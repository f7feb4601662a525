# SPDX-License-Identifier: Apache-2.0
"""The two forms of the kernel, side by side in one process.

``RAFTLOG_KERNEL_PATH`` names another compiled form than the one that was built in place: ``make test-bounds`` hands in
one that checks every index, ``make test-asan`` one whose memory is watched. ``RAFTLOG_EXAMPLES`` multiplies the number
of examples.
"""

import contextlib
import importlib
import os
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final
from unittest import mock

import pytest
from hypothesis import settings

from raftlog.records import kernel_choice
from raftlog.records.batches import batch_run, builder, iterator
from raftlog.records.columns import (
    column_values,
    columns,
    record_areas,
    record_digests,
    record_marks,
    record_selection,
    record_summaries,
    transactions,
)
from tests.records import built_kernel


def _compiled() -> Any:
    kernel = built_kernel.named()
    if kernel is not None:
        return kernel
    try:
        return importlib.import_module(built_kernel.NAME)
    except ImportError:
        return None


INTERPRETED: Final[Any] = vars(kernel_choice)["_interpreted"]()
COMPILED: Final[Any] = _compiled()

needs_compiled: Final = pytest.mark.skipif(COMPILED is None, reason="the kernel is not compiled: no compiler?")
"""Marks what compares both forms."""

BUILT_FORMS: Final = [form for form in (INTERPRETED, COMPILED) if form is not None]
"""Those that are there, for what is drawn once and holds for each."""

FORMS: Final = [
    pytest.param(INTERPRETED, id="interpreted"),
    pytest.param(COMPILED, id="compiled", marks=needs_compiled),
]
"""Parameters for what holds for each form."""

_SCALE: Final = int(os.environ.get("RAFTLOG_EXAMPLES", "1"))


def examples(count: int) -> settings:
    """Return settings for a property: how many examples it takes by default."""
    return settings(deadline=None, max_examples=count * _SCALE)


_USERS = (
    batch_run,
    column_values,
    columns,
    record_areas,
    record_digests,
    record_marks,
    record_selection,
    record_summaries,
    transactions,
)
"""The readers that take the kernel by name."""


@contextlib.contextmanager
def using(form: ModuleType, *, chunk_size: int | None = None, arena_size: int | None = None) -> Iterator[None]:
    """Let readers use one form of the kernel, and other sizes than their own."""
    with contextlib.ExitStack() as patches:
        for module in _USERS:
            patches.enter_context(mock.patch.object(module, "kernel", form))
        patches.enter_context(mock.patch.object(columns, "IS_COMPILED", form.IS_COMPILED))
        if chunk_size is not None:
            patches.enter_context(mock.patch.object(iterator, "CHUNK_SIZE", chunk_size))
        if arena_size is not None:
            patches.enter_context(mock.patch.object(record_areas, "_ARENA_SIZE", arena_size))
        yield


@contextlib.contextmanager
def using_to_write(form: ModuleType) -> Iterator[None]:
    """Let builders use one form of the kernel."""
    with mock.patch.object(builder, "kernel", form):
        yield


def longs(count: int) -> memoryview:
    """Make a column of 64-bit integers."""
    return memoryview(bytearray(8 * count)).cast("q")


def ints(count: int) -> memoryview:
    """Make a column of 32-bit integers."""
    return memoryview(bytearray(4 * count)).cast("i")
