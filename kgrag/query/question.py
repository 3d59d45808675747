"""One question on its way through a strategy: its analysis, made once whoever asks for it, and the ports to search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from kgrag.engine import Engine
from kgrag.filters import Filter
from kgrag.ports import Collection, Embedder, Vector
from kgrag.query.access import Access
from kgrag.query.fuse import Leg
from kgrag.records import HitKind, Usage
from kgrag.tasks.query import KEYWORDS, QUERY_ENTITIES, Keywords, QuestionInput

SearchType = Literal["hybrid", "lexical", "vector"]

KIND_OF: dict[Collection, HitKind] = {
    "text_units": "text_unit",
    "entities": "entity",
    "relationships": "relationship",
    "reports": "report",
    "claims": "claim",
    "summaries": "summary",
}


class Tokeniser(Protocol):
    """``kgrag.text.Analyzer`` as a query needs it."""

    @property
    def identity(self) -> str: ...
    def query_tokens(self, text: str) -> list[str]: ...


@dataclass(slots=True, kw_only=True)
class Question:
    """``held`` are the artifacts of the index, ``vectors`` its collections whose rows have vectors that the embedder can
    be compared with, ``vector_weight`` what a vector ranking counts against a lexical 1, ``kinds`` what is asked for.
    ``usage`` and ``notes`` grow as the strategy works."""

    text: str
    top_k: int
    access: Access
    engine: Engine
    analyzer: Tokeniser
    embedder: Embedder | None = None
    filter: Filter | None = None
    search_type: SearchType = "hybrid"
    language: str = ""
    held: frozenset[str] = frozenset()
    vectors: frozenset[Collection] = frozenset()
    vector_weight: float = 1.0
    kinds: frozenset[HitKind] = frozenset({"text_unit"})
    usage: Usage = Usage()
    notes: list[str] = field(default_factory=list)
    _vectors: dict[str, Vector] = field(default_factory=dict)
    _tokens: dict[str, list[str]] = field(default_factory=dict)
    _keywords: Keywords | None = None
    _entities: list[str] | None = None

    def tokens(self, text: str | None = None) -> list[str]:
        """Analysed words of ``text`` (the question's own by default), function words left out."""
        text = self.text if text is None else text
        found = self._tokens.get(text)
        if found is None:
            found = self._tokens[text] = self.analyzer.query_tokens(text)
        return found

    async def embed(self, *texts: str) -> None:
        """Make ``vector`` known for the question and ``texts``: one request for all that is missing, none where no ranking
        by vectors is wanted or possible."""
        if self.embedder is None or not self.vectors or self.search_type == "lexical":
            return
        missing = [text for text in dict.fromkeys((self.text, *texts)) if text and text not in self._vectors]
        if missing:
            self._vectors.update(zip(missing, await self.embedder.queries(missing), strict=True))

    def vector(self, text: str | None = None) -> Vector | None:
        """The vector of ``text`` (the question by default); None where vectors play no part or it was not embedded."""
        return self._vectors.get(self.text if text is None else text)

    async def keywords(self) -> Keywords:
        """LightRAG's two levels of keywords. Asked once."""
        if self._keywords is None:
            outcome = await self.engine.ask(KEYWORDS, QuestionInput(question=self.text, language=self.language))
            self.usage += outcome.usage
            self._keywords = outcome.value
        return self._keywords

    async def entities(self) -> list[str]:
        """The names the question mentions. Asked once."""
        if self._entities is None:
            outcome = await self.engine.ask(QUERY_ENTITIES, QuestionInput(question=self.text, language=self.language))
            self.usage += outcome.usage
            self._entities = outcome.value
        return self._entities

    def rankings(
        self,
        collection: Collection,
        top_k: int,
        *,
        name: str,
        text: str | None = None,
        ids: Sequence[str] | None = None,
        weight: float = 1.0,
        search_type: SearchType | None = None,
    ) -> list[Callable[[], Leg]]:
        """The store calls that rank ``collection`` for ``text``: ``<name>_lexical`` and ``<name>_vector``, as far as the
        search type, the index and the embedding allow. For ``Access.together``."""
        kind = KIND_OF[collection]
        search = self.access.search
        wanted = search_type or self.search_type
        where = self.filter
        vector = self.vector(text) if collection in self.vectors else None
        calls: list[Callable[[], Leg]] = []
        if wanted != "vector" or vector is None:
            tokens = self.tokens(text)
            if tokens:
                calls.append(
                    lambda: Leg(f"{name}_lexical", kind, search.lexical(collection, tokens, top_k, filter=where, ids=ids), weight)
                )
        if wanted != "lexical" and vector is not None:
            share = weight * self.vector_weight

            def by_vector() -> Leg:
                found = search.nearest(collection, vector, top_k, filter=where, ids=ids)
                return Leg(f"{name}_vector", kind, found, share, found[-1].score if found else 0.0)

            calls.append(by_vector)
        return calls
