# SPDX-License-Identifier: Apache-2.0
"""`raftlog dump-log --dialect V` prints what release V of Kafka's own dump tool prints, byte for byte.

The oracle is the tool itself, on the whole corpus and on every edge case. A call the tool dies of has no output to
compare: there raftlog has to answer without an exception. `comparison.py` names what raftlog leaves to Kafka.
"""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import attrs
import pytest

from tests.golden_files import GOLDEN
from tests.kafka import corpus, dump_tool, make_edge_files
from tests.kafka.comparison import Answer, Call, differences, is_compared
from tests.kafka.dump_tool import CORPUS_DIALECT, DIALECTS, Dump

pytestmark = dump_tool.marks("Kafka's dump tool")
SHOWN = 20  # of the calls that differ, in a failure's message


@attrs.frozen
class Stage:
    """A working directory, and the calls to make in it."""

    folder: Path
    calls: tuple[Call, ...]


@pytest.fixture(scope="module")
def corpus_stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """The corpus, copied."""
    folder = tmp_path_factory.mktemp("corpus")
    corpus.stage(folder)
    return Stage(folder, tuple(tuple(argv) for argv in corpus.calls()))


@pytest.fixture(scope="module")
def edge_stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """The edge cases' files, written."""
    folder = tmp_path_factory.mktemp("damaged")
    make_edge_files.write_files(folder)
    return Stage(folder, tuple(tuple(case.argv(call)) for case in make_edge_files.all_cases() for call in case.calls))


@pytest.fixture(scope="module")
def background() -> Iterator[ThreadPoolExecutor]:
    """Two threads: the JVMs run ahead while this process compares."""
    with ThreadPoolExecutor(2) as executor:
        yield executor


Answers = Callable[[], list[Dump]]


def ask_all(background: ThreadPoolExecutor, stage: Stage, fresh: Callable[[], Path]) -> dict[str, Answers]:
    """Starts every release on the calls, each in a folder of its own: the tool writes where it reads."""

    def ask(dialect: str) -> list[Dump]:
        return dump_tool.dump_many(dialect, stage.calls, fresh())

    running: dict[str, Future[list[Dump]]] = {dialect: background.submit(ask, dialect) for dialect in DIALECTS}
    return {dialect: future.result for dialect, future in running.items()}


@pytest.fixture(scope="module")
def corpus_answers(background: ThreadPoolExecutor, corpus_stage: Stage) -> dict[str, Answers]:
    """The output of each release for the corpus, for calls that create no file."""
    return ask_all(background, corpus_stage, lambda: corpus_stage.folder)


@pytest.fixture(scope="module")
def edge_answers(
    background: ThreadPoolExecutor, edge_stage: Stage, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Answers]:
    """The output of each release for the edge cases."""

    def fresh() -> Path:
        folder = tmp_path_factory.mktemp("kafka")
        make_edge_files.write_files(folder)
        return folder

    return ask_all(background, edge_stage, fresh)


def answers_of(stage: Stage, dumps: list[Dump]) -> list[Answer]:
    """Each call with what the release printed."""
    outputs = (dump.out if dump.exit == 0 else None for dump in dumps)
    return list(zip(stage.calls, outputs, strict=True))


def assert_same(dialect: str, stage: Stage, dumps: list[Dump]) -> None:
    """Compares a release's dumps with raftlog's, and prints how many there were."""
    given = answers_of(stage, dumps)
    found = list(differences(dialect, stage.folder, given))
    print(f"{dialect}: {sum(map(is_compared, given))} of {len(given)} compared, {len(found)} differ")
    assert not found, f"{len(found)} of {len(given)} differ:\n" + "\n".join(found[:SHOWN])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_corpus_is_printed_as_by_the_release(
    dialect: str, corpus_stage: Stage, corpus_answers: dict[str, Answers]
) -> None:
    """Every file a real Kafka wrote, in every shape of output that makes sense for it."""
    assert_same(dialect, corpus_stage, corpus_answers[dialect]())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_edge_cases_are_printed_as_by_the_release(
    dialect: str, edge_stage: Stage, edge_answers: dict[str, Answers]
) -> None:
    """Every odd or damaged file that the release survives; raftlog survives the others too."""
    assert_same(dialect, edge_stage, edge_answers[dialect]())


def test_the_goldens_are_what_the_releases_print(edge_stage: Stage, edge_answers: dict[str, Answers]) -> None:
    """The committed outputs of the edge cases are those of the five releases, died or not."""
    golden = make_edge_files.DAMAGED
    entries = json.loads((golden / "manifest.json").read_text(encoding="utf-8"))
    kept = {(tuple(e["argv"]), dialect): e for e in entries for dialect in e["dialects"]}
    for dialect in DIALECTS:
        for arguments, dump in zip(edge_stage.calls, edge_answers[dialect](), strict=True):
            entry = kept[arguments, dialect]
            assert (golden / "expected" / entry["out"]).read_bytes() == dump.out, arguments
            assert entry["exit"] == dump.exit, arguments


@pytest.mark.parametrize("folder", corpus.FOLDERS)
def test_the_corpus_was_dumped_by_this_tool(folder: str, corpus_stage: Stage) -> None:
    """4.3.1, run here, repeats the outputs that came with the corpus."""
    expected = json.loads((GOLDEN / folder / "manifest.json").read_text(encoding="utf-8"))["expected"]
    dumped = [entry for entry in expected if entry["argv"][0] == "kafka-dump-log"]
    answers = dump_tool.dump_many(CORPUS_DIALECT, [entry["argv"][1:] for entry in dumped], corpus_stage.folder / folder)

    for entry, dump in zip(dumped, answers, strict=True):
        assert dump.out == (GOLDEN / folder / "expected" / entry["out"]).read_bytes(), entry["out"]
        assert dump.exit == entry["exit"], entry["out"]
