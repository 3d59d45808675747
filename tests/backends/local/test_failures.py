"""Whatever is wrong with the files has a name and a remedy, and nothing committed is lost over it."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kgrag.backends.local.filesystem import filesystem_of, require_local
from kgrag.backends.local.stores import LocalStores, namespaces, open_stores
from kgrag.errors import (
    ConfigurationError,
    KgragError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
    StoreVersionError,
    UnknownNamespaceError,
    UnsupportedFilesystemError,
)
from kgrag.ports import Row
from kgrag.records import DocumentStatus
from tests.backends.local.volumes import read_only_view, resize, small_volume

# From 3.12 on Python warns of forking beside threads, which is what these tests are about.
pytestmark = pytest.mark.filterwarnings("ignore:This process.*fork:DeprecationWarning")

TEXT = "ant bee"


def rows(start: int, stop: int) -> list[Row]:
    chooser = np.random.default_rng(start)
    return [Row(f"{i:06}", b"x" * 300, TEXT, {"n": i}, chooser.standard_normal(64).astype(np.float32)) for i in range(start, stop)]


def built(home: Path, count: int = 50) -> None:
    stores = open_stores(home, "n", mode="write", create=True)
    stores.search.upsert("entities", rows(0, count))
    stores.search.refresh()
    stores.answers.put_many({"a": b"1"})
    stores.close()


def hits(stores: LocalStores) -> int:
    return len(stores.search.lexical("entities", ["ant"], 10**6))


def says_what_to_do(error: pytest.ExceptionInfo[KgragError]) -> bool:
    return bool(error.value.remedy) and bool(error.value.subject)


# ---------------------------------------------------------------- names


def test_a_missing_namespace_is_named_with_those_that_are_there(tmp_path: Path) -> None:
    built(tmp_path)
    for mode in ("read", "write"):
        with pytest.raises(UnknownNamespaceError, match=r"other.*Known: n\.") as error:
            open_stores(tmp_path, "other", mode=mode)  # type: ignore[arg-type]
        assert says_what_to_do(error)
    assert namespaces(tmp_path) == ["n"]
    assert namespaces(tmp_path / "none") == []


@pytest.mark.parametrize("name", ["", "A", "-a", "a/b", "..", "a b", "a" * 65, "ä"])
def test_bad_namespace_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError):
        open_stores(tmp_path, name, mode="write", create=True)
    assert list(tmp_path.iterdir()) == []


def test_another_dimension_is_refused_when_opening(tmp_path: Path) -> None:
    built(tmp_path)
    with pytest.raises(ConfigurationError, match=r"64 dimensions.*gives 384"):
        open_stores(tmp_path, "n", mode="read", dimension=384)
    open_stores(tmp_path, "n", mode="read", dimension=64).close()


# ---------------------------------------------------------------- reading only


def test_a_reading_handle_refuses_every_write(tmp_path: Path) -> None:
    built(tmp_path)
    stores = open_stores(tmp_path, "n", mode="read")
    writes: list[Callable[[], object]] = [
        lambda: stores.search.upsert("entities", rows(0, 1)),
        lambda: stores.search.delete("entities", ["000000"]),
        lambda: stores.search.refresh(),
        lambda: stores.compact(),
        lambda: stores.records.delete(["u"]),
        lambda: stores.graph.delete(["v"], []),
        lambda: stores.status.put([DocumentStatus(id="d", scope="s", path="p")]),
        lambda: stores.status.acquire_lease("me", 9),
        lambda: stores.answers.put_many({"b": b""}),
        lambda: stores.transaction().__enter__(),
    ]
    for write in writes:
        with pytest.raises(StoreReadOnlyError) as error:
            write()
        assert says_what_to_do(error)
    assert hits(stores) == 50
    stores.close()


def test_a_reader_of_an_index_without_answers_finds_none(tmp_path: Path) -> None:
    built(tmp_path)
    (tmp_path / "n" / "answers.db").unlink()
    stores = open_stores(tmp_path, "n", mode="read")
    assert stores.answers.get_many(["a"]) == {}
    assert stores.answers.keys() == []
    with pytest.raises(StoreReadOnlyError):
        stores.answers.put_many({"b": b""})
    stores.close()


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    built(tmp_path)
    stores = open_stores(tmp_path, "n", mode="write")
    stores.close()
    stores.close()
    for use in (lambda: stores.search.count("entities"), lambda: stores.search.upsert("entities", rows(0, 1))):
        with pytest.raises(StoreUnavailableError, match="closed"):
            use()


def test_a_read_only_mount_is_searched_and_not_written(tmp_path: Path) -> None:
    built(tmp_path / "home")
    with read_only_view(tmp_path / "home", tmp_path / "view"):
        stores = open_stores(tmp_path / "view", "n", mode="read")
        assert hits(stores) == 50
        assert len(stores.search.nearest("entities", np.ones(64, np.float32), 5)) == 5
        assert stores.answers.get_many(["a"]) == {"a": b"1"}
        with pytest.raises(StoreReadOnlyError) as error:
            open_stores(tmp_path / "view", "n", mode="write")
        assert says_what_to_do(error)
        with pytest.raises(StoreReadOnlyError):
            open_stores(tmp_path / "view", "new", mode="write", create=True)
        # A writer elsewhere changes the files: the reader sees it, and again when the writer is gone.
        writer = open_stores(tmp_path / "home", "n", mode="write")
        writer.search.upsert("entities", rows(50, 60))
        writer.search.refresh()
        assert stores.search.count("entities") == 60
        assert hits(stores) == 60
        writer.close()
        assert stores.search.count("entities") == 60
        stores.close()


@pytest.mark.parametrize("shared_file", [True, False])
def test_a_read_only_mount_of_a_killed_writer_loses_nothing(tmp_path: Path, shared_file: bool) -> None:
    built(tmp_path / "home")
    child = os.fork()
    if not child:
        stores = open_stores(tmp_path / "home", "n", mode="write")
        stores.status.write_value("late", 1)
        os.kill(os.getpid(), 9)
    os.waitpid(child, 0)
    folder = tmp_path / "home" / "n"
    assert (folder / "index.db-wal").stat().st_size
    if not shared_file:
        (folder / "index.db-shm").unlink()
    with read_only_view(tmp_path / "home", tmp_path / "view"):
        stores = open_stores(tmp_path / "view", "n", mode="read")
        assert stores.status.read_value("late") == 1
        assert hits(stores) == 50
        stores.close()


# ---------------------------------------------------------------- no space


def fill_until_full(stores: LocalStores) -> int:
    """How many rows were committed when the disk was full."""
    done = 50
    while True:
        try:
            stores.search.upsert("entities", rows(done, done + 500))
        except StoreFullError:
            return done
        done += 500
        assert done < 10**5


def test_a_full_disk_loses_nothing_and_work_goes_on_when_there_is_space(tmp_path: Path) -> None:
    home = tmp_path / "small"
    with small_volume(home, "4m"):
        built(home)
        stores = open_stores(home, "n", mode="write")
        done = fill_until_full(stores)
        assert stores.search.count("entities") == done
        with pytest.raises(StoreFullError) as error:
            stores.search.refresh()
        assert says_what_to_do(error)
        with pytest.raises(StoreFullError):
            stores.answers.put_many({"b": b"x" * 10_000_000})
        assert hits(stores) == 50
        reader = open_stores(home, "n", mode="read")
        assert hits(reader) == 50
        resize(home, "40m")
        assert stores.answers.get_many(["a"]) == {"a": b"1"}
        stores.search.refresh()
        assert (hits(stores), hits(reader)) == (done, done)
        stores.search.upsert("entities", rows(done, done + 10))
        stores.search.refresh()
        assert hits(stores) == done + 10
        stores.close()
        reader.close()


def test_a_limit_on_file_sizes_is_a_full_disk(tmp_path: Path) -> None:
    built(tmp_path)
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    stores = open_stores(tmp_path, "n", mode="write")
    size = max(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 200_000, unlimited[1]))
    try:
        done = fill_until_full(stores)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    assert stores.search.count("entities") == done
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, unlimited[1]))
        stores2 = open_stores(tmp_path, "n", mode="write")
        with pytest.raises(StoreFullError):
            stores2.search.rebuild()
        stores2.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    stores.search.refresh()
    assert hits(stores) == done
    stores.close()


# ---------------------------------------------------------------- damaged and foreign files


def damage(path: Path, how: str) -> None:
    size = path.stat().st_size
    if how == "empty":
        path.write_bytes(b"")
    elif how == "text":
        path.write_bytes(b"this is no database, " * 1000)
    elif how == "cut":
        os.truncate(path, size // 2)
    else:
        with open(path, "r+b") as file:
            file.seek(size // 3)
            file.write(os.urandom(size // 3))


@pytest.mark.parametrize("how", ["empty", "text", "cut", "overwritten"])
@pytest.mark.parametrize("mode", ["read", "write"])
def test_a_damaged_index_is_named_and_the_paid_answers_are_pointed_to(tmp_path: Path, how: str, mode: str) -> None:
    built(tmp_path, 2000)
    damage(tmp_path / "n" / "index.db", how)
    with pytest.raises(StoreCorruptError) as error:  # noqa: PT012 (found when it is opened, or when the pages are read)
        stores = open_stores(tmp_path, "n", mode=mode)  # type: ignore[arg-type]
        try:
            while stores.search.scan("entities", limit=10**6):
                stores.search.get("entities", [f"{i:06}" for i in range(2000)])
                stores.search.vectors("entities", [f"{i:06}" for i in range(2000)])
        finally:
            stores.close()
    assert says_what_to_do(error)
    assert "answers.db" in str(error.value) or how in ("empty", "text")


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    built(tmp_path)
    for name in ("index.db", "answers.db"):
        connection = sqlite3.connect(tmp_path / "n" / name)
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        connection.execute(f"PRAGMA user_version={version + 1}")
        for mode in ("read", "write"):
            with pytest.raises(StoreVersionError, match="format 2") as error:
                open_stores(tmp_path, "n", mode=mode)  # type: ignore[arg-type]
            assert says_what_to_do(error)
        connection.execute(f"PRAGMA user_version={version}")
        connection.close()
    state = tmp_path / "n" / "search.json"
    state.write_text(state.read_text().replace('"format":1', '"format":2'))
    stores = open_stores(tmp_path, "n", mode="write")
    with pytest.raises(StoreVersionError):
        hits(stores)
    with pytest.raises(StoreVersionError):
        stores.search.refresh()
    stores.close()


def test_another_program_s_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "n").mkdir()
    connection = sqlite3.connect(tmp_path / "n" / "index.db")
    connection.execute("CREATE TABLE t (a)")
    connection.close()
    for mode in ("read", "write"):
        with pytest.raises(StoreCorruptError, match="not a kgrag store"):
            open_stores(tmp_path, "n", mode=mode)  # type: ignore[arg-type]


def lose_state(folder: Path) -> None:
    (folder / "search.json").unlink()


def spoil_state(folder: Path) -> None:
    (folder / "search.json").write_text("{")


def lose_lexical(folder: Path) -> None:
    shutil.rmtree(folder / "lexical")


def lose_vectors(folder: Path) -> None:
    shutil.rmtree(folder / "vectors")


def cut_vectors(folder: Path) -> None:
    damage(next(folder.glob("vectors/*/floats")), "cut")


def lose_bitmap(folder: Path) -> None:
    next(folder.glob("vectors/*/alive-*")).unlink()


def spoil_lexical(folder: Path) -> None:
    damage(next(folder.glob("lexical/*/*.term")), "text")


def spoil_lexical_list(folder: Path) -> None:
    damage(next(folder.glob("lexical/*/meta.json")), "text")


def foreign_state(folder: Path) -> None:
    built(folder.parent / "elsewhere")
    for name in ("search.json", "lexical", "vectors"):
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        other = folder.parent / "elsewhere" / "n" / name
        shutil.copytree(other, path) if other.is_dir() else shutil.copy(other, path)


@pytest.mark.parametrize(
    "harm",
    [
        lose_state, spoil_state, lose_lexical, lose_vectors, cut_vectors, lose_bitmap, spoil_lexical, spoil_lexical_list, foreign_state
    ],
)  # fmt: skip
def test_lost_or_damaged_search_files_are_named_and_rebuilt_by_the_next_refresh(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    built(tmp_path, 80)
    harm(tmp_path / "n")
    reader = open_stores(tmp_path, "n", mode="read")
    with pytest.raises(StoreError, match="rebuild") as error:  # noqa: PT012 (one of the two reads what was harmed)
        hits(reader)
        reader.search.nearest("entities", np.ones(64, np.float32), 3)
    assert says_what_to_do(error)
    assert reader.search.count("entities") == 80
    writer = open_stores(tmp_path, "n", mode="write")
    writer.search.refresh()
    for stores in (writer, reader):
        assert hits(stores) == 80
        assert len(stores.search.nearest("entities", np.ones(64, np.float32), 3)) == 3
        stores.close()


def test_an_older_index_restored_beside_newer_search_files_is_believed(tmp_path: Path) -> None:
    built(tmp_path)
    shutil.copy(tmp_path / "n" / "index.db", tmp_path / "backup")
    stores = open_stores(tmp_path, "n", mode="write")
    stores.search.upsert("entities", rows(50, 90))
    stores.search.delete("entities", ["000003"])
    stores.search.refresh()
    stores.close()
    shutil.copy(tmp_path / "backup", tmp_path / "n" / "index.db")
    stores = open_stores(tmp_path, "n", mode="write")
    stores.search.refresh()
    assert hits(stores) == stores.search.count("entities") == 50
    stores.close()


# ---------------------------------------------------------------- network file systems


MOUNTS = """sysfs /sys sysfs rw 0 0
/dev/vda / ext4 rw 0 0
server:/export /mnt/nfs nfs4 rw 0 0
//server/share /mnt/my\\040share cifs rw 0 0
host_share /mnt/9 9p rw 0 0
me@host: /home/me/far fuse.sshfs rw 0 0
mgs@tcp:/fs /lustre lustre rw 0 0
tmpfs /lustre/local tmpfs rw 0 0
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/mnt/nfs/a/b", "nfs4"),
        ("/mnt/my share/x", "cifs"),
        ("/mnt/9", "9p"),
        ("/home/me/far/kgrag", "fuse.sshfs"),
        ("/lustre/x", "lustre"),
    ],
)
def test_network_file_systems_are_refused_by_name(tmp_path: Path, folder: str, kind: str) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS)
    assert filesystem_of(Path(folder), mounts) == kind
    with pytest.raises(UnsupportedFilesystemError, match=kind) as error:
        require_local(Path(folder), mounts)
    assert says_what_to_do(error)


def test_local_file_systems_are_accepted(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS)
    for folder, kind in (("/lustre/local/x", "tmpfs"), ("/home/me", "ext4"), ("/mnt/nfsx", "ext4")):
        assert filesystem_of(Path(folder), mounts) == kind
        require_local(Path(folder), mounts)
    assert filesystem_of(Path("/x"), tmp_path / "none") == ""
    require_local(tmp_path)
