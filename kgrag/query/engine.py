"""The face of querying: one object that searches and answers, the same in the CLI, in Ray Serve and in evaluation.

What holds for every strategy happens here once: validation, the check against the build record, filters, fusion,
diversity, quotas, token budget, the answer, its citations and its usage."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from typing import Any, TypedDict, Unpack

from kgrag import filters
from kgrag.engine import Engine
from kgrag.errors import ConfigurationError, DeadlineExceededError, InvalidFilterError, QueryError
from kgrag.ports import Embedder, Stores
from kgrag.query.access import Access
from kgrag.query.answer import AnswerSettings, Draft
from kgrag.query.budget import pack
from kgrag.query.compose import compose
from kgrag.query.fuse import Fused
from kgrag.query.held import BuildCheck
from kgrag.query.hits import read_units
from kgrag.query.question import Question, SearchType, Tokeniser
from kgrag.query.settings import SearchSettings
from kgrag.query.strategies.registry import Registry
from kgrag.query.strategies.strategy import Strategy, StrategySpec
from kgrag.records import Answer, Context, DocumentStatus, HitKind


class Options(TypedDict, total=False):
    """What a request may say; what it leaves out is as configured. ``filter`` is the JSON form of ``kgrag.filters``,
    ``timeout_seconds`` the whole question's."""

    strategy: str | None
    top_k: int | None
    filter: Mapping[str, Any] | None
    search_type: SearchType | None
    language: str | None
    timeout_seconds: float | None


class QueryEngine:
    """Searches and answers over one namespace. It borrows stores, engine and embedder; ``on_close`` closes those that were
    made for it.

    Every method raises QueryError (question, filter, strategy, index, time), ConfigurationError (another embedding),
    StoreError and ModelError."""

    def __init__(
        self,
        stores: Stores,
        engine: Engine,
        analyzer: Tokeniser,
        embedder: Embedder | None = None,
        *,
        namespace: str = "default",
        settings: SearchSettings | None = None,
        answers: AnswerSettings | None = None,
        strategies: Registry | None = None,
        on_close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.namespace = namespace
        self.settings = settings or SearchSettings()
        self.strategies = strategies or Registry()
        self._engine = engine
        self._analyzer = analyzer
        self._embedder = embedder
        self._answers = answers or AnswerSettings()
        self._access = Access(stores, self.settings.stores)
        self._check = BuildCheck(self._access, namespace)
        self._made: dict[str, Strategy] = {}
        self._on_close = on_close

    async def search(self, question: str, *, kinds: Iterable[HitKind] = ("text_unit",), **options: Unpack[Options]) -> Context:
        """The best items of each of ``kinds``, ranked; bodies of other kinds are not read."""
        spec, limit = self._spec(options), self._limit(options)
        try:
            async with asyncio.timeout(limit):
                asked = await self._question(spec, question, options, kinds)
                return await self._retrieve(spec, asked, tuple(kinds))
        except TimeoutError as error:
            raise _late(limit) from error

    async def answer(self, question: str, **options: Unpack[Options]) -> Answer:
        """A grounded answer with numbered citations. An empty context is answered without a model call."""
        started, spec, limit = time.perf_counter(), self._spec(options), self._limit(options)
        try:
            async with asyncio.timeout(limit):
                asked = await self._question(spec, question, options, spec.context)
                draft = await self._draft(spec, asked, started)
                await draft.whole(self._engine)
                return await self._finish(asked, draft)
        except TimeoutError as error:
            raise _late(limit) from error

    async def stream(self, question: str, **options: Unpack[Options]) -> AsyncGenerator[str | Answer, None]:
        """The answer's text in pieces as the model writes it, then the whole Answer."""
        started, spec, limit = time.perf_counter(), self._spec(options), self._limit(options)
        deadline = asyncio.get_running_loop().time() + limit
        try:
            async with asyncio.timeout_at(deadline):
                asked = await self._question(spec, question, options, spec.context)
                draft = await self._draft(spec, asked, started)
            pieces = draft.pieces(self._engine)
            try:
                while True:
                    # A time-out must not span a yield: the consumer's own time is not the question's.
                    async with asyncio.timeout_at(deadline):
                        piece = await anext(pieces, None)
                    if piece is None:
                        break
                    yield piece
            finally:
                await pieces.aclose()
            async with asyncio.timeout_at(deadline):
                answer = await self._finish(asked, draft)
        except TimeoutError as error:
            raise _late(limit) from error
        yield answer

    async def documents(self, *, after: str = "", limit: int = 1000) -> list[DocumentStatus]:
        """Documents in the order of their ids, those with an id greater than ``after``."""
        return await self._access.one(lambda: self._access.status.scan(after=after, limit=limit))

    async def aclose(self) -> None:
        """Release the engine's own threads, and what was made for it."""
        self._access.close()
        if self._on_close is not None:
            await self._on_close()

    # -- steps

    def _spec(self, options: Options) -> StrategySpec:
        return self.strategies.get(options.get("strategy") or self.settings.strategy)

    def _limit(self, options: Options) -> float:
        wanted = options.get("timeout_seconds")
        if wanted is not None and wanted <= 0:
            raise QueryError("timeout_seconds must be positive.", remedy="Leave it out for the configured one.")
        return self.settings.timeout_seconds if wanted is None else min(wanted, self.settings.timeout_seconds)

    async def _question(self, spec: StrategySpec, text: str, options: Options, kinds: Iterable[HitKind]) -> Question:
        text = _checked(text, self.settings.max_question_chars)
        top_k = options.get("top_k")
        if top_k is not None and not 1 <= top_k <= 1000:
            raise QueryError(f"top_k is {top_k}.", remedy="Use 1 to 1000.")
        where = filters.parse(options.get("filter"))
        if where is not None and not spec.filters:
            raise InvalidFilterError(
                f'Strategy "{spec.name}" cannot apply a filter.', subject=spec.name, remedy="Use another strategy, or no filter."
            )
        embedder = self._embedder
        record = await self._check.require(
            spec.name, spec.artifacts, None if embedder is None else embedder.identity, self._analyzer.identity
        )
        question = Question(
            text=text,
            top_k=top_k or self.settings.top_k,
            access=self._access,
            engine=self._engine,
            analyzer=self._analyzer,
            embedder=embedder,
            filter=where,
            search_type=options.get("search_type") or self.settings.search_type,
            language=options.get("language") or self.settings.language,
            held=frozenset(record.artifacts),
            vectors=frozenset(record.vectors if embedder is not None and record.embedding else ()),
            vector_weight=self._vector_weight(embedder),
            kinds=frozenset(kinds),
        )
        if question.search_type == "vector" and "text_units" not in question.vectors:
            raise ConfigurationError(
                "A search by vectors needs an index with vectors and an embedding model.",
                subject=self.namespace,
                remedy="Use search_type hybrid or lexical, or configure an embedding and ingest again.",
            )
        return question

    def _vector_weight(self, embedder: Embedder | None) -> float:
        if embedder is None:
            return 0.0
        settings = self.settings
        return settings.vector_weight if embedder.strong else min(settings.weak_vector_weight, settings.vector_weight)

    async def _retrieve(self, spec: StrategySpec, question: Question, kinds: tuple[HitKind, ...]) -> Context:
        strategy = self._made.get(spec.name)
        if strategy is None:
            strategy = self._made[spec.name] = spec.make(self.settings)
        found = await strategy.find(question)
        sections = await compose(question, found, self.settings, kinds)
        notes = [*question.notes, *found.notes]
        return Context(strategy=spec.name, sections=sections, notes=notes, usage=question.usage)

    async def _draft(self, spec: StrategySpec, question: Question, started: float) -> Draft:
        context = await self._retrieve(spec, question, spec.context)
        packed = pack(question.text, context.sections, self.settings.budget, spec.spare_first)
        seen = Context(strategy=context.strategy, sections=packed, notes=context.notes, usage=context.usage)
        return Draft(question.text, seen, self._answers, style=spec.style, language=question.language, started=started)

    async def _finish(self, question: Question, draft: Draft) -> Answer:
        units = {hit.id: hit for section in draft.context.sections for hit in section.hits if hit.kind == "text_unit"}
        missing = {draft.source_of(hit) for hit in draft.cited()} - units.keys() - {""}
        if missing:
            wanted = [Fused(id, 0.0, ()) for id in sorted(missing)]
            units.update({hit.id: hit for hit in await read_units(question, wanted)})
        return draft.finish(units)


def _checked(text: str, longest: int) -> str:
    question = text.strip()
    if not question:
        raise QueryError("The question is empty.", remedy="Ask something.")
    if len(question) > longest:
        raise QueryError(
            f"The question has {len(question)} characters; {longest} are allowed.",
            remedy="Shorten it, or raise search.max_question_chars.",
        )
    return question


def _late(seconds: float) -> DeadlineExceededError:
    return DeadlineExceededError(
        f"The question was not done within {seconds:g} s.",
        remedy="Ask with a cheaper strategy or a longer time, or raise search.timeout_seconds.",
    )
