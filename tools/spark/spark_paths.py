# SPDX-License-Identifier: Apache-2.0
"""Paths of local files as Spark takes them: neither URIs, as it decodes nothing, nor bare, as it may default to HDFS.

Source: Hadoop's Path(String), and GlobPattern for what a reader takes for a pattern.
"""

import re
from pathlib import Path
from typing import Final

_OF_PATTERNS: Final = re.compile(r"[][{}*?\\]")


def path_to_write(path: Path) -> str:
    """Return an absolute path for ``DataFrame.write``."""
    return f"file:{path}"


def path_to_read(path: Path) -> str:
    """Return an absolute path for ``SparkSession.read``, which is to match itself alone.

    Spark refuses one that has a colon in it, and something to escape too.
    """
    return "file:" + _OF_PATTERNS.sub(r"\\\g<0>", str(path))
