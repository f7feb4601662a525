# SPDX-License-Identifier: Apache-2.0
"""Spark with raftlog: sessions, the data source ``raftlog``, and the audit as DataFrames. Needs the extra ``spark``.

>>> from raftlog.spark import audit, register, session
>>> with session() as spark:  # doctest: +SKIP
...     register(spark)
...     spark.read.format("raftlog").load("/var/lib/kafka").count()
...     audit(spark, "/var/lib/kafka").findings.show()
"""

from raftlog.errors import MissingExtraError

try:
    from raftlog.tools.spark.audit_frames import AuditFrames, audit
    from raftlog.tools.spark.session import register, session
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "pyspark":
        raise
    raise MissingExtraError("spark", "raftlog.spark") from error

__all__ = ["AuditFrames", "audit", "register", "session"]
