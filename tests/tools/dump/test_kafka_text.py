# SPDX-License-Identifier: Apache-2.0
"""``raftlog dump-log`` prints what kafka-dump-log printed, byte for byte, on files that a real Kafka wrote."""

import io
import json
import sys
from pathlib import Path

import pytest

from raftlog.tools.command_line import main
from tests.golden_files import GOLDEN

FOLDERS = ("data-topics", "dynamic-quorum", "groups", "killed", "static-upgrade", "wire")
COMPARED_OUTPUTS = 539


def dumps(folder: str) -> list[dict[str, str | list[str]]]:
    """The outputs of kafka-dump-log in a folder's manifest."""
    manifest = json.loads((GOLDEN / folder / "manifest.json").read_text())
    return [expected for expected in manifest["expected"] if expected["argv"][0] == "kafka-dump-log"]


def test_every_expected_output_is_compared() -> None:
    """All outputs of kafka-dump-log in the corpus are compared: 539 of them."""
    assert sum(len(dumps(folder)) for folder in FOLDERS) == COMPARED_OUTPUTS


@pytest.mark.parametrize("folder", FOLDERS)
def test_output_is_kafkas_own(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard output is the same, and the exit code is 0, on every file of a folder and with every option."""
    monkeypatch.chdir(GOLDEN / folder)
    for expected in dumps(folder):
        stdout = io.TextIOWrapper(io.BytesIO())
        monkeypatch.setattr(sys, "stdout", stdout)

        exit_code = main(["dump-log", *expected["argv"][1:]])

        stdout.flush()
        printed = stdout.buffer.getvalue()
        assert printed == Path("expected", str(expected["out"])).read_bytes(), expected["argv"]
        assert exit_code == 0, expected["argv"]
