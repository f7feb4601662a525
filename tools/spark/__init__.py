# SPDX-License-Identifier: Apache-2.0
"""raftlog on Spark: segments as a data source, and the audit as a job.

Only this package and ``pyspark_raftlog``, by which Spark discovers the source, import pyspark. They use nothing but its
DataFrame API, so that everything DataFrame API, so that everything works with Spark Connect too.
"""
