"""One index, many processes and threads."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from multiprocessing.synchronize import Event
from pathlib import Path

import numpy as np
import pytest

from kgrag.backends.local.stores import LocalStores, open_stores
from kgrag.ports import Row, Vertex

# From 3.12 on Python warns of forking beside threads, which is what these tests are about.
pytestmark = pytest.mark.filterwarnings("ignore:This process.*fork:DeprecationWarning")

SPAWN = multiprocessing.get_context("spawn")
WAVE = 10


def write_wave(stores: LocalStores, number: int) -> None:
    """Ten rows and ten vertices in one step; the rows of the last wave change with it."""
    with stores.transaction():
        for wave in {max(0, number - 1), number}:
            keys = [f"{wave}-{i}" for i in range(WAVE)]
            stores.search.upsert(
                "entities", [Row(k, str(number).encode(), f"ant w{number}", None, np.ones(4, np.float32)) for k in keys]
            )
            stores.graph.upsert([Vertex(k, k, "", number, []) for k in keys], [])


def read_until(home: Path, waves: int, ready: Event) -> None:
    stores = open_stores(home, "n", mode="read")
    ready.set()
    deadline = time.monotonic() + 60
    seen = [0, 0]
    while min(seen) < waves * WAVE:
        assert time.monotonic() < deadline
        vertices, _ = stores.graph.counts()
        assert vertices % WAVE == 0
        legs = (stores.search.lexical("entities", ["ant"], 1000), stores.search.nearest("entities", np.ones(4, np.float32), 1000))
        for leg, found in enumerate(legs):
            keys = [s.id for s in found]
            assert len(set(keys)) == len(keys)
            assert len(keys) % WAVE == 0
            assert len(keys) >= seen[leg]
            assert len(stores.search.get("entities", keys)) == len(keys)
            seen[leg] = len(keys)
    stores.close()


def test_readers_in_other_processes_follow_a_writer(tmp_path: Path) -> None:
    waves = 8
    stores = open_stores(tmp_path, "n", mode="write", create=True)
    readers = [(SPAWN.Event(), SPAWN.Event()) for _ in range(2)]
    processes = [SPAWN.Process(target=read_until, args=(tmp_path, waves, ready)) for ready, _ in readers]
    for process in processes:
        process.start()
    for ready, _ in readers:
        assert ready.wait(60)
    for number in range(waves):
        write_wave(stores, number)
        stores.search.refresh()
        if number == 4:
            stores.search.rebuild()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    stores.close()


def create_and_count(home: Path, name: str, start: Event) -> None:
    start.wait(60)
    stores = open_stores(home, "new", mode="write", create=True)
    for i in range(20):
        with stores.transaction():
            stores.status.write_value("count", (stores.status.read_value("count") or 0) + 1)
        stores.search.upsert("entities", [Row(f"{name}-{i}", b"{}", "ant")])
    stores.search.refresh()
    stores.close()


def test_processes_that_create_and_write_one_index_take_turns(tmp_path: Path) -> None:
    start = SPAWN.Event()
    processes = [SPAWN.Process(target=create_and_count, args=(tmp_path, str(n), start)) for n in range(3)]
    for process in processes:
        process.start()
    start.set()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    stores = open_stores(tmp_path, "new", mode="read")
    assert stores.status.read_value("count") == 60
    assert len(stores.search.lexical("entities", ["ant"], 100)) == 60
    assert [path.name for path in (tmp_path / "new").iterdir() if ".new" in path.name] == []
    stores.close()


def in_a_fork(work: Callable[[], None]) -> bool:
    child = os.fork()
    if not child:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def test_a_forked_process_works_on_with_the_stores_it_inherits(tmp_path: Path) -> None:
    stores = open_stores(tmp_path, "n", mode="write", create=True)
    write_wave(stores, 0)
    stores.search.refresh()
    query = np.ones(4, np.float32)
    assert len(stores.search.nearest("entities", query, 50)) == 10

    def child() -> None:
        assert len(stores.search.lexical("entities", ["ant"], 50)) == 10
        assert len(stores.search.nearest("entities", query, 50)) == 10
        write_wave(stores, 1)
        stores.answers.put_many({"a": b"1"})
        stores.search.refresh()
        assert len(stores.search.lexical("entities", ["ant"], 50)) == 20
        stores.close()

    with stores.transaction():
        stores.status.write_value("parent", 1)
    assert in_a_fork(child)
    assert stores.answers.get_many(["a"]) == {"a": b"1"}
    assert len(stores.search.lexical("entities", ["ant"], 50)) == 20
    write_wave(stores, 2)
    stores.search.refresh()
    assert len(stores.search.nearest("entities", query, 50)) == 30
    stores.close()


def test_a_fork_inside_a_transaction_sees_what_was_committed(tmp_path: Path) -> None:
    stores = open_stores(tmp_path, "n", mode="write", create=True)
    stores.status.write_value("k", 1)

    def child() -> None:
        assert stores.status.read_value("k") == 1
        stores.close()

    with stores.transaction():
        stores.status.write_value("k", 2)
        assert in_a_fork(child)
    assert stores.status.read_value("k") == 2
    stores.close()


def test_threads_search_while_another_refreshes(tmp_path: Path) -> None:
    stores = open_stores(tmp_path, "n", mode="write", create=True)
    write_wave(stores, 0)
    stores.search.refresh()
    failed: list[BaseException] = []
    done = threading.Event()

    def search() -> None:
        try:
            while not done.is_set():
                for found in (
                    stores.search.lexical("entities", ["ant"], 1000),
                    stores.search.nearest("entities", np.ones(4, np.float32), 1000),
                ):
                    assert found
                    assert len(found) % WAVE == 0
        except BaseException as error:  # noqa: BLE001 (told to the main thread)
            failed.append(error)

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(1, 8):
        write_wave(stores, number)
        stores.search.refresh()
        if number % 3 == 0:
            stores.search.rebuild()
    done.set()
    for thread in threads:
        thread.join()
    assert failed == []
    stores.close()
