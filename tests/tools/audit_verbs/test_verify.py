# SPDX-License-Identifier: Apache-2.0
"""``raftlog verify``: clean directories of a real Kafka are clean, bytes are accounted for, and exit codes follow."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from raftlog.records.rules import Severity
from raftlog.tools.catalogue.audit_rules import CATALOGUE
from tests.golden_files import GOLDEN
from tests.tools.console import COMMAND, Outcome, run, run_process
from tests.tools.made_logs import LOG_NAME, batch, flip, write_log

CLEAN = (
    "dynamic-quorum/data",
    "static-upgrade/data",
    "static-upgrade/before-upgrade",
    "wire/data",
    "data-topics/data",
    "groups/data",
    "mirror/data/n1",
    "mirror/data/n2",
)
NODE = GOLDEN / "dynamic-quorum/data/n3"
EPOCHS = b"0\n1\n1 0\n"
METADATA = "__cluster_metadata-0"
SCHEMA = json.loads((GOLDEN.parents[1] / "docs/verify-1.schema.json").read_text())


def verify(*arguments: str | Path) -> Outcome:
    """Run ``raftlog verify`` in this process, which also does the reading."""
    return run("verify", "-j", "1", *arguments)


def lines(outcome: Outcome) -> list[dict[str, Any]]:
    """The JSON lines, each checked against the published schema."""
    validator = Draft202012Validator(SCHEMA)
    for each in outcome.objects:
        validator.validate(each)
    return outcome.objects


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A copy of a node's directory."""
    return Path(shutil.copytree(NODE, tmp_path / "n3"))


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A partition with a flipped byte, in a directory whose name is not Unicode and has a line end."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff\nb"))
    write_log(folder / "orders-0", EPOCHS, name="leader-epoch-checkpoint")
    flip(write_log(folder / "orders-0", batch(), batch(1), batch(2)), len(batch()) + 30)
    return folder


def test_the_schema_is_one() -> None:
    """The published schema keeps to the metaschema."""
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("directory", CLEAN)
def test_what_kafka_wrote_is_clean(directory: str) -> None:
    """Directories that a real Kafka wrote have no finding above harmless, and every byte of batches is explained."""
    outcome = verify("--format", "jsonl", GOLDEN / directory)
    *others, summary = lines(outcome)

    assert [each for each in others if each["kind"] == "finding"] == []
    assert (outcome.exit_code, summary["verdict"], outcome.messages) == (0, "clean", "")
    assert summary["damaged_bytes"] == summary["padding_bytes"] == 0
    audited = GOLDEN / directory
    files = [path for path in audited.rglob("*") if path.is_file() and "-delete" not in path.parent.name]
    assert summary["files"] == len(files)
    assert summary["bytes"] == sum(path.stat().st_size for path in files)


def test_all_bytes_are_accounted_for(node: Path) -> None:
    """Of damaged files, too, explained, damaged, padding, small and unread bytes are all bytes."""
    segments = sorted(node.glob(f"{METADATA}/*.log"))
    flip(segments[0], 100)
    with segments[-1].open("ab") as log:
        log.write(bytes(4096))
    (node / "notes.txt").write_bytes(bytes(77))
    outcome = verify("--format", "jsonl", node)
    *others, summary = lines(outcome)

    parts = ("explained_bytes", "damaged_bytes", "padding_bytes", "small_file_bytes", "unread_bytes")
    assert sum(summary[part] for part in parts) == summary["bytes"]
    assert summary["bytes"] == sum(path.stat().st_size for path in node.rglob("*") if path.is_file())
    assert summary["padding_bytes"] == 4096
    assert summary["damaged_bytes"] > 0
    assert summary["unread_bytes"] == 77
    for file in others:
        if "explained_bytes" in file:
            assert file["explained_bytes"] + file["damaged_bytes"] + file["padding_bytes"] == file["size"]


def test_text(node: Path) -> None:
    """A finding is a line; then come what is hidden, where the bytes went, and the verdict."""
    log = min(node.glob(f"{METADATA}/*.log"))
    flip(log, log.stat().st_size // 2)
    finding, *rest = verify(node).text.splitlines()
    count = len(verify("--all", node).text.splitlines())

    assert finding.startswith(f"{log}, position ")
    assert ": damaged: " in finding
    assert rest[-2].endswith(" not read")
    assert " bytes = " in rest[-2]
    assert rest[-1].startswith("damaged: findings: 0 data-loss, 1 damaged, 0 suspicious")
    assert count >= 3


@pytest.mark.parametrize(
    ("damage", "fail_on", "exit_code"),
    [
        ("none", "harmless", 0),
        ("zeros", "suspicious", 3),
        ("zeros", "damaged", 0),
        ("flip", "suspicious", 2),
        ("flip", "damaged", 2),
        ("flip", "data-loss", 0),
    ],
)
def test_exit_codes(damage: str, fail_on: str, exit_code: int, tmp_path: Path) -> None:
    """Damage gives 2, suspicion alone 3, and what is below ``--fail-on`` 0."""
    log = write_log(tmp_path / "orders-0", batch(), batch(1), batch(2), bytes(100) if damage == "zeros" else b"")
    if damage == "flip":
        flip(log, len(batch()) + 30)
    outcome = verify("--fail-on", fail_on, log)

    assert outcome.exit_code == exit_code


def test_what_cannot_be_read_is_never_clean(tmp_path: Path) -> None:
    """A missing path gives exit code 1, whatever ``--fail-on`` says; the others are verified all the same."""
    log = write_log(tmp_path / "orders-0", batch())
    outcome = verify("--fail-on", "data-loss", tmp_path / "nowhere", log)

    assert outcome.exit_code == 1
    assert "nowhere: suspicious: it cannot be opened: No such file or directory [file-unreadable]" in outcome.text
    assert outcome.text.splitlines()[-1].startswith("unreadable: ")
    assert "1 files, " in outcome.text


def test_an_empty_directory(tmp_path: Path) -> None:
    """A directory without anything to verify is not a success."""
    outcome = verify(tmp_path)

    assert outcome.exit_code == 3
    assert "[directory-empty]" in outcome.text


def test_odd_names(odd: Path) -> None:
    """A path that is not Unicode is written as it was read, on one line; in JSON it is base64."""
    outcome = verify("--fail-on", "data-loss", odd)
    (finding,) = (each for each in lines(verify("--format", "jsonl", odd)) if each["kind"] == "finding")

    first = outcome.output.splitlines()[0]
    assert b"/a\xff\\x0ab/orders-0/" in first
    assert first.endswith(b"[batch-crc]")
    assert "file" not in finding
    assert outcome.exit_code == 0


@pytest.mark.parametrize("option", ["--findings", "--report"])
def test_no_output_beside_what_is_verified(option: str, node: Path) -> None:
    """Neither findings nor a report are written into a directory that is read, nor beside a file of it."""
    before = sorted(node.rglob("*"))
    for source in (node, next(node.glob("*/*.log"))):
        refused = verify(option, source.with_name("out") if source.is_file() else node / "out", source)
        assert (refused.exit_code, len(refused.complaints)) == (1, 1)
        assert "an audited directory is not written to" in refused.messages
    assert sorted(node.rglob("*")) == before


def test_findings_in_a_file(node: Path, tmp_path: Path) -> None:
    """``--findings`` writes all findings, harmless ones too, to a new file, and never over one that is there."""
    target = tmp_path / "findings.jsonl"
    shown = verify("--format", "jsonl", "--all", "--findings", target, node)
    written = target.read_bytes()

    assert [json.loads(line) for line in written.splitlines()] == shown.of_kind("finding")
    again = verify("--findings", target, node)
    assert (again.exit_code, again.output) == (1, b"")
    assert again.complaints == [f"raftlog verify: {target}: make failed: File exists"]
    assert target.read_bytes() == written


def test_severities_that_are_shown(tmp_path: Path) -> None:
    """Findings below ``--min-severity`` are counted and not shown; ``--all`` shows all."""
    log = write_log(tmp_path / "orders-0", batch(), bytes(100))
    (tmp_path / "orders-0/notes.txt").write_text("x")
    (tmp_path / "orders-0/leader-epoch-checkpoint").write_bytes(EPOCHS)
    counts = {}
    for options in ((), ("--min-severity", "damaged"), ("--all",)):
        outcome = verify("--format", "jsonl", *options, log.parent)
        summary = lines(outcome)[-1]
        counts[options] = (len(outcome.of_kind("finding")), summary["hidden"])
        assert outcome.exit_code == 3

    found = sum(counts[("--all",)])
    assert counts[("--all",)] == (found, 0)
    assert found >= 2
    assert counts[("--min-severity", "damaged")] == (0, found)
    assert counts[()] == (1, found - 1)


def test_rules() -> None:
    """``--rules`` lists every rule of the catalogue, as text and as JSON lines."""
    text = run("verify", "--rules").text.splitlines()
    objects = lines(run("verify", "--rules", "--format", "jsonl"))

    assert [line.split()[0] for line in text] == list(CATALOGUE)
    assert [(each["rule"], Severity(each["severity"])) for each in objects] == [
        (rule.id, rule.severity) for rule in CATALOGUE.values()
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a file or a directory"),
        (["-j", "0", "x"], "'0' is not a number from 1 to 999"),
        (["--fail-on", "bad", "x"], "'bad' is none of harmless, suspicious, damaged, data-loss"),
    ],
)
def test_usage(arguments: list[str], message: str) -> None:
    """A wrong command line is one line that says why."""
    outcome = run("verify", *arguments)

    assert outcome.exit_code == 1
    assert len(outcome.complaints) == 1
    assert message in outcome.complaints[0]


def test_processes_make_no_difference() -> None:
    """A process of its own, with two readers, says byte for byte what one reader says."""
    directory = GOLDEN / "damaged/data"
    one = verify("--all", "--format", "jsonl", directory)
    two = run_process("verify", "-j", "2", "--all", "--format", "jsonl", directory)

    assert (two.output, two.exit_code) == (one.output, one.exit_code)


def test_standard_input(tmp_path: Path) -> None:
    """A log that is piped in is verified as a segment of unknown name."""
    data = batch() + batch(1)[:-1] + b"!" + batch(2)
    outcome = run_process("verify", "-", data=data)

    assert outcome.exit_code == 2
    assert "-, position " in outcome.text


def test_the_input_is_not_touched(node: Path) -> None:
    """Nothing in the directory changes, and it may be closed to writes."""
    before = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in node.rglob("*")}
    node.chmod(0o555)
    verify(node)
    node.chmod(0o755)

    assert {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in node.rglob("*")} == before


def test_replicas_of_a_quorum_are_compared(tmp_path: Path) -> None:
    """Directories of several nodes are verified together: a batch that is replaced in one is found, and only there."""
    data = Path(shutil.copytree(GOLDEN / "dynamic-quorum/data", tmp_path / "data"))
    log = data / "n2" / METADATA / LOG_NAME
    flip(log, log.stat().st_size // 2)
    outcome = verify(*sorted(data.iterdir()))

    assert outcome.exit_code == 2
    assert {line.split(",")[0] for line in outcome.text.splitlines() if "damaged: " in line[:-1] and "[" in line} == {
        str(log)
    }


def test_one_segment_imports_little(tmp_path: Path) -> None:
    """For one segment nothing is imported that only other files, several, producers, processes or JSON need."""
    segment = write_log(tmp_path / "orders-0", batch(), batch(1))
    command = [sys.executable, "-X", "importtime", *COMMAND[1:], "verify", str(segment)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    imported = {line.rsplit("|", 1)[1].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    ours = {name.removeprefix("raftlog.") for name in imported if name.startswith("raftlog.")}

    assert "tools.auditing.survey.segment_survey" in ours
    assert not {"cattrs", "crc32c", "json", "logging", "multiprocessing", "pyarrow"} & imported
    unwanted = {
        "records.messages.control",
        "records.messages.schema",
        "storage.state.log_directory",
        "voters.voter_set",
    }
    assert {find_spec(f"raftlog.{name}") is not None for name in unwanted} == {True}
    assert not unwanted & ours
    rooms = ("auditing", "catalogue", "input", "terminal")
    assert {name for name in ours if name.startswith("tools.") and name.split(".")[1] not in rooms} <= {
        *("tools.command_line", "tools.verb_help", "tools.verb_help.verbs"),
        *("tools.audit_verbs", "tools.audit_verbs.verify", "tools.audit_verbs.verification"),
    }
    assert not {"tools.terminal.annotated_bytes", "tools.terminal.value_text", "tools.input.small_files"} & ours
    of_others = re.compile(r"replica|voter|quorum_view|\belection|small_file|snapshot_survey|report")
    assert not list(filter(of_others.search, ours))


@pytest.mark.parametrize("arguments", [["--rules"], ["--rules", "--format", "jsonl"]])
def test_all_is_written_before_the_process_ends(arguments: list[str]) -> None:
    """A process writes all that the command says, and has its exit code."""
    assert run_process("verify", *arguments) == run("verify", *arguments)


def test_output_that_cannot_be_written_at_the_end() -> None:
    """Where the last of the output has no place, the process does not end as if all were well."""
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no /dev/full")
    with full.open("wb") as file:
        outcome = run_process("verify", "--rules", stdout=file)

    assert outcome.exit_code != 0
    assert "No space left on device" in outcome.messages
