# SPDX-License-Identifier: Apache-2.0
"""The five questions of the data engineer's page: their code as it stands there, over what a real Kafka wrote."""

import datetime
import json
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from raftlog.records.batch import RecordBatch
from raftlog.records.control import ControlRecordType, VotersRecord, read_control_key, read_control_record
from raftlog.records.iterator import BufferSource, split
from raftlog.records.record import RecordView
from raftlog.records.schema import NEWEST
from raftlog.tools.message_payloads import MetadataDecoder
from tests.golden_files import GOLDEN

pytestmark = pytest.mark.spark

PAGE: Final = (Path(__file__).parents[2] / "docs/spark.md").read_text("utf-8")
BROKER: Final = "/var/lib/kafka"
CONTROLLER: Final = "/var/lib/controller"
EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MILLISECOND: Final = datetime.timedelta(milliseconds=1)

Rows = list[tuple[Any, ...]]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Copy a broker's log directory, with two transactions that never ended, and a controller's."""
    folder = tmp_path_factory.mktemp("logs")
    topics = folder / "kafka"
    for name in ("c-zstd-0", "java-0", "txn-0", "txn-1"):
        shutil.copytree(GOLDEN / "data-topics/data/n1" / name, topics / name)
    for name in ("orders-0", "orders-1", "tx.orders-0"):
        shutil.copytree(GOLDEN / "mirror/data/n1" / name, topics / name)
    for name in ("txn-0", "txn-1"):
        log = topics / name / "00000000000000000000.log"
        *_, last_marker = (batch for batch in batches_of(log) if batch.is_control)
        log.write_bytes(log.read_bytes()[: last_marker.position])
    shutil.copytree(GOLDEN / "dynamic-quorum/data/n3", folder / "controller")
    return {BROKER: topics, CONTROLLER: folder / "controller"}


@pytest.fixture(scope="module")
def forgetful(places: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Copy a controller's log directory whose log starts behind the first voter sets, as snapshots stand for them."""
    folder = tmp_path_factory.mktemp("forgetful") / "controller"
    shutil.copytree(places[CONTROLLER], folder)
    logs = sorted((folder / "__cluster_metadata-0").glob("*.log"))
    assert len(logs) > 1
    for log in logs[:-1]:
        log.unlink()
    return places | {CONTROLLER: folder}


def blocks(number: int, language: str) -> str:
    """Return the code of a question."""
    [section] = re.findall(rf"^### {number}\. .*?(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    [found] = re.findall(rf"^```{language}\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    return str(found)


def placed(code: str, places: dict[str, Path]) -> str:
    """Let code read the copies."""
    for name, path in places.items():
        code = code.replace(name, str(path))
    return code


def by_data_frame(spark: SparkSession, number: int, places: dict[str, Path]) -> DataFrame:
    """Run the Python of a question."""
    [imports] = re.findall(r"^The Python needs\n\n```python\n(.*?)^```", PAGE.replace("\n ", "\n"), re.M | re.S) or [
        "from pyspark.sql import Window\nfrom pyspark.sql import functions as F\n"
    ]
    known: dict[str, Any] = {"spark": spark}
    exec(compile(imports + placed(blocks(number, "python"), places), "docs/spark.md", "exec"), known)
    answer = known["answer"]
    assert isinstance(answer, DataFrame)
    return answer


def by_sql(spark: SparkSession, number: int, places: dict[str, Path]) -> DataFrame:
    """Run the statements of a question; the last one is the answer."""
    *before, last = [each for each in placed(blocks(number, "sql"), places).split(";") if each.strip()]
    for statement in before:
        spark.sql(statement)
    return spark.sql(last)
