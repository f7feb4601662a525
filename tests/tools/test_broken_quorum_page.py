# SPDX-License-Identifier: Apache-2.0
"""docs/broken-quorum.md: the commands for a broken quorum work as written, and change nothing."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from raftlog.tools.terminal.exit_codes import EXIT_CLEAN, EXIT_DAMAGE, EXIT_ERROR, EXIT_SUSPICIOUS
from tests.checkout import ROOT
from tests.golden_files import GOLDEN
from tests.tools.console import run

PAGE = (ROOT / "docs" / "broken-quorum.md").read_text("utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = [shlex.split(line)[1:] for block in BLOCKS for line in block.splitlines()]


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a folder with copies of what three controllers of a real quorum left, as the page calls them."""
    for number in (2, 3, 4):
        shutil.copytree(GOLDEN / "dynamic-quorum" / "data" / f"n{number}", tmp_path / f"controller-{number}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("is_damaged", [False, True])
def test_every_command_runs_and_changes_nothing(arguments: list[str], is_damaged: bool, copies: Path) -> None:
    """Each command of the page says something, on sound copies and where one is damaged, and writes to none of them."""
    if is_damaged:
        log = copies / "controller-3" / "__cluster_metadata-0" / "00000000000000000000.log"
        data = bytearray(log.read_bytes())
        data[len(data) // 2] ^= 1
        log.write_bytes(data)
    before = contents(copies)
    outcome = run(*arguments)
    assert contents(copies) == before
    if arguments[:2] == ["log", "truncate"]:
        said = "the log can be cut at offsets" if is_damaged else "would go: only with --yes"
        assert (outcome.exit_code, said in outcome.messages) == (EXIT_ERROR, True)
        return
    allowed = {EXIT_CLEAN, EXIT_SUSPICIOUS} | ({EXIT_DAMAGE} if is_damaged else set())
    assert outcome.exit_code in allowed, outcome.messages
    assert outcome.text


def test_the_sentences_that_the_page_quotes_occur() -> None:
    """Each sentence of ``raftlog quorum`` that the page explains is one that it can say."""
    folder = ROOT / "tools" / "auditing" / "history"
    source = "".join((folder / name).read_text("utf-8") for name in ("quorum_words.py", "verdict_words.py"))
    for quoted in re.findall(r"^- \*(.+?)\*", PAGE, re.MULTILINE):
        assert quoted in source
