"""What kgrag asks of the outside world. Each port has an inheritable contract suite in ``tests/ports``.

Store ports are synchronous: the query engine awaits the remote ones in threads and calls the embedded ones in place.
Model ports are asynchronous. No port knows Ray.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from kgrag.filters import Filter
from kgrag.records import Community, DocumentStatus, Metadata, Statement, UnitRecord, Usage

Vector = NDArray[np.float32]
Collection = Literal["text_units", "entities", "relationships", "reports", "claims", "summaries"]
COLLECTIONS: tuple[Collection, ...] = ("text_units", "entities", "relationships", "reports", "claims", "summaries")


# ---------------------------------------------------------------- models


class Message(msgspec.Struct, frozen=True):
    role: Literal["system", "user", "assistant"]
    content: str


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """One chat completion. ``finish`` is "length" where the reply was cut off."""

    text: str
    finish: Literal["stop", "length", "filter"] = "stop"
    usage: Usage = Usage()


class ChatModel(Protocol):
    """One model behind one endpoint. Every caller in the process shares its rate, concurrency and breaker."""

    @property
    def identity(self) -> str:
        """Provider, model, user-set revision and every setting that changes an answer."""
        ...

    async def complete(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> Reply:
        """Raises TransientModelError (retries spent), RejectedError, PermanentModelError."""
        ...

    def stream(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> AsyncIterator[str | Reply]:
        """Text as it arrives, then one Reply with the whole text and its usage."""
        ...

    async def aclose(self) -> None: ...


class Embedder(Protocol):
    """Texts to unit vectors. ``strong`` says whether vectors may lead lexical search (measured: benchmarks/retrieval.py)."""

    @property
    def identity(self) -> str: ...
    @property
    def dimension(self) -> int: ...
    @property
    def strong(self) -> bool: ...
    @property
    def remote(self) -> bool:
        """Whether a query embedding is worth batching across requests."""
        ...

    async def passages(self, texts: Sequence[str]) -> Vector:
        """(n, dimension) float32, rows of length 1."""
        ...

    async def queries(self, texts: Sequence[str]) -> Vector:
        """(n, dimension) float32, rows of length 1."""
        ...

    async def aclose(self) -> None: ...


# ---------------------------------------------------------------- stores


@dataclass(slots=True)
class Row:
    """A row of a collection. ``tokens`` is analysed text joined by spaces, ``body`` the record as canonical JSON.

    ``vector_digest`` names the text and model behind the vector. A row with a digest and no vector keeps the vector
    the store already holds under that id and digest."""

    id: str
    body: bytes
    tokens: str = ""
    metadata: Metadata | None = None
    vector: Vector | None = None
    vector_digest: str = ""


class Scored(msgspec.Struct, frozen=True, array_like=True):
    id: str
    score: float


class SearchStore(Protocol):
    """Collections of rows with lexical (BM25 k1 1.2, b 0.75 over ``tokens``) and exact cosine search.

    Equal scores are ordered by id. Rows become visible to ``lexical`` and ``nearest`` at ``refresh``;
    ``get`` reads its own writes at once."""

    def upsert(self, collection: Collection, rows: Iterable[Row]) -> None: ...
    def delete(self, collection: Collection, ids: Iterable[str]) -> None: ...
    def get(self, collection: Collection, ids: Sequence[str]) -> dict[str, bytes]:
        """Bodies of those ids that exist."""
        ...

    def vectors(self, collection: Collection, ids: Sequence[str]) -> dict[str, Vector]: ...
    def vector_digests(self, collection: Collection, ids: Sequence[str]) -> dict[str, str]: ...
    def lexical(
        self,
        collection: Collection,
        tokens: Sequence[str],
        top_k: int,
        *,
        filter: Filter | None = None,
        ids: Sequence[str] | None = None,
    ) -> list[Scored]:
        """Best rows sharing a token, among ``ids`` where given."""
        ...

    def nearest(
        self, collection: Collection, vector: Vector, top_k: int, *, filter: Filter | None = None, ids: Sequence[str] | None = None
    ) -> list[Scored]:
        """Rows of highest cosine similarity, among ``ids`` where given; score is the cosine."""
        ...

    def passing(self, collection: Collection, ids: Sequence[str], filter: Filter) -> set[str]:
        """Which of these rows pass the filter."""
        ...

    def scan(self, collection: Collection, *, after: str = "", limit: int = 1000) -> list[tuple[str, bytes]]:
        """Rows in id order, those with an id greater than ``after``."""
        ...

    def count(self, collection: Collection) -> int: ...
    def refresh(self) -> None: ...


class RecordStore(Protocol):
    """The truth: what was read in each text unit, and the statements of each group."""

    def put(self, records: Iterable[UnitRecord], statements: Iterable[Statement]) -> None:
        """Replace the records of these units together with all their statements."""
        ...

    def get(self, unit_ids: Sequence[str]) -> dict[str, UnitRecord]: ...
    def delete(self, unit_ids: Iterable[str]) -> None:
        """Records and statements of these units."""
        ...

    def groups_of(self, unit_ids: Sequence[str]) -> set[str]:
        """Ids of the items these units state something about."""
        ...

    def statements(self, groups: Sequence[str]) -> Iterator[Statement]:
        """Every statement of these groups, group by group."""
        ...

    def evidence(self, groups: Sequence[str]) -> Iterator[tuple[str, str, bytes]]:
        """The same as (group, unit id, ``pack_statements`` of what the unit states about it), sorted by both."""
        ...

    def scan(self, *, after: str = "", limit: int = 1000) -> list[UnitRecord]:
        """Records in unit-id order."""
        ...

    def count(self) -> int: ...


class Vertex(msgspec.Struct, frozen=True):
    """An entity as the graph holds it: some fields of the record, so that its body decodes to one. ``rank`` is its degree."""

    id: str
    name: str
    type: str = ""
    rank: int = 0
    text_unit_ids: list[str] = []


class Edge(msgspec.Struct, frozen=True):
    id: str
    source_id: str
    target_id: str
    weight: float = 0.0
    text_unit_ids: list[str] = []


class GraphStore(Protocol):
    """Vertices, directed edges and communities. Where a cap cuts a vertex's edges, those with the smallest ids stay."""

    def upsert(self, vertices: Iterable[Vertex], edges: Iterable[Edge]) -> None: ...
    def delete(self, vertex_ids: Iterable[str], edge_ids: Iterable[str]) -> None: ...
    def vertices(self, ids: Sequence[str]) -> dict[str, Vertex]: ...
    def incident(self, ids: Sequence[str], *, cap: int | None = None) -> list[Edge]:
        """Edges at any of these vertices, each once, at most ``cap`` per vertex, ordered by (source, target, id)."""
        ...

    def among(self, ids: Sequence[str], *, cap: int | None = None) -> list[Edge]:
        """Edges with both ends in the set, at most ``cap`` per vertex, ordered by (source, target, id)."""
        ...

    def expand(self, seeds: Mapping[str, int], *, hops: int, cap: int) -> dict[str, int]:
        """Breadth-first from each seed: at most ``seeds[id]`` new vertices for it, at most ``cap`` edges read per vertex.
        Returns every reached vertex (the seeds that exist included) with its distance."""
        ...

    def citing(self, unit_ids: Sequence[str]) -> dict[str, list[str]]:
        """Per text unit the ids of the entities whose lineage holds it, sorted."""
        ...

    def scan_edges(self, *, after: str = "", limit: int = 10_000) -> list[Edge]:
        """Edges in id order."""
        ...

    def scan_vertices(self, *, after: str = "", limit: int = 10_000) -> list[Vertex]: ...
    def counts(self) -> tuple[int, int]:
        """(vertices, edges)."""
        ...

    def replace_communities(self, communities: Sequence[Community], gone: Iterable[str]) -> None:
        """Upsert these communities with their members, and delete ``gone``."""
        ...

    def communities(self, ids: Sequence[str] | None = None) -> list[Community]:
        """All, or those of these ids; ordered by (level, id)."""
        ...

    def communities_of(self, entity_ids: Sequence[str]) -> dict[str, list[str]]:
        """Per entity the ids of its communities, finest level first."""
        ...


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """Who may write to a namespace. Times are seconds since the epoch of ``time.time``."""

    owner: str
    epoch: int
    expires_at: float


class StatusStore(Protocol):
    """The registry: documents, source files, settings, runs and the lease."""

    def get(self, ids: Sequence[str]) -> dict[str, DocumentStatus]: ...
    def put(self, documents: Iterable[DocumentStatus]) -> None: ...
    def delete(self, ids: Iterable[str]) -> None: ...
    def of_scope(self, scope: str, *, after: str = "", limit: int = 1000) -> list[DocumentStatus]:
        """Documents of one scope in id order."""
        ...

    def scan(self, *, after: str = "", limit: int = 1000) -> list[DocumentStatus]: ...
    def of_file(self, scope: str, path: str) -> list[DocumentStatus]: ...
    def count(self) -> dict[str, int]:
        """Documents per state."""
        ...

    def scopes(self) -> list[str]: ...
    def files(self, scope: str) -> dict[str, str]:
        """Content digest of each source file that was read to the end, by path."""
        ...

    def put_files(self, scope: str, digests: Mapping[str, str], gone: Iterable[str] = ()) -> None: ...
    def read_value(self, key: str) -> Any:
        """A small JSON value (build record, settings, last run), None where there is none."""
        ...

    def write_value(self, key: str, value: Any) -> None: ...
    def acquire_lease(self, owner: str, seconds: float) -> Lease:
        """Take the lease, growing its epoch. Raises LeaseHeldError while another owner's has not expired."""
        ...

    def renew_lease(self, lease: Lease, seconds: float) -> Lease:
        """Raises LeaseLostError once another run took it."""
        ...

    def release_lease(self, lease: Lease) -> None: ...
    def current_lease(self) -> Lease | None: ...


class AnswerStore(Protocol):
    """A cache of accepted model replies by content key. Losing it costs money, never correctness."""

    def get_many(self, keys: Sequence[str]) -> dict[str, bytes]: ...
    def put_many(self, answers: Mapping[str, bytes]) -> None: ...
    def delete_many(self, keys: Iterable[str]) -> None: ...
    def keys(self, *, after: str = "", limit: int = 1000) -> list[str]: ...


class Stores(Protocol):
    """All stores of one namespace, opened together."""

    @property
    def search(self) -> SearchStore: ...
    @property
    def records(self) -> RecordStore: ...
    @property
    def graph(self) -> GraphStore: ...
    @property
    def status(self) -> StatusStore: ...
    @property
    def answers(self) -> AnswerStore: ...
    @property
    def remote(self) -> bool:
        """Whether calls leave the process and are worth a thread each."""
        ...

    def fence(self, epoch: int | None) -> None:
        """From now on every write first proves that the lease's epoch is still this one (LeaseLostError otherwise)."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """Writes inside are one atomic step where the backend can (embedded), else in order. Re-entrant."""
        ...

    def close(self) -> None: ...
