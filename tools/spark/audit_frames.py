# SPDX-License-Identifier: Apache-2.0
"""The audit as a function that returns its tables as DataFrames, for notebooks and jobs."""

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import attrs
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from raftlog.errors import OptionError
from raftlog.file_paths import local_or_remote
from raftlog.tools.spark.spark_failure import failures_of
from raftlog.tools.terminal.audit_options import prepare_to_survey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from raftlog.tools.auditing.object_paths import OutputPath

_MASTER: Final = "spark.master"
_REPORT: Final = "report.html"


@attrs.frozen
class AuditFrames:
    """The results of an audit. The DataFrames hold their rows, and need no files.

    Attributes:
        run_id: in each row, as the column ``run_id``.
        verdict: ``clean``, ``suspicious``, ``unreadable``, ``damaged`` or ``data-loss``.
        page: the report as an HTML page, for ``displayHTML`` of a notebook.
        runs: one row: what was audited, when, and the outcome.
        checks: one row per rule.
        findings: one row per finding, with its place and a command that shows it.
        voter_timeline: one row per voter set of a raft log.
        epochs: one row per epoch of a raft log.
    """

    run_id: str
    verdict: str
    page: str = attrs.field(repr=False)
    runs: "DataFrame" = attrs.field(repr=False)
    checks: "DataFrame" = attrs.field(repr=False)
    findings: "DataFrame" = attrs.field(repr=False)
    voter_timeline: "DataFrame" = attrs.field(repr=False)
    epochs: "DataFrame" = attrs.field(repr=False)


def audit(
    spark: SparkSession,
    paths: "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]",
    *,
    out: "str | os.PathLike[str] | None" = None,
    fresh: bool = False,
    messages: bool = False,
) -> AuditFrames:
    """Audit on Spark, and return the tables that ``raftlog audit`` writes, with the same columns and rows.

    Args:
        spark: the session to work in; of Spark Connect too.
        paths: log directories, or other paths that ``raftlog audit`` takes.
        out: a directory that this process and all workers see under this path, or a URI that all of them reach, as of
            ``raftlog audit --out``: results and evidence stay there, and a later audit into it reads only files that
            have changed. With None, a
            temporary directory is used, and everything is read; only a session whose master is ``local`` can do that.
        fresh: whether to read unchanged files too.
        messages: whether to decode the messages in records of the metadata log too.

    Raises:
        OptionError: ``out`` is missing, and the workers may be on other machines; or there are no paths.
        LogDirectoryError: ``out`` is not an audit's output, is in use, or is audited itself.
        SparkJobError: Spark failed. Evidence that was stored is reused by the next audit into ``out``.
        StorageError: the output directory cannot be written.
        MissingExtraError: a package of the extra ``spark`` is not installed.
    """
    sources = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not sources:
        raise OptionError("paths", "there are none: name a log directory")
    prepare_to_survey()
    with _output(spark, out) as folder:
        return _audited(spark, [os.fspath(each) for each in sources], folder, fresh=fresh, messages=messages)


def _audited(spark: SparkSession, sources: Sequence[str], out: str, *, fresh: bool, messages: bool) -> AuditFrames:
    # Only now: importing raftlog.spark stays cheap, and numpy comes with these.
    from raftlog.tools.auditing.object_paths import output_path
    from raftlog.tools.auditing.run.full_audit import audit_into
    from raftlog.tools.catalogue.audit_columns import TABLES
    from raftlog.tools.report.page import Report
    from raftlog.tools.spark.audit.audit_engine import SparkEngine

    outcome = audit_into(out, sources, SparkEngine(spark, sources, fresh, messages), Report(sources))
    written = output_path(local_or_remote(out))
    frames = {table: _frame(spark, written / table / f"{outcome.run_id}.parquet") for table in TABLES}
    page = (written / _REPORT).read_bytes().decode()
    return AuditFrames(outcome.run_id, outcome.account.verdict, page, **frames)


def _frame(spark: SparkSession, path: "OutputPath") -> "DataFrame":
    import pyarrow.parquet as pq

    with failures_of("making DataFrames"), path.open("rb") as file:
        return spark.createDataFrame(pq.ParquetFile(file).read())


@contextlib.contextmanager
def _output(spark: SparkSession, out: "str | os.PathLike[str] | None") -> Iterator[str]:
    """Provide the output directory: the given one, or one that exists only in the block."""
    if out is not None:
        yield os.fspath(out)
        return
    master = _master(spark)
    if not master.startswith("local"):
        raise OptionError(
            "out",
            f"the workers of {master} may be on other machines: name a directory that they and this process share, or"
            " a URI that all of them reach",
        )
    with tempfile.TemporaryDirectory(prefix="raftlog-audit-") as folder:
        yield folder


def _master(spark: SparkSession) -> str:
    """Return the master of a session, or what it is instead: a server of Spark Connect may be on any machine."""
    if not isinstance(spark, SparkSession):  # That of Spark Connect is of another class.
        return "Spark Connect"
    try:
        return str(spark.conf.get(_MASTER))
    except PySparkException:
        return "this session"
