# SPDX-License-Identifier: Apache-2.0
"""Traces of half-finished changes: unimported modules, errors never raised, names with two meanings, untested rules."""

import ast
import functools
import inspect
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from raftlog import errors
from raftlog.tools.catalogue.audit_rules import CATALOGUE
from raftlog.tools.log.verb import ACTIONS
from raftlog.tools.verb_help.verbs import VERBS
from tests.checkout import ROOT

FOR_USERS: Final = {
    "raftlog.__main__": "python -m raftlog",
    "raftlog.records.messages.rpc": "reading RPCs off a wire",
    "raftlog.records.reference": "the plain form of all readers, which tests compare with",
    "raftlog.spark": "notebooks and jobs",
    "raftlog.testing.contracts.file_system": "tests of users",
    "raftlog.testing.contracts.replicated_log": "tests of users",
    "raftlog.testing.crash_points": "tests of users",
    "raftlog.testing.log_stories": "tests of users",
    "raftlog.testing.quorum_machine": "tests of users",
    "raftlog.testing.schedules": "tests of users",
    "raftlog.tools.pyspark_raftlog": "Spark looks for it by name",
}
"""Modules that none of ours imports, and who does."""


@functools.cache
def sources() -> dict[str, ast.Module]:
    """Return the syntax tree of each module, by its dotted name."""
    found = {}
    for folder in ("raftlog", "records", "snapshot", "tools"):
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts if folder == "raftlog" else ("raftlog", *parts))
            found[name.removesuffix(".__init__")] = ast.parse(path.read_text("utf-8"))
    return found


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield the names of modules that a module imports; of a name that it imports from one, that too, with a dot."""
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom():
                yield str(node.module)
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def used_names(tree: ast.Module) -> Iterator[str]:
    """Yield the names that code evaluates, except those that it only catches."""
    caught = {
        id(name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler) and node.type is not None
        for name in ast.walk(node.type)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in caught:
            yield node.id


def unimported(trees: dict[str, ast.Module]) -> set[str]:
    """Return the modules that no other one imports. Packages count as imported with what is in them."""
    known = {name for module, tree in trees.items() for name in imported(tree) if name != module}
    verbs = {f"raftlog.tools.{verb.module}" for verb in VERBS.values()}
    verbs |= {f"raftlog.tools.log.log_{action}" for action in ACTIONS}
    packages = {name.rpartition(".")[0] for name in trees}
    return set(trees) - known - verbs - packages - {"raftlog.records.messages.schemas"}


def classes_by_name(trees: dict[str, ast.Module]) -> dict[str, list[str]]:
    """Return the modules that define a public class, by the name of the class."""
    found = defaultdict(list)
    for module, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(module)
    return dict(found)


def unraised(trees: dict[str, ast.Module]) -> set[str]:
    """Return the errors that no module but their own uses, and from which no other error descends."""
    kinds = {name: kind for name, kind in vars(errors).items() if inspect.isclass(kind) and issubclass(kind, Exception)}
    own = {name for name, kind in kinds.items() if kind.__module__ == errors.__name__ and not kind.__subclasses__()}
    used = {name for module, tree in trees.items() if module != errors.__name__ for name in used_names(tree)}
    return own - used


def untested(rules: Iterable[str]) -> list[str]:
    """Return the rules that no test of the tools or of records names."""
    tests = [path.read_text("utf-8") for room in ("tools", "records") for path in (ROOT / "tests" / room).rglob("*.py")]
    return [rule for rule in rules if not any(f'"{rule}"' in text for text in tests)]


def test_every_module_is_imported() -> None:
    """A module is a verb, is imported by another one, or is listed as made for users."""
    assert unimported(sources()) == set(FOR_USERS)


def test_a_class_name_means_one_thing() -> None:
    """No two modules define a public class of one name."""
    assert {name: modules for name, modules in classes_by_name(sources()).items() if len(modules) > 1} == {}


def test_every_error_is_raised() -> None:
    """Each error class is raised somewhere."""
    assert unraised(sources()) == set()


def test_every_rule_has_a_test() -> None:
    """A test beside the modules of the audit, or beside the readers of records, names each rule by its id."""
    assert untested(CATALOGUE) == []


def test_forgotten_parts_are_found() -> None:
    """Each is found: an unimported module, a second class of a name, an error never raised, an untested rule."""
    assert untested(["batch-crc", "batch-" + "shape"]) == ["batch-" + "shape"]
    trees = dict(sources())
    trees["raftlog.records.stray"] = ast.parse("class RecordBatch: pass")
    assert unimported(trees) - set(FOR_USERS) == {"raftlog.records.stray"}
    assert classes_by_name(trees)["RecordBatch"] == ["raftlog.records.batches.batch", "raftlog.records.stray"]
    only_caught = ast.parse("try:\n    pass\nexcept BufferExhaustedError:\n    raise\n")
    assert "BufferExhaustedError" in unraised({"raftlog.records.stray": only_caught})
    assert "BufferExhaustedError" not in unraised(
        {"raftlog.records.stray": ast.parse("raise BufferExhaustedError('x')")}
    )
