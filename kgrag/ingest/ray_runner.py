"""The same run on a Ray cluster. The only module that calls Ray Data.

A stage is one Ray Data execution over shards: read a shard, work on it, write the shard of the output. Where every node
reaches the tables the three are one; otherwise reading and writing happen on the node that owns them and the rows travel
as Arrow. The driver sees numbers of shards and counts, never rows.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

import msgspec
import pyarrow as pa

from kgrag import schemas
from kgrag.engine import Engine
from kgrag.ingest.changes import list_sources
from kgrag.ingest.commit import count_index, held
from kgrag.ingest.pipeline import Pipeline
from kgrag.ingest.progress import Meter, Progress
from kgrag.ingest.ray_store import POLL_SECONDS, NoAnswers, StoredAnswers, StoreHandle, cause_of, connected_ray
from kgrag.ingest.report import RunReport
from kgrag.ingest.run import IngestParts, report_of
from kgrag.ingest.side import StoreSide
from kgrag.ingest.stop import Stop, stopped
from kgrag.ingest.tables import Part, Table, TableRoot
from kgrag.ingest.work import answer, begin_table, clear_tables, embed, finish_table, resumes, table_key, transform
from kgrag.records import Usage
from kgrag.stage import CallStage, EmbedStage, MapStage, Stage, TableStage

P = ParamSpec("P")
R = TypeVar("R")

_SMALL_CPU = 0.1
"""Of actors and tasks that wait rather than work: one each, the default, is more than small machines have."""

_CALLS_PER_ACTOR = 16
"""Shards that an actor which asks models works on at once, so that a shard waits for its own slow rows only."""

_WORK = pa.schema([pa.field("shard", pa.int64()), pa.field("part", pa.int64()), pa.field("rows", pa.large_binary())])
_PARTS = pa.schema([pa.field("part", pa.binary())])


async def run_ingest_on_ray(
    parts: IngestParts, sources: Sequence[str], *, progress: Meter | None = None, stop: Stop | None = None
) -> RunReport:
    """As ``run_ingest``, with stages on the cluster that ``ray.init`` connected this process to.

    Raises also MissingExtraError without Ray, ConfigurationError where the stores cannot be pinned to this node."""
    ray = connected_ray()
    progress, stop = progress or Meter(), stop or Stop()
    store = StoreHandle(ray, parts)
    watch = asyncio.ensure_future(store.pass_on(stop))
    try:
        await store.call("open")
        progress.begin("list", 0)
        listing = await asyncio.to_thread(list_sources, sources, parts.settings.documents)
        progress.end()
        engine = parts.open_engine(NoAnswers())
        embedder = parts.open_embedder()
        try:
            stages = parts.stages(parts.settings, embedder)
            outcome = await Pipeline(RayRunner(ray, parts, store, engine, progress, stop), stages).run(listing)
        finally:
            await engine.aclose()
            if embedder is not None:
                await embedder.aclose()
        counts, build = await store.step(count_index), await store.step(held)
        if not parts.settings.run.keep_tables:
            await store.step(clear_tables)
        return report_of(parts.namespace, listing, outcome, counts, build, progress)
    finally:
        watch.cancel()
        await store.close()


class RayRunner:
    """Carries out stages with Ray Data and steps in the store actor."""

    def __init__(self, ray: Any, parts: IngestParts, store: StoreHandle, engine: Engine, progress: Progress, stop: Stop) -> None:
        self._ray, self._parts, self._store, self._engine, self._progress, self._stop = ray, parts, store, engine, progress, stop
        self._opening = (parts.open_engine, parts.open_embedder, store.actor, parts.settings.run.rows_in_flight)
        self._desk: Any = None

    async def store(self, step: Callable[Concatenate[StoreSide, P], R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        self._stop.check()
        self._progress.begin(step.__name__, 0)
        found = await self._store.step(step, *args, **kwargs)
        self._progress.end()
        return found

    async def identity(self, stage: CallStage) -> str:
        return stage.identity(self._engine)

    async def run(self, stage: Stage, table: Table, name: str = "") -> Table:
        name = name or stage.name
        key = table_key(stage, table.key, self._engine)
        begun = await self._store.step(begin_table, table, name, key, resume=resumes(stage))
        if begun.found is not None:
            return begun.found
        self._progress.begin(name, table.rows)
        for part in begun.done:
            self._progress.advance(part.rows, part.failed)
        made = list(begun.done)
        if len(begun.todo) == 1:
            made += await self._at_desk(stage, table, name, begun.todo[0])
        elif begun.todo:
            made += await asyncio.to_thread(self._execute, stage, table, name, begun.todo)
        self._progress.end()
        return await self._store.step(finish_table, stage, table, name, key, made)

    async def _at_desk(self, stage: Stage, table: Table, name: str, shard: int) -> list[Part]:
        if self._desk is None:
            made = self._ray.remote(num_cpus=_SMALL_CPU, max_restarts=0)(Desk)
            self._desk = made.options(scheduling_strategy=self._store.there).remote(*self._opening)
        reference = self._desk.work.remote(_ShardWork(stage, table, name, everywhere=True), shard)
        try:
            parts: list[Part] = await asyncio.wrap_future(reference.future())
        except self._ray.exceptions.RayError as error:
            raise cause_of(error) from None
        for part in parts:
            self._progress.advance(table.rows_of(shard) if part.part == 0 else 0, part.failed, part.usage)
        return parts

    def _execute(self, stage: Stage, table: Table, name: str, todo: list[int]) -> list[Part]:
        """One Ray Data execution; in a thread of its own, as Ray Data blocks."""
        data = self._ray.data
        logging.getLogger("ray.data").setLevel(logging.WARNING)  # the run tells of its own progress
        context = data.DataContext.get_current()
        context.enable_progress_bars = False
        context.print_on_execution_start = False
        plan = _ShardWork(stage, table, name, everywhere=self._everywhere(table))
        dataset = data.from_items([{"shard": shard} for shard in todo], override_num_blocks=len(todo))
        for operation in self._operations(plan):
            dataset = operation(dataset)
        made: list[Part] = []
        try:
            for row in dataset.iter_rows():
                self._stop.check()
                part = msgspec.json.decode(row["part"], type=Part)
                made.append(part)
                self._progress.advance(table.rows_of(part.shard) if part.part == 0 else 0, part.failed, part.usage)
        except self._ray.exceptions.RayError as error:
            raise cause_of(error) from None
        return made

    def _operations(self, plan: _ShardWork) -> list[Callable[[Any], Any]]:
        work = self._work(plan)
        if plan.everywhere:
            return [work]
        at_tables = {"num_cpus": _SMALL_CPU, "scheduling_strategy": self._store.there, **_BLOCKS}
        return [lambda data: data.map_batches(plan.read, **at_tables), work, lambda data: data.map_batches(plan.write, **at_tables)]

    def _work(self, plan: _ShardWork) -> Callable[[Any], Any]:
        stage, settings = plan.stage, self._parts.settings.run
        if not resumes(stage):
            options: dict[str, Any] = {"num_cpus": settings.task_cpus, **_BLOCKS}
            if stage.reads.equals(schemas.FILES) and not plan.everywhere:  # local files are read where they are
                options["scheduling_strategy"] = self._store.there
            return lambda data: data.map_batches(plan.work, **options)
        pool = self._ray.data.ActorPoolStrategy(
            size=settings.model_actors,
            max_concurrent_calls_per_actor=_CALLS_PER_ACTOR,
            max_tasks_in_flight_per_actor=2 * _CALLS_PER_ACTOR,
            enable_true_multi_threading=True,
        )
        arguments = (plan, *self._opening)
        return lambda data: data.map_batches(
            _ShardAsker, fn_constructor_args=arguments, compute=pool, num_cpus=_SMALL_CPU, **_BLOCKS
        )

    def _everywhere(self, table: Table) -> bool:
        """Whether every worker can read and write the tables itself."""
        return "://" in table.root or sum(node["Alive"] for node in self._ray.nodes()) == 1


_BLOCKS: dict[str, Any] = {"batch_format": "pyarrow", "batch_size": None}


@dataclass(frozen=True)
class _ShardWork:
    """What is done with each shard of one stage. ``everywhere``: by one worker from file to file."""

    stage: Stage
    table: Table
    name: str
    everywhere: bool

    def read(self, block: pa.Table) -> pa.Table:
        """Shards as rows of a block, each with its table inside: a block may be split, a shard may not."""
        root = TableRoot(self.table.root)
        return _carried([(shard, 0, root.read_shard(self.table, shard)) for shard in block["shard"].to_pylist()])

    def write(self, block: pa.Table) -> pa.Table:
        root = TableRoot(self.table.root)
        return _parts([root.write_part(self.name, shard, rows, part=part) for shard, part, rows in _unpacked(block)])

    def given(self, block: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """The shards of a block of work and their rows."""
        if self.everywhere:
            root = TableRoot(self.table.root)
            for shard in block["shard"].to_pylist():
                yield shard, root.read_shard(self.table, shard)
        else:
            yield from ((shard, rows) for shard, _, rows in _unpacked(block))

    def taken(self, shard: int, part: int, rows: pa.Table) -> pa.Table:
        """What work on a shard gives: the part it wrote, or rows to be written."""
        if not self.everywhere:
            return _carried([(shard, part, rows)])
        return _parts([TableRoot(self.table.root).write_part(self.name, shard, rows, part=part)])

    def ask(self, block: pa.Table, asker: _Asker) -> Iterator[pa.Table]:
        assert isinstance(self.stage, (CallStage, EmbedStage))
        for shard, rows in self.given(block):
            yield self.taken(shard, 0, asker.ask(self.stage, rows))

    def work(self, block: pa.Table) -> Iterator[pa.Table]:
        assert isinstance(self.stage, (MapStage, TableStage))
        for shard, rows in self.given(block):
            for part, made in enumerate(transform(self.stage, rows)):
                yield self.taken(shard, part, made)


class _Asker:
    """An engine and an embedder in a worker with an event loop of its own, asked by the rows of several shards at once.
    Each is opened when it is first needed."""

    def __init__(self, open_engine: Any, open_embedder: Any, store: Any, rows_in_flight: int) -> None:
        self._open_engine, self._open_embedder, self._store = open_engine, open_embedder, store
        self._rows: set[asyncio.Task[None]] = set()
        self._engine: Engine | None = None
        self._embedder: Any = None
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="kgrag-asker", daemon=True).start()
        asyncio.run_coroutine_threadsafe(self._begin(rows_in_flight), self._loop).result()

    def ask(self, stage: CallStage | EmbedStage, rows: pa.Table) -> pa.Table:
        """A shard's output. Raises RunStopped once the run is to stop."""
        try:
            return asyncio.run_coroutine_threadsafe(self._work(stage, rows), self._loop).result()
        except concurrent.futures.CancelledError:
            raise stopped() from None

    async def _begin(self, rows_in_flight: int) -> None:
        self._room = asyncio.Semaphore(rows_in_flight)
        self._watch = self._loop.create_task(self._hear_of_stop())

    async def _work(self, stage: CallStage | EmbedStage, rows: pa.Table) -> pa.Table:
        if isinstance(stage, EmbedStage):
            self._embedder = self._embedder or self._open_embedder()
            return await embed(stage, rows, self._embedder)
        self._engine = self._engine or self._open_engine(StoredAnswers(self._store), threads=True)
        return await answer(stage, rows, self._engine, _unheard, self._start)

    async def _hear_of_stop(self) -> None:
        while not await self._store.stopping.options(concurrency_group="control").remote():  # noqa: ASYNC110  across processes
            await asyncio.sleep(POLL_SECONDS)
        for task in list(self._rows):
            task.cancel()

    async def _start(self, work: Any) -> asyncio.Task[None]:
        await self._room.acquire()
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._rows.add(task)
        task.add_done_callback(self._end)
        return task

    def _end(self, task: asyncio.Task[None]) -> None:
        self._rows.discard(task)
        self._room.release()
        if not task.cancelled():
            task.exception()  # its shard raises it


class _ShardAsker:
    """Work on the shards of one stage that asks, in an actor of Ray Data's."""

    def __init__(self, plan: _ShardWork, *opening: Any) -> None:
        self._plan, self._asker = plan, _Asker(*opening)

    def __call__(self, block: pa.Table) -> Iterator[pa.Table]:
        return self._plan.ask(block, self._asker)


class Desk:
    """Does the small stages of a run, those of one shard, beside the tables: an execution of Ray Data and its actors take
    seconds to start."""

    def __init__(self, *opening: Any) -> None:
        self._asker = _Asker(*opening)

    def work(self, plan: _ShardWork, shard: int) -> list[Part]:
        block = pa.table({"shard": [shard]})
        done = plan.ask(block, self._asker) if resumes(plan.stage) else plan.work(block)
        return [msgspec.json.decode(raw, type=Part) for part in done for raw in part["part"].to_pylist()]


def _carried(shards: list[tuple[int, int, pa.Table]]) -> pa.Table:
    columns = [[shard for shard, _, _ in shards], [part for _, part, _ in shards], [_ipc(rows) for _, _, rows in shards]]
    return pa.table(columns, schema=_WORK)


def _unpacked(block: pa.Table) -> Iterator[tuple[int, int, pa.Table]]:
    for shard, part, raw in zip(block["shard"].to_pylist(), block["part"].to_pylist(), block["rows"], strict=True):
        yield shard, part, pa.ipc.open_stream(raw.as_buffer()).read_all()


def _ipc(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as out:
        out.write_table(rows)
    raw: bytes = sink.getvalue().to_pybytes()
    return raw


def _parts(parts: list[Part]) -> pa.Table:
    return pa.table([[msgspec.json.encode(part) for part in parts]], schema=_PARTS)


def _unheard(rows: int, failed: int, usage: Usage) -> None:
    """The driver hears of whole shards."""
