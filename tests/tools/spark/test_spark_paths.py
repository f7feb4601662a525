# SPDX-License-Identifier: Apache-2.0
"""Paths as Spark takes them."""

from pathlib import Path

from raftlog.tools.spark.spark_paths import path_to_read, path_to_write


def test_nothing_is_encoded() -> None:
    """Spark decodes nothing, so that a space is a space; only what a reader takes for a pattern is escaped."""
    path = Path("/a b/100%/ü#/{x,y}[1]*?\\")
    assert path_to_write(path) == "file:/a b/100%/ü#/{x,y}[1]*?\\"
    assert path_to_read(path) == "file:/a b/100%/ü#/\\{x,y\\}\\[1\\]\\*\\?\\\\"
