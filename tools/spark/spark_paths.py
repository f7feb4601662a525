# SPDX-License-Identifier: Apache-2.0
"""Paths of local files in the form that Spark takes.

They are not URIs, since Spark does not decode them; and they have a scheme, since its default may be HDFS.

Source: Hadoop's Path(String), and GlobPattern for the characters that have a meaning in patterns.
"""

import re
from pathlib import Path
from typing import Final

_OF_PATTERNS: Final = re.compile(r"[][{}*?\\]")


def path_to_write(path: Path) -> str:
    """Return an absolute path for ``DataFrame.write``."""
    return f"file:{path}"


def path_to_read(path: Path) -> str:
    """Return an absolute path for ``SparkSession.read``, escaped so that it is not a pattern.

    Spark refuses a path that has both a colon and a character to escape.
    """
    return "file:" + _OF_PATTERNS.sub(r"\\\g<0>", str(path))
