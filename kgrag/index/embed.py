"""Vectors of the rows that need one."""

from __future__ import annotations

import asyncio

import numpy as np
import pyarrow as pa

from kgrag import schemas
from kgrag.errors import ItemError
from kgrag.ports import Embedder
from kgrag.records import encode
from kgrag.stage import EmbedStage, RowError


class PassageStage(EmbedStage):
    """Passages to vectors. A refused call is tried text by text, so that one bad text fails alone; a row without its vector
    is found by its words. An embedder that cannot be reached ends the run: half an index of vectors serves nobody."""

    name = "embed"
    reads = schemas.PASSAGES
    writes = schemas.VECTORS

    def __init__(self, batch_size: int, identity: str) -> None:
        self.batch_size, self.identity = batch_size, identity

    def key(self) -> str:
        return self.identity

    async def batch(self, rows: pa.Table, embedder: Embedder) -> pa.Table:
        texts = rows["text"].to_pylist()
        size = self.batch_size
        calls = [self._vectors(texts[start : start + size], embedder) for start in range(0, len(texts), size)]
        made = [pair for found in await asyncio.gather(*calls) for pair in found]
        columns = [rows["collection"], rows["id"], [vector for vector, _ in made], [error for _, error in made]]
        return pa.table(columns, schema=schemas.VECTORS)

    async def _vectors(self, texts: list[str], embedder: Embedder) -> list[tuple[bytes, str]]:
        try:
            found = await embedder.passages(texts)
        except ItemError as error:
            if len(texts) == 1:
                return [(b"", encode(RowError.of(self.name, error)).decode())] * len(texts)
            singles = await asyncio.gather(*(self._vectors([text], embedder) for text in texts))
            return [pair for single in singles for pair in single]
        return [(row.tobytes(), "") for row in np.ascontiguousarray(found, dtype="<f4")]
