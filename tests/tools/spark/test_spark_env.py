# SPDX-License-Identifier: Apache-2.0
"""``raftlog spark-env``: what a shell gets to export, whatever the names of folders are."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from raftlog.tools.spark import spark_env
from raftlog.tools.spark.settings import QUERY_SETTINGS
from raftlog.tools.spark.spark_env import cache_folder, spark_variables
from tests.tools.console import run

NAMES = ("JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_CONF_DIR")
SHELLS = [shell for shell in ("sh", "bash", "zsh") if shutil.which(shell)]


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Hide Spark's variables and the user's cache; return the folder that takes the cache's place."""
    for name in (*NAMES, "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(spark_env, "lasting_java_home", lambda folder: folder / "a java's")
    return tmp_path / "raftlog"


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("name", ["plain", 'it\'s $HOME `x` "q"', "ü", "a\nb", "-n"])
def test_a_shell_reads_what_is_printed(shell: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After ``eval`` each variable has its value, and nothing else has run; a line end needs more than a plain sh."""
    if shell == "sh" and not name.isprintable():
        shell = "bash"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
    printed = run("spark-env").text
    script = 'eval "$1"; for name in $2; do eval "printf \'%s\\0\' \\"\\$$name\\""; done'
    words = [shell, "-c", script, shell, printed, " ".join(NAMES)]
    if shell == "zsh":
        words.insert(1, "-y")
    done = subprocess.run(words, capture_output=True, check=True, env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"})
    folder = f"{tmp_path}/{name}/raftlog"
    expected = [f"{folder}/a java's", sys.executable, sys.executable, f"{folder}/spark-conf"]
    assert done.stdout.split(b"\0")[:-1] == [os.fsencode(each) for each in expected]
    assert done.stderr == b""


def test_the_configuration_is_that_of_fast_queries(clean: Path) -> None:
    """Spark reads a name, white space, and a value to the end of the line."""
    spark_variables(clean, {})
    lines = (clean / "spark-conf" / "spark-defaults.conf").read_text().splitlines()
    assert dict(line.split(None, 1) for line in lines) == QUERY_SETTINGS
    assert [path.name for path in (clean / "spark-conf").iterdir()] == ["spark-defaults.conf"]


@pytest.mark.parametrize("name", ["SPARK_HOME", "SPARK_CONF_DIR"])
def test_a_configuration_of_ones_own_is_kept(name: str, clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Spark has one, none is exported, and the settings are shown as comments, which come last."""
    monkeypatch.setenv(name, "/opt/spark")
    lines = run("spark-env").text.splitlines()
    assert [line.partition("=")[0] for line in lines if not line.startswith("#")] == [
        "export JAVA_HOME",
        "export PYSPARK_PYTHON",
        "export PYSPARK_DRIVER_PYTHON",
    ]
    assert lines[4:] == [f"# {setting} {value}" for setting, value in QUERY_SETTINGS.items()]
    assert not clean.exists()


def test_pythons_of_ones_own_are_kept() -> None:
    """A Python that is named for workers is not replaced."""
    found = spark_variables(cache_folder(os.environ), {"PYSPARK_PYTHON": "python3", "PYSPARK_DRIVER_PYTHON": ""})
    assert "PYSPARK_PYTHON" not in found
    assert found["PYSPARK_DRIVER_PYTHON"] == sys.executable


def test_a_second_time_gives_the_same(clean: Path) -> None:
    """Its own variables do not count as a user's configuration."""
    first = spark_variables(clean, {})
    assert spark_variables(clean, {"SPARK_CONF_DIR": first["SPARK_CONF_DIR"]}) == first


@pytest.mark.parametrize(
    ("variable", "folder"), [("", "~/.cache/raftlog"), ("x/y", "~/.cache/raftlog"), ("/x", "/x/raftlog")]
)
def test_the_cache_is_where_the_specification_says(variable: str, folder: str) -> None:
    """A relative XDG_CACHE_HOME counts as none."""
    assert cache_folder({"XDG_CACHE_HOME": variable}) == Path(folder).expanduser()


def test_a_cache_that_cannot_be_written(clean: Path) -> None:
    """The message names the folder; nothing is exported."""
    clean.touch()
    outcome = run("spark-env")
    assert (outcome.exit_code, outcome.text) == (1, "")
    assert str(clean) in outcome.messages
