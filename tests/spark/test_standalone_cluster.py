# SPDX-License-Identifier: Apache-2.0
"""raftlog on a cluster of several processes, whose tasks import it and open the files themselves."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from raftlog.records.columns.columns import read_records
from tests.golden_files import GOLDEN
from tests.spark.own_process import run_python
from tests.spark.standalone_cluster import Cluster, standalone_cluster

pytestmark = pytest.mark.spark

COUNT = """
    import json, os, signal, subprocess, sys

    import pyarrow as pa
    from pyspark import TaskContext

    from raftlog.records.columns.columns import read_records
    from raftlog.tools.spark.session import session

    def parent(process):
        return int(subprocess.check_output(["ps", "-o", "ppid=", "-p", str(process)]))

    def counted(tables):
        context = TaskContext.get()
        if dies and context.partitionId() == 1 and context.attemptNumber() == 0:
            os.kill(parent(os.getppid()), signal.SIGKILL)  # the executor, which started what started us
        for table in tables:
            counts = [sum(1 for _ in read_records(open(path, "rb").read())) for path in table["path"].to_pylist()]
            yield pa.RecordBatch.from_pydict({"path": table["path"], "count": pa.array(counts, pa.int64())})

    master, dies, paths = sys.argv[1], sys.argv[2] == "dies", sys.argv[3:]
    with session(master) as spark:
        frame = spark.createDataFrame([(path,) for path in paths], "path string").repartition(4)
        rows = frame.mapInArrow(counted, "path string, count long").collect()
        print(json.dumps({row.path: row["count"] for row in rows}))
"""
LOGS = sorted(map(str, (GOLDEN / "dynamic-quorum").rglob("*.log")))


@pytest.fixture(scope="module")
def cluster(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Lend a cluster of two workers."""
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as lent:
        yield lent


def test_tasks_read_files(cluster: Cluster, tmp_path: Path) -> None:
    """Tasks on the workers count the records of each file, though an executor is killed in the middle of one."""
    done = run_python(COUNT, tmp_path, cluster.url, "dies", *LOGS, **cluster.environment)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {path: sum(1 for _ in read_records(Path(path).read_bytes())) for path in LOGS}
    for worker in cluster.workers:
        worker.wait_for("Asked to launch executor")


def test_one_worker_is_enough(cluster: Cluster, tmp_path: Path) -> None:
    """After a worker was killed, what it would have done is done by the other."""
    cluster.kill_worker(0)
    done = run_python(COUNT, tmp_path, cluster.url, "lives", LOGS[0], **cluster.environment)
    assert done.returncode == 0, done.stderr
    assert list(json.loads(done.stdout)) == [LOGS[0]]
