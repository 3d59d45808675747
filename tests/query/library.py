"""A small index, written straight through the store ports from hand-made records, and what a query needs beside it."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from kgrag.backends.local.stores import LocalStores, open_stores
from kgrag.engine import Outcome
from kgrag.graph.communities import CommunitySettings, detect
from kgrag.graph.derive import derive
from kgrag.graph.network import network_of
from kgrag.graph.resolve import Resolver
from kgrag.graph.statements import statements_of
from kgrag.ids import document_id, text_unit_id
from kgrag.index.profile import BUILT, BuildRecord, methodologies_held
from kgrag.index.texts import Found, about_token, text_of, vector_digest
from kgrag.index.write import filter_fields
from kgrag.ports import Collection, Edge, Row, Stores, Vector, Vertex
from kgrag.query.engine import QueryEngine
from kgrag.query.settings import SearchSettings
from kgrag.records import (
    Community,
    DocumentStatus,
    Entity,
    EntityStatement,
    Metadata,
    Relationship,
    RelationshipStatement,
    Report,
    Span,
    TextUnit,
    UnitRecord,
    Usage,
    encode,
)
from kgrag.tasks.query import KeyPoint, Keywords
from kgrag.text import Analyzer, count_tokens


class WordEmbedder:
    """Feature hashing of analysed words: deterministic, and near where words are shared."""

    remote = False

    def __init__(self, *, strong: bool = True, identity: str = "words-64") -> None:
        self.identity, self.dimension, self.strong = identity, 64, strong
        self.calls: list[list[str]] = []
        self._analyzer = Analyzer()

    async def passages(self, texts: Sequence[str]) -> Vector:
        return np.stack([self._one(text) for text in texts])

    async def queries(self, texts: Sequence[str]) -> Vector:
        self.calls.append(list(texts))
        return await self.passages(texts)

    async def aclose(self) -> None:
        return None

    def _one(self, text: str) -> Vector:
        vector = np.zeros(self.dimension, np.float32)
        for word in self._analyzer.tokens(text):
            digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
            vector[digest[0] % self.dimension] += 1 if digest[1] & 1 else -1
        vector[0] += 1e-3
        return vector / np.linalg.norm(vector)


class ScriptedEngine:
    """Answers tasks by name from plain functions, and remembers what it was asked."""

    def __init__(self, **answers: Callable[[Any], Any]) -> None:
        self.asked: list[tuple[str, Any]] = []
        self._answers: dict[str, Callable[[Any], Any]] = {
            "keywords": lambda given: Keywords(low=capitals(given.question), high=[given.question]),
            "query_entities": lambda given: capitals(given.question),
            "map_reports": lambda given: [KeyPoint(text=r.title, score=50.0, reports=[r.number]) for r in given.reports],
            "answer": lambda given: f"It says so [1]. {given.items[0].text[:20]}",
            **answers,
        }

    def identity(self, task: Any) -> str:
        return f"scripted {task.name}"

    async def ask(self, task: Any, input: Any, *, sample: int = 0) -> Outcome[Any]:
        self.asked.append((task.name, input))
        value = self._answers[task.name](input)
        if isinstance(value, Exception):
            raise value
        return Outcome(value=value, usage=Usage(calls=1, input_tokens=10, output_tokens=5))

    async def stream(self, task: Any, input: Any) -> AsyncIterator[str | Outcome[str]]:
        outcome = await self.ask(task, input)
        for word in outcome.value.split(" "):
            yield f"{word} "
        yield outcome

    async def aclose(self) -> None:
        return None


def capitals(text: str) -> list[str]:
    """Runs of capitalised words, the first word of the question aside."""
    names: list[list[str]] = [[]]
    for word in text.split()[1:]:
        bare = word.strip("?,.")
        if bare[:1].isupper():
            names[-1].append(bare)
        elif names[-1]:
            names.append([])
    return [" ".join(name) for name in names if name]


class Passage(msgspec.Struct):
    """A document of one text unit, and what was read in it: names, and (source, predicate, target)."""

    title: str
    text: str
    names: list[str] = []
    triples: list[tuple[str, str, str]] = []
    metadata: Metadata = {}


FILMS = [
    Passage(
        "Angi Vera",
        "Angi Vera is a Hungarian film of 1978. It was directed by Pál Gábor.",
        ["Angi Vera", "Pál Gábor"],
        [("Angi Vera", "directed by", "Pál Gábor")],
        {"year": 1978, "lang": "en"},
    ),
    Passage(
        "Pál Gábor",
        "Pál Gábor was born in Budapest in 1932 and made twenty films.",
        ["Pál Gábor", "Budapest"],
        [("Pál Gábor", "born in", "Budapest")],
        {"year": 1932, "lang": "en"},
    ),
    Passage(
        "Budapest",
        "Budapest is the capital of Hungary. The Danube flows through it.",
        ["Budapest", "Hungary", "Danube"],
        [("Budapest", "capital of", "Hungary"), ("Danube", "flows through", "Budapest")],
        {"year": 1873, "lang": "en"},
    ),
    Passage(
        "Free Guy",
        "Free Guy is an action comedy directed by Shawn Levy.",
        ["Free Guy", "Shawn Levy"],
        [("Free Guy", "directed by", "Shawn Levy")],
        {"year": 2021, "lang": "en"},
    ),
    Passage(
        "Shawn Levy",
        "Shawn Levy was born in Montreal in Canada.",
        ["Shawn Levy", "Montreal", "Canada"],
        [("Shawn Levy", "born in", "Montreal"), ("Montreal", "lies in", "Canada")],
        {"year": 1968, "lang": "en"},
    ),
    Passage(
        "战国无双3",
        "《战国无双3》是由光荣和ω-force开发的战国无双系列的续作。",
        ["战国无双3", "光荣", "ω-force"],
        [("光荣", "开发", "战国无双3"), ("ω-force", "开发", "战国无双3")],
        {"year": 2009, "lang": "zh"},
    ),
]
"""Three clusters; the first asks for two hops: film, director, city."""

ALL_VECTORS: tuple[Collection, ...] = ("text_units", "entities", "relationships", "reports")


async def write_index(
    home: Path,
    passages: Sequence[Passage] = FILMS,
    *,
    namespace: str = "films",
    embedder: WordEmbedder | None = None,
    vectors: Sequence[Collection] = ALL_VECTORS,
    artifacts: frozenset[str] = BUILT,
) -> LocalStores:
    """The stores of a new index of these passages, open for writing."""
    stores = open_stores(home, namespace, mode="write", create=True, dimension=64 if embedder else None)
    read = [_read(passage, row) for row, passage in enumerate(passages, 1)]
    units = [unit for _, unit, _ in read]
    entities, relationships = _derived([record for _, _, record in read], {u.document_id: u.metadata for u in units})
    communities, reports = _reports(entities, relationships)
    stores.status.put([document for document, _, _ in read])
    stores.graph.upsert(
        [Vertex(e.id, e.name, e.type, e.rank, e.text_unit_ids) for e in entities],
        [Edge(r.id, r.source_id, r.target_id, r.weight, r.text_unit_ids) for r in relationships],
    )
    stores.graph.replace_communities(communities, [])
    await _put(stores, "text_units", units, embedder, vectors)
    await _put(stores, "entities", entities, embedder, vectors)
    await _put(stores, "relationships", relationships, embedder, vectors)
    await _put(stores, "reports", reports, embedder, vectors)
    stores.search.refresh()
    record = BuildRecord(
        artifacts=sorted(artifacts),
        methodologies=list(methodologies_held(artifacts)),
        embedding=embedder.identity if embedder else "",
        dimension=64 if embedder else 0,
        vectors=list(vectors) if embedder else [],
        analyzer=Analyzer().identity,
    )
    stores.status.write_value("build", msgspec.to_builtins(record))
    return stores


def query_engine(stores: Stores, **parts: Any) -> QueryEngine:
    """A query engine over these stores with a scripted model; ``parts`` override its arguments."""
    given: dict[str, Any] = {
        "engine": ScriptedEngine(),
        "analyzer": Analyzer(),
        "embedder": None,
        "namespace": "films",
        "settings": SearchSettings(),
        **parts,
    }
    return QueryEngine(stores, given.pop("engine"), given.pop("analyzer"), given.pop("embedder"), **given)


def _read(passage: Passage, row: int) -> tuple[DocumentStatus, TextUnit, UnitRecord]:
    document = document_id("films", "films.jsonl", str(row))
    unit = text_unit_id(document, passage.text, 0)
    return (
        DocumentStatus(
            id=document,
            scope="films",
            path="films.jsonl",
            title=passage.title,
            row=row,
            pages=[0],
            state="processed",
            units=[Span(unit_id=unit, start=0, end=len(passage.text))],
        ),
        TextUnit(
            id=unit,
            document_id=document,
            title=passage.title,
            text=passage.text,
            tokens=count_tokens(passage.text),
            metadata={**passage.metadata, "document_id": document, "path": "films.jsonl"},
        ),
        UnitRecord(
            unit_id=unit,
            document_id=document,
            entities=[EntityStatement(name=name, description=f"{name} in {passage.title}") for name in passage.names],
            relationships=[
                RelationshipStatement(source=s, target=t, type=p, description=f"{s} {p} {t}") for s, p, t in passage.triples
            ],
        ),
    )


def _derived(records: Sequence[UnitRecord], fields: dict[str, Metadata]) -> tuple[list[Entity], list[Relationship]]:
    groups: dict[str, list[Any]] = {}
    for record in records:
        for statement in statements_of(record, Resolver()):
            groups.setdefault(statement.group, []).append(statement)
    items = [derive(statements, fields) for _, statements in sorted(groups.items())]
    return [i for i in items if isinstance(i, Entity)], [i for i in items if isinstance(i, Relationship)]


def _reports(entities: Sequence[Entity], relationships: Sequence[Relationship]) -> tuple[list[Community], list[Report]]:
    ids, network = network_of((e.id for e in entities), ((r.source_id, r.target_id, r.weight) for r in relationships))
    communities = detect(ids, network, CommunitySettings(min_community_size=2))
    by_id = {e.id: e for e in entities}
    reports = []
    for c in communities:
        members = [by_id[id] for id in c.entity_ids]
        names = ", ".join(m.name for m in members)
        reports.append(
            Report(
                id=c.id,
                title=f"About {members[0].name}",
                summary=f"Connects {names}.",
                full_content=f"Connects {names}.",
                rating=5.0,
                rank=sum(m.rank for m in members),
                level=c.level,
                depth=c.depth,
                parent_id=c.parent_id,
                child_ids=c.child_ids,
                entity_ids=c.entity_ids,
                text_unit_ids=sorted({u for m in members for u in m.text_unit_ids}),
            )
        )
    return communities, reports


async def _put(
    stores: Stores, collection: Collection, items: Sequence[Found], embedder: WordEmbedder | None, vectors: Sequence[Collection]
) -> None:
    texts = [text_of(item) for item in items]
    analyzer = Analyzer()
    matrix = await embedder.passages(texts) if embedder is not None and collection in vectors and texts else None
    rows = [
        Row(
            id=item.id,
            body=encode(item),
            tokens=" ".join([*analyzer.tokens(text), *([about_token(item.title)] if isinstance(item, TextUnit) else [])]),
            metadata=filter_fields(item),
            vector=None if matrix is None else matrix[n],
            vector_digest="" if matrix is None or embedder is None else vector_digest(embedder.identity, text),
        )
        for n, (item, text) in enumerate(zip(items, texts, strict=True))
    ]
    stores.search.upsert(collection, rows)
