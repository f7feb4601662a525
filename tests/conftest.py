# SPDX-License-Identifier: Apache-2.0
"""How properties are tried: ``HYPOTHESIS_PROFILE=thorough`` for more examples, ``ci`` for the same ones in each run.

A change lands or not by what it does, so ``.ci/run`` asks for the second; every other run looks at new examples.
"""

import gc
import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings

from tests.changing_names import name_changes
from tests.object_store import ObjectStore, running_object_store
from tests.scenarios.playing import RECORD_OPTION, refusal_to_record
from tests.signal_handlers import handlers, let_ctrl_c_interrupt, put_back
from tests.tiers import is_elsewhere

settings.register_profile("default", max_examples=40, deadline=None)
# The same examples again find less than new ones, so there are fewer of them.
settings.register_profile("ci", max_examples=30, deadline=None, derandomize=True)
# Of a mutant it matters that a test fails, not with what least example.
settings.register_profile(
    "mutant", settings.get_profile("ci"), max_examples=40, phases=(Phase.explicit, Phase.generate)
)
settings.register_profile("thorough", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


_HANDLERS = pytest.StashKey[Mapping[signal.Signals, Any]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this checkout."""
    parser.addoption(RECORD_OPTION, action="store_true", help="write what scenarios print into tests/scenarios/*/*.txt")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to record where outputs must be compared; let tests interrupt what they start."""
    refusal = refusal_to_record(os.environ) if config.getoption(RECORD_OPTION) else None
    if refusal is not None:
        raise pytest.UsageError(refusal)
    let_ctrl_c_interrupt()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Pass over what is not of the tier that ``-m`` asks for alone."""
    return is_elsewhere(collection_path, str(config.getoption("markexpr"))) or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the longest tests begin first: one that begins last keeps one core busy, and the other idle.

    A test whose name differs from process to process is refused: workers would not agree on what there is to run. So is
    one that its tier would pass over.
    """
    changing = [item.nodeid for item in items if name_changes(item.name)]
    if changing:
        raise pytest.UsageError("names that differ from process to process:\n" + "\n".join(changing))
    misplaced = [item.nodeid for item in items for each in item.iter_markers() if is_elsewhere(item.path, each.name)]
    if misplaced:
        raise pytest.UsageError("not where tests/tiers.py says that tests of the tier are:\n" + "\n".join(misplaced))
    items.sort(key=lambda item: item.get_closest_marker("longest") is None)


def pytest_collection_finish() -> None:
    """Look for garbage less often, and never among the thousands of tests and what they have imported."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Note what signals do before a test and its fixtures."""
    item.stash[_HANDLERS] = handlers()
    yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Tell of a test that has changed what a signal does."""
    yield
    changed = put_back(item.stash[_HANDLERS])
    if changed:
        pytest.fail(f"left another handler of {', '.join(changed)}", pytrace=False)


@pytest.fixture(scope="session")
def object_store() -> Iterator[ObjectStore]:
    """A store that speaks S3, started with the first test that asks for it."""
    with running_object_store() as store:
        yield store
