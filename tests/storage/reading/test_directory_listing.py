# SPDX-License-Identifier: Apache-2.0
"""Listings of directories are the same for a disk and for a bucket with the same files."""

import os
from pathlib import Path

import pytest

from raftlog.errors import MissingFileError, StorageError
from raftlog.file_paths import join_path
from raftlog.storage.reading.directory_listing import DirectoryListing, EntryKind
from tests.object_store import ObjectStore

pytest.importorskip("pyarrow")

FILES = ("meta.properties", "orders-0/0.log", "orders-0/0.index", "orders-1/0.log", "a b/ü %2F?#.log", "a b/deep/er/x")


@pytest.fixture(scope="module")
def tree(object_store: ObjectStore, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some files, each as long as its name; the bucket ``tree`` has them below ``logs``."""
    directory = tmp_path_factory.mktemp("tree")
    for name in FILES:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(name)
    object_store.upload(directory, "tree", "logs/")
    return directory


def walk(listing: DirectoryListing, path: str, join: str) -> dict[str, tuple[EntryKind, int]]:
    """All that is below a directory."""
    found = {}
    for entry in listing.entries(path):
        status = entry.status()
        assert entry.is_directory() == (status.kind is EntryKind.DIRECTORY)
        name = f"{join}{entry.name}"
        found[name] = (status.kind, status.size_bytes if status.kind is EntryKind.FILE else 0)
        if entry.is_directory():
            found |= walk(listing, join_path(path, entry.name), f"{name}/")
    return found


def test_a_bucket_lists_as_a_disk_does(object_store: ObjectStore, tree: Path) -> None:
    """Names, kinds and sizes are the same at any depth, and all of a bucket's take one request."""
    local = walk(DirectoryListing(), str(tree), "")
    object_store.requests.clear()

    remote = walk(DirectoryListing(), object_store.uri("tree", "logs"), "")

    assert remote == local
    assert {name for name, (kind, _) in local.items() if kind is EntryKind.FILE} == set(FILES)
    assert len(object_store.requests) == 1


def test_status_and_existence(object_store: ObjectStore, tree: Path) -> None:
    """A path is a file with a size, a directory, or not there; before its directory was listed and after."""
    for top in (str(tree), object_store.uri("tree", "logs")):
        for was_listed in (False, True):
            listing = DirectoryListing()
            if was_listed:
                list(listing.entries(top))
            path = top.replace("/logs", "/logs/orders-0/0.log") if top != str(tree) else f"{top}/orders-0/0.log"
            status = listing.status(path)
            assert (status.kind, status.size_bytes) == (EntryKind.FILE, len("orders-0/0.log"))
            assert listing.status(top).kind is EntryKind.DIRECTORY
            assert listing.exists(path)
            absent = path.replace("0.log", "1.log")
            assert not listing.exists(absent)
            with pytest.raises(MissingFileError):
                listing.status(absent)
            with pytest.raises(MissingFileError):
                list(listing.entries(absent))


def test_a_fingerprint_changes_with_the_file(object_store: ObjectStore) -> None:
    """Another length is another fingerprint, and a file that was left alone keeps its own."""
    object_store.make_bucket("fingerprints")
    uri = object_store.uri("fingerprints", "x")
    fingerprints = []
    for data in (b"1", b"22"):
        object_store.put("fingerprints", "x", data)
        first, second = (DirectoryListing().status(uri).fingerprint for _ in range(2))
        assert first == second
        fingerprints.append(first)
    assert fingerprints[0] != fingerprints[1]


def test_identity_is_of_the_directory(tmp_path: Path) -> None:
    """Two names of a local directory are one; a remote path is itself."""
    (tmp_path / "link").symlink_to(tmp_path)
    listing = DirectoryListing()

    assert listing.identity(str(tmp_path)) == listing.identity(str(tmp_path / "link"))
    assert listing.identity("s3://bucket/a") != listing.identity("s3://bucket/b")
    with pytest.raises(MissingFileError):
        listing.identity(str(tmp_path / "nowhere"))


def test_links_that_lead_nowhere(tmp_path: Path) -> None:
    """A link without a target exists, is not a directory, and does not count as missing."""
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    (tmp_path / "round").symlink_to(tmp_path / "round")
    listing = DirectoryListing()

    assert listing.exists(str(tmp_path / "link"))
    for entry in listing.entries(str(tmp_path)):
        assert not entry.is_directory()
        with pytest.raises(StorageError) as caught:
            entry.status()
        assert not isinstance(caught.value, MissingFileError)


def test_a_pipe_is_another_kind(tmp_path: Path) -> None:
    """An entry that is neither file nor directory has a kind of its own."""
    os.mkfifo(tmp_path / "pipe")

    assert DirectoryListing().status(str(tmp_path / "pipe")).kind is EntryKind.OTHER
