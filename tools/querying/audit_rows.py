# SPDX-License-Identifier: Apache-2.0
"""The views that the audit answers: ``voters``, ``epochs`` and ``findings``, as tables in memory."""

import argparse
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from raftlog.tools.audit_verbs.quorum_files import read_quorum_files
from raftlog.tools.auditing.history.log_directories import log_directories
from raftlog.tools.auditing.run.audit_tables import finding_rows, rows_of_timelines
from raftlog.tools.auditing.run.run import audit
from raftlog.tools.auditing.run.run_progress import RunProgress
from raftlog.tools.catalogue.audit_columns import Row
from raftlog.tools.catalogue.findings import Tally
from raftlog.tools.querying.views import AUDIT_VIEWS, camel_case, schema_of


def findings_table(given: argparse.Namespace, program: str) -> pa.Table:
    """Audit the files under the paths of a command line, and return all findings.

    Args:
        given: has the paths and the number of processes.
        program: says what is in progress.

    Raises:
        MissingExtraError: a package of an extra is not installed.
    """
    rows: list[Row] = []
    with RunProgress(program, given.paths) as progress:
        for judged in audit(given.paths, given.processes, surveyed=progress.surveyed):
            rows += finding_rows(judged)
    return _table("findings", rows)


def timeline_tables(given: argparse.Namespace, program: str) -> tuple[dict[str, pa.Table], Tally]:
    """Return the voters and the epochs, as the verbs of these names find them, and the tally of what was damaged.

    Args:
        given: has the paths and the number of processes.
        program: says what is damaged.

    Raises:
        MissingExtraError: a package of an extra is not installed.
    """
    files = read_quorum_files(given, program)
    rows: dict[str, list[Row]] = {"voters": [], "epochs": []}
    names = {AUDIT_VIEWS[view]: view for view in rows}
    for log in files.logs:
        cluster_id = next((each.cluster_id for each in log_directories(log).values() if each.cluster_id), None)
        for table, row in rows_of_timelines(cluster_id, log[-1].place, log):
            rows[names[table]].append(row)
    return {view: _table(view, found) for view, found in rows.items()}, files.tally


def _table(view: str, rows: Iterable[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(map(_renamed, rows)), schema_of(view))


def _renamed(value: Any) -> Any:
    """Return a value with the members of all objects in it by the names that columns have."""
    if isinstance(value, Mapping):
        return dict(_members(value))
    if isinstance(value, list | tuple):
        return [_renamed(each) for each in value]
    return value


def _members(value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((camel_case(name), _renamed(each)) for name, each in value.items())
