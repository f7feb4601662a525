# SPDX-License-Identifier: Apache-2.0
"""One Spark session for all tests that need one, since starting a session takes seconds."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from raftlog.errors import NoJavaError
from raftlog.tools.spark.java_runtime import java_home
from raftlog.tools.spark.session import register, session
from tests import quick_java
from tests.signal_handlers import handlers, put_back

QUICK_START = {
    "spark.driver.extraJavaOptions": quick_java.TEXT,
    "spark.sql.shuffle.partitions": "2",
}


@pytest.fixture(scope="session")
def java() -> str:
    """Return the `JAVA_HOME` that Spark is started with, or skip."""
    try:
        return str(java_home())
    except NoJavaError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def spark(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Provide a session on this machine with two slots and four attempts per task."""
    tables = {"spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("tables"))}
    before = handlers()
    with session("local[2,4]", QUICK_START | tables) as lent:
        put_back(before)  # PySpark changes what Ctrl-C does, for all tests of the process.
        register(lent)
        yield lent
