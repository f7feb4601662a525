# SPDX-License-Identifier: Apache-2.0
"""Every error is one that something raises."""

import ast
from collections.abc import Iterator
from pathlib import Path

import raftlog
from raftlog import errors

ROOT = Path(raftlog.__file__).resolve().parent
SOURCES = [ROOT, *(ROOT / name for name in ("records", "snapshot", "tools"))]


def names_in_use(tree: ast.AST) -> Iterator[str]:
    """Yield the names that are raised, called, or kept in a table to be raised; not those that are caught or tested."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass")):
                continue
            case ast.Call(func=ast.Name(id=name)) | ast.Raise(exc=ast.Name(id=name)):
                yield name
            case ast.Dict(values=values):
                yield from (value.id for value in values if isinstance(value, ast.Name))
            case ast.IfExp(body=one, orelse=other):
                yield from (value.id for value in (one, other) if isinstance(value, ast.Name))
            case ast.Assign(value=ast.Name(id=name)):
                yield name


def raised() -> set[str]:
    """All names that the project raises somewhere, however it stores them until then."""
    paths = {path.resolve() for source in SOURCES for path in source.rglob("*.py")} - {ROOT / "errors.py"}
    return {name for path in paths for name in names_in_use(ast.parse(path.read_text("utf-8")))}


def test_something_raises_every_error() -> None:
    """An error that has no subclasses is raised somewhere; a promise that nothing keeps is taken back."""
    classes = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, BaseException)]
    leaves = {each.__name__ for each in classes if each.__module__ == errors.__name__ and not each.__subclasses__()}
    assert len(leaves) > 30
    assert leaves - raised() == set()


def test_the_test_would_notice() -> None:
    """A name that is only caught, tested or imported is not raised."""
    source = """
from raftlog.errors import A, B, C, D, E, F
try:
    raise A("x")
except (B, C) as error:
    isinstance(error, D)
    raise E from None
table = {1: F}
"""
    assert {"A", "E", "F"} == set(names_in_use(ast.parse(source)))
