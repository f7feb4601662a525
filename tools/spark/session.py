# SPDX-License-Identifier: Apache-2.0
"""The Spark session that a job runs in: the caller's if there is one, else one made for it."""

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
from raftlog.tools.spark.masters import check_master
from raftlog.tools.spark.source.source import RaftLogDataSource
from raftlog.tools.spark.spark_failure import failures_of

LOCAL_MASTER: Final = "local[*,4]"
"""All processors of this machine, and a task that fails is tried four times, as on a cluster."""

PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"
"""Spark refuses a Python source that takes filters unless this is true, which it is not by default."""

FAST_ARROW: Final = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
"""For every Java of a job: what Python hands over is not checked again at each value that is read from it."""

_BUFFER_BYTES: Final = 1024 * 1024
"""Between Python and Java: Spark's own, a sixteenth of that, asks the kernel sixteen times as often."""

_LOOPBACK: Final = "127.0.0.1"
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


@contextlib.contextmanager
def session(master: str | None = None, configuration: Mapping[str, str] = _NOTHING) -> Iterator[SparkSession]:
    """Lend a session to run a job in.

    The caller's session, if there is one, is taken as it is and left running: in a notebook, under ``spark-submit``
    (which starts the first one) and with Spark Connect, that is the one that counts. Else a session is made, and
    stopped at the end.

    Args:
        master: where to run if a session is made: ``local[2]``, ``spark://HOST:PORT``, ``sc://HOST`` …; None is what
            spark-submit or ``SPARK_REMOTE`` says, else all processors of this machine.
        configuration: of a session that is made, besides what it needs.

    Raises:
        NoJavaError: a session has to be made on this machine, and there is no Java 17 or later.
        SparkJobError: no session can be made there.
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
    """Return the active session, or the default one, or None if this process has none."""
    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


def register(spark: SparkSession) -> None:
    """Make ``spark.read.format("raftlog")`` known to a session, and let it take filters.

    Spark finds the source by itself where raftlog is installed from a wheel; with an editable install, and from a
    Spark Connect client, it has to be told.
    """
    spark.dataSource.register(RaftLogDataSource)
    spark.conf.set(PUSHDOWN, "true")


def _made(master: str | None, configuration: Mapping[str, str]) -> SparkSession:
    """Start a session where it was asked for."""
    is_remote = master.startswith("sc://") if master else "SPARK_REMOTE" in os.environ
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # spark-submit has started the JVM, and knows the master
    builder = SparkSession.builder.appName("raftlog").config(map=dict(configuration))
    if is_remote:
        return (builder.remote(master) if master else builder).getOrCreate()
    if is_submitted:
        return (builder.master(master) if master else builder).getOrCreate()
    chosen = master or LOCAL_MASTER
    check_master(chosen)
    with _environment(_environment_of(chosen)):
        return builder.master(chosen).config(map={**_defaults(chosen), **configuration}).getOrCreate()


def _defaults(master: str) -> dict[str, str]:
    """Return how a session of ours is set up."""
    quiet = Path(__file__).with_name("log4j2.properties").as_uri()
    found = {
        "spark.driver.defaultJavaOptions": f"-Dlog4j2.configurationFile={quiet} {FAST_ARROW}",
        "spark.executor.defaultJavaOptions": FAST_ARROW,
        "spark.buffer.size": str(_BUFFER_BYTES),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        PUSHDOWN: "true",
    }
    if _is_on_this_machine(master):
        found |= {"spark.driver.host": _LOOPBACK, "spark.driver.bindAddress": _LOOPBACK}
    return found


def _environment_of(master: str) -> dict[str, str]:
    """Return the variables that Spark reads when it starts: its Java, the Python of its tasks, its address."""
    found = {"JAVA_HOME": str(java_home())}
    found |= {name: os.environ.get(name, sys.executable) for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")}
    if _is_on_this_machine(master):
        found["SPARK_LOCAL_IP"] = _LOOPBACK
    return found


def _is_on_this_machine(master: str) -> bool:
    """Whether no other machine has to reach the driver."""
    host = urlsplit(master).hostname
    if host is None or host == "localhost":
        return master.startswith("local") or host is not None
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for a while."""
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
