# SPDX-License-Identifier: Apache-2.0
"""The benchmarks compare like with like, and report what they measured."""

import json
from pathlib import Path

import pytest

from tests.benchmarks import inputs, report
from tests.benchmarks.contenders import OPERATIONS
from tests.benchmarks.measure import Comparison, Contender, Limit, Mode, Row, environment
from tests.benchmarks.works import FULL, WORKS

_SIZE_MIB = 0.05


def comparison(less_is_better: bool = False) -> Comparison:
    """Two forms of raftlog, 8 and 2, against a peer's 4."""
    ours: dict[Mode, Contender] = {"compiled": Limit(8), "interpreted": Limit(2)}
    return Comparison("x", "work", "MiB/s", ours, {"a peer": Limit(4)}, {("compiled", "a peer"): 2}, less_is_better)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of kafka-python's imports
@pytest.mark.parametrize("shape", sorted(FULL.shapes))
def test_contenders_see_the_same_records(shape: str, tmp_path: Path) -> None:
    """All that are compared on a shape count the same batches or records."""
    log = inputs.file(tmp_path, shape, _SIZE_MIB).read_bytes()
    for work in (work for work in WORKS if shape in work.shapes):
        names = [f"raftlog {work.ours}", *(f"{peer} {work.theirs}" for peer in work.goals)]
        source = list(inputs.row_batches(shape))[:1] if work.id == "encode" else log
        counts = {name: OPERATIONS[name].function(source) for name in names}
        assert len(set(counts.values())) == 1, counts


def test_an_input_is_as_large_as_was_asked(tmp_path: Path) -> None:
    """The real metadata log is repeated up to the size, and no further than a batch."""
    size = inputs.file(tmp_path, inputs.METADATA_LOG, _SIZE_MIB).stat().st_size
    assert 0 <= size - _SIZE_MIB * inputs.MIB < 2000


def test_a_row_says_how_many_times_better_raftlog_is() -> None:
    """The ratio is of speeds, or the other way round where less is better; no goal always holds."""
    compiled, interpreted = comparison().rows(rounds=1)
    assert (compiled.id, compiled.ratio, compiled.goal, compiled.holds) == ("x-a-peer", 2, 2, True)
    assert (interpreted.id, interpreted.ratio, interpreted.goal) == ("x-a-peer-interpreted", 0.5, 0)
    assert interpreted.holds
    assert [row.ratio for row in comparison(less_is_better=True).rows(rounds=1)] == [0.5, 2]


def test_results_have_a_row_for_each_figure(tmp_path: Path) -> None:
    """The file holds the machine, and every field of every row."""
    path = tmp_path / "benchmarks" / "results.json"
    report.write_results(path, "a machine", {"memory read": (10.0, "GiB/s")}, list(comparison().rows(rounds=1)))
    results = json.loads(path.read_text("utf-8"))
    assert results["machine"] == "a machine"
    assert [row["holds"] for row in results["rows"]] == [True, True]
    assert set(results["rows"][0]) == set(Row.__annotations__)


def test_the_page_gets_its_tables_between_the_marks(tmp_path: Path) -> None:
    """Writing the figures twice leaves one table, and the prose around it."""
    page = tmp_path / "performance.md"
    page.write_text(f"before\n{report.START}{report.END}after\n", "utf-8")
    text = report.tables("a machine", {}, list(comparison(less_is_better=True).rows(rounds=1)))
    for _ in range(2):
        report.write_page(page, text)
    written = page.read_text("utf-8")
    assert written.startswith("before\n")
    assert written.endswith("after\n")
    assert written.count("### Compiled") == 1
    assert "**no**" in written


def test_the_picture_has_a_bar_for_each_goal() -> None:
    """Rows without a goal are not drawn."""
    assert report.picture(list(comparison().rows(rounds=1))).count('height="12"') == 1


def test_the_mode_is_in_the_environment() -> None:
    """What is inherited does not decide which form of the kernel is measured."""
    assert environment("interpreted")["RAFTLOG_PURE"] == "1"
    assert "RAFTLOG_PURE" not in environment("compiled")
