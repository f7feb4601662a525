# SPDX-License-Identifier: Apache-2.0
"""The Spark session of a job: the existing one, or else one created for the job."""

import contextlib
import ipaddress
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from raftlog.tools.spark.java_runtime import java_home
from raftlog.tools.spark.masters import CONNECT, check_master
from raftlog.tools.spark.planner_check import check_planner
from raftlog.tools.spark.settings import FAST_ARROW, PUSHDOWN, QUERY_SETTINGS
from raftlog.tools.spark.source.source import RaftLogDataSource
from raftlog.tools.spark.spark_failure import failures_of

LOCAL_MASTER: Final = "local[*,4]"
"""All processors of this machine, with four attempts per task, as on a cluster."""

_LOOPBACK: Final = "127.0.0.1"
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


@contextlib.contextmanager
def session(master: str | None = None, configuration: Mapping[str, str] = _NOTHING) -> Iterator[SparkSession]:
    """Provide a session for a job.

    If this process has a session, as in a notebook, that one is used unchanged and left running. Otherwise a session is
    created, and stopped at the end. It uses the Spark of ``spark-submit`` or Spark Connect, if either is configured.

    Args:
        master: the master of a created session: ``local[2]``, ``spark://HOST:PORT``, ``sc://HOST`` …; with None, that
            of spark-submit or ``SPARK_REMOTE``, or else all processors of this machine.
        configuration: further settings of a created session.

    Raises:
        NoJavaError: a session must be created on this machine, which has no Java 17 or later.
        SparkJobError: no session can be created there.
    """
    if borrowed := existing_session():
        yield borrowed
        return
    with failures_of(f"starting on {master}" if master else "starting"):
        made = _made(master, configuration)
    try:
        yield made
    finally:
        made.stop()


def existing_session() -> SparkSession | None:
    """Return the active session, or else the default one, or else None."""
    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


def register(spark: SparkSession) -> None:
    """Register the source, for ``spark.read.format("raftlog")``, and enable its filters.

    Spark finds the source without this call if raftlog is installed from a wheel, but not with an editable install or
    from a Spark Connect client.

    Raises:
        SparkJobError: the Python with which Spark plans queries lacks raftlog, or has another version of it.
    """
    check_planner(spark)
    spark.dataSource.register(RaftLogDataSource)
    spark.conf.set(PUSHDOWN, "true")


def _made(master: str | None, configuration: Mapping[str, str]) -> SparkSession:
    """Create a session on a master, or on the one that the environment names."""
    remote = master or os.environ.get("SPARK_REMOTE", "")
    is_remote = remote.startswith(CONNECT) if master else "SPARK_REMOTE" in os.environ
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # spark-submit has started the JVM, and knows the master
    builder = SparkSession.builder.appName("raftlog").config(map=dict(configuration))
    if is_remote:
        if remote.startswith(CONNECT):
            check_master(remote)
        return (builder.remote(master) if master else builder).getOrCreate()
    if is_submitted:
        return (builder.master(master) if master else builder).getOrCreate()
    chosen = master or LOCAL_MASTER
    check_master(chosen)
    with _environment(_environment_of(chosen)):
        return builder.master(chosen).config(map={**_defaults(chosen), **configuration}).getOrCreate()


def _defaults(master: str) -> dict[str, str]:
    """Return the settings of a created session."""
    quiet = Path(__file__).with_name("log4j2.properties").as_uri()
    found = {
        **QUERY_SETTINGS,
        "spark.driver.defaultJavaOptions": f"-Dlog4j2.configurationFile={quiet} {FAST_ARROW}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }
    if _is_on_this_machine(master):
        found |= {"spark.driver.host": _LOOPBACK, "spark.driver.bindAddress": _LOOPBACK}
    return found


def _environment_of(master: str) -> dict[str, str]:
    """Return the variables that Spark reads at startup: its Java, the Python of its tasks, its address."""
    found = {"JAVA_HOME": str(java_home())}
    found |= {name: os.environ.get(name, sys.executable) for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")}
    if _is_on_this_machine(master):
        found["SPARK_LOCAL_IP"] = _LOOPBACK
    return found


def _is_on_this_machine(master: str) -> bool:
    """Whether no other machine needs to reach the driver."""
    host = urlsplit(master).hostname
    if host is None or host == "localhost":
        return master.startswith("local") or host is not None
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables inside the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
