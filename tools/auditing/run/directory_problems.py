# SPDX-License-Identifier: Apache-2.0
"""The problems found by listing directories, told together with what the logs in them say."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from raftlog.file_paths import directory_of, split_path
from raftlog.records.files.file_names import METADATA_TOPIC, DirectoryName, parse_directory_name
from raftlog.tools.auditing.judgement.judgement import Judged
from raftlog.tools.catalogue.findings import Finding

_METADATA_DIRECTORY: Final = DirectoryName(METADATA_TOPIC, 0)


def with_problems(judged: Judged, problems: Iterable[Finding]) -> Judged:
    """Return the judgement of log directories, together with the problems found by listing directories."""
    return judged.with_findings(_not_said(problems, judged.findings))


def _not_said(problems: Iterable[Finding], findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yield the problems, except an empty directory that has a worse finding.

    That is a voter's directory, whose votes are lost, or one whose records a checkpoint knows of.
    """
    forgetful = {directory_of(each.path) for each in findings if each.rule == "election-missing"}
    missing = {each.path for each in findings if each.rule == "partition-missing"}
    for problem in problems:
        directory, name = split_path(problem.path)
        is_empty = problem.rule == "directory-empty"
        is_metadata = is_empty and parse_directory_name(name) == _METADATA_DIRECTORY
        is_reported = is_metadata and not forgetful.isdisjoint({directory, problem.path})
        if not is_reported and not (is_empty and problem.path in missing):
            yield problem
