# SPDX-License-Identifier: Apache-2.0
"""Spark's settings for queries over logs, which have to be set before Java starts."""

from typing import Final

PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"
"""The setting without which Spark refuses a Python source that takes filters. It is false by default."""

FAST_ARROW: Final = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
"""Java options for driver and executors: Arrow skips its bounds and null checks for each value that it reads."""

_BUFFER_BYTES: Final = 1024 * 1024
"""The buffer between Python and Java; Spark's default is a sixteenth, and needs sixteen times the system calls."""

QUERY_SETTINGS: Final = {
    "spark.buffer.size": str(_BUFFER_BYTES),
    "spark.driver.defaultJavaOptions": FAST_ARROW,
    "spark.executor.defaultJavaOptions": FAST_ARROW,
    PUSHDOWN: "true",
}
"""The settings, by name."""
