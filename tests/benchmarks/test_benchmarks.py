# SPDX-License-Identifier: Apache-2.0
"""The benchmarks compare like with like, and report what they measured."""

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.benchmarks import __main__ as program
from tests.benchmarks import inputs, report, worker
from tests.benchmarks.contenders import OPERATIONS
from tests.benchmarks.log_figures import LogFigures
from tests.benchmarks.measure import Comparison, Contender, Limit, Mode, Row, environment
from tests.benchmarks.works import FULL, QUICK, THOUSANDS, WORKS, Sizes

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


@pytest.mark.parametrize("shape", THOUSANDS)
def test_digests_are_of_all_records(shape: str, tmp_path: Path) -> None:
    """What is compared with columns alone reads the same records, those with headers too."""
    log = inputs.file(tmp_path, shape, _SIZE_MIB).read_bytes()
    assert OPERATIONS["raftlog digests"].function(log) == OPERATIONS["raftlog columns"].function(log) != 0


def test_an_input_is_as_large_as_was_asked(tmp_path: Path) -> None:
    """The real metadata log is repeated up to the size, and no further than a batch."""
    size = inputs.file(tmp_path, inputs.METADATA_LOG, _SIZE_MIB).stat().st_size
    assert 0 <= size - _SIZE_MIB * inputs.MIB < 2000


def test_a_row_has_the_ratio_to_the_peer() -> None:
    """The ratio is of speeds, or the other way round where less is better; no goal always holds."""
    compiled, interpreted = comparison().rows(rounds=1)
    assert (compiled.id, compiled.ratio, compiled.goal, compiled.holds) == ("x-a-peer", 2, 2, True)
    assert (interpreted.id, interpreted.ratio, interpreted.goal) == ("x-a-peer-interpreted", 0.5, 0)
    assert interpreted.holds
    assert [row.ratio for row in comparison(less_is_better=True).rows(rounds=1)] == [0.5, 2]


def test_a_comparison_takes_no_more_rounds_than_it_is_worth() -> None:
    """Without a limit of its own, it takes those that it is given."""

    @attrs.define
    class Counter:
        rounds: int = 0

        def measure(self) -> float:
            self.rounds += 1
            return self.rounds

        def peak_memory_bytes(self) -> int:
            return 0

    for most_rounds, rounds in ((None, 5), (3, 3), (9, 5)):
        counter = Counter()
        others = {"a peer": Limit(1)}
        list(Comparison("x", "work", "MiB/s", {"compiled": counter}, others, {}, most_rounds=most_rounds).rows(5))
        assert counter.rounds == rounds


@pytest.mark.parametrize(
    ("name", "shape", "batches", "times"),
    [
        ("raftlog append", "1-KiB-batches", 5, 4),
        ("raftlog append as follower", "1-KiB-batches", 5, 4),
        ("raftlog append and sync", "1-KiB-batches", 5, 4),
        ("raftlog snapshot", "1-KiB-batches", 64, 1),
        ("raftlog verify snapshot", "1-KiB-batches", 64, 1),
        ("machine write all and sync", "1-KiB-batches", 64, 1),
        ("raftlog control records", inputs.CONTROL_BATCHES, 400, 1),
    ],
)
def test_an_operation_on_a_log_sees_all_of_it(name: str, shape: str, batches: int, times: int, tmp_path: Path) -> None:
    """What is counted is batches, or records that are as large as batches, of each of the logs that are made."""
    result = worker.run(tmp_path, name, shape, inputs.size_mib(shape, batches))
    assert result["count"] == batches * times
    assert result["wall_s"] > 0
    assert (result["beside_s"] is not None) == ("append" in name)


@pytest.mark.parametrize("name", ["raftlog recovery", "raftlog open", "raftlog take over"])
def test_a_log_that_is_opened_has_all_records(name: str, tmp_path: Path) -> None:
    """The input stays as it is, so that each round finds the same."""
    results = [worker.run(tmp_path, name, "small", 0.2) for _ in range(2)]
    assert [result["count"] for result in results] == [2000, 2000]
    path = inputs.file(tmp_path, "small", 0.2)
    assert list(path.parent.iterdir()) == [path]
    assert path.stat().st_size == results[0]["size_bytes"]


def test_the_accumulator_and_its_peer_encode_the_same_records() -> None:
    """Both count them."""
    rows = list(inputs.row_batches("metadata-like"))[:50]
    assert {OPERATIONS[f"raftlog {name}"].function(rows) for name in ("accumulate", "encode as one")} == {
        sum(map(len, rows))
    }


def test_voter_sets_are_looked_up_in_a_log_of_their_own(tmp_path: Path) -> None:
    """The log has the number of voter sets that was asked for, and the operation times its questions alone."""
    size_mib = inputs.size_mib(inputs.VOTER_SETS, 20)
    log = inputs.file(tmp_path, inputs.VOTER_SETS, size_mib).read_bytes()
    assert OPERATIONS["raftlog control records"].function(log) == 20
    assert worker.run(tmp_path, "raftlog voter set at offset", inputs.VOTER_SETS, size_mib)["size_bytes"] == 0


@pytest.mark.parametrize("sizes", [FULL, QUICK])
def test_every_figure_of_a_log_has_an_operation(sizes: Sizes) -> None:
    """Each comparison can be made, and names operations that there are."""
    nobody: Any = None
    for row, build in LogFigures({"compiled": nobody, "interpreted": nobody}, sizes).all():
        made = build(row)
        for contender in (*made.ours.values(), *made.theirs.values()):
            speed: Any = getattr(contender, "speed", contender)
            assert isinstance(speed, Limit) or speed.operation_name in OPERATIONS


def test_a_run_that_is_interrupted_keeps_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows that were measured before are in the results."""

    class Interrupted:
        def limits(self) -> dict[str, tuple[Contender, str]]:
            return {"memory read": (Limit(10), "GiB/s")}

        def comparisons(self, only: str, *, with_java: bool) -> Iterator[Comparison]:
            yield comparison()
            raise KeyboardInterrupt

    results = tmp_path / "results.json"
    monkeypatch.setattr(program, "_figures", lambda folder, sizes: contextlib.nullcontext(Interrupted()))
    monkeypatch.setattr(program, "_RESULTS", results)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--quick"])
    with pytest.raises(KeyboardInterrupt):
        program.main()
    assert len(json.loads(results.read_text("utf-8"))["rows"]) == 2


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
