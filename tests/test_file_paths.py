# SPDX-License-Identifier: Apache-2.0
"""Paths as text: what a directory's files are called and back, with the query of a URI along, and no secrets."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import StorageError
from raftlog.file_paths import (
    RemotePath,
    directory_of,
    is_remote,
    join_path,
    local_or_remote,
    name_of,
    remote_path,
    split_path,
)

names = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1).filter(
    lambda name: name not in {".", ".."}
)
queries = st.sampled_from(["", "?region=eu-west-1", "?endpoint_override=127.0.0.1:9000&scheme=http", "?x=/a/b"])
buckets = st.sampled_from(["s3://bucket", "gs://anonymous@bucket", "abfss://container@account", "hdfs://host:8020"])


@given(bucket=buckets, parts=st.lists(names, max_size=3), name=names, query=queries)
def test_names_go_into_a_uri_and_come_back(bucket: str, parts: list[str], name: str, query: str) -> None:
    """Whatever a key is made of, its URI splits into the directory's and the name, and says the key itself."""
    directory = f"{bucket}{query}"
    for part in parts:
        directory = join_path(directory, part)
    path = join_path(directory, name)

    assert split_path(path) == (directory, name) == (directory_of(path), name_of(path))
    assert is_remote(path)
    assert local_or_remote(path) == path
    assert remote_path(path) == RemotePath(f"{bucket}/{query}", "/".join([*parts, name]).strip("/"))


@given(path=st.text("ab./:?%", max_size=12), name=names)
def test_local_paths_are_the_operating_systems(path: str, name: str) -> None:
    """A path that is not a URI splits and joins as by ``os.path``."""
    if "://" not in path + name:
        assert split_path(path) == os.path.split(path)
        assert name_of(path) == os.path.basename(path)
        assert directory_of(path) == os.path.dirname(path)
        assert join_path(path, name) == os.path.join(path, name)
        assert not is_remote(path)


@pytest.mark.parametrize(
    ("given_path", "meant"),
    [
        ("/data/kafka-1", "/data/kafka-1"),
        ("data/", "data/"),
        ("-", "-"),
        ("./s3:/x", "./s3:/x"),
        ("file:///data/a%20b", "/data/a b"),
        ("file:/data", "/data"),
        ("FILE://localhost/data", "/data"),
        ("file:data", "file:data"),
        ("s3://bucket/", "s3://bucket"),
        ("s3://bucket/logs/?region=x", "s3://bucket/logs?region=x"),
        ("hdfs://[::1]:8020/logs", "hdfs://[::1]:8020/logs"),
    ],
)
def test_what_a_user_means(given_path: str, meant: str) -> None:
    """Local URIs are local paths, and a remote directory has one path, however its end is written."""
    assert local_or_remote(given_path) == meant


@pytest.mark.parametrize(
    "path",
    [
        "s3://me:hush@bucket/logs",
        "s3://me:hu/sh@bucket/logs",
        "s3://me:1/hush@bucket/logs",
        "s3://:hush@bucket",
        "abfs://container@account/logs?client_secret=hush",
        "s3://bucket/logs?region=x&Access_Key=hush",
    ],
)
def test_credentials_are_refused_and_hidden(path: str) -> None:
    """A URI with credentials is an error that does not show them, a secret with a bare slash in it included."""
    with pytest.raises(StorageError, match="credentials in a path") as caught:
        local_or_remote(path)

    assert "hu" not in str(caught.value)


def test_a_path_on_another_machine() -> None:
    """A ``file:`` URI of another machine is an error, and a local path is not a remote one."""
    with pytest.raises(StorageError, match="a file of there"):
        local_or_remote("file://there/data")
    with pytest.raises(StorageError, match="not a URI"):
        remote_path("/data")
