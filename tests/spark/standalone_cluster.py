# SPDX-License-Identifier: Apache-2.0
"""A standalone Spark cluster on this machine, from the pyspark package: a master and workers, each a process."""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
import pyspark

from raftlog.tools.spark.java_runtime import java_home
from tests import quick_java
from tests.hang_limit import HANG_S

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
DEFAULTS = f"""
spark.executor.memory 512m
spark.executor.extraJavaOptions {quick_java.TEXT}
spark.driver.extraJavaOptions {quick_java.TEXT}
spark.sql.shuffle.partitions 2
"""


class Program:
    """One of Spark's processes, in a process group of its own.

    Args:
        log: the file for what it says.
        main: its class, and then its arguments.
        processor: the only one that it may use, with what it starts; None for all.
    """

    def __init__(self, log: Path, *main: str, processor: int | None = None) -> None:
        environment = os.environ | {
            "JAVA_HOME": str(java_home()),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_JAVA_OPTS": quick_java.TEXT,
        }
        self.log = log
        self._process = subprocess.Popen(
            [SPARK_CLASS, *main],
            env=environment,
            cwd=log.parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        if processor is not None:
            os.sched_setaffinity(self._process.pid, {processor})
        self._lines: list[str] = []
        self._has_ended = False
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, name=f"reads {log.name}", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self.log.open("w", encoding="utf-8") as log:
            for line in self._process.stdout:
                log.write(line)
                with self._news:
                    self._lines.append(line)
                    self._news.notify_all()
        with self._news:
            self._has_ended = True
            self._news.notify_all()

    def wait_for(self, text: str, times: int = 1) -> str:
        """Wait until its log has a number of matching lines, and return the last one.

        Raises:
            AssertionError: it ended, or took too long.
        """

        def said() -> list[str]:
            return [line for line in self._lines if text in line]

        with self._news:
            self._news.wait_for(lambda: self._has_ended or len(said()) >= times, HANG_S)
            assert len(said()) >= times, f"not said by {self.log.name}: {text}\n{''.join(self._lines)}"
            return said()[-1]

    def children(self) -> list[int]:
        """Return the ids of its child processes that are alive."""
        command = ["ps", "-A", "-o", "ppid=,pid=,stat="]
        listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        processes = [line.split() for line in listing.splitlines()]
        return [
            int(child) for parent, child, state in processes if parent == str(self._process.pid) and state[0] != "Z"
        ]

    def kill(self) -> None:
        """Kill only this process, as a kernel out of memory would; its children keep running."""
        self._process.kill()

    def end(self) -> None:
        """Kill the process and its children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


@attrs.frozen
class Cluster:
    """A master with its workers, of one processor each.

    Attributes:
        url: what to give as the master: ``spark://127.0.0.1:PORT``.
        workers: the processes that start executors.
        environment: what a process that uses the cluster needs among its variables, for executors that start quickly.
    """

    url: str
    workers: list[Program]
    environment: dict[str, str]

    def kill_worker(self, index: int) -> None:
        """Kill a worker, and the executors that it has started."""
        executors = self.workers[index].children()
        self.workers[index].kill()
        for executor in executors:
            os.kill(executor, signal.SIGKILL)


@contextlib.contextmanager
def standalone_cluster(folder: Path, processors: Sequence[int | None] = (None, None)) -> Iterator[Cluster]:
    """Start a cluster that leaves its logs in a folder, and kill it at the end.

    Args:
        folder: for the logs.
        processors: for each worker, the processor that it keeps to, as on a machine that has only that one; None for
            all that there are.
    """
    with contextlib.ExitStack() as stack:

        def started(name: str, *main: str, processor: int | None = None) -> Program:
            program = Program(folder / f"{name}.log", *main, processor=processor)
            stack.callback(program.end)
            return program

        place = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        master = started("master", "org.apache.spark.deploy.master.Master", *place)
        url = "spark://" + master.wait_for("Starting Spark master at spark://").rpartition("spark://")[2].strip()
        size = ("--cores", "1", "--memory", "1g")
        workers = []
        for number, processor in enumerate(processors):
            directory = ("--work-dir", str(folder / f"worker-{number}"))
            main = ("org.apache.spark.deploy.worker.Worker", *place, *size, *directory, url)
            workers.append(started(f"worker-{number}", *main, processor=processor))
        master.wait_for("Registering worker", len(processors))
        (folder / "spark-defaults.conf").write_text(DEFAULTS, "utf-8")
        yield Cluster(url, workers, {"SPARK_CONF_DIR": str(folder)})
