# SPDX-License-Identifier: Apache-2.0
"""The inventory of pointers: the attributes that are pointers, the functions that move one, and the checks in each.

A pointer is an offset, a position or a size that an object keeps. The inventory is read from the source, so that a new
function that moves one is included automatically.
"""

import ast
import functools
import re
from collections.abc import Iterator
from typing import Final

import attrs

from tests.checkout import ROOT
from tests.invariants.planting import Site

PLACES: Final = (
    "raftlog/log",
    "raftlog/quorum",
    "raftlog/voters",
    "raftlog/storage",
    "records/batches",
    "records/columns",
    "snapshot",
)
"""Where objects keep pointers into a log."""

POINTERS: Final = {
    *("_start_offset", "_end_offset", "_high_watermark", "_flushed_offset", "_epochs", "_generation", "_batches"),
    *("_end_position", "_segment_base_offset", "_bytes_since_recovery_point", "_located", "_segments", "active"),
    *("next_offset", "_next_offset", "size_bytes", "_size_bytes", "_reserved_bytes", "_found", "end_position"),
    *("_data", "_last", "_stored_size", "_room", "_bytes_since_entry", "_last_timestamp", "_offset_of_max_timestamp"),
    *("end_offset", "epochs", "last_epoch", "sound_end_after", "sound_epoch_after", "_point", "_slot"),
    *(
        "high_watermark",
        "_known_end_offset",
        "_durable_point",
        "_sequence",
        "_values",
        "_violations",
        "_completed",
        "_open",
    ),
    *("_drain_offset", "_area_size", "_last_offset", "_record_count", "_held_bytes", "_start", "end"),
    "high_watermark",
}

LOOKS_LIKE_ONE: Final = re.compile(r"\w*(_offset|_position|_size|_bytes|_watermark|_end|_room)")
NO_POINTERS: Final = {
    "base_offset": "it is set once",
    "max_offset": "it is set once",
    "_base_offset": "it is set once",
    "limit_bytes": "it is set once",
    "_interval_bytes": "it is set once",
    "_entry_size": "it is set once",
    "_chunk_size": "it is set once",
    "_recovery_point_interval_bytes": "it is set once",
    "_bytes_checked_in_vain": "it counts work that was done, and is no place",
    "_request_size": "how much a remote file is asked for next, and no place",
    "_size": "it is set once, when a remote file is opened",
    "_next_voters_offset": "it remembers what was looked up, and is no place of the replica",
    "from_disk_offset": "it is taken from next_offset, whose moves are checked",
    "_skipped_offset": "what bytes say that were read, which may be anything",
    "_offset_instead": "what bytes say that were read, which may be anything",
    "_bytes": "bytes that were read, and no number of them",
    "_is_at_end": "it is a truth value",
    "_largest_timestamp": "it is a time",
    "fetched_high_watermark": "what a leader says, which may be anything",
}

EXEMPT: Final = {
    "snapshot/order.py": "it judges bytes that may be anything, and reports what is wrong as an error",
    "records/columns/transactions.py": "it follows bytes that may be anything: a search, whose end only grows",
    "raftlog/storage/reading/remote_file_source.py": "it keeps what a server has sent: what is short is an error",
    "records/batches/memory_pool.py": "its checks are refusals with errors of their own, before anything is counted",
}
"""Modules whose pointers say what somebody else has said: nothing there is a bug of ours alone."""

CHECKED_BY: Final = {
    "raftlog/storage/log/appendable_log.py:AppendableLog._append_plainly": ("LogSegment.append", "the hot path"),
    "raftlog/storage/segments/time_index.py:TimeIndex.add": ("IndexFile.append", "the hot path"),
    "raftlog/voters/history.py:TreeMapLogHistory.clear": (None, "it leaves nothing to be wrong"),
    "raftlog/voters/voter_set_history.py:VoterSetHistory.clear": (None, "it leaves nothing to be wrong"),
    "records/batches/accumulator.py:BatchAccumulator.allow_drain": (None, "it forgets a limit"),
    "records/batches/accumulator.py:BatchAccumulator.close": (None, "it drops all that was not drained"),
    "snapshot/memory_raw.py:MemoryRawSnapshotWriter.close": (None, "it drops what was not frozen"),
}
"""Functions that make no checks of their own: whose checks stand for theirs, or None, and why."""

_MUTATORS: Final = {"append", "appendleft", "clear", "extend", "insert", "pop", "popitem", "popleft", "update"}
_CHECKER: Final = re.compile(r"_?check_\w*invariants|_check_stored_size|_complete|_refuse_pointers")


@attrs.frozen
class Function:
    """A function of the code, and what it does to pointers.

    Attributes:
        path: of its module, from the checkout on.
        name: with its class, and with the functions that it is inside of.
        line: where it begins.
        moves: names of pointers that it assigns, or changes in place.
        sites: first and last line of each check that it makes itself.
        check_count: how many conditions these check.
        calls: names of checks that it calls.
    """

    path: str
    name: str
    line: int
    moves: frozenset[str]
    sites: tuple[tuple[int, int], ...]
    check_count: int
    calls: tuple[str, ...]

    @property
    def key(self) -> str:
        """Module and name."""
        return f"{self.path}:{self.name}"


def functions_of(path: str, text: str) -> Iterator[Function]:
    """Yield the functions of a module, those inside others too."""
    yield from _functions_in(path, ast.parse(text), "")


def _functions_in(path: str, owner: ast.AST, prefix: str) -> Iterator[Function]:
    for node in ast.iter_child_nodes(owner):
        if isinstance(node, ast.FunctionDef):
            yield _function(path, node, f"{prefix}{node.name}")
        inner = f"{prefix}{node.name}." if isinstance(node, ast.FunctionDef | ast.ClassDef) else prefix
        yield from _functions_in(path, node, inner)


def _function(path: str, function: ast.FunctionDef, name: str) -> Function:
    moves, sites, count, calls = set[str](), list[tuple[int, int]](), 0, list[str]()
    for node in _own_nodes(function):
        moves |= set(_moved(node))
        if isinstance(node, ast.If) and _is_violation(node.body[-1]):
            count += sum(len(each.ops) for each in ast.walk(node.test) if isinstance(each, ast.Compare)) or 1
            sites.append((node.lineno, node.body[-1].end_lineno or node.lineno))
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called == "invariant":
                sites.append((node.lineno, node.end_lineno or node.lineno))
                count += 1
            elif _CHECKER.fullmatch(called):
                calls.append(called)
    return Function(path, name, function.lineno, frozenset(moves), tuple(sites), count, tuple(calls))


def _own_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Yield the nodes of a function, but not of functions inside it."""
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef):
            waiting += ast.iter_child_nodes(node)


def _is_violation(node: ast.AST) -> bool:
    if not isinstance(node, ast.Raise) or not isinstance(node.exc, ast.Call):
        return False
    return isinstance(node.exc.func, ast.Name) and node.exc.func.id == "InvariantViolation"


def _moved(node: ast.AST) -> Iterator[str]:
    """Yield the pointers that a statement moves."""
    targets: list[ast.expr] = []
    match node:
        case ast.Assign() | ast.Delete():
            targets = list(node.targets)
        case ast.AugAssign() | ast.AnnAssign():
            targets = [node.target]
        case ast.Call(func=ast.Attribute(attr=method, value=ast.Attribute() as owner)) if method in _MUTATORS:
            targets = [owner]
    while targets:
        target = targets.pop()
        if isinstance(target, ast.Tuple):
            targets += target.elts
        elif isinstance(target, ast.Subscript):
            targets.append(target.value)
        elif isinstance(target, ast.Attribute) and is_pointer(target.attr):
            yield target.attr


def is_pointer(name: str) -> bool:
    """Whether an attribute of this name is a pointer: a name that looks like one is, unless it is listed as none."""
    return name in POINTERS or (name not in NO_POINTERS and LOOKS_LIKE_ONE.fullmatch(name) is not None)


def sites_of(path: str, text: str) -> Iterator[Site]:
    """Yield the checks of a module, each with what it looks at."""
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in _own_nodes(function):
            if isinstance(node, ast.If) and _is_refusal(node.body[-1]):
                yield _site(path, function, node, node.test)
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "invariant":
                yield _site(path, function, node, node.args[0])


def _is_refusal(node: ast.stmt) -> bool:
    return _is_violation(node) or ast.unparse(node).startswith("self._refuse_pointers(")


def _site(path: str, function: ast.FunctionDef, node: ast.If | ast.Call, test: ast.expr) -> Site:
    return Site(path, function.name, node.lineno, node.end_lineno or node.lineno, tuple(_subjects(test)))


def _subjects(test: ast.expr) -> Iterator[tuple[str, str]]:
    for node in ast.walk(test):
        if isinstance(node, ast.Attribute):
            yield ast.unparse(node.value), node.attr
        elif isinstance(node, ast.Name) and node.id != "self":
            yield "", node.id


@functools.cache
def inventory() -> tuple[Function, ...]:
    """Return all functions of the places where pointers are kept."""
    found: list[Function] = []
    for place in PLACES:
        for path in sorted((ROOT / place).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if name not in EXEMPT:
                found += functions_of(name, path.read_text("utf-8"))
    return tuple(found)


def movers(functions: tuple[Function, ...]) -> list[Function]:
    """Return the functions that move a pointer, except constructors, which give it its first value."""
    return [each for each in functions if each.moves and not each.name.endswith(("__init__", "__attrs_post_init__"))]


def check_count(function: Function, functions: tuple[Function, ...]) -> int:
    """Return how many conditions a function checks, itself or in the checks that it calls."""
    count = function.check_count
    for called in function.calls:
        same = [each for each in functions if each.name.rpartition(".")[2] == called and each.key != function.key]
        count += min((check_count(each, functions) or 1 for each in same), default=1)
    return count
