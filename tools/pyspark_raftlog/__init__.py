# SPDX-License-Identifier: Apache-2.0
"""Lets Spark find the data source ``raftlog`` without registration.

Spark imports each module on its path that is called ``pyspark_*`` and registers the ``DefaultSource`` in it. An error
here would break every other Python data source, so the imported module imports its own dependencies only on use.
"""

from raftlog.tools.spark.source.source import RaftLogDataSource as DefaultSource

__all__ = ["DefaultSource"]
