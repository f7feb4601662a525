# SPDX-License-Identifier: Apache-2.0
"""Four folders at the top, one package `raftlog` in what is built from them (DECISIONS.md, 1)."""

import inspect
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import attrs
import pytest

from raftlog.errors import NoJavaError
from raftlog.tools.spark.java_runtime import java_home
from tests import quick_java
from tests.checkout import ROOT
from tests.hang_limit import HANG_S

LINKED_FOLDERS = ("records", "snapshot", "tools")
SPARK_PRELUDE = """\
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

spark: SparkSession
"""
"""What blocks of docs/spark.md but the first say once, above all of them."""
DOORS = {"raftlog.tools.pyspark_raftlog": "pyspark_raftlog"}
"""Packages whose names are not their places: Spark looks for top-level names only."""


def setuptools_table() -> dict[str, dict[str, str]]:
    """Return `[tool.setuptools]` of pyproject.toml."""
    table: dict[str, dict[str, str]] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    return table


def folders_on_disk() -> dict[str, str]:
    """Return the folder of each package that the checkout has, by the package's name."""
    found = {}
    for folder in ("raftlog", *LINKED_FOLDERS):
        for place, subfolders, names in os.walk(ROOT / folder):
            subfolders[:] = [name for name in subfolders if name != "__pycache__"]
            if any(name.endswith(".py") for name in names):
                path = Path(place).relative_to(ROOT)
                package = ".".join(path.parts if folder == "raftlog" else ("raftlog", *path.parts))
                found[DOORS.get(package, package)] = path.as_posix()
    return found


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    """Run a command that must succeed, with more variables in its environment, and return its output."""
    environment = os.environ | variables
    result = subprocess.run(
        command, cwd=cwd, env=environment, timeout=HANG_S, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@attrs.frozen
class Built:
    """A source distribution, and the wheel that was made of it."""

    sdist: Path
    wheel: Path

    def sdist_names(self) -> set[str]:
        """Return the files of the source distribution, without its top folder."""
        with tarfile.open(self.sdist) as archive:
            return {member.name.partition("/")[2] for member in archive if member.isfile()}

    def wheel_names(self) -> set[str]:
        """Return the files of the wheel."""
        with zipfile.ZipFile(self.wheel) as archive:
            return set(archive.namelist())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Build both from a copy of the checkout, as building creates files in it. The kernel need not be a fast one."""
    copy = tmp_path_factory.mktemp("checkout")
    left_out = shutil.ignore_patterns(".*", "*.egg-info", "build", "dist", "golden", "target")
    shutil.copytree(ROOT, copy, symlinks=True, dirs_exist_ok=True, ignore=left_out)
    command = (sys.executable, "-m", "build", "--no-isolation", "--outdir", copy / "dist", copy)
    run(*command, cwd=copy, RAFTLOG_UNOPTIMIZED="1")
    (sdist,) = (copy / "dist").glob("*.tar.gz")
    (wheel,) = (copy / "dist").glob("*.whl")
    return Built(sdist, wheel)


@pytest.fixture(scope="module")
def installed(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel in a new environment that borrows our dependencies, and return its folder of programs."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    site_packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder)}))
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"), "utf-8")
    pip = (sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "--disable-pip-version-check")
    run(*pip, "install", "--no-index", "--no-deps", "--ignore-installed", built.wheel, cwd=folder)
    return folder / "bin"


def test_links_lead_to_the_folders() -> None:
    """In a checkout with links, `raftlog/records` and its like are the folders at the top."""
    for folder in LINKED_FOLDERS:
        link = ROOT / "raftlog" / folder
        if not link.is_symlink():
            pytest.skip("this checkout has no links: type checkers see only half of the package")
        assert os.readlink(link) == f"../{folder}"
        assert link.samefile(ROOT / folder)


def test_pyproject_lists_the_packages_on_disk() -> None:
    """`packages` names each folder that has Python files, and no other; `package-dir` says where they are."""
    table = setuptools_table()
    folders = folders_on_disk()
    assert sorted(table["packages"]) == sorted(folders)
    tops = {f"raftlog.{folder}": folder for folder in LINKED_FOLDERS}
    assert table["package-dir"] == tops | {package: folders[package] for package in DOORS.values()}


def test_each_package_has_an_init() -> None:
    """No folder with Python files is a namespace package by accident."""
    assert all((ROOT / folder / "__init__.py").is_file() for folder in folders_on_disk().values())


def test_no_module_goes_by_its_folder_name() -> None:
    """Nothing that the tests imported came in as top-level `records`, `snapshot` or `tools`."""
    strays = [sys.modules[name].__file__ for name in LINKED_FOLDERS if name in sys.modules]
    assert not [path for path in strays if path and Path(path).is_relative_to(ROOT)]


@pytest.mark.packaging
def test_the_wheel_has_two_top_level_names(built: Built) -> None:
    """A wheel puts `raftlog` into site-packages, the door by which Spark finds it, and nothing else."""
    tops = {name.partition("/")[0] for name in built.wheel_names()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"raftlog", "pyspark_raftlog"}


@pytest.mark.packaging
def test_the_wheel_has_every_module_and_its_data(built: Built) -> None:
    """Each Python file of the four folders is in the wheel, with the schema texts, the type marker and the licence."""
    wanted = {"raftlog/py.typed"}
    for package, folder in folders_on_disk().items():
        place = package.replace(".", "/")
        wanted |= {
            f"{place}/{path.name}"
            for path in (ROOT / folder).iterdir()
            if path.suffix in {".properties", ".py", ".txt"}
        }
    names = built.wheel_names()
    assert wanted <= names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


@pytest.mark.packaging
def test_the_sdist_keeps_the_layout(built: Built) -> None:
    """The source distribution has the folders where the checkout has them, what the kernel needs, and no tests."""
    names = built.sdist_names()
    assert {
        "records/batches/batch.py",
        "records/crc_instruction.pxd",
        "records/python_objects.pxd",
        "records/wide_product.pxd",
        "raftlog/errors.py",
        "LICENSE",
        "ARCHITECTURE.md",
        "DECISIONS.md",
    } <= names
    assert not [name for name in names if name.startswith(("tests/", "raftlog/records"))]


@pytest.mark.packaging
def test_the_installed_wheel_is_what_runs(installed: Path) -> None:
    """Away from the checkout, `import raftlog` finds the wheel, and the schema texts with it."""
    code = """
        import importlib.resources, raftlog.records
        print(raftlog.records.__file__)
        schemas = importlib.resources.files("raftlog.records.messages.schemas")
        print(sum(file.name.endswith(".txt") for file in schemas.iterdir()))
    """
    path, texts = run(installed / "python", "-c", inspect.cleandoc(code), cwd=installed).splitlines()
    assert Path(path).is_relative_to(installed.parent)
    assert int(texts) == len(list((ROOT / "records" / "messages" / "schemas").glob("*.txt")))


@pytest.mark.packaging
def test_the_installed_command_runs(installed: Path) -> None:
    """`raftlog --help` works after an install, and names its first verb."""
    assert "dump-log" in run(installed / "raftlog", "--help", cwd=installed)


def documented_python() -> list[tuple[str, str]]:
    """Return the Python blocks of README.md and docs/, each with its place, or the name that its first line gives."""
    found = []
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        text = page.read_text("utf-8")
        for block in re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            named = re.match(r"# (\w+)\.py$", block[1], re.MULTILINE)
            name = named[1] if named else f"{page.stem.lower()}_{text.count(chr(10), 0, block.start()) + 1}"
            prelude = SPARK_PRELUDE if page.stem == "spark" and "session(" not in block[1] else ""
            found.append((name, prelude + block[1]))
    return found


@pytest.mark.packaging
def test_documented_python_passes_a_strict_type_check(installed: Path, tmp_path: Path) -> None:
    """The examples pass mypy's strict checks against the wheel."""
    blocks = documented_python()
    assert len(blocks) >= 12
    for name, block in blocks:
        (tmp_path / f"{name}.py").write_text(block, "utf-8")
    mypy = (sys.executable, "-m", "mypy", "--strict", "--python-executable", installed / "python", "--config-file=")
    run(*mypy, "--cache-dir", tmp_path / "cache", *sorted(tmp_path.glob("*.py")), cwd=tmp_path)

    (tmp_path / "wrong.py").write_text(
        "from raftlog.storage.reading.segment_reader import open_segment\n"
        'with open_segment("x") as segment:\n'
        "    for chunk in segment.chunks():\n"
        "        print(chunk.records.to_arrow())\n",
        "utf-8",
    )
    wrong = subprocess.run([*mypy, tmp_path / "wrong.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "union-attr" in wrong.stdout  # It sees the wheel's types, and not that there are none.
    assert "import" not in wrong.stdout


@pytest.mark.packaging
def test_spark_finds_the_source_in_an_installed_wheel(installed: Path) -> None:
    """After an install, `format("raftlog")` works without a call that registers it: the wheel's door is found."""
    try:
        java_home()
    except NoJavaError as error:
        pytest.skip(str(error))
    code = """
        import pkgutil, sys
        from raftlog.tools.spark.session import session
        print(*(found.module_finder.path for found in pkgutil.iter_modules() if found.name == "pyspark_raftlog"))
        with session("local[1]") as spark:
            print(spark.read.format("raftlog").option("view", "batches").load(sys.argv[1]).count() > 0)
    """
    log = next((ROOT / "tests" / "golden" / "dynamic-quorum").rglob("*.log"))
    door, found = run(
        installed / "python", "-c", inspect.cleandoc(code), log, cwd=installed, **quick_java.OF_SPARK
    ).splitlines()
    assert Path(door).is_relative_to(installed.parent)
    assert found == "True"


@pytest.mark.packaging
def test_a_failing_compiler_ends_no_install(tmp_path: Path) -> None:
    """Without a working compiler there is no compiled kernel, and everything else works."""
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("raftlog", "records", "snapshot", "tools"):
        left_out = shutil.ignore_patterns("*.so", "records", "snapshot", "tools")
        shutil.copytree(ROOT / name, tmp_path / name, symlinks=True, ignore=left_out)
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    environment = os.environ | {"CC": "false", "CXX": "false"}

    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.glob("records/_kernel*"))
