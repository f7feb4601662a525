# SPDX-License-Identifier: Apache-2.0
"""The code in the documents works: the example of the README, and the demo."""

import importlib.util
import os
import re
import shlex
import subprocess
import sys
import tomllib
from glob import glob
from pathlib import Path

import pytest

from raftlog.errors import NoJavaError
from raftlog.records.rules import RULES
from raftlog.tools.catalogue.audit_columns import TABLES, schema
from raftlog.tools.dump.dump_options import parse_options
from raftlog.tools.spark.java_runtime import LEAST_JAVA
from tests import quick_java
from tests.checkout import ROOT
from tests.golden_files import GOLDEN
from tests.readme import blocks, log_example, log_script, run_shell
from tests.tools.console import run, run_process
from tests.tools.log_console import log

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
    """The shell makes log directories, and the third one leads an epoch in one, in 20 lines; all is sound after it."""
    shown = run_shell(log_script(), tmp_path)
    printed = printed_by(log_example(), tmp_path, monkeypatch, capsys)

    assert "1 are records" in shown
    assert "quorum: node 1" in shown
    assert "{1:" in printed
    assert len(re.sub(r"^(from|import) .*\n", "", log_example(), flags=re.MULTILINE).strip().splitlines()) <= 20
    assert EXAMPLES[2] == log_example()
    for made in ("quorum", "own"):
        audited = run("verify", "--all", made)
        assert (audited.exit_code, "0 harmless" in audited.text) == (0, True), audited.text
    assert log("append", Path("own")).exit_code == 0  # Nothing of the example stands in the way of the next leader.


def test_no_other_example_is_left_out() -> None:
    """These are all Python examples except the one on Spark, which tests/spark runs."""
    assert [("spark" in example) for example in EXAMPLES] == [False, False, False, True]


def test_no_other_shell_block_is_left_out() -> None:
    """No shell block is untested: the first steps (CI runs them), make, and log directories."""
    assert [re.findall(r"^(?:make|raftlog) \w+", block, re.MULTILINE)[0] for block in blocks("sh")] == [
        "raftlog verify",
        "make demo",
        "raftlog log",
    ]
    assert len(blocks("console")) == 2


def test_the_dump_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command of the README that dumps or follows runs, on what a real Kafka wrote; pipes get what they got."""
    monkeypatch.chdir(tmp_path)
    metadata = GOLDEN / "dynamic-quorum/data/n3/__cluster_metadata-0"
    (tmp_path / "00000000000000000000.log").symlink_to(metadata / "00000000000000000000.log")
    (tmp_path / "orders-0").symlink_to(GOLDEN / "mirror/data/n1/orders-0")
    commands = re.findall(r"^\$ ([^#\n]*)", blocks("console")[0], re.MULTILINE)

    assert len(commands) == 8
    for command in commands:
        (ours,) = (part.strip() for part in command.split("|") if part.strip().startswith("raftlog "))
        arguments = shlex.split(ours.replace("/var/lib/kafka/metadata", str(metadata)))[1:]
        if arguments[0] == "follow":
            arguments += ["--until-idle", "0"]
        else:
            assert parse_options(arguments[1:]).paths
        piped = (metadata / "00000000000000000000.log").read_bytes() if arguments[-1] == "-" else None
        outcome = run(*arguments) if piped is None else run_process(*arguments, data=piped)
        assert outcome.exit_code == 0, ours
        assert "since" in ours or outcome.output, ours
        if "jsonl" in arguments:
            assert outcome.objects or "since" in ours


def test_the_audit_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every other command of the README runs, on the replicas of a real quorum, and finds nothing wrong."""
    _, console = re.findall(r"^```console\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    quorum = GOLDEN / "dynamic-quorum/data"
    (tmp_path / "00000000000000000193.log").symlink_to(quorum / "n1/__cluster_metadata-0/00000000000000000193.log")
    places = {"/backup": str(quorum), "/data": str(quorum), "/audits": str(tmp_path / "audits")}
    places |= dict.fromkeys(("/restored", "/brokers"), str(GOLDEN / "data-topics/data"))
    places |= dict.fromkeys(("/a", "/b"), str(GOLDEN / "mirror/data"))
    commands = re.findall(r"^\$ raftlog ([^#\n]*)", console, re.MULTILINE)

    assert len(commands) == 18
    for command in commands:
        command = re.sub(r"(?<= )/\w+(?=[/ ])", lambda match: places[match[0]], command)
        arguments = [path for part in shlex.split(command) for path in sorted(glob(part)) or [part]]
        assert run(*arguments).exit_code == 0


def test_the_options_of_the_readme_exist() -> None:
    """Every option that the README names is one that the help of a verb names."""
    helps = "".join(
        subprocess.run(
            [sys.executable, "-m", "raftlog.tools.command_line", verb, "--help"],
            capture_output=True,
            text=True,
        ).stdout
        for verb in ("dump-log", "verify")
    )
    for option in set(re.findall(r"`(--[a-z-]+)", README)):
        assert option in helps


def check_demo(words: str) -> None:
    """Check that the demo prints who led and who could vote, a batch, and what damage gives."""
    for change in ("added 1, 2, 3", "added 4", "removed 1", "3 of 3 voters; 2 suffice"):
        assert change in words
    for lead in ("2 2 0 67 67", "3 1 67 148 81", "4 3 148 230 82"):  # epoch, leader, from, to, records
        assert lead in words
    assert "KRaftVoters {" in words
    for rule in ("batch-crc", "election-stale", "tail-torn"):
        assert f"[{rule}]" in words
    assert "clean: findings: 0 data-loss, 0 damaged, 0 suspicious" in words
    assert "exit code 2" in words
    assert "5 pairs, 580 records compared: no finding above harmless." in words
    assert "the task passed over offsets 100 to 199 of orders-0" in words
    assert words.count("[mirror.source-recreated]") == 2


def test_the_demo_shows_the_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The demo prints its history from the files only; without Java, it says that it leaves Spark out."""
    spec = importlib.util.spec_from_file_location("demo", ROOT / "docs/demo.py")
    assert spec is not None
    assert spec.loader is not None
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)

    def raftlog(*arguments: str) -> subprocess.CompletedProcess[str]:
        done = run(*arguments)
        return subprocess.CompletedProcess(arguments, done.exit_code, done.text, done.messages)

    def no_java() -> None:
        raise NoJavaError(LEAST_JAVA, "there is none")

    monkeypatch.chdir(ROOT)
    for name, value in {"raftlog": raftlog, "spark_java": no_java, "FOLDER": tmp_path / "demo"}.items():
        monkeypatch.setattr(demo, name, value)
    demo.main()
    words = " ".join(capsys.readouterr().out.split())

    check_demo(words)
    assert "left out:" in words
    assert (tmp_path / "demo/audit/report.html").exists()
    assert (tmp_path / "demo/mirror.html").exists()


@pytest.mark.spark
def test_the_demo_runs() -> None:
    """Run as make does, it prints the same, and both engines find the same."""
    command, environment = [sys.executable, "docs/demo.py"], os.environ | quick_java.OF_SPARK
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment)
    words = " ".join(done.stdout.split())

    assert done.stderr == ""
    check_demo(words)
    assert "the same, in the same order" in words
    assert (ROOT / "build/demo/audit/report.html").exists()
    assert "Traceback" not in words


def test_rules_have_words() -> None:
    """Every rule that a finding may cite says what it claims and where it comes from."""
    assert all(rule.claim and rule.source for rule in RULES.values())


def test_the_columns_of_the_tables_are_documented() -> None:
    """The page on auditing names each column of each table of an audit."""
    page = (ROOT / "docs/audit.md").read_text()
    for table in TABLES:
        (row,) = re.findall(rf"^\| `{table}` \|.*$", page, re.MULTILINE)
        assert set(schema(table).names) - {"run_id"} <= set(re.findall(r"\w+", row))


def test_the_extra_tools_brings_all_that_the_commands_need() -> None:
    """Every extra that a command may report as missing is part of the extra ``tools``, except Spark and DuckDB."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    (tools,) = re.findall(r"raftlog\[(.*)\]", "".join(extras["tools"]))
    code = [path.read_text() for folder in ("raftlog", "records", "tools") for path in (ROOT / folder).rglob("*.py")]
    reported = {extra for text in code for extra in re.findall(r'MissingExtraError\("(\w+)"', text)}

    assert reported - {"spark", "sql", "testing"} <= set(tools.split(","))
    assert {"codecs", "columns", "spark", "sql"} <= reported <= set(extras)
