# SPDX-License-Identifier: Apache-2.0
"""Runs ``raftlog verify-mirror``, and picks what a test wants of its output."""

import json
from pathlib import Path
from typing import Final

from jsonschema import Draft202012Validator

from tests.checkout import ROOT
from tests.tools.console import Outcome, run

SCHEMA: Final = Draft202012Validator(json.loads((ROOT / "docs/verify-mirror-1.schema.json").read_text()))


def verified(source: Path, target: Path, *options: str) -> Outcome:
    """What the verb prints of two clusters as JSON lines, after a check of all lines."""
    outcome = run("verify-mirror", "--source", source, "--target", target, "--format", "jsonl", *options)
    for line in outcome.objects:
        SCHEMA.validate(line)
    return outcome


def found(outcome: Outcome) -> list[tuple[str, int | None, int | None]]:
    """Rule and first offsets of what is more than harmless."""
    return [
        (line["rule"], line["source"]["start_offset"], line["target"]["start_offset"])
        for line in outcome.of_kind("finding")
        if line["severity"] != "harmless"
    ]


def of_flow(outcome: Outcome) -> list[tuple[str, str]]:
    """Rules and subjects of what is found of the flow."""
    return [(line["rule"], line["subject"]) for line in outcome.of_kind("flow_finding")]


def refused(*arguments: str | Path) -> str:
    """The one line of a refusal."""
    outcome = run("verify-mirror", *arguments)
    assert (outcome.exit_code, outcome.output) == (1, b"")
    (line,) = outcome.complaints
    return line
