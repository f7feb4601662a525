# SPDX-License-Identifier: Apache-2.0
"""The audit as a job on a cluster of several processes."""

import json
from pathlib import Path

import pytest

from raftlog.tools.auditing.full_audit import AuditOutcome
from raftlog.tools.auditing.run import Account
from tests.golden_files import GOLDEN
from tests.spark.audit_results import audit_locally, results
from tests.spark.own_process import run_python
from tests.spark.standalone_cluster import standalone_cluster

pytestmark = pytest.mark.spark

JOB = """
    import sys
    from raftlog.tools.spark.audit_job import main

    sys.exit(main(sys.argv[1:]))
"""


def test_on_a_cluster(java: str, tmp_path: Path) -> None:
    """Workers that are processes of their own leave the results that one machine leaves."""
    data, out = GOLDEN / "dynamic-quorum" / "data", tmp_path / "spark"
    with standalone_cluster(tmp_path) as cluster:
        arguments = (str(data), "--messages", "--out", str(out), "--master", cluster.url)
        done = run_python(JOB, tmp_path, *arguments, **cluster.environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("clean: ")

    run_id = json.loads((out / "summary.json").read_text())["run_id"]
    local = results(tmp_path / "local", audit_locally(tmp_path / "local", data))
    assert results(out, AuditOutcome(run_id, Account(), 0)) == local
