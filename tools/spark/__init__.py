# SPDX-License-Identifier: Apache-2.0
"""raftlog on Spark: segments as a data source, and the audit as a job.

The one place that imports pyspark, beside the door ``pyspark_raftlog``, and only its DataFrame API, so that all of it
works with Spark Connect too.
"""
