# SPDX-License-Identifier: Apache-2.0
"""The coding conventions of this project, as automatic checks.

A rule reads one file and yields the problems, with advice. Each has example files that break it, so that the rules are
tested too. Rules of ruff, mypy and pyright are not repeated here.
"""

import ast
import functools
import os
import re
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from tests.checkout import ROOT

FOLDERS = ("raftlog", "records", "snapshot", "tools", "tests", "docs", ".ci")
NOT_OURS = {"__pycache__", "golden", "target"}
TEXTS = {"", ".in", ".java", ".json", ".md", ".py", ".toml", ".txt", ".xml"}

CODE = r"(raftlog|records|snapshot|tools)/.*\.py"
CODE_BUT_GENERATED = rf"(?!records/messages/generated_source\.py){CODE}"
CODE_BUT_TESTING = rf"(?!raftlog/testing/){CODE}"
PURE = r"(raftlog/([^/]*|(log|voters)/.*)|records/.*|snapshot/.*)\.py"
LIBRARY = r"(raftlog|records|snapshot)/.*\.py"
TESTS = r"tests/.*\.py"
UNTIMED_TESTS = (
    r"tests/(?!benchmarks/|faults/campaign\.py|kafka/controller\.py|records/(fuzz|sanitize)_kernel\.py"
    r"|mutants/kill_matrix\.py|testing/simulator/run\.py).*\.py"
)
"""All but those that say how long something took, and the one that waits for a server which tells nobody."""
PYTHON = r".*\.py"
MARKDOWN = r".*\.md"

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60
KERNEL = "records/kernel.py"
"""The hot loops stand in one file, and its functions take many memoryviews (DECISIONS.md, 12)."""
MAX_MEDIAN_FUNCTION_LINES = 12
MAX_CONTRIBUTING_LINES = 80

VAGUE_WORDS = {"base", "common", "helper", "helpers", "lib", "manager", "misc", "shared", "util", "utils"}

_CLOCKS = ("monotonic", "perf_counter", "process_time", "thread_time", "time")
CLOCKS = {f"time.{name}{unit}" for name in _CLOCKS for unit in ("", "_ns")}
WAITS = {"wait": 0, "join": 0, "result": 0, "awaitTermination": 0, "wait_for": 1, "Barrier": 2}
"""Methods that can wait, and which of their arguments says how many seconds at most; elsewhere it is ``timeout``."""

BANNED_CALLS = [
    (PURE, {"open", "input"}, "take bytes, or a ByteSource: the pure layers do no I/O"),
    (PURE, {"uuid.uuid1", "uuid.uuid4"}, "take the id, or a random.Random, from the caller"),
    (LIBRARY, {"print"}, "return the fact: only the tools write"),
    (LIBRARY, {"datetime.now", "datetime.datetime.now", "time.time"}, "take now_ms from the caller"),
    (PYTHON, {"breakpoint"}, "remove it"),
    (CODE_BUT_GENERATED, {"eval", "exec"}, "write the code"),
    (TESTS, {"sleep", "time.sleep"}, "hand in the clock, or wait for the event itself"),
    (UNTIMED_TESTS, CLOCKS, "wait for the event itself, or count the work with tests/work_counts.py"),
]

LEFTOVERS = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" * 3, "HA" + "CK")) + r")\b")
SOMEBODYS_MACHINE = re.compile(r"/(?:home|root|Users)/|" + re.escape(f"{ROOT}/"))
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
TABLE_HEAD_END = re.compile(r"\|[-:| ]+\|?")
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")


@attrs.frozen
class Source:
    """A text file: its path in the checkout, with slashes, and what it says."""

    path: str
    text: str

    @functools.cached_property
    def tree(self) -> ast.Module:
        """The syntax tree of a Python file."""
        return ast.parse(self.text)

    @functools.cached_property
    def line_count(self) -> int:
        """How many lines there are."""
        return len(self.text.splitlines())

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Yield all functions of a Python file."""
        return (node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


Check = Callable[[Source], Iterator[str]]


@attrs.frozen
class Rule:
    """A check, the paths that it is for, and pairs of path and text that it must catch."""

    paths: str
    check: Check
    examples: tuple[tuple[str, str], ...]

    def problems(self, source: Source) -> list[str]:
        """Return what is wrong with a file."""
        if not re.fullmatch(self.paths, source.path):
            return []
        return [f"{source.path}:{problem}" for problem in self.check(source)]


RULES: dict[str, Rule] = {}


def rule(paths: str, *examples: tuple[str, str]) -> Callable[[Check], Check]:
    """Make a function a rule for the paths that match."""

    def register(check: Check) -> Check:
        RULES[check.__name__] = Rule(paths, check, examples)
        return check

    return register


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return how many lines a function takes, docstring included."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def dotted(node: ast.expr) -> str:
    """Return `a.b.c` for a name or a chain of attributes, else the empty string."""
    if isinstance(node, ast.Name):
        return node.id
    return f"{dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


@rule(r".*\.(py|java)|Makefile|\.ci/run", ("records/long.py", "\n" * 501))
def files_are_short(source: Source) -> Iterator[str]:
    """Half a thousand lines are what one reads in one go."""
    if source.line_count > MAX_FILE_LINES and source.path != KERNEL:
        yield f" {source.line_count} lines, {MAX_FILE_LINES} are the most: split it by what it does"


@rule(PYTHON, ("records/long.py", "def f():\n" + "    pass\n" * 60))
def functions_are_short(source: Source) -> Iterator[str]:
    """A function fits on a screen."""
    for function in source.functions():
        if length(function) > MAX_FUNCTION_LINES and source.path != KERNEL:
            yield f"{function.lineno}: {function.name} takes {length(function)} lines: name its parts"


@rule(PYTHON, ("records/utils.py", ""), ("tools/shared/x.py", ""), ("tests/byte_helpers.py", ""))
def names_say_what_is_inside(source: Source) -> Iterator[str]:
    """A module that could hold anything will."""
    for vague in VAGUE_WORDS & set(re.split(r"[/_.]", source.path)):
        yield f" '{vague}' says nothing: name the module after what it does"


@rule(PYTHON, ("records/x.py", "from . import y"), ("tools/x.py", "import records.batch"))
def imports_go_through_raftlog(source: Source) -> Iterator[str]:
    """A file that is imported under two names is two modules with two of each class."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ImportFrom):
            names = ["." if node.level else str(node.module)]
        else:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            if re.match(r"\.|(records|snapshot|tools)\b", name):
                yield f"{getattr(node, 'lineno', 0)}: write raftlog.… in full, whatever folder it is in"


@rule(
    CODE_BUT_TESTING,
    ("records/x.py", "assert size > 0"),
    ("raftlog/storage/x.py", "def f(x):\n    if x:\n        assert x.y is not None\n"),
)
def checks_survive_optimisation(source: Source) -> Iterator[str]:
    """``python -O`` removes every ``assert``, and with it what a log relies on (DECISIONS.md, 51)."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Assert):
            yield f"{node.lineno}: call invariant, present or instance_of of raftlog/invariants.py"


@rule(
    PYTHON,
    ("records/x.py", "open('f')"),
    ("snapshot/x.py", "import uuid\nuuid.uuid4()"),
    ("raftlog/storage/x.py", "print(1)"),
    ("raftlog/storage/x.py", "import time\ntime.time()"),
    ("tools/x.py", "breakpoint()"),
    ("tools/x.py", "eval('1')"),
    ("tests/test_x.py", "import time\ntime.sleep(1)"),
    ("tests/test_x.py", "import time\nstarted = time.monotonic()"),
    ("tests/log/test_x.py", "import time\nassert time.process_time_ns() < 10"),
)
def calls_are_allowed(source: Source) -> Iterator[str]:
    """Some calls are wrong in some layers, and there is always something to do instead."""
    banned = {
        name: instead for paths, names, instead in BANNED_CALLS if re.fullmatch(paths, source.path) for name in names
    }
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and (name := dotted(node.func)) in banned:
            yield f"{node.lineno}: no {name}() here: {banned[name]}"


@rule(
    TESTS,
    ("tests/test_x.py", "process.wait(0.1)"),
    ("tests/test_x.py", "event.wait(timeout=5)"),
    ("tests/test_x.py", "news.wait_for(lambda: True, 20)"),
    ("tests/x.py", "subprocess.run(['x'], timeout=60)"),
    ("tests/x.py", "threading.Barrier(2, None, 30)"),
)
def waits_are_for_events(source: Source) -> Iterator[str]:
    """Whoever waits for so many seconds fails on a machine that is busy; an event comes, or nothing ever does."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call):
            name = dotted(node.func).rpartition(".")[2]
            limits = [each.value for each in node.keywords if each.arg == "timeout"]
            limits += node.args[WAITS[name] :][:1] if name in WAITS else []
            if any(isinstance(limit, ast.Constant) and isinstance(limit.value, int | float) for limit in limits):
                yield f"{node.lineno}: wait for an event, for HANG_S of tests/hang_limit.py at most"


KEEPING_CALLS = {"add", "append", "appendleft", "insert", "setdefault"}


def kept_names(node: ast.AST, name: str, *, is_kept: bool = False) -> Iterator[int]:
    """Yield the lines on which a name outlives its block: stored, returned or yielded, and not by way of a call."""
    match node:
        case ast.Name(id=found) if found == name and is_kept:
            yield node.lineno
        case ast.Raise():
            return
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.NamedExpr() | ast.Return() | ast.Yield():
            if node.value is not None:
                yield from kept_names(node.value, name, is_kept=True)
        case ast.BoolOp() | ast.IfExp() | ast.Tuple() | ast.List() | ast.Dict() | ast.Set() | ast.Starred():
            for child in ast.iter_child_nodes(node):
                yield from kept_names(child, name, is_kept=is_kept)
        case ast.Call(func=ast.Attribute(value=value, attr="located")):
            yield from kept_names(value, name, is_kept=is_kept)
        case ast.Call(func=ast.Attribute(attr=method), args=arguments) if method in KEEPING_CALLS:
            for argument in arguments:
                yield from kept_names(argument, name, is_kept=True)
        case _:
            for child in ast.iter_child_nodes(node):
                yield from kept_names(child, name)


@rule(
    CODE,
    ("records/x.py", "try:\n    f()\nexcept ValueError as error:\n    found[1] = error\n"),
    ("records/x.py", "try:\n    f()\nexcept ValueError as error:\n    found.append(error.located(path=path))\n"),
    ("records/x.py", "try:\n    f()\nexcept ValueError as error:\n    found += [(1, error)]\n"),
    (
        "records/x.py",
        "def f():\n    try:\n        g()\n    except ValueError as error:\n        return error or None\n",
    ),
)
def errors_are_kept_without_frames(source: Source) -> Iterator[str]:
    """A traceback holds frames, and these whatever was being read: an error that outlives its block must have none."""
    for handler in ast.walk(source.tree):
        if isinstance(handler, ast.ExceptHandler) and handler.name is not None:
            for statement in handler.body:
                for line in kept_names(statement, handler.name):
                    yield f"{line}: keep {handler.name} by without_frames, or a fresh_copy of it"


def raised_names(node: ast.AST, caught: frozenset[str] = frozenset()) -> Iterator[tuple[int, str]]:
    """Yield the lines on which a named object is raised, except one that the block around it has caught."""
    if isinstance(node, ast.ExceptHandler) and node.name is not None:
        caught |= {node.name}
    if isinstance(node, ast.Raise) and node.exc is not None:
        name = dotted(node.exc)
        if name and name not in caught and not name.rpartition(".")[2].lstrip("_")[:1].isupper():
            yield node.lineno, name
    for child in ast.iter_child_nodes(node):
        yield from raised_names(child, caught)


@rule(
    CODE,
    ("records/x.py", "raise self._failure\n"),
    ("records/x.py", "for error in errors:\n    raise error from None\n"),
    ("records/x.py", "try:\n    f()\nexcept ValueError as error:\n    raise failure\n"),
)
def kept_errors_are_raised_as_copies(source: Source) -> Iterator[str]:
    """Whoever raises an error and holds it has the frames through its traceback, more of them with each raise."""
    for line, name in raised_names(source.tree):
        yield f"{line}: raise a fresh_copy of {name}"


@rule(PYTHON, ("records/x.py", '"""Doc."""\n'), ("records/x.py", "# SPDX-License-Identifier: Apache-2.0\n"))
def files_have_a_head(source: Source) -> Iterator[str]:
    """The licence first, then what the module is."""
    if not source.text.startswith("# SPDX-License-Identifier: Apache-2.0\n"):
        yield "1: the first line is '# SPDX-License-Identifier: Apache-2.0'"
    if not ast.get_docstring(source.tree):
        yield "2: say in a docstring what the module is"


@rule(CODE, ("tools/x.py", "def f(): pass"), ("tools/x.py", "class C:\n    '''A thing.'''\n    def f(self): pass"))
def public_things_have_docstrings(source: Source) -> Iterator[str]:
    """Names without a leading underscore are promises, and promises are written down."""
    owners: list[ast.Module | ast.ClassDef] = [source.tree]
    for owner in owners:
        for node in owner.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith(
                "_"
            ):
                if isinstance(node, ast.ClassDef):
                    owners.append(node)
                if not ast.get_docstring(node):
                    yield f"{node.lineno}: say in a docstring what {node.name} does for its caller"


@rule(r"tests/.*\.py", ("tests/test_x.py", "with subprocess.Popen(['cat']) as process: pass"))
def processes_are_killed(source: Source) -> Iterator[str]:
    """What a failed test has started would be waited for, for ever."""
    if source.path == "tests/other_processes.py":
        return
    for node in ast.walk(source.tree):
        call = node.context_expr if isinstance(node, ast.withitem) else None
        if isinstance(call, ast.Call) and dotted(call.func).rpartition(".")[2] == "Popen":
            yield f"{call.lineno}: write 'started' of tests.other_processes"


@rule(r"tests/.*/?test_\w+\.py", ("tests/test_x.py", "def test_x(): pass"))
def claims_are_stated(source: Source) -> Iterator[str]:
    """A test's docstring is the sentence that the test proves."""
    for function in source.functions():
        if function.name.startswith("test_") and not ast.get_docstring(function):
            yield f"{function.lineno}: state the claim of {function.name} in one line"


@rule(r".*", ("docs/x.md", f"a {'TO' + 'DO'}"), ("records/x.py", f"# {'FIX' + 'ME'}: later"))
def nothing_is_left_over(source: Source) -> Iterator[str]:
    """Unfinished work is an issue, not a comment."""
    for match in LEFTOVERS.finditer(source.text):
        yield f"{source.text.count(chr(10), 0, match.start()) + 1}: do what '{match[0]}' asks for, or file it"


@rule(r"Makefile|\.ci/run", ("Makefile", "\tpytest tests/records/test_never*.py"), ("Makefile", "\tpytest tests/never"))
def paths_of_tests_are_there(source: Source) -> Iterator[str]:
    """A target whose pattern matches nothing runs nothing."""
    for match in re.finditer(r"(?<![\w/])tests/[\w/*.]+", source.text):
        if not any(ROOT.glob(match[0])):
            yield f"{source.text.count(chr(10), 0, match.start()) + 1}: {match[0]} is nothing"


@rule(r".*", ("docs/x.md", "in /" + "home/me/raftlog"), ("Makefile", f"cd {ROOT}/tests"))
def paths_name_no_user(source: Source) -> Iterator[str]:
    """A path of one machine means nothing on another."""
    for match in SOMEBODYS_MACHINE.finditer(source.text):
        yield f"{source.text.count(chr(10), 0, match.start()) + 1}: '{match[0]}': write a path relative to the checkout"


@rule(MARKDOWN, ("docs/x.md", "text"), ("docs/x.md", "# one\n# two\n"))
def pages_have_one_title(source: Source) -> Iterator[str]:
    """A page is about one thing, and says which."""
    titles = re.findall(r"^# .+", FENCED.sub("", source.text), re.MULTILINE)
    if len(titles) != 1:
        yield f" {len(titles)} titles: a page has one line that starts with '# '"


@rule(MARKDOWN, ("docs/x.md", "# x\n\n| a |\n|---|\n| 1 |\n\n| 2 |\n"))
def tables_have_a_head(source: Source) -> Iterator[str]:
    """An empty line ends a table: what follows is no row of it, but text with bars."""
    lines = FENCED.sub(lambda match: "\n" * match[0].count("\n"), source.text).split("\n")
    for number, (before, line, after) in enumerate(zip(lines, lines[1:], [*lines[2:], ""], strict=False), 2):
        if line.startswith("|") and not before.startswith("|") and not TABLE_HEAD_END.fullmatch(after):
            yield f"{number}: a row without a table: give the table a head, or take the empty line away"


@rule(MARKDOWN, ("docs/x.md", "[x](nowhere.md)"))
def links_lead_somewhere(source: Source) -> Iterator[str]:
    """Each link to a file is relative to the page, and the file is there."""
    for target in LINK.findall(FENCED.sub("", source.text)):
        if not (ROOT / source.path).parent.joinpath(target).exists():
            yield f" the link to {target} leads nowhere: mend or remove it"


@rule(r"CONTRIBUTING\.md", ("CONTRIBUTING.md", "\n" * 80))
def contributing_is_short(source: Source) -> Iterator[str]:
    """A document that is too long to read to its end is not followed."""
    if source.line_count >= MAX_CONTRIBUTING_LINES:
        yield f" {source.line_count} lines: say it in fewer than {MAX_CONTRIBUTING_LINES}"


@rule(
    CODE,
    ("records/x.py", "class X:\n    @property\n    def size(self): ..."),
    ("records/x.py", "class X:\n    def size_bytes(self): ..."),
    ("records/x.py", "class X:\n    def entry_size(self): ..."),
    ("records/x.py", "class X:\n    def size(self): ..."),
)
def sizes_are_held_or_asked_for(source: Source) -> Iterator[str]:
    """A size that is held is a property, and names its unit; ``size()`` asks what ``read_at`` reads, here and now."""
    for owner in (node for node in ast.walk(source.tree) if isinstance(node, ast.ClassDef)):
        functions = {each.name: each for each in owner.body if isinstance(each, ast.FunctionDef)}
        for name, function in functions.items():
            if not re.fullmatch(r"size|\w+_size|(\w+_)?size_bytes", name) or len(function.args.args) > 1:
                continue
            is_property = any(ast.unparse(each).endswith("property") for each in function.decorator_list)
            if name == "size" and (is_property or "read_at" not in functions):
                yield f"{function.lineno}: {owner.name}.size: is it size_bytes, a property, or what read_at reads?"
            elif name != "size" and not is_property and not name.startswith("_"):
                yield f"{function.lineno}: {owner.name}.{name} is held: make it a property"


@rule(
    TESTS,
    ("tests/x.py", 'kept = [path for path in paths if "101" not in str(path)]'),
    ("tests/x.py", 'kept = [path for path in paths if "damaged" in path.parts]'),
)
def paths_are_looked_at_below_a_root(source: Source) -> Iterator[str]:
    """A checkout or a temporary directory may be called anything, such as `pytest-101`: ask for a name below a root."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            where = ast.unparse(node.comparators[0])
            if re.fullmatch(r"str\(\w*path\w*\)|\w*path\w*\.(parts|as_posix\(\))", where):
                yield f"{node.lineno}: {where}: name the root with relative_to"


@rule(r"CHANGELOG\.md", ("CHANGELOG.md", "# Changelog\n## [0.1.0]\n"))
def the_changelog_is_open(source: Source) -> Iterator[str]:
    """There is always a place for the next line."""
    if "\n## [Unreleased]\n" not in source.text:
        yield " add a section '## [Unreleased]' at the top"


@functools.cache
def sources() -> tuple[Source, ...]:
    """Read all text files of the checkout that are ours; links are not followed."""
    paths = [path for path in ROOT.iterdir() if path.is_file()]
    for folder in FOLDERS:
        for place, subfolders, names in os.walk(ROOT / folder):
            subfolders[:] = [name for name in subfolders if name not in NOT_OURS]
            paths += [Path(place, name) for name in names]
    texts = sorted(path for path in paths if path.suffix in TEXTS and not path.name.startswith("."))
    return tuple(Source(path.relative_to(ROOT).as_posix(), path.read_text("utf-8")) for path in texts)


@pytest.mark.parametrize("name", RULES)
def test_every_file_keeps(name: str) -> None:
    """No file of the checkout breaks the rule."""
    problems = [problem for source in sources() for problem in RULES[name].problems(source)]
    assert not problems, "\n".join([str(RULES[name].check.__doc__), *problems])


@pytest.mark.parametrize(
    ("name", "path", "text"), [(name, *example) for name, each in RULES.items() for example in each.examples]
)
def test_a_rule_catches(name: str, path: str, text: str) -> None:
    """A file that was written to break the rule is caught."""
    assert RULES[name].problems(Source(path, text))


def test_every_rule_has_an_example() -> None:
    """A rule that nothing is known to break may catch nothing."""
    assert all(each.examples for each in RULES.values())


def test_all_folders_are_looked_at() -> None:
    """The rules see each of the four code folders, the tests and the root."""
    tops = {source.path.partition("/")[0] for source in sources()}
    assert {"raftlog", "records", "snapshot", "tools", "tests", "Makefile"} <= tops


def test_most_functions_are_small() -> None:
    """Half of the library's functions take a dozen lines at most."""
    code = [source for source in sources() if re.fullmatch(CODE, source.path)]
    median = statistics.median(length(function) for source in code for function in source.functions())
    assert median <= MAX_MEDIAN_FUNCTION_LINES, "split functions until half of them are small again"
