# SPDX-License-Identifier: Apache-2.0
"""The options that the verbs of an audit share."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from raftlog.records.batches.compression import CompressionType
from tests.tools.console import run
from tests.tools.log_console import log as log_verb
from tests.tools.log_console import own_init
from tests.tools.made_logs import batch, write_log

WITHOUT_NUMPY = """
import sys

sys.modules["numpy"] = None
from raftlog.tools.command_line import main

for verb in sys.argv[1:]:
    assert main([verb, "x", "y", *(["--out", "z"] if verb == "audit" else [])]) == 1
"""


def test_a_missing_package() -> None:
    """Without numpy no verb surveys anything, and each says in one line what to install."""
    verbs = ("verify", "audit", "voters", "epochs", "quorum", "diff")

    process = subprocess.run([sys.executable, "-c", WITHOUT_NUMPY, *verbs], check=True, capture_output=True, text=True)

    assert process.stderr.splitlines() == [
        f"raftlog {verb}: a survey of logs needs a package that is not installed: pip install 'raftlog[columns]'"
        for verb in verbs
    ]


REMOTE = "s3://bucket/orders-0"
READERS = {
    "dump-log": ("dump-log", "--format", "jsonl"),
    "diff": ("diff", "{}"),
    "explain": ("explain", "--offset", "0"),
    "verify": ("verify",),
    "audit": ("audit", "-j1", "--out", "{out}"),
    "voters": ("voters",),
    "epochs": ("epochs",),
    "quorum": ("quorum",),
}


def check_is_named_once(line: str, verb: str, extra: str) -> None:
    """Check that a message names the verb and the extra once, with the command that installs it."""
    assert line.endswith(f" needs a package that is not installed: pip install 'raftlog[{extra}]'")
    assert len(re.findall(r"\braftlog\b", line)) == 2
    assert line.count(f" {verb}") <= 1
    assert "fault of raftlog" not in line


@pytest.mark.parametrize("verb", READERS)
def test_a_remote_path_without_pyarrow(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each verb that reads remote paths says in one line what to install, names itself once, and exits with 1."""
    for module in ("pyarrow", "pyarrow.fs"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr("raftlog.tools.terminal.audit_options._PACKAGES", ("no_such_package",))
    words = (word.format(REMOTE, out=tmp_path / "out") for word in READERS[verb])

    outcome = run(*words, REMOTE)

    assert (outcome.exit_code, outcome.output) == (1, b"")
    (line,) = outcome.complaints
    assert line.startswith(f"raftlog {verb}: ")
    check_is_named_once(line, verb, "columns")


def test_a_codec_without_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading and writing compressed records without the codec's package is one line for a file, and exit code 1."""
    path = write_log(tmp_path / "orders-0", batch(codec=CompressionType.ZSTD), batch(1, codec=CompressionType.ZSTD))
    assert own_init(tmp_path / "node").exit_code == 0
    monkeypatch.setitem(sys.modules, "zstandard", None)

    for arguments in (("dump-log", "--print-data-log", path), ("explain", path, "--offset", "0")):
        outcome = run(*arguments)
        assert outcome.exit_code == 1
        (line,) = outcome.complaints
        check_is_named_once(line, str(arguments[0]), "codecs")
    outcome = log_verb("append", tmp_path / "node", "--compression-type", "zstd", lines=({"value": "x"},))
    assert outcome.exit_code == 1
    (line,) = outcome.complaints
    check_is_named_once(line, "log append", "codecs")
