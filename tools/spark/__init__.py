# SPDX-License-Identifier: Apache-2.0
"""raftlog on Spark: segments as a data source, and the audit as a job.

Only this package and ``pyspark_raftlog`` import pyspark. They use only its DataFrame API, so that everything works with
Spark Connect too.
"""
