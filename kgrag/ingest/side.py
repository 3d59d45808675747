"""What the steps that touch stores work with, wherever the stores are open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa

from kgrag.ingest.settings import RunSettings
from kgrag.ingest.stop import Stop
from kgrag.ingest.tables import ShardWriter, TableRoot
from kgrag.ports import Stores

T = TypeVar("T")

BATCH = 512
"""Ids per store call."""


@dataclass(frozen=True)
class StoreSide:
    """Held by whoever holds the stores: this process, or the store actor of a cluster. A step is a function whose first
    argument is this; its others, and what it returns, are tables and small values."""

    stores: Stores
    tables: TableRoot
    settings: RunSettings
    stop: Stop
    run_id: str
    memo: dict[str, Any] = field(default_factory=dict)
    """What a step leaves here for a later one of the same run."""

    def writer(self, name: str, schema: pa.Schema, rows: int | None = None) -> ShardWriter:
        return ShardWriter(self.tables, name, schema, rows or self.settings.rows_per_shard)


def batched(values: Iterable[T], size: int = BATCH) -> Iterator[Sequence[T]]:
    """Lists of up to ``size``, in order."""
    held: list[T] = []
    for value in values:
        held.append(value)
        if len(held) >= size:
            yield held
            held = []
    if held:
        yield held
