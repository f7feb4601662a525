# SPDX-License-Identifier: Apache-2.0
"""What the documents show works: the example of the README, and the demo."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from raftlog.records.rules import RULES
from raftlog.tools.dump_options import parse_options
from tests.golden_files import GOLDEN

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


EXAMPLES = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def printed_by(example: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """Run an example in a folder that holds a metadata log with some padding, and return what it printed."""
    log = GOLDEN / "dynamic-quorum/data/n3/__cluster_metadata-0/00000000000000000000.log"
    (folder / log.name).write_bytes(log.read_bytes() + bytes(100))
    monkeypatch.chdir(folder)
    exec(compile(example, "README.md", "exec"), {})
    return capsys.readouterr().out


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # an example may leave it to Python to close a file
def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The first Python example of the README prints the records of a log, control records among them."""
    printed = printed_by(EXAMPLES[0], tmp_path, monkeypatch, capsys)

    assert "LeaderChange" in printed
    assert printed.splitlines()[-1].startswith("not a batch: ZeroPadding(")


def test_the_example_of_columns_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second one prints the columns of a log's later records."""
    pytest.importorskip("pyarrow")
    printed = printed_by(EXAMPLES[1], tmp_path, monkeypatch, capsys)

    assert "offset: " in printed
    assert "value: " in printed


def test_the_example_of_a_log_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The shell makes a log directory, and the third one writes to it, in fewer than 20 lines, and knows its voter."""
    scripts = re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    (script,) = (each for each in scripts if "log init" in each)
    command = f'raftlog() {{ {shlex.quote(sys.executable)} -m raftlog.tools.command_line "$@"; }}\n{script}'
    shown = subprocess.run(["bash", "-ec", command], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    printed = printed_by(EXAMPLES[2], tmp_path, monkeypatch, capsys)

    assert "1 are records" in shown
    assert "quorum: node 1" in shown
    assert "{1:" in printed
    assert len(re.sub(r"^(from|import) .*\n", "", EXAMPLES[2], flags=re.MULTILINE).strip().splitlines()) < 20


def test_no_other_example_is_left_out() -> None:
    """These are all the Python examples that there are."""
    assert len(EXAMPLES) == 3


def test_the_commands_are_ones() -> None:
    """Every command line of the README is one that the parser takes."""
    (console,) = re.findall(r"^```console\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    commands = [command.split("|") for command in re.findall(r"^\$ ([^#\n]*)", console, re.MULTILINE)]
    ours = [part.strip() for parts in commands for part in parts if part.strip().startswith("raftlog dump-log")]

    assert len(ours) == 7
    for command in ours:
        assert parse_options(shlex.split(command)[2:]).paths


def test_the_options_of_the_readme_exist() -> None:
    """Every option that the README names is one that the help names."""
    done = subprocess.run(
        [sys.executable, "-m", "raftlog.tools.command_line", "dump-log", "--help"], capture_output=True, text=True
    )
    for option in set(re.findall(r"`(--[a-z-]+)", README)):
        assert option in done.stdout


def test_the_demo_tells_the_history() -> None:
    """The demo prints who led and who could vote, a batch with its control records, and what a flipped byte gives."""
    done = subprocess.run([sys.executable, "docs/demo.py"], capture_output=True, text=True, check=True, cwd=ROOT)
    words = " ".join(done.stdout.split())

    assert done.stderr == ""
    for election in ("epoch 2 2 elected by [1, 2]", "epoch 3 1 elected by [1, 3]", "epoch 4 3 elected by [1, 3, 4]"):
        assert election in words
    for change in (
        "voters [1, 2, 3]: added [1, 2, 3]",
        "voters [1, 2, 3, 4]: added [4]",
        "voters [2, 3, 4]: removed [1]",
    ):
        assert change in words
    assert "KRaftVoters {" in words
    assert "[batch-crc]" in words
    assert "exit code 2" in words
    assert "Traceback" not in words


def test_rules_have_words() -> None:
    """Every rule that a finding may cite says what it claims and where it comes from."""
    assert all(rule.claim and rule.source for rule in RULES.values())
