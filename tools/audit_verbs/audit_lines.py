# SPDX-License-Identifier: Apache-2.0
"""JSON lines of an audit: one object per line, its ``kind`` first. ``docs/verify-1.schema.json`` is their schema."""

import attrs

from raftlog.records.rules import Severity
from raftlog.tools.auditing.evidence import FileEvidence
from raftlog.tools.auditing.run.run import Account, is_read
from raftlog.tools.terminal.json_lines import json_line, path_member

SCHEMA_VERSION = 1
"""Incremented when a name or a meaning changes, but not for new names."""


def file_line(file: FileEvidence) -> str:
    """Return the line of a surveyed file: its bytes by class, and the extent of its batches."""
    task, extent = file.task, file.extent
    members = {
        "type": None if task.kind is None else task.kind.name.lower(),
        "state": task.state.name.lower(),
        **path_member("topic", task.place.topic or None),
        "partition": None if task.place.partition < 0 else task.place.partition,
        "size": task.size_bytes,
        "indexes_size": task.indexes_size_bytes,
        "was_read": is_read(file),
    }
    if file.coverage is not None:
        members |= attrs.asdict(file.coverage)
    if extent is not None:
        members |= attrs.asdict(extent)
    return json_line("file", task.path, **members)


def summary_line(account: Account, exit_code: int, hidden: int) -> str:
    """Return the last line, which describes the run.

    Args:
        account: of all files and findings.
        exit_code: of the command.
        hidden: number of findings without a line.
    """
    return json_line(
        "summary",
        None,
        schema=SCHEMA_VERSION,
        verdict=account.verdict,
        exit_code=exit_code,
        files=account.files,
        bytes=account.bytes,
        explained_bytes=account.explained_bytes,
        damaged_bytes=account.damaged_bytes,
        padding_bytes=account.padding_bytes,
        small_file_bytes=account.small_file_bytes,
        unread_bytes=account.unread_bytes,
        unreadable=account.unreadable,
        hidden=hidden,
        findings={severity.value.replace("-", "_"): account.by_severity[severity] for severity in Severity},
    )
