# SPDX-License-Identifier: Apache-2.0
"""Provides the Spark session that a job runs in: the caller's, or one that is made for the job."""

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
"""All processors of this machine; a failing task is tried four times, as on a cluster."""

PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"
"""Spark refuses a Python source that accepts filters unless this is true; the default is false."""

FAST_ARROW: Final = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
"""For every Java process of a job: Arrow buffers from Python are not checked again on each value read from them."""

_BUFFER_BYTES: Final = 1024 * 1024
"""Size of the buffer between Python and Java. Spark's default is a sixteenth, and makes 16 times the system calls."""

_LOOPBACK: Final = "127.0.0.1"
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


@contextlib.contextmanager
def session(master: str | None = None, configuration: Mapping[str, str] = _NOTHING) -> Iterator[SparkSession]:
    """Provide a session to run a job in, as a context manager.

    An existing session is used as it is and left running: in a notebook, under ``spark-submit`` (which starts the first
    session) and with Spark Connect, its configuration is the user's choice. Otherwise a session is made, and stopped at
    the end.

    Args:
        master: where a new session runs: ``local[2]``, ``spark://HOST:PORT``, ``sc://HOST`` …; None for what
            spark-submit or ``SPARK_REMOTE`` names, else all processors of this machine.
        configuration: for a new session, in addition to what every session of raftlog gets.

    Raises:
        NoJavaError: a session must be made on this machine, and there is no Java 17 or later.
        SparkJobError: no session can be made.
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
    """Register ``spark.read.format("raftlog")`` with a session, and enable filters for it.

    Spark discovers the source if raftlog is installed from a wheel. With an editable install, and from a Spark Connect
    client, it must be registered.
    """
    spark.dataSource.register(RaftLogDataSource)
    spark.conf.set(PUSHDOWN, "true")


def _made(master: str | None, configuration: Mapping[str, str]) -> SparkSession:
    """Start a session on a master."""
    is_remote = master.startswith("sc://") if master else "SPARK_REMOTE" in os.environ
    is_submitted = (
        "PYSPARK_GATEWAY_PORT" in os.environ
    )  # Then spark-submit has started the JVM, and has set the master.
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
    """Return the configuration of a session that raftlog makes."""
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
    """Return the environment variables that Spark reads when it starts: its Java, its tasks' Python, its address."""
    found = {"JAVA_HOME": str(java_home())}
    found |= {name: os.environ.get(name, sys.executable) for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")}
    if _is_on_this_machine(master):
        found["SPARK_LOCAL_IP"] = _LOOPBACK
    return found


def _is_on_this_machine(master: str) -> bool:
    """Whether no other machine connects to the driver."""
    host = urlsplit(master).hostname
    if host is None or host == "localhost":
        return master.startswith("local") or host is not None
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables until the block ends."""
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
