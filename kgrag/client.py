"""``kgrag.connect``: one index from Python, synchronous and asynchronous."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from kgrag import build
from kgrag.query.engine import Options, QueryEngine
from kgrag.query.strategies.registry import Registry
from kgrag.records import Answer, Context, DocumentStatus, HitKind

if TYPE_CHECKING:
    from kgrag.engine import Engine
    from kgrag.ingest.report import RunReport
    from kgrag.ports import Embedder
    from kgrag.query.strategies.strategy import StrategySpec
    from kgrag.settings import Settings

T = TypeVar("T")

_PAGE = 1000


def connect(
    config: str | os.PathLike[str] | None = None,
    namespace: str | None = None,
    *,
    engine: Engine | None = None,
    embedder: Embedder | None = None,
    strategies: Iterable[StrategySpec] = (),
    **overrides: Any,
) -> Client:
    """A client of one index. ``config`` is a configuration file, ``overrides`` are settings by section
    (``search={"top_k": 5}``); ``engine``, ``embedder`` and ``strategies`` are used beside or instead of the configured ones.

    Nothing is opened before the first call. Raises ConfigurationError."""
    from kgrag.settings import load

    given = {**overrides, **({"namespace": namespace} if namespace is not None else {})}
    return Client(load(config, overrides=given).settings, engine=engine, embedder=embedder, strategies=strategies)


class Client:
    """Searches, answers and ingests. A context manager, also an asynchronous one; every method ``x`` has an asynchronous
    ``ax``. Questions run on a loop of the client's own, so one client serves any number of threads and event loops.

    Methods raise KgragError: see ``kgrag.errors``."""

    def __init__(
        self,
        settings: Settings,
        *,
        engine: Engine | None = None,
        embedder: Embedder | None = None,
        strategies: Iterable[StrategySpec] = (),
    ) -> None:
        self.settings = settings
        self._engine = engine
        self._embedder = embedder
        self._strategies = Registry(strategies)
        self._loop: _LoopThread | None = None
        self._queries: QueryEngine | None = None
        self._opening: asyncio.Lock | None = None
        self._starting = threading.Lock()

    @property
    def namespace(self) -> str:
        return self.settings.namespace

    # -- questions

    def search(self, question: str, *, kinds: Iterable[HitKind] = ("text_unit",), **options: Unpack[Options]) -> Context:
        """The best items of each of ``kinds``; ``context.hits`` are the text units."""
        return self._run(self._search(question, tuple(kinds), options))

    async def asearch(self, question: str, *, kinds: Iterable[HitKind] = ("text_unit",), **options: Unpack[Options]) -> Context:
        return await self._arun(self._search(question, tuple(kinds), options))

    def answer(self, question: str, **options: Unpack[Options]) -> Answer:
        """A grounded answer with numbered citations."""
        return self._run(self._answer(question, options))

    async def aanswer(self, question: str, **options: Unpack[Options]) -> Answer:
        return await self._arun(self._answer(question, options))

    def stream(self, question: str, **options: Unpack[Options]) -> Iterator[str | Answer]:
        """The answer's text in pieces as it is written, then the whole Answer."""
        pieces = self._run(self._stream(question, options))
        try:
            while (piece := self._run(_next(pieces))) is not None:
                yield piece
        finally:
            self._run(pieces.aclose())

    async def astream(self, question: str, **options: Unpack[Options]) -> AsyncIterator[str | Answer]:
        pieces = await self._arun(self._stream(question, options))
        try:
            while (piece := await self._arun(_next(pieces))) is not None:
                yield piece
        finally:
            await self._arun(pieces.aclose())

    # -- documents

    def documents(self) -> Iterator[DocumentStatus]:
        """Every document of the index, in the order of their ids."""
        after = ""
        while page := self._run(self._documents(after)):
            yield from page
            after = page[-1].id

    async def adocuments(self) -> AsyncIterator[DocumentStatus]:
        after = ""
        while page := await self._arun(self._documents(after)):
            for document in page:
                yield document
            after = page[-1].id

    def ingest(self, *sources: str | os.PathLike[str]) -> RunReport:
        """Bring the index up to date with files, folders, globs or ``s3://``, in this process. Never starts Ray."""
        from kgrag.ingest.run import run_ingest

        return self._run_apart(run_ingest(build.ingest_parts(self.settings), [os.fspath(source) for source in sources]))

    async def aingest(self, *sources: str | os.PathLike[str]) -> RunReport:
        return await asyncio.to_thread(self.ingest, *sources)

    # -- lifetime

    def close(self) -> None:
        """Close what was opened. A closed client opens again when it is used."""
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.run(self._aclose())
            loop.stop()

    async def aclose(self) -> None:
        await asyncio.to_thread(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()

    # -- on the client's loop

    async def _open(self) -> QueryEngine:
        if self._opening is None:
            self._opening = asyncio.Lock()
        async with self._opening:
            if self._queries is None:
                self._queries = await build.open_query_engine(
                    self.settings, engine=self._engine, embedder=self._embedder, strategies=self._strategies
                )
        return self._queries

    async def _search(self, question: str, kinds: tuple[HitKind, ...], options: Options) -> Context:
        return await (await self._open()).search(question, kinds=kinds, **options)

    async def _answer(self, question: str, options: Options) -> Answer:
        return await (await self._open()).answer(question, **options)

    async def _stream(self, question: str, options: Options) -> Any:
        return (await self._open()).stream(question, **options)

    async def _documents(self, after: str) -> list[DocumentStatus]:
        return await (await self._open()).documents(after=after, limit=_PAGE)

    async def _aclose(self) -> None:
        queries, self._queries, self._opening = self._queries, None, None
        if queries is not None:
            await queries.aclose()

    # -- getting there

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._running().run(work)

    async def _arun(self, work: Coroutine[Any, Any, T]) -> T:
        return await self._running().arun(work)

    def _running(self) -> _LoopThread:
        with self._starting:
            if self._loop is None:
                self._loop = _LoopThread()
        return self._loop

    @staticmethod
    def _run_apart(work: Coroutine[Any, Any, T]) -> T:
        """On a loop of its own: a run keeps its loop busy, and questions must not wait for it."""
        loop = _LoopThread()
        try:
            return loop.run(work)
        finally:
            loop.stop()


class _LoopThread:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="kgrag-client", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result, waited for in the calling thread; an interrupt of the wait cancels the work."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def arun(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def stop(self) -> None:
        self.run(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _next(pieces: Any) -> str | Answer | None:
    """The next piece, None after the last."""
    piece: str | Answer | None = await anext(pieces, None)
    return piece
