"""Stages in this process: for tests, single machines and corpora of any size that one machine holds."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar

import pyarrow as pa

from kgrag.engine import Engine
from kgrag.ingest.progress import Progress
from kgrag.ingest.side import StoreSide
from kgrag.ingest.stop import Stop
from kgrag.ingest.tables import Part, Table
from kgrag.ingest.work import answer, begin_table, embed, finish_table, resumes, table_key, transform
from kgrag.ports import Embedder
from kgrag.stage import CallStage, EmbedStage, MapStage, Stage, TableStage

P = ParamSpec("P")
R = TypeVar("R")

_SHARDS_AHEAD = 8
"""Shards of a stage with calls that may be unfinished at once: a slow row holds up its own shard's file only."""


class Runner(Protocol):
    """Carries out stages over tables and steps beside the stores."""

    async def store(self, step: Callable[Concatenate[StoreSide, P], R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a step where the stores are open."""
        ...

    async def run(self, stage: Stage, table: Table, name: str = "") -> Table:
        """The stage's output for this table, under ``name`` (default: the stage's). One output shard per input shard."""
        ...

    async def identity(self, stage: CallStage) -> str:
        """``stage.identity`` with the engine at hand."""
        ...


class LocalRunner:
    """Everything in this process and event loop."""

    def __init__(self, side: StoreSide, engine: Engine, embedder: Embedder | None, progress: Progress) -> None:
        self._side, self._engine, self._embedder, self._progress = side, engine, embedder, progress

    async def store(self, step: Callable[Concatenate[StoreSide, P], R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        self._side.stop.check()
        self._progress.begin(step.__name__, 0)
        found = step(self._side, *args, **kwargs)
        self._end()
        await asyncio.sleep(0)
        return found

    async def identity(self, stage: CallStage) -> str:
        return stage.identity(self._engine)

    async def run(self, stage: Stage, table: Table, name: str = "") -> Table:
        name = name or stage.name
        key = table_key(stage, table.key, self._engine)
        begun = begin_table(self._side, table, name, key, resume=resumes(stage))
        if begun.found is not None:
            return begun.found
        self._progress.begin(name, table.rows)
        for part in begun.done:
            self._progress.advance(part.rows, part.failed)
        if isinstance(stage, (CallStage, EmbedStage)):
            made = await self._concurrently(stage, table, name, begun.todo)
        else:
            made = await self._in_turn(stage, table, name, begun.todo)
        self._end()
        return finish_table(self._side, stage, table, name, key, [*begun.done, *made])

    def _end(self) -> None:
        """A stage's tables are gone by now; Arrow would keep their memory for the next ones (60 MB of 300 at 2,000 passages)."""
        self._progress.end()
        pa.default_memory_pool().release_unused()

    async def _in_turn(self, stage: Stage, table: Table, name: str, shards: list[int]) -> list[Part]:
        assert isinstance(stage, (MapStage, TableStage))
        parts = []
        for shard in shards:
            self._side.stop.check()
            rows = self._side.tables.read_shard(table, shard)
            for number, made in enumerate(transform(stage, rows)):
                part = self._side.tables.write_part(name, shard, made, part=number)
                parts.append(part)
                self._side.stop.check()
            self._progress.advance(rows.num_rows, sum(part.failed for part in parts if part.shard == shard))
            await asyncio.sleep(0)
        return parts

    async def _concurrently(self, stage: CallStage | EmbedStage, table: Table, name: str, shards: list[int]) -> list[Part]:
        window = _Window(self._side.settings.rows_in_flight, self._side.stop)
        parts: list[Part] = []
        open_shards: deque[asyncio.Task[Part]] = deque()
        try:
            for shard in shards:
                while len(open_shards) >= _SHARDS_AHEAD:
                    done, _ = await window.first(open_shards)
                    for task in done:
                        open_shards.remove(task)
                        parts.append(task.result())
                rows = self._side.tables.read_shard(table, shard)
                open_shards.append(asyncio.ensure_future(self._shard(stage, name, shard, rows, window)))
            while open_shards:
                done, _ = await window.first(open_shards)
                for task in done:
                    open_shards.remove(task)
                    parts.append(task.result())
        finally:
            await window.cancel(open_shards)
        return parts

    async def _shard(self, stage: CallStage | EmbedStage, name: str, shard: int, rows: pa.Table, window: _Window) -> Part:
        if isinstance(stage, EmbedStage):
            assert self._embedder is not None
            made = await embed(stage, rows, self._embedder)
            self._progress.advance(rows.num_rows)
        else:
            made = await answer(stage, rows, self._engine, self._progress.advance, window.start)
        return self._side.tables.write_part(name, shard, made)


class _Window:
    """Lets only so many rows wait for a model at once, and hears of a stop while they do."""

    def __init__(self, rows: int, stop: Stop) -> None:
        self._room = asyncio.Semaphore(rows)
        self._stop = stop
        self._rows: set[asyncio.Task[None]] = set()

    async def start(self, work: Awaitable[None]) -> asyncio.Task[None]:
        await self._room.acquire()
        task = asyncio.ensure_future(work)
        self._rows.add(task)
        task.add_done_callback(self._end)
        return task

    def _end(self, task: asyncio.Task[None]) -> None:
        self._rows.discard(task)
        self._room.release()
        if not task.cancelled():
            task.exception()  # its shard raises it; a shard that was dropped does not

    async def first(self, tasks: deque[asyncio.Task[Part]]) -> tuple[set[asyncio.Task[Part]], set[asyncio.Task[Part]]]:
        """As ``asyncio.wait`` for the first; raises RunStopped once a stop was asked for."""
        while True:
            self._stop.check()
            done, pending = await asyncio.wait(tasks, timeout=_STOP_POLL_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if done:
                return done, pending

    async def cancel(self, shards: deque[asyncio.Task[Part]]) -> None:
        """Drop what is under way: answers that came are stored already."""
        under_way: list[asyncio.Task[Part] | asyncio.Task[None]] = [*shards, *self._rows]
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)


_STOP_POLL_SECONDS = 0.1
