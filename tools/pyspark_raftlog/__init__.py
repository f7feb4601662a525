# SPDX-License-Identifier: Apache-2.0
"""The module by which Spark discovers the data source ``raftlog``.

Spark imports each module on its path whose name begins ``pyspark_``, and registers the ``DefaultSource`` in it. An
error here would break every other Python data source, so what is imported imports its own dependencies when it is used.
"""

from raftlog.tools.spark.source.source import RaftLogDataSource as DefaultSource

__all__ = ["DefaultSource"]
