# SPDX-License-Identifier: Apache-2.0
"""What `raftlog.spark` refuses before it needs a Java; tests/spark/test_audit_frames.py runs the audit."""

import subprocess
import sys
from typing import cast

import pytest
from pyspark.sql import SparkSession

from raftlog.errors import OptionError
from raftlog.spark import audit

ELSEWHERE = cast(SparkSession, object())
"""A session of another class, as that of Spark Connect is."""


def test_no_paths() -> None:
    """An audit of nothing is an error."""
    with pytest.raises(OptionError, match="option paths: there are none"):
        audit(ELSEWHERE, [])


def test_workers_elsewhere_need_a_shared_directory() -> None:
    """A temporary directory of this machine is used only where workers surely see it."""
    with pytest.raises(OptionError, match="option out: the workers of Spark Connect may be on other machines"):
        audit(ELSEWHERE, "/var/lib/kafka")


def test_without_pyspark_the_extra_is_named() -> None:
    """The import fails as every missing extra does."""
    program = "import sys; sys.modules['pyspark'] = None; import raftlog.spark"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "raftlog.spark needs a package that is not installed: pip install 'raftlog[spark]'" in done.stderr
    assert done.returncode == 1
