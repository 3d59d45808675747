"""Small parts for tests of the pipeline: an engine that reads capitals, an embedder that hashes, one namespace."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import re
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from kgrag.backends.local.stores import open_stores
from kgrag.documents.chunk import ChunkSettings
from kgrag.engine import Outcome, Task
from kgrag.ingest.report import RunReport
from kgrag.ingest.run import IngestParts, run_ingest
from kgrag.ingest.settings import RunSettings
from kgrag.ingest.stages import IngestSettings
from kgrag.ports import COLLECTIONS, Vector
from kgrag.records import EntityStatement, RelationshipStatement, Usage, encode
from kgrag.tasks.descriptions import DESCRIBE
from kgrag.tasks.extraction import EXTRACT, GLEAN, Extraction
from kgrag.tasks.reports import REPORT, ReportText


def long(*lines: str) -> str:
    """Lines so long that each is a text unit of its own under the bench's chunking."""
    return "\n\n".join(line + " and so it goes on and on and on" * ((110 - len(line)) // 32) + "." for line in lines)


class CapitalEngine:
    """Reads runs of capitalised words and joins neighbours. Counts what it is asked; ``fail`` may raise for a task's input."""

    def __init__(self, fail: Callable[[str, Any], None] | None = None) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.fail = fail
        self.delay: Callable[[str, Any], float] | None = None

    def identity(self, task: Task[Any, Any]) -> str:
        return f"capitals/{task.identity}"

    async def ask(self, task: Task[Any, Any], input: Any, *, sample: int = 0) -> Outcome[Any]:
        self.asked.append((task.name, input))
        if self.fail is not None:
            self.fail(task.name, input)
        return Outcome(value=self._value(task, input), usage=Usage(calls=1, input_tokens=10, output_tokens=5))

    def _value(self, task: Task[Any, Any], input: Any) -> Any:
        if task is EXTRACT:
            return read_capitals(input.title, input.text)
        if task is GLEAN:
            return Extraction()
        if task is DESCRIBE:
            return f"{len(input.lines)} lines, such as {min(input.lines)}"
        assert task is REPORT
        names = [e.name for e in input.entities]
        return ReportText(title=f"About {names[0]}", summary=", ".join(names), rating=float(len(names) % 10))

    def stream(self, task: Task[Any, str], input: Any) -> AsyncIterator[str | Outcome[str]]:
        raise AssertionError("ingestion streams nothing")

    async def aclose(self) -> None:
        pass


def read_capitals(title: str, text: str) -> Extraction:
    names = list(dict.fromkeys(re.findall(r"[A-Z]\w+(?: [A-Z]\w+)*", f"{title}. {text}")))
    entities = [EntityStatement(name=n, type="Thing", description=f"{n} in: {text}") for n in names]
    pairs = list(itertools.pairwise(names))
    relationships = [
        RelationshipStatement(source=a, target=b, type="near", description=f"{a} and {b}", strength=2.0) for a, b in pairs
    ]
    return Extraction(entities=entities, relationships=relationships)


class HashEmbedder:
    identity = "hash-16"
    dimension = 16
    strong = False
    remote = False

    def __init__(self) -> None:
        self.embedded: list[str] = []

    async def passages(self, texts: Any) -> Vector:
        self.embedded += texts
        raw = (
            np.stack([np.frombuffer(hashlib.sha512(t.encode()).digest()[: self.dimension], np.uint8) for t in texts]).astype(
                np.float32
            )
            - 127.5
        )
        return np.asarray(raw / np.linalg.norm(raw, axis=1, keepdims=True), np.float32)

    queries = passages

    async def aclose(self) -> None:
        pass


def _given(part: Any, *args: Any, **kwargs: Any) -> Any:
    return part


class Bench:
    """One namespace, its source folder and everything a run needs. ``settings`` are sections by name."""

    def __init__(self, root: Path, source: Path | None = None, **run: Any) -> None:
        self.home, self.source = root / "home", source or root / "source"  # a document's id holds where it was read from
        self.source.mkdir(parents=True, exist_ok=True)
        self.engine, self.embedder = CapitalEngine(), HashEmbedder()
        self.settings = IngestSettings(
            run=RunSettings(**{"rows_per_shard": 4, "groups_per_shard": 16, **run}),
            chunking=ChunkSettings(max_tokens=32, overlap_tokens=0),
        )

    def set(self, section: str, **values: Any) -> None:
        changed = getattr(self.settings, section).model_copy(update=values)
        self.settings = dataclasses.replace(self.settings, **{section: changed})

    def write(self, path: str, *rows: dict[str, Any]) -> None:
        (self.source / path).write_text("".join(json.dumps(row) + "\n" for row in rows))

    def parts(self, namespace: str = "test") -> IngestParts:
        return IngestParts(
            namespace=namespace,
            tables=str(self.home / namespace / "tables"),
            settings=self.settings,
            open_stores=partial(open_stores, self.home, namespace, mode="write", create=True),
            open_engine=partial(_given, self.engine),
            open_embedder=partial(_given, self.embedder),
        )

    async def ingest(self, **kwargs: Any) -> RunReport:
        return await run_ingest(self.parts(), [str(self.source)], **kwargs)


WORDS = ("london", "read", "gon", "goe", "goes", "societi", "society", "thing", "near", "built")
"""Tokens of the texts that tests use, as several analyzers make them."""


def snapshot(bench: Bench, namespace: str = "test", *, communities: bool = True) -> dict[str, Any]:
    """All that the stores hold, but for times and run ids."""
    stores = open_stores(bench.home, namespace, mode="read")
    try:
        found: dict[str, Any] = {}
        for name in COLLECTIONS:
            if name != "reports" or communities:
                rows = stores.search.scan(name, limit=10**6)
                ids = [id for id, _ in rows]
                vectors = {id: v.tobytes() for id, v in stores.search.vectors(name, ids).items()}
                found[name] = [(id, body, vectors.get(id)) for id, body in rows]
                words = {word: stores.search.lexical(name, [word], 100) for word in WORDS}
                found[f"{name} by word"] = {word: sorted(hit.id for hit in hits) for word, hits in words.items()}
        found["vertices"] = stores.graph.scan_vertices(limit=10**6)
        found["edges"] = stores.graph.scan_edges(limit=10**6)
        if communities:
            found["communities"] = stores.graph.communities()
        found["records"] = stores.records.scan(limit=10**6)
        found["statements"] = sorted(
            encode(s) for s in stores.records.statements(sorted(stores.records.groups_of([r.unit_id for r in found["records"]])))
        )
        found["documents"] = [msgspec.structs.replace(d, run_id="", updated_at=0.0) for d in stores.status.scan(limit=10**6)]
        found["files"] = {scope: stores.status.files(scope) for scope in stores.status.scopes()}
        return found
    finally:
        stores.close()


def different(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    """Names of the parts in which two snapshots differ."""
    return [name for name in a if a[name] != b[name]]
