"""A run that dies at any write leaves an index from which the next run comes to what an undisturbed one leaves."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kgrag.ingest.run import run_ingest
from tests.ingest.pieces import Bench, different, long, snapshot

WRITES = {
    "search": ("upsert", "delete", "refresh"),
    "records": ("put", "delete"),
    "graph": ("upsert", "delete", "replace_communities"),
    "status": ("put", "delete", "put_files", "write_value", "acquire_lease", "release_lease"),
}


STRIDE = 1 if os.environ.get("KGRAG_EVERY_CRASH") else 5
"""Every so many writes are tried; all of them where the variable is set."""


class Crash(BaseException):
    """The end of a process, as far as this one can play it."""


class CrashingStores:
    """Stores whose write number ``at`` does not happen, nor any after it. Counts from 0; ``done`` is how many happened."""

    def __init__(self, stores: Any, at: int | None) -> None:
        self._stores, self._at = stores, at
        self.done = 0
        self.dead = False
        self.answers, self.remote = stores.answers, stores.remote
        self.fence, self.transaction = stores.fence, stores.transaction
        for port, names in WRITES.items():
            setattr(self, port, _Port(getattr(stores, port), names, self.write))

    def write(self, act: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self.dead or self.done == self._at:
            self.dead = True
            raise Crash
        self.done += 1
        return act(*args, **kwargs)

    def close(self) -> None:
        self._stores.close()


class _Port:
    def __init__(self, port: Any, names: tuple[str, ...], write: Callable[..., Any]) -> None:
        self._port, self._names, self._write = port, names, write

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        return (lambda *args, **kwargs: self._write(found, *args, **kwargs)) if name in self._names else found


async def run(bench: Bench, at: int | None = None) -> int:
    """Returns the writes that happened."""
    parts = bench.parts()
    opened: list[CrashingStores] = []

    def crashing() -> Any:
        opened.append(CrashingStores(parts.open_stores(), at))
        return opened[0]

    with suppress(Crash):
        await run_ingest(dataclasses.replace(parts, open_stores=crashing), [str(bench.source)])
    if opened[0].dead:  # its process would be gone
        stores = parts.open_stores()
        held = stores.status.current_lease()
        if held is not None:
            stores.status.release_lease(held)
        stores.close()
    return opened[0].done


def corpus(bench: Bench, version: int) -> None:
    """Twelve documents; version 1 edits, retitles, re-files, adds and deletes some."""
    names = ["Ada Lovelace", "Charles Babbage", "London", "Alan Turing", "Grace Hopper", "Paris"]
    rows = []
    for i in range(10 + version):
        if version and i in (2, 7):
            continue
        lines = [f"{names[i % 6]} met {names[(i * 5 + 1) % 6]}", f"{names[(i + 2) % 6]} is near {names[(i * 3 + 1) % 6]}"]
        if version and i in (3, 4):
            lines = [lines[0].replace("met", "saw"), lines[1], f"New {names[i]} appears"]
        title = f"Document {i}" + (" Revised" if version and i == 5 else "")
        year = 1990 + i + (100 if version and i == 6 else 0)
        rows.append({"id": f"d{i}", "title": title, "text": long(*lines), "year": year})
    bench.write("a.jsonl", *rows[:5])
    bench.write("b.jsonl", *rows[5:])
    (bench.source / "c.jsonl").unlink(missing_ok=True)
    if version:
        bench.write("c.jsonl", {"title": "Zuse", "text": "Konrad Zuse built the Z3 in Berlin."})


async def test_the_first_run_dies_at_any_write(tmp_path: Path) -> None:
    calm = Bench(tmp_path / "calm")
    corpus(calm, 0)
    writes = await run(calm)
    expected = snapshot(calm)
    assert writes > 20
    for at in range(0, writes, STRIDE):
        bench = Bench(tmp_path / f"at{at}", source=calm.source)
        corpus(bench, 0)
        await run(bench, at)
        await run(bench)
        assert different(snapshot(bench), expected) == [], f"died at write {at}"


@pytest.mark.parametrize("again", [False, True], ids=["once", "twice"])
async def test_a_later_run_dies_at_any_write(tmp_path: Path, again: bool) -> None:
    calm = Bench(tmp_path / "calm")
    corpus(calm, 0)
    await run(calm)
    before = tmp_path / "before"
    shutil.copytree(calm.home, before)
    corpus(calm, 1)
    writes = await run(calm)
    expected = snapshot(calm)
    for at in range(STRIDE // 2 if again else 1, writes, STRIDE):
        bench = Bench(tmp_path / f"at{at}", source=calm.source)
        shutil.copytree(before, bench.home)
        corpus(bench, 1)
        await run(bench, at)
        if again:
            await run(bench, at // 2)
        await run(bench)
        assert different(snapshot(bench), expected) == [], f"died at write {at}"


async def test_what_a_dead_run_added_goes_when_its_file_went(tmp_path: Path) -> None:
    calm = Bench(tmp_path / "calm")
    corpus(calm, 0)
    await run(calm)
    expected = snapshot(calm)
    for at in range(2, 60, 2 * STRIDE):
        bench = Bench(tmp_path / f"at{at}", source=calm.source)
        corpus(bench, 0)
        await run(bench)
        corpus(bench, 1)
        await run(bench, at)
        corpus(bench, 0)
        await run(bench)
        assert set(different(snapshot(bench), expected)) <= {"communities", "reports"}, f"died at write {at}"
