# SPDX-License-Identifier: Apache-2.0
"""The registry of output formats is all that there is of them."""

import inspect
import re
from pathlib import Path

import pytest

from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.messages.releases import NEWEST_DIALECT
from raftlog.tools.dump import output_formats
from raftlog.tools.dump.output_formats import FORMATS, KAFKA
from raftlog.tools.dump.rendering import Renderer
from tests.checkout import ROOT
from tests.golden_files import GOLDEN
from tests.tools.console import run
from tests.tools.made_logs import write_log
from tests.tools.test_odd_names import ODD, acts_on_a_terminal

METHODS = [name for name, member in vars(Renderer).items() if inspect.isfunction(member) and not name.startswith("_")]


def test_names_are_unique_and_the_default_is_kafkas() -> None:
    """Each format is found by its own name; the first one is Kafka's."""
    assert [each.name for each in FORMATS.values()] == list(FORMATS)
    assert next(iter(FORMATS.values())) is KAFKA


def test_every_maker_of_a_renderer_has_a_format() -> None:
    """No function that makes a renderer is left without a row in the registry."""
    makers = [
        maker
        for _, maker in inspect.getmembers(output_formats, inspect.isfunction)
        if inspect.signature(maker).return_annotation == "Renderer"
    ]
    rows = [each.make_renderer for each in FORMATS.values()]
    assert len(makers) >= 3
    assert [maker.__name__ for maker in makers if maker not in rows] == []


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_renders_everything(name: str) -> None:
    """A renderer has each method of the protocol, with its parameters."""
    renderer = FORMATS[name].make_renderer(NEWEST_DIALECT, print_payloads=True, skip_record_metadata=False)
    for method in METHODS:
        wanted = [*inspect.signature(getattr(Renderer, method)).parameters][1:]
        assert [*inspect.signature(getattr(renderer, method)).parameters] == wanted, method


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_prints_every_kind_of_file(name: str) -> None:
    """Directories of a real cluster are printed by each format, without an error of raftlog's own."""
    outcome = run("dump-log", "--format", name, "--all", GOLDEN / "data-topics" / "data" / "n1")
    assert (outcome.exit_code, "fault of raftlog" in outcome.messages) == (0, False)
    assert outcome.text


@pytest.mark.parametrize("name", [name for name, each in FORMATS.items() if not each.follows_dialect])
def test_no_record_acts_on_the_terminal(name: str, tmp_path: Path) -> None:
    """Keys, values and headers with control characters are escaped, unless a format prints them as Kafka does."""
    builder = RecordBatchBuilder(0)
    builder.append(0, ODD.encode(), ODD.encode(), [(ODD.encode(), ODD.encode())])
    write_log(tmp_path / "t-0", builder.build())

    text = run("dump-log", "--format", name, "--all", tmp_path).text
    assert not any(acts_on_a_terminal(character) for line in text.split("\n") for character in line)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_tests_of_its_own(name: str) -> None:
    """The module of a format's renderer has its module of tests beside this one."""
    renderer = FORMATS[name].make_renderer(NEWEST_DIALECT, print_payloads=True, skip_record_metadata=False)
    module = type(renderer).__module__.rpartition(".")[2]
    assert Path(__file__).with_name(f"test_{module}.py").is_file()


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_documented(name: str) -> None:
    """The README says what each format is, and the CHANGELOG that it was added."""
    for page in ("README.md", "CHANGELOG.md"):
        assert f"`--format {name}`" in (ROOT / page).read_text("utf-8"), page


def test_no_module_compares_names_of_formats() -> None:
    """Differences between formats are traits: no other module of dump-log compares names."""
    places = [path for path in (ROOT / "tools" / "dump").glob("*.py") if path.name != "output_formats.py"]
    assert [path.name for path in places if _compares_names(path)] == []


def _compares_names(path: Path) -> bool:
    return (
        re.search(r"(format|name)\)? (==|!=|in) .*\"(" + "|".join(FORMATS) + ')"', path.read_text("utf-8")) is not None
    )
