# SPDX-License-Identifier: Apache-2.0
"""``raftlog query``: each option and format, one clear line for what cannot be answered, and nothing but the views."""

import csv
import importlib.util
import io
import json
import os
import platform
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from raftlog.tools.querying import query
from tests.golden_files import GOLDEN
from tests.hang_limit import HANG_S
from tests.other_processes import started
from tests.tools.console import COMMAND, Outcome, run, run_process
from tests.tools.made_logs import LOG_NAME, batch, flip, write_log
from tests.tools.measured_process import MEBIBYTE, run_within

NODE = GOLDEN / "dynamic-quorum/data/n1"
SQL = 'SELECT "offset", key, value FROM records ORDER BY "offset"'


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log with text, bytes that are none, empty text and nulls."""
    write_log(tmp_path / "logs/orders-0", batch(0, (b"v", b"\xff,\x00", b"", None, b'a "b"\n')), batch(5, key=None))
    return tmp_path / "logs"


def ask(sql: str, *arguments: str | Path) -> Outcome:
    return run("query", "-j1", sql, *arguments)


# Formats


def test_a_table_has_the_rows_and_their_number(log: Path) -> None:
    """Numbers to the right, text to the left, null as such, control characters escaped."""
    outcome = ask(SQL, log)
    assert (outcome.exit_code, outcome.messages) == (0, "")
    assert outcome.text.splitlines() == [
        "offset  key   value",
        "     0  k     v",
        r"     1  k     \xff,\x00",
        "     2  k",
        "     3  k     null",
        r'     4  k     a "b"\x0a',
        "     5  null  v",
        "(6 rows)",
    ]
    assert ask("SELECT 1 AS one WHERE false", log).text == "one\n(0 rows)\n"
    assert ask("SELECT 1 AS one", log).text == "one\n  1\n(1 row)\n"


def test_csv_is_read_back_by_python(log: Path) -> None:
    """Null is empty, empty text is quoted."""
    outcome = ask(SQL, log, "--format", "csv")
    rows = list(csv.reader(io.StringIO(outcome.text)))
    assert rows[0] == ["offset", "key", "value"]
    assert [row[2] for row in rows[1:]] == ["v", "\\xff,\x00", "", "", 'a "b"\n', "v"]
    assert outcome.text.splitlines()[3:5] == ['2,k,""', "3,k,"]


def test_json_lines_are_exact(log: Path) -> None:
    """Bytes that are no text are base64 under another name, as in all verbs; a null is a null."""
    rows = ask(SQL, log, "--format", "jsonl").objects
    assert rows[:4] == [
        {"offset": 0, "key": "k", "value": "v"},
        {"offset": 1, "key": "k", "value_base64": "/ywA"},
        {"offset": 2, "key": "k", "value": ""},
        {"offset": 3, "key": "k", "value": None},
    ]


def test_parquet_is_exact_and_new(log: Path, tmp_path: Path) -> None:
    """It has its name when it is complete, and replaces nothing."""
    out = tmp_path / "out.parquet"
    assert ask(SQL, log, "--format", "parquet", "--out", out) == Outcome(0, b"", "")
    table = pq.read_table(out)
    assert table["offset"].to_pylist() == list(range(6))
    assert table["value"].to_pylist()[1] == b"\xff,\x00"
    before = out.read_bytes()
    again = ask(SQL, log, "--format", "parquet", "--out", out)
    assert (again.exit_code, again.complaints) == (
        1,
        [f"raftlog query: {out}: make failed: it exists, and is not overwritten"],
    )
    assert out.read_bytes() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["logs", "out.parquet"]


def test_parquet_without_a_form_for_a_type_is_told(log: Path, tmp_path: Path) -> None:
    """In one line with what to do; no file is left."""
    for sql in ("SELECT INTERVAL 1 DAY AS a", "SELECT [INTERVAL 1 DAY] AS a"):
        outcome = ask(sql, log, "--format", "parquet", "--out", tmp_path / "out.parquet")
        assert (outcome.exit_code, len(outcome.complaints)) == (1, 1)
        assert "Parquet cannot hold a column: " in outcome.messages
        assert "cast it, such as to VARCHAR" in outcome.messages
    assert [each.name for each in tmp_path.iterdir()] == ["logs"]


def test_a_plan_keeps_its_lines(log: Path) -> None:
    """As a table, it is the picture that DuckDB draws, without escapes; the other formats have it as text."""
    for sql in ('EXPLAIN SELECT value FROM records WHERE "offset" > 1', "EXPLAIN ANALYZE SELECT 1"):
        lines = ask(sql, log).text.splitlines()
        assert len(lines) > 4
        assert not any("\\x0a" in line or "explain_value" in line for line in lines)
        (row,) = ask(sql, log, "--format", "jsonl").objects
        assert len(row["explain_value"].splitlines()) == len(lines)


def test_sql_that_is_not_unicode_is_refused(log: Path) -> None:
    """It is no fault of raftlog."""
    outcome = ask("SELECT '\udcff'", log)
    assert (outcome.exit_code, outcome.complaints) == (1, ["raftlog query: the SQL is not valid UTF-8"])


def test_a_failed_query_leaves_no_file(log: Path, tmp_path: Path) -> None:
    """Neither the file nor a part of it, also if rows came before the error; nor is it written into a source."""
    fails = "SELECT CASE WHEN \"offset\" < 4 THEN 1 ELSE error('stop') END FROM records"
    for sql in ("SELECT", fails):
        outcome = ask(sql, log, "--format", "parquet", "--out", tmp_path / "out.parquet")
        assert (outcome.exit_code, len(outcome.complaints)) == (1, 1)
    inside = ask(SQL, log, "--format", "parquet", "--out", log / "out.parquet")
    assert (inside.exit_code, "is in" in inside.messages) == (1, True)
    missing = ask(SQL, log, "--format", "parquet", "--out", tmp_path / "none/out.parquet")
    assert (missing.exit_code, len(missing.complaints)) == (1, 1)
    assert [each.name for each in tmp_path.iterdir()] == ["logs"]


@pytest.mark.parametrize("output_format", [each for each in query.FORMATS if each != "parquet"])
def test_each_format_of_standard_output_has_all_rows(output_format: str) -> None:
    """Of a view with lists and structs, of a real controller."""
    outcome = ask("SELECT * FROM control", NODE, "--format", output_format)
    assert (outcome.exit_code, outcome.messages) == (0, "")
    assert outcome.text.count("LEADER_CHANGE") == 3
    assert '"host":"127.0.0.1"' in outcome.text.replace('""', '"')


def test_columns_of_one_name_stay_apart(log: Path) -> None:
    """The later ones have numbers, in every format."""
    assert ask("SELECT 1 AS a, 2 AS A, 3 AS a_1", log, "--format", "jsonl").objects == [{"a": 1, "A_1": 2, "a_1_1": 3}]


# What cannot be answered


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELEC 1", 'Parser Error: syntax error at or near "SELEC" (line 1, column 1)'),
        ("SELECT 1,\n  nocol\nFROM batches", '"nocol" not found in FROM clause!'),
        ("SELECT 1,\n  nocol\nFROM batches", "(line 2, column 3)"),
        ("SELECT offset FROM records", 'OFFSET is a word of SQL: write the column as "offset" or records.offset'),
        ("SELECT * FROM nowhere", "Table with name nowhere does not exist!"),
        (f"SELECT '{'x' * 300}', nocol FROM batches", "(line 1, column 312)"),
        ("SELECT topic::INT FROM records", "Could not convert string 'orders' to INT32"),
        ("SELECT error('a' || chr(27) || chr(10) || 'b')", "Invalid Input Error: a\\x1b b"),
        ("", "there are 0 statements: give one"),
        ("-- nothing", "there are 0 statements: give one"),
        ("SELECT 1; SELECT 2", "there are 2 statements: give one"),
        ("SELECT $1", "Values were not provided for the following parameters: 1"),
        ("SELECT * FROM batches WHERE size = 'x'", "Could not convert string 'x' to INT32"),
    ],
)
def test_wrong_sql_is_told_in_one_line(sql: str, told: str, log: Path) -> None:
    """DuckDB's words, and the place in the query; exit code 1; nothing on standard output."""
    outcome = ask(sql, log)
    assert (outcome.exit_code, outcome.text, len(outcome.complaints)) == (1, "", 1)
    assert told in outcome.messages


@pytest.mark.parametrize(
    "sql",
    [
        "COPY records TO '{}/x'",
        "EXPORT DATABASE '{}/x'",
        "ATTACH '{}/x.db'",
        "SET memory_limit = '1TB'",
        "RESET enable_external_access",
        "PRAGMA enable_profiling",
        "INSTALL httpfs",
        "LOAD httpfs",
        "CREATE TABLE t AS SELECT 1",
        "CALL pragma_version()",
        "INSERT INTO records SELECT 1",
        "SELECT * FROM read_text('{}/secret')",
        "SELECT * FROM read_csv('{}/secret')",
        "SELECT * FROM read_blob('{}/secret')",
        "SELECT * FROM glob('{}/*')",
        "SELECT * FROM '{}/secret.csv'",
        "SELECT * FROM sqlite_scan('{}/secret', 'x')",
        "SELECT * FROM duckdb_secrets()",
        "SELECT * FROM logs",
        "SELECT * FROM given",
        "SELECT * FROM python_table_function('x')",
        "SELECT * FROM query('COPY records TO ''{}/x''')",
        "WITH x AS (SELECT 1) INSERT INTO records FROM x",
        "EXPLAIN ANALYZE COPY records TO '{}/x'",
    ],
)
def test_a_query_reaches_nothing_else(sql: str, log: Path, tmp_path: Path) -> None:
    """No file is read or written, no setting changed, no variable of Python seen."""
    (tmp_path / "secret").write_text("hidden")
    (tmp_path / "secret.csv").write_text("hidden")
    outcome = ask(sql.replace("{}", str(tmp_path)), log)
    assert (outcome.exit_code, outcome.text, len(outcome.complaints)) == (1, "", 1)
    assert "this is a fault of raftlog" not in outcome.messages
    assert sorted(each.name for each in tmp_path.iterdir()) == ["logs", "secret", "secret.csv"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "the following arguments are required: SQL"),
        (["SELECT 1"], "name a directory"),
        (["SELECT 1", "{}", "--format", "parquet"], "--format parquet needs --out FILE"),
        (["SELECT 1", "{}", "--out", "x"], "--format parquet needs --out FILE"),
        (["--shell", "{}", "--format", "parquet", "--out", "x"], "it has no --format parquet"),
        (["SELECT 1", "{}", "--format", "xml"], "invalid choice: 'xml'"),
        (["SELECT 1", "{}", "--memory-limit", "much"], "'much' is not a number of bytes"),
        (["SELECT 1", "{}", "--memory-limit", "268435455"], "'268435455' is less than 256M"),
        (["SELECT 1", "{}/missing"], "missing"),
        (["SELECT 1", "{}", "--temp-directory", "{}"], "an audited directory is not written to"),
        (["SELECT 1", "{}", "--temp-directory", "{}/orders-0"], "an audited directory is not written to"),
        (["SELECT 1", "{}*", "--temp-directory", "{}/orders-0"], "an audited directory is not written to"),
        (["SELECT 1", "{}", "--temp-directory", "/nowhere"], "/nowhere: make a directory in it failed: No such file"),
    ],
)
def test_wrong_options_are_told_in_one_line(arguments: list[str], told: str, log: Path) -> None:
    """With exit code 1, and nothing is made."""
    before = sorted(log.rglob("*"))
    outcome = run("query", *(word.replace("{}", str(log)) for word in arguments))
    assert (outcome.exit_code, outcome.text, len(outcome.complaints)) == (1, "", 1)
    assert told in outcome.messages
    assert sorted(log.rglob("*")) == before


@pytest.mark.parametrize("package", ["duckdb", "pyarrow"])
def test_a_missing_package_is_named_by_its_extra(package: str, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line says what to install."""
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == package else find(name))
    outcome = ask("SELECT 1", log)
    extra = "sql" if package == "duckdb" else "columns"
    assert (outcome.exit_code, outcome.text) == (1, "")
    assert f"pip install 'raftlog[{extra}]'" in outcome.messages


@pytest.mark.parametrize("name", ["pipe", "socket", "/dev/zero", "-"])
def test_what_cannot_be_read_again_is_refused(
    name: str, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe is not opened, which would block; one line names it."""
    monkeypatch.chdir(tmp_path)  # The path of a socket may not be long.
    os.mkfifo("pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        for sql in ("FROM records", "FROM findings"):
            outcome = ask(sql, log, name)
            path = name if name == "-" else tmp_path / name
            told = (
                f"raftlog query: {path}: read failed: a query reads files and directories, not a pipe, device or socket"
            )
            assert (outcome.exit_code, outcome.text, outcome.complaints) == (1, "", [told])


def test_a_file_without_batches_is_refused(log: Path) -> None:
    """It is named."""
    (log / "meta.properties").write_text("version=0\n")
    outcome = ask("FROM records", log / "meta.properties")
    assert (outcome.exit_code, outcome.text, len(outcome.complaints)) == (1, "", 1)
    assert "neither a segment (.log) nor a KRaft snapshot (.checkpoint)" in outcome.messages


# What is left out


def test_damage_is_told_and_counts(log: Path) -> None:
    """The rows of sound batches are printed; the exit code is that of damage."""
    flip(log / f"orders-0/{LOG_NAME}", 65)
    outcome = ask(SQL, log, "--format", "csv")
    assert (outcome.exit_code, outcome.text) == (2, "offset,key,value\n5,,v\n")
    assert len(outcome.complaints) == 1
    assert outcome.messages.endswith("[batch-crc]; it is left out\n")
    assert {"rule": "batch-crc"} in ask("SELECT rule FROM findings", log, "--format", "jsonl").objects


def test_findings_are_joined_by_file(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All views have the same paths, also if the command line has relative ones."""
    monkeypatch.chdir(log.parent)
    with (log / f"orders-0/{LOG_NAME}").open("ab") as file:
        file.write(batch(6)[:-1])
    torn = "WHERE rule = 'tail-torn'"
    sql = f"SELECT DISTINCT rule FROM findings JOIN batches USING (file) JOIN records USING (file) {torn}"
    assert ask(sql, "logs", "--format", "jsonl").objects == [{"rule": "tail-torn"}]
    sql = f"SELECT count(*) AS n FROM findings JOIN batches USING (directory, topic, partition) {torn}"
    assert ask(sql, "./logs//", "--format", "jsonl").objects == [{"n": 2}]


def test_a_torn_tail_is_no_damage_of_a_query(log: Path) -> None:
    """A running node may be writing it."""
    with (log / f"orders-0/{LOG_NAME}").open("ab") as file:
        file.write(batch(6)[:-1])
    outcome = ask("SELECT count(*) AS n FROM records", log, "--format", "jsonl")
    assert (outcome.exit_code, outcome.messages, outcome.objects) == (0, "", [{"n": 6}])


def test_no_log_is_told(tmp_path: Path) -> None:
    """The views are empty, and the exit code is 1."""
    (tmp_path / "empty").mkdir()
    outcome = ask("SELECT count(*) AS n FROM batches", tmp_path / "empty", "--format", "jsonl")
    assert outcome.exit_code == 1
    assert len(outcome.complaints) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_directory_is_told(log: Path) -> None:
    """The others are read."""
    (log / "secret-0").mkdir(mode=0)
    outcome = ask("SELECT count(*) AS n FROM records", log, "--format", "jsonl")
    assert (outcome.exit_code, outcome.objects) == (1, [{"n": 6}])


# Memory, disk and time


def test_the_temporary_directory_is_private_and_removed(log: Path, tmp_path: Path) -> None:
    """What does not fit goes to a new directory in the one that is named, and a query sees no other file of that."""
    spill = tmp_path / "spill"
    spill.mkdir()
    (spill / "secret").write_text("hidden")
    sql = "SELECT count(*) AS n FROM (SELECT md5(range::VARCHAR) AS m FROM range(3000000) ORDER BY m)"
    options = ("--temp-directory", spill, "--memory-limit", "256M", "--format", "jsonl")
    outcome = ask(sql, log, *options)
    assert (outcome.messages, outcome.objects) == ("", [{"n": 3_000_000}])
    assert ask(f"SELECT * FROM read_text('{spill}/secret')", log, *options).exit_code == 1
    assert [each.name for each in spill.iterdir()] == ["secret"]


def test_the_default_temporary_directory_is_that_of_the_system(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused if it is in a source."""
    monkeypatch.setattr(tempfile, "tempdir", str(log))
    outcome = ask("SELECT 1", log)
    assert (outcome.exit_code, len(outcome.complaints)) == (1, 1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert ask("SELECT 1", log).exit_code == 0
    assert [each.name for each in tmp_path.iterdir()] == ["logs"]


FREED_AGAIN_AND_AGAIN = """
import resource, threading
from raftlog.tools.querying.query import keep_freed_memory

def work():
    for _ in range(50):
        blocks = [bytearray(1 << 20) for _ in range(4)]
        del blocks

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

first = faults()
keep_freed_memory()
print(first, faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="others have no such measure")
def test_memory_that_threads_free_is_used_again() -> None:
    """Pages that are cleared anew, for 50 times 4 MiB: those of the first 4 MiB only, instead of all."""
    program = FREED_AGAIN_AND_AGAIN
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    before, after = map(int, done.stdout.split())
    page = os.sysconf("SC_PAGESIZE")
    assert after * page < 12 * 1024 * 1024 < before * page


IMPORTS = (
    "import numpy, pyarrow.parquet, pyarrow.dataset, pyarrow.acero, duckdb, raftlog.tools.querying.session,"
    " raftlog.tools.auditing.run.audit_output, raftlog.tools.auditing.survey.segment_survey, cramjam, zstandard\n"
    "duckdb.connect().execute('SELECT 1')\n"
    "from raftlog.tools.command_line import main"
)


MOST_MEBIBYTES = 250
KEPT_MEBIBYTES = 450
"""What DuckDB keeps, 256 MiB, comes on top if a query keeps rows."""
SLOW, VOLUME = pytest.mark.slow, pytest.mark.volume
PARQUET = ("--format", "parquet", "--out", "{}/out.parquet")
SUM = "SELECT sum(octet_length(value)) FROM records"
MOST_COLUMNS = "SELECT * EXCLUDE (value, headers) FROM records"
GROUPS = 'SELECT value, max("offset") FROM records GROUP BY value'


@pytest.mark.parametrize(
    ("sql", "size", "most", "output"),
    [
        pytest.param(SUM, 2048, MOST_MEBIBYTES, (), marks=SLOW, id="aggregate"),
        pytest.param("FROM records", 2048, MOST_MEBIBYTES, ("--format", "jsonl"), marks=SLOW, id="jsonl"),
        pytest.param(MOST_COLUMNS, 2048, MOST_MEBIBYTES, ("--format", "table"), marks=VOLUME, id="table"),
        pytest.param("FROM records", 2048, MOST_MEBIBYTES, PARQUET, marks=SLOW, id="parquet"),
        pytest.param(GROUPS, 2048, KEPT_MEBIBYTES, ("--format", "csv"), marks=SLOW, id="group"),
        pytest.param("FROM records ORDER BY value", 600, KEPT_MEBIBYTES, PARQUET, marks=VOLUME, id="sort"),
    ],
)
def test_a_log_need_not_fit_in_memory(sql: str, size: int, most: int, output: tuple[str, ...], tmp_path: Path) -> None:
    """A log of 512 MiB is read in half of that, also if it is written elsewhere; grouped or sorted, in less than it is.

    The memory limit is the least one.
    """
    folder = tmp_path / "logs/orders-0"
    folder.mkdir(parents=True)
    with (folder / LOG_NAME).open("wb") as file:
        for number in range(512 * MEBIBYTE // (4096 * size)):
            values = [os.urandom(size // 2).hex().encode() for _ in range(256)] * 16
            file.write(batch(number * len(values), values))
        assert file.tell() > max(2 * MOST_MEBIBYTES, KEPT_MEBIBYTES) * MEBIBYTE
    words = [word.replace("{}", str(tmp_path)) for word in output]

    done = run_within(
        2048, IMPORTS, "code = main(arguments)", "query", sql, tmp_path / "logs", "--memory-limit", "256M", *words
    )

    assert (done.outcome.exit_code, done.outcome.messages) == (0, "")
    assert done.used_mebibytes < most


ENDLESS = {
    "aggregate": "SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE (a.range * b.range) % 7 = 3",
    "rows": "SELECT a.range FROM range(1000000000) a, range(1000000000) b WHERE (a.range * b.range) % 1000000007 = -3",
    "regular expression": "SELECT count(*) FROM range(1000000000) a"
    " WHERE regexp_matches(repeat(md5(a.range::VARCHAR), 100), '((a|b)*c|(a*b*)*d|(x+x+)+y){1,100}$')",
}


@pytest.mark.parametrize("sql", ENDLESS.values(), ids=ENDLESS)
@pytest.mark.parametrize("output", ["table", "parquet"])
def test_an_interrupt_cancels_a_query(sql: str, output: str, log: Path, tmp_path: Path) -> None:
    """Ctrl-C ends it at once, with the exit code of an interrupt, no temporary files, and no part of a result."""
    spill = tmp_path / "spill"
    spill.mkdir()
    out = ("--out", tmp_path / "out.parquet") if output == "parquet" else ()
    command: list[str | Path] = [*COMMAND, "query", sql, log, "--temp-directory", spill, "--format", output, *out]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while not any(spill.iterdir()):
            assert process.poll() is None
            os.sched_yield()
        process.send_signal(signal.SIGINT)
        _, messages = process.communicate(timeout=HANG_S)
    assert (process.returncode, messages) == (130, b"")
    assert not any(spill.iterdir())
    assert sorted(each.name for each in tmp_path.iterdir()) == ["logs", "spill"]


def test_a_closed_pipe_ends_a_query(log: Path) -> None:
    """As ``| head`` does it."""
    command: list[str | Path] = [*COMMAND, "query", "SELECT range FROM range(1000000000)", log, "--format", "csv"]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"range\n"
        process.stdout.close()
        assert process.wait(HANG_S) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_the_help_needs_no_extra(log: Path) -> None:
    """Neither DuckDB nor Arrow is imported for it; and the command works as a process."""
    code = "import sys; from raftlog.tools.querying.query import make_parser; make_parser()\n"
    code += "print(set(sys.modules) & {'duckdb', 'pyarrow'})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
    outcome = run_process("query", "SELECT count(*) AS n FROM records", log, "--format", "jsonl")
    assert (outcome.exit_code, json.loads(outcome.text)) == (0, {"n": 6})


def test_sources_are_not_written_to(log: Path) -> None:
    """Files and times are as before."""
    before = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in log.rglob("*")}
    for view in ("batches", "records", "control", "metadata", "voters", "epochs", "findings"):
        ask(f"FROM {view}", log)
    assert {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in log.rglob("*")} == before
