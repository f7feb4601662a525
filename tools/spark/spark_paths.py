# SPDX-License-Identifier: Apache-2.0
"""Paths of local files in the form that Spark takes.

They begin with ``file:``, since a bare path may mean HDFS, but are not percent-encoded: Spark decodes nothing.

Source: Hadoop's Path(String), and GlobPattern for the characters that a reader takes for a pattern.
"""

import re
from pathlib import Path
from typing import Final

_OF_PATTERNS: Final = re.compile(r"[][{}*?\\]")


def path_to_write(path: Path) -> str:
    """Return an absolute path for ``DataFrame.write``."""
    return f"file:{path}"


def path_to_read(path: Path) -> str:
    """Return an absolute path for ``SparkSession.read``, escaped so that it matches only itself.

    Spark refuses a path that contains both a colon and a character that must be escaped.
    """
    return "file:" + _OF_PATTERNS.sub(r"\\\g<0>", str(path))
