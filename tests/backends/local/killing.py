"""Kills a process that works on the stores at every step it takes, and checks what is left.

    python -m tests.backends.local.killing FOLDER steps|random COUNT

A step is the begin or end of a transaction, every fourth writing statement in it, or a file opened, renamed, made or
removed; Python's own audit and trace hooks tell of them, so the stores run as they are. ``steps`` kills at every
COUNT-th, ``random`` COUNT times at any moment.
One process imports everything once and forks a worker for each kill and another that examines what the kill left.
Prints one JSON line: how many kills, and how many operations each left committed.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from kgrag.backends.local.stores import LocalStores, open_stores
from kgrag.errors import UnknownNamespaceError
from kgrag.ports import Edge, Row, Vertex
from kgrag.records import Community, DocumentStatus, Statement, UnitRecord
from tests.ports.reference import bm25, cosines, same_ranking

WORDS = ["ant", "bee", "cat", "dog", "elk"]

Operation = Callable[[LocalStores], None]


def vector(number: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(number).standard_normal(8).astype(np.float32)


def row(key: str, version: int) -> Row:
    chooser = random.Random(f"{key}-{version}")
    text = " ".join(chooser.choices(WORDS, k=chooser.randrange(1, 12)))
    return Row(
        key, json.dumps([key, version]).encode(), text, {"version": version}, vector(chooser.randrange(1 << 30)), f"{key}-{version}"
    )


def wave(start: int, stop: int, version: int) -> Operation:
    """Rows, records, edges and registry of some units in one transaction, and answers beside it."""
    keys = [f"u{i:02}" for i in range(start, stop)]

    def work(stores: LocalStores) -> None:
        with stores.transaction():
            stores.search.upsert("text_units", [row(key, version) for key in keys])
            stores.records.put(
                [UnitRecord(unit_id=key, document_id=f"v{version}") for key in keys],
                [Statement(kind="entity", group=f"g-{key}", unit_id=key, document_id=f"v{version}") for key in keys],
            )
            stores.graph.upsert(
                [Vertex(key, key, "t", version, [key]) for key in keys],
                [Edge(f"e-{key}", key, keys[0], float(version), [key]) for key in keys],
            )
            stores.graph.replace_communities([Community(id=f"c{start}", level=0, entity_ids=keys, depth=version)], [])
            stores.status.put([DocumentStatus(id=key, scope="s", path=key, digest=str(version)) for key in keys])
        stores.answers.put_many({f"a{start}-{version}": str(version).encode()})

    return work


def removal(start: int, stop: int) -> Operation:
    keys = [f"u{i:02}" for i in range(start, stop)]

    def work(stores: LocalStores) -> None:
        with stores.transaction():
            stores.search.delete("text_units", keys)
            stores.records.delete(keys)
            stores.graph.delete(keys, [f"e-{key}" for key in keys])
            stores.status.delete(keys)

    return work


def refresh(stores: LocalStores) -> None:
    stores.search.refresh()


def lease(stores: LocalStores) -> None:
    held = stores.status.acquire_lease("worker", 60)
    stores.fence(held.epoch)
    stores.status.write_value("run", held.owner)
    stores.status.release_lease(stores.status.renew_lease(held, 60))
    stores.fence(None)


OPERATIONS: list[Operation] = [
    lease,
    wave(0, 6, 1),
    refresh,
    wave(3, 9, 2),
    removal(0, 2),
    refresh,
    wave(0, 4, 3),
    refresh,
    removal(5, 7),
]


def expected(done: int) -> dict[str, int]:
    """Version of each unit that is there after so many operations."""
    held: dict[int, int] = {}
    for index, change in {1: (0, 6, 1), 3: (3, 9, 2), 4: (0, 2, 0), 6: (0, 4, 3), 8: (5, 7, 0)}.items():
        if index < done:
            start, stop, version = change
            for unit in range(start, stop):
                if version:
                    held[unit] = version
                else:
                    held.pop(unit, None)
    return {f"u{unit:02}": version for unit, version in held.items()}


def published(done: int) -> list[set[str]]:
    """Ids that searches may find: those of the last refresh, or of the one that was under way."""
    states: list[set[str]] = [set()]
    states += [set(expected(index)) for index, operation in enumerate(OPERATIONS[: done + 1]) if operation is refresh]
    under_way = done < len(OPERATIONS) and OPERATIONS[done] is refresh
    return states[-2:] if under_way else states[-1:]


def found(stores: LocalStores) -> dict[str, int]:
    """The same as the stores have it; raises where two of them disagree."""
    bodies = dict(stores.search.scan("text_units"))
    held = {key: json.loads(body)[1] for key, body in bodies.items()}
    keys = [f"u{i:02}" for i in range(9)]
    assert {r.unit_id: int(r.document_id[1:]) for r in stores.records.scan()} == held
    assert {s.unit_id: int(s.document_id[1:]) for s in stores.records.statements([f"g-{k}" for k in keys])} == held
    assert {v.id: v.rank for v in stores.graph.scan_vertices()} == held
    assert {e.id[2:]: int(e.weight) for e in stores.graph.scan_edges()} == held
    assert {e.id[2:] for e in stores.graph.incident(keys)} == set(held)
    assert {k: v for v, [k] in stores.graph.citing(keys).items()} == {k: k for k in held}
    assert {d.id: int(d.digest) for d in stores.status.scan()} == held
    assert set(stores.search.vector_digests("text_units", keys).items()) == {(k, f"{k}-{v}") for k, v in held.items()}
    assert stores.search.count("text_units") == len(held)
    return held


def worker(home: Path, kill_at: int) -> None:
    """Carry out the operations that are not done yet, noting each in a journal; die at the given step."""
    steps = 0

    def step() -> None:
        nonlocal steps
        steps += 1
        if steps == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def audited(event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("open", "os.rename", "os.remove", "os.mkdir", "shutil.rmtree", "mmap.__new__") and str(home) in str(
            arguments[0]
        ):
            step()

    statements = 0

    def stated(sql: str) -> None:
        # Whatever dies inside a transaction leaves the same: every fourth statement stands for its neighbours.
        nonlocal statements
        if sql.startswith(("BEGIN", "COMMIT")):
            step()
        elif not sql.startswith(("SELECT", "PRAGMA")):
            statements += 1
            if statements % 4 == 0:
                step()

    def connected(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.set_trace_callback(stated)
        return connection

    connect, sqlite3.connect = sqlite3.connect, connected  # type: ignore[assignment]
    journal = os.open(home / "journal", os.O_RDWR | os.O_CREAT | os.O_APPEND)
    done = len(os.read(journal, 1000))
    sys.addaudithook(audited)
    stores = open_stores(home, "n", mode="write", create=True)
    for operation in OPERATIONS[done:]:
        operation(stores)
        os.write(journal, b"x")
    stores.close()


def examine(home: Path, done: int, to_the_end: bool) -> None:
    """Everything committed is there, nothing half, and the search files are right again after a refresh; carried on
    ``to_the_end``, the stores are as if nobody had been killed."""
    try:
        reader = open_stores(home, "n", mode="read")  # before anything is repaired
    except UnknownNamespaceError:
        assert not done
    else:
        assert found(reader) in (expected(done), expected(done + 1))
        assert {s.id for s in reader.search.lexical("text_units", WORDS, 50)} in published(done)
        assert {s.id for s in reader.search.nearest("text_units", vector(0), 50)} in published(done)
        reader.close()
    stores = open_stores(home, "n", mode="write", create=True)
    held = found(stores)
    assert held in (expected(done), expected(done + 1))
    answers = [f"a{start}-{version}" for index, start, version in ((1, 0, 1), (3, 3, 2), (6, 0, 3)) if index < done]
    assert set(stores.answers.get_many(answers)) == set(answers)
    stores.search.refresh()
    searches(stores, held, tolerance=0.5)  # removed rows weigh in BM25's statistics until they are compacted away
    if to_the_end:
        for operation in OPERATIONS[done:]:
            operation(stores)
        stores.compact()
        held = found(stores)
        assert held == expected(len(OPERATIONS))
        searches(stores, held, tolerance=2e-3)
        assert stores.status.current_lease() is None
    stores.close()


def searches(stores: LocalStores, held: dict[str, int], *, tolerance: float) -> None:
    rows = {key: row(key, version) for key, version in held.items()}
    query = vector(0)
    same_ranking(stores.search.nearest("text_units", query, 50), cosines(rows, query), 50, tolerance=1e-5)
    hits = stores.search.lexical("text_units", WORDS, 50)
    assert {s.id for s in hits} == set(rows)
    if tolerance < 0.1:
        same_ranking(hits, bm25(rows, WORDS), 50, tolerance=tolerance)


def forked(work: Callable[[], None], *, kill_after: float | None = None) -> int:
    """The wait status of a child that does the work."""
    child = os.fork()
    if not child:
        code = 1
        try:
            work()
            code = 0
        except BaseException:  # noqa: BLE001 (whatever it is, the parent must hear of it)
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def main(folder: Path, how: str, count: int) -> None:
    left = []
    chooser = random.Random(count)
    kill = 0
    while True:
        kill += 1
        home = folder / f"home{kill}"
        home.mkdir(parents=True)
        if how == "steps":
            status = forked(lambda: worker(home, kill * count))  # noqa: B023
        else:
            status = forked(lambda: worker(home, 0), kill_after=chooser.random() * 0.25)  # noqa: B023
        journal = home / "journal"
        done = len(journal.read_bytes()) if journal.exists() else 0
        if os.WIFEXITED(status) and os.WEXITSTATUS(status):
            sys.exit(f"the worker failed by itself at kill {kill}")
        if forked(lambda: examine(home, done, kill % 4 == 0)):  # noqa: B023
            sys.exit(f"kill {kill} ({how}) after {done} operations left the stores wrong: {home}")
        shutil.rmtree(home)
        left.append(done)
        if (how == "steps" and not os.WIFSIGNALED(status)) or (how == "random" and kill == count):
            break
    print(json.dumps({"kills": kill, "operations": left}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
