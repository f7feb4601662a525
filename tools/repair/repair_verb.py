# SPDX-License-Identifier: Apache-2.0
"""What the verbs that repair share: they plan, or carry a plan out, and say how it ended."""

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from raftlog.errors import DecodeError, QuarantinedLogError, RaftLogError, SourceChangedError, UnsupportedVersionError
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.repair.sources import Source, check_is_stopped, check_unchanged
from raftlog.tools.terminal.argument_parser import Parser
from raftlog.tools.terminal.audit_options import prepare_to_survey
from raftlog.tools.terminal.exit_codes import EXIT_CLEAN, EXIT_DAMAGE, EXIT_ERROR
from raftlog.tools.terminal.json_lines import path_member
from raftlog.tools.terminal.standard_error import say
from raftlog.tools.terminal.verb_output import Fact, write_facts

Step = Callable[[argparse.Namespace], Fact]
"""Does one of both steps, and says what came of it."""


def check_step(
    parser: Parser, given: argparse.Namespace, needed: Mapping[str, object], foreign: Mapping[str, object]
) -> None:
    """Refuse options that are missing, or belong to the other step.

    Args:
        parser: of the verb.
        given: what was parsed; ``apply`` is None for a plan.
        needed: the values of the options that the step needs, by name; an empty one is missing.
        foreign: those of the other step's options; None for one that was not given.
    """
    for name, value in needed.items():
        if not value:
            parser.error(f"{name} is missing: {'a plan' if given.apply is None else '--apply'} needs it")
    for name, value in foreign.items():
        if value is not None:
            parser.error(f"{name} belongs to the other step: {'--apply' if given.apply is None else '--plan'}")


def run_step(program: str, given: argparse.Namespace, plan: Step, apply: Step) -> int:
    """Plan, or carry a plan out, print what came of it, and return the exit code.

    Args:
        program: the verb's name in messages.
        given: what was parsed; ``apply`` is None for a plan.
        plan: the first step.
        apply: the second step.
    """
    try:
        prepare_to_survey()
        write_facts(given.format, [plan(given) if given.apply is None else apply(given)])
    except UnsupportedVersionError as error:
        say(str(error), program)
        return EXIT_ERROR
    except SourceChangedError as error:
        say(str(error) if given.apply is not None else _changed_meanwhile(error), program)
        return EXIT_ERROR
    except (DecodeError, QuarantinedLogError) as error:
        say(str(error), program)
        return EXIT_DAMAGE if given.apply is None else EXIT_ERROR
    except (RaftLogError, ValueError) as error:
        say(str(error), program)
        return EXIT_ERROR
    return EXIT_CLEAN


def _changed_meanwhile(error: SourceChangedError) -> str:
    """Say that a source changed before there was a plan, which has not been written."""
    return f"{error.path} changed while the plan was made: stop what writes there, and plan again"


def check_sources(sources: Iterable[Source]) -> None:
    """Check that the sources of a plan are of stopped nodes, and have not changed since.

    Raises:
        LogDirectoryError: a node runs.
        SourceChangedError: a source has changed. Another plan is needed.
    """
    for source in sources:
        check_is_stopped(source)
        try:
            check_unchanged(source, reads=True)
        except SourceChangedError as error:
            raise SourceChangedError(error.path, f"{error.change}: make a new plan") from None


def source_members(sources: Iterable[Source]) -> list[dict[str, Any]]:
    """Return the sources for JSON lines."""
    return [
        {**path_member("directory", each.directory), "files": len(each.files), "size_bytes": each.size_bytes}
        for each in sources
    ]


def finding_members(findings: Iterable[Finding]) -> list[dict[str, str]]:
    """Return what the audit of a new directory says for JSON lines."""
    return [{"rule": each.rule, "severity": each.severity.value, "reason": each.reason} for each in findings]


def audit_words(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield what the audit of a new directory says, line by line."""
    for finding in findings:
        yield f"The audit says: {finding.reason} [{finding.rule}, {finding.severity.value}]"
    if not findings:
        yield "The audit says nothing."
