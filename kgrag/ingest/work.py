"""One shard's worth of a stage: what both runners do with it, so that both write the same rows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import msgspec
import pyarrow as pa

from kgrag.engine import Engine
from kgrag.errors import ItemError, TransientModelError
from kgrag.ids import digest
from kgrag.ingest.side import StoreSide
from kgrag.ingest.tables import Part, Table
from kgrag.ports import Embedder
from kgrag.records import Usage
from kgrag.stage import CallStage, EmbedStage, MapStage, RowError, Stage, TableStage

Answered = Callable[[int, int, Usage], None]
"""Hears of finished rows: how many, how many of them failed, what they cost."""


def table_key(stage: Stage, input_key: str, engine: Engine | None = None) -> str:
    """What a stage's output is made from."""
    settings = stage.identity(engine) if isinstance(stage, CallStage) and engine is not None else stage.key()
    return digest("stage", stage.name, str(stage.version), settings, input_key)


class BegunTable(msgspec.Struct, frozen=True, kw_only=True):
    """A stage's output: finished before (``found``), or what of it is done and which shards are to do."""

    found: Table | None = None
    done: list[Part] = []
    todo: list[int] = []


def resumes(stage: Stage) -> bool:
    """Whether the shards that a killed run finished are worth keeping: those that asked something."""
    return isinstance(stage, (CallStage, EmbedStage))


def begin_table(side: StoreSide, table: Table, name: str, key: str, *, resume: bool) -> BegunTable:
    """What is left to do of a stage's output for ``table``."""
    found = side.tables.find(name, key)
    if found is not None:
        return BegunTable(found=found)
    left = side.tables.start(name, key) if resume else side.tables.begin(name, key)
    parts = {shard: side.tables.existing_part(name, shard) if left else None for shard in table.shards}
    return BegunTable(
        done=[part for part in parts.values() if part is not None],
        todo=[shard for shard, part in parts.items() if part is None],
    )


def finish_table(side: StoreSide, stage: Stage, table: Table, name: str, key: str, parts: list[Part]) -> Table:
    """Write the manifest of a stage's output."""
    facts = {"stage": stage.name, "version": stage.version, "settings": stage.key(), "inputs": [table.key]}
    return side.tables.finish(name, key, parts, **facts)


def clear_tables(side: StoreSide) -> None:
    """Remove every table of the run."""
    side.tables.clear()


def transform(stage: MapStage | TableStage, rows: pa.Table) -> Iterator[pa.Table]:
    """A shard's output, part by part."""
    if isinstance(stage, TableStage):
        yield stage.table(rows)
    else:
        yield from stage.batches(rows)


async def embed(stage: EmbedStage, rows: pa.Table, embedder: Embedder) -> pa.Table:
    return await stage.batch(rows, embedder)


async def answer(
    stage: CallStage,
    rows: pa.Table,
    engine: Engine,
    answered: Answered,
    start: Callable[[Awaitable[None]], Awaitable[asyncio.Task[None]]],
) -> pa.Table:
    """A shard's rows with their answers, in order. ``start`` begins one row's work when there is room for it."""
    needed = stage.needed(rows)
    asked = rows if needed is None else rows.take(pa.array(needed, pa.int64()))
    given = asked.to_pylist()
    made: list[dict[str, Any]] = [{}] * len(given)

    async def one(index: int) -> None:
        made[index], failed = await answer_row(stage, given[index], engine)
        usage = made[index].get("usage")
        answered(1, failed, msgspec.json.decode(usage, type=Usage) if usage else Usage())

    tasks = [await start(one(index)) for index in range(len(given))]
    await asyncio.gather(*tasks)
    if needed is None:
        return pa.Table.from_pylist(made, schema=stage.writes)
    answered(rows.num_rows - len(given), 0, Usage())
    kept = rows.to_pylist()
    for index, row in zip(needed, made, strict=True):
        kept[index] = row
    return pa.Table.from_pylist(kept, schema=stage.writes)


async def answer_row(stage: CallStage, row: dict[str, Any], engine: Engine) -> tuple[dict[str, Any], int]:
    """The output row, and 1 if it failed. Errors that are not this row's own are raised."""
    try:
        return await stage.row(row, engine), 0
    except (ItemError, TransientModelError) as error:
        return stage.failed(row, RowError.of(stage.name, error)), 1
