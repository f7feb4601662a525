# SPDX-License-Identifier: Apache-2.0
"""Paths in an object store behave like paths of files, as far as an audit's output uses them."""

import pickle
from pathlib import Path

import pytest

from raftlog.errors import MissingFileError, StorageError
from raftlog.tools.auditing.object_paths import ObjectPath, output_path
from tests.object_store import ObjectStore


@pytest.mark.parametrize("name", ["a", "a b", "a?b", "ü%20", "a.parquet"])
def test_names_and_contents(object_store: ObjectStore, tmp_path: Path, name: str) -> None:
    """Whatever a name has, what is written is read, listed, found by pattern, and removed, as in a directory."""
    object_store.make_bucket(bucket := f"names-{len(name)}-{ord(name[0])}-{ord(name[-1])}")
    for folder in (ObjectPath(object_store.uri(bucket, "x")), tmp_path):
        path = folder / name
        assert not path.exists()
        path.write_bytes(b"one")
        with path.open("wb") as file:
            file.write(b"two")
        (folder / "other").write_bytes(b"")
        assert (path.name, path.stem, path.read_bytes()) == (Path(name).name, Path(name).stem, b"two")
        with path.open("rb") as file:
            assert file.peek(1)[:1] == b"t"
        assert sorted(each.name for each in folder.iterdir()) == sorted([name, "other"])
        assert [each.name for each in folder.glob("oth*")] == ["other"]
        path.unlink()
        path.unlink(missing_ok=True)
        assert not path.exists()


def test_what_is_not_there(object_store: ObjectStore) -> None:
    """Reading it and removing it is an error that names it; listing gives nothing, removing a tree does nothing."""
    object_store.make_bucket("absent")
    path = ObjectPath(object_store.uri("absent", "x/y"))
    with pytest.raises(MissingFileError, match="absent/x/y"):
        path.read_bytes()
    with pytest.raises(MissingFileError, match="absent/x/y"):
        path.unlink()
    assert list(path.iterdir()) == []
    path.remove_tree()


def test_an_error_publishes_nothing(object_store: ObjectStore) -> None:
    """What was written before an error in the block is not an object."""
    object_store.make_bucket("broken")
    path = ObjectPath(object_store.uri("broken", "x"))

    def fail() -> None:
        with path.open("wb") as file:
            file.write(b"half")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert not path.exists()


def test_a_tree_is_removed_with_all_below(object_store: ObjectStore) -> None:
    """Only what is below the path goes; a name that begins alike stays."""
    object_store.make_bucket("trees")
    root = ObjectPath(object_store.uri("trees", "out"))
    for key in ("work/1/a", "work/1/b/c", "work-2/d"):
        object_store.put("trees", f"out/{key}", b"x")
    (root / "work").remove_tree()
    assert not (root / "work" / "1").exists()
    assert (root / "work-2" / "d").exists()


def test_a_store_that_is_not_there() -> None:
    """Any method gives an error of one line with the path."""
    path = ObjectPath("s3://bucket/x?endpoint_override=127.0.0.1:1&scheme=http&connect_timeout=1")
    with pytest.raises(StorageError, match=r"^s3://bucket/x") as raised:
        path.write_bytes(b"")
    assert "\n" not in str(raised.value)


def test_a_path_is_one_or_the_other() -> None:
    """URIs are objects, all else files; workers get them pickled."""
    assert output_path("a/b") == Path("a/b")
    remote = output_path("s3://bucket/x?region=y")
    assert isinstance(remote, ObjectPath)
    assert pickle.loads(pickle.dumps(remote)) == remote
    assert str(remote / "a b") == "s3://bucket/x/a%20b?region=y"
