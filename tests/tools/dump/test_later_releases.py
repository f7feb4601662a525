# SPDX-License-Identifier: Apache-2.0
"""A record of a Kafka release whose dump tool is not there yet is named in every format."""

from pathlib import Path

import pytest

from raftlog.records.messages.releases import DIALECTS
from raftlog.tools.dump.output_formats import FORMATS
from tests.tools.console import run
from tests.tools.made_logs import batch, write_log

UNREGISTER_CONTROLLER = bytes.fromhex("01 1d 00 00000007 00")
"""Frame version 1, api key 29, version 0, controller 7, no tagged fields."""
NAME = "UNREGISTER_CONTROLLER_RECORD"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A metadata log with a record that came with Kafka 4.4."""
    return write_log(tmp_path / "__cluster_metadata-0", batch(0, (UNREGISTER_CONTROLLER,)))


@pytest.mark.parametrize("output_format", FORMATS)
def test_a_record_of_a_later_release_is_named(output_format: str, log: Path) -> None:
    """Without --dialect each format decodes it, and nothing is wrong with it."""
    outcome = run("dump-log", "--cluster-metadata-decoder", "--format", output_format, log)

    assert NAME in outcome.text
    assert "controllerId" in outcome.text
    assert (outcome.exit_code, outcome.messages) == (0, "")


@pytest.mark.parametrize("dialect", [name for name, each in DIALECTS.items() if each.numbers < (4, 4)])
def test_an_older_release_prints_the_number_and_the_finding_names_the_record(dialect: str, log: Path) -> None:
    """A release that is asked for prints what it prints; the finding says what the record is."""
    outcome = run("dump-log", "--cluster-metadata-decoder", "--dialect", dialect, log)

    assert "Unknown metadata id 29" in outcome.text
    assert NAME not in outcome.text
    assert f"{NAME}, which Kafka {dialect} does not know" in outcome.messages


def test_a_number_that_no_release_knows_stays_a_number(tmp_path: Path) -> None:
    """Nothing is made up for it."""
    path = write_log(tmp_path / "__cluster_metadata-0", batch(0, (b"\x01\x63\x00\x00",)))
    outcome = run("dump-log", "--cluster-metadata-decoder", path)

    assert "Unknown metadata id 99" in outcome.text
    assert "which Kafka" not in outcome.messages


def test_audits_read_records_of_the_newest_release(log: Path) -> None:
    """An audit of messages finds nothing wrong with it."""
    assert "[message" not in run("verify", "--all", "--messages", log).text
