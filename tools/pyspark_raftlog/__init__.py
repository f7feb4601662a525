# SPDX-License-Identifier: Apache-2.0
"""The door by which Spark finds the data source ``raftlog`` without being told.

Spark imports each module on its path that is called ``pyspark_*`` and registers the ``DefaultSource`` in it. An error
here would break every other Python data source, so what is imported imports what it needs when it is used.
"""

from raftlog.tools.spark.source.source import RaftLogDataSource as DefaultSource

__all__ = ["DefaultSource"]
