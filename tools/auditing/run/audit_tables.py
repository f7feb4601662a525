# SPDX-License-Identifier: Apache-2.0
r"""The tables of an audit's results, as Parquet: one folder per table, one file per run.

Each row has the ``run_id`` of its run; a run is complete once it is in ``runs``. Times are UTC, in ms; sizes and
positions are bytes; offsets are inclusive unless a column says otherwise. In a path that is not valid Unicode, the
invalid bytes are ``\udcXX``. All engines write the same tables.

======================  ================================================================================================
``runs``                one row per run: the audited paths, the time and the outcome
``checks``              one row per rule and run: ``pass``, ``fail``, ``skipped`` (there was no input that it applies
                        to), or ``error`` (it found nothing, but something could not be read)
``findings``            one row per finding, with its place and a command that shows it
``voter_timeline``      one row per voter set of a raft log, by offset: the set, and its changes
``epochs``              one row per epoch of a raft log: its leader, its offsets, and the votes
======================  ================================================================================================
"""

import datetime
import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from raftlog import __version__
from raftlog.errors import MissingExtraError
from raftlog.records.rules import Severity
from raftlog.tools.auditing.evidence import PartitionEvidence, Place, SurveyTask
from raftlog.tools.auditing.history.histories import by_history
from raftlog.tools.auditing.history.timelines import EpochLead, VoterChange, epoch_timeline, voter_timeline
from raftlog.tools.auditing.judgement.judgement import Judged
from raftlog.tools.auditing.run.rule_status import Check
from raftlog.tools.auditing.run.run import Account
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.input.inputs import RECORD_KINDS, input_file
from raftlog.tools.terminal.shell_quoting import shell_quoted
from raftlog.tools.terminal.standard_error import unicode_text

if TYPE_CHECKING:
    import pyarrow as pa

Row = dict[str, Any]

TABLES: Final = ("runs", "checks", "findings", "voter_timeline", "epochs")
"""The names of the tables; the first one is the table that completes a run."""


_LOG: Final = {"run_id": "text", "cluster_id": "text", "topic": "text", "partition": "int"}

_COLUMNS: Final[dict[str, dict[str, str]]] = {
    "runs": {
        "run_id": "text",
        "raftlog_version": "text",
        "started": "time",
        "finished": "time",
        "sources": "texts",
        "verdict": "text",  # clean, suspicious, unreadable, damaged or data-loss
        "files": "long",
        "reused_files": "long",  # unchanged since an earlier run: not read again
        "bytes": "long",  # the sum of the five that follow
        "explained_bytes": "long",  # in batches whose CRC holds
        "damaged_bytes": "long",
        "padding_bytes": "long",
        "small_file_bytes": "long",  # in indexes and small files
        "unread_bytes": "long",
        "unreadable": "long",  # files and directories that could not be read
        "harmless": "long",  # findings
        "suspicious": "long",
        "damaged": "long",
        "data_loss": "long",
    },
    "checks": {
        "run_id": "text",
        "rule": "text",
        "severity": "text",
        "claim": "text",
        "source": "text",
        "status": "text",  # pass, fail, skipped or error
        "findings": "long",
    },
    "findings": {
        "run_id": "text",
        "rule": "text",
        "severity": "text",
        "file": "text",
        "log_directory": "text",  # null, as are topic and partition, if it is about a file that was not read
        "topic": "text",
        "partition": "int",
        "position": "long",
        "size_bytes": "long",
        "offset": "long",
        "epoch": "int",
        "reason": "text",
        "command": "text",  # a command that shows it
    },
    "voter_timeline": _LOG
    | {
        "offset": "long",
        "epoch": "int",
        "timestamp": "time",
        "kraft_version": "int",
        "voters": "voters",
        "added": "ints",
        "removed": "ints",
        "updated": "ints",
        "seen_in": "texts",
    },
    "epochs": _LOG
    | {
        "epoch": "int",
        "leader_id": "int",
        "start_offset": "long",
        "end_offset": "long",  # exclusive
        "start_timestamp": "time",
        "duration_ms": "long",
        "record_count": "long",
        "voters": "ints",
        "granting_voters": "ints",
        "seen_in": "texts",
    },
}
"""The columns of each table, and their types."""


def schema(table: str) -> "pa.Schema":
    """Return the columns of a table.

    Raises:
        MissingExtraError: pyarrow is not installed.
        KeyError: there is no such table.
    """
    types = _types()
    return _pyarrow().schema([(name, types[kind]) for name, kind in _COLUMNS[table].items()])


@functools.cache
def _types() -> dict[str, "pa.DataType"]:
    pa = _pyarrow()
    text, number = pa.string(), pa.int32()
    endpoint = pa.struct({"name": text, "host": text, "port": number})
    voter = {
        "id": number,
        "directory_id": text,
        "endpoints": pa.list_(endpoint),
        "min_supported_version": number,
        "max_supported_version": number,
    }
    return {
        "text": text,
        "int": number,
        "long": pa.int64(),
        "time": pa.timestamp("ms", "UTC"),
        "texts": pa.list_(text),
        "ints": pa.list_(number),
        "voters": pa.list_(pa.struct(voter)),
    }


def _pyarrow() -> Any:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise MissingExtraError("columns", "an audit's tables") from error
    return pa


def finding_rows(judged: Judged) -> Iterator[Row]:
    """Yield the rows of ``findings`` for judged evidence, still without ``run_id``."""
    places = {path: part.place for part in judged.places for file in part.files for path in _paths(file.task)}
    for finding in judged.findings:
        yield _finding_row(finding, places.get(finding.path))


def timeline_rows(judged: Judged) -> list[tuple[str, Row]]:
    """Return the rows of the timelines for judged evidence, each with its table, still without ``run_id``."""
    rows: list[tuple[str, Row]] = []
    for cluster_id, replicas in judged.replicas.items():
        if any(replica.is_raft for replica in replicas):
            for of_one_log in by_history(replicas, lambda replica: replica):
                rows += rows_of_timelines(cluster_id, of_one_log[0].place, of_one_log)
    return rows


def _paths(task: SurveyTask) -> Iterator[str]:
    yield task.path
    yield from task.indexes.values()


def _finding_row(finding: Finding, place: Place | None) -> Row:
    return {
        "rule": finding.rule,
        "severity": finding.severity.value,
        "file": unicode_text(finding.path),
        "log_directory": None if place is None else unicode_text(place.log_directory),
        "topic": None if place is None or not place.topic else unicode_text(place.topic),
        "partition": None if place is None or place.partition < 0 else place.partition,
        "position": finding.position,
        "size_bytes": finding.size_bytes,
        "offset": finding.offset,
        "epoch": finding.epoch,
        "reason": unicode_text(finding.reason),
        "command": unicode_text(command_of(finding)),
    }


def command_of(finding: Finding) -> str:
    """Return the command that shows the place of a finding."""
    path = shell_quoted(finding.path)
    if input_file(finding.path).kind in RECORD_KINDS and finding.position is not None:
        return f"raftlog explain {path} --position {finding.position}"
    return f"raftlog verify --all {path}"


def rows_of_timelines(
    cluster_id: str | None, place: Place, replicas: Sequence[PartitionEvidence]
) -> Iterator[tuple[str, Row]]:
    """Yield the rows of the timelines of one log, each with its table, still without ``run_id``.

    Args:
        cluster_id: of its cluster; empty or None if it is not known.
        place: of one of its replicas.
        replicas: all of them, and the log directories that contain them.
    """
    log = {"cluster_id": cluster_id or None, "topic": unicode_text(place.topic), "partition": place.partition}
    for change in voter_timeline(replicas):
        yield "voter_timeline", log | _timeline_row(change)
    for lead in epoch_timeline(replicas):
        yield "epochs", log | _timeline_row(lead)


def _timeline_row(entry: VoterChange | EpochLead) -> Row:
    """Return a row with null for unknown times."""
    row: Row = entry.to_json() | {"seen_in": list(map(unicode_text, entry.seen_in))}
    return row | {name: None for name in ("timestamp", "start_timestamp") if row.get(name, 0) < 0}


def check_row(check: Check) -> Row:
    """Return the row of a check, still without ``run_id``."""
    rule = check.rule
    return {
        "rule": rule.id,
        "severity": rule.severity.value,
        "claim": rule.claim,
        "source": rule.source,
        "status": check.status.value,
        "findings": check.finding_count,
    }


def run_row(
    account: Account,
    sources: Iterable[str],
    reused_files: int,
    started: datetime.datetime,
    finished: datetime.datetime,
) -> Row:
    """Return the row of a run, still without ``run_id``."""
    counts = ("files", "bytes", "explained_bytes", "damaged_bytes", "padding_bytes", "small_file_bytes", "unread_bytes")
    return {
        "raftlog_version": __version__,
        "started": started,
        "finished": finished,
        "sources": list(map(unicode_text, sources)),
        "verdict": account.verdict,
        "reused_files": reused_files,
        **{name: getattr(account, name) for name in (*counts, "unreadable")},
        **{severity.value.replace("-", "_"): account.by_severity[severity] for severity in Severity},
    }
