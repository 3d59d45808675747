"""How strategies reach the stores: embedded ones in place, remote ones in bounded threads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, overload

from kgrag.errors import StoreUnavailableError
from kgrag.ports import GraphStore, SearchStore, StatusStore, Stores
from kgrag.section import Section

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


async def gather_or_cancel(*work: Awaitable[A]) -> list[A]:
    """The results in order. The first error cancels what still runs, and is raised as it is."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


class StoreAccessSettings(Section):
    """How long and how many at once; only remote stores are called in threads."""

    concurrency: int = 16
    """Store calls in flight per process. An embedded store is called in place, one at a time."""
    timeout_seconds: float = 30.0
    """Longest wait for one call of a remote store; later it counts as unreachable (unified-kg-rag §8.1)."""


class Access:
    """One namespace's stores for one event loop.

    ``together`` takes calls without arguments and returns their results in order: an embedded store answers in
    microseconds, where a task or thread per call would cost more than the call, so it runs them in place; remote
    calls overlap. Raises what the calls raise, and StoreUnavailableError past the time-out."""

    def __init__(self, stores: Stores, settings: StoreAccessSettings | None = None) -> None:
        self._stores = stores
        self._settings = settings or StoreAccessSettings()
        self._threads = ThreadPoolExecutor(self._settings.concurrency, "kgrag-store") if stores.remote else None

    @property
    def search(self) -> SearchStore:
        return self._stores.search

    @property
    def graph(self) -> GraphStore:
        return self._stores.graph

    @property
    def status(self) -> StatusStore:
        return self._stores.status

    async def one(self, call: Callable[[], A]) -> A:
        """The result of one call."""
        return call() if self._threads is None else await self._threaded(self._threads, call)

    @overload
    async def together(self, a: Callable[[], A], b: Callable[[], B], /) -> tuple[A, B]: ...
    @overload
    async def together(self, a: Callable[[], A], b: Callable[[], B], c: Callable[[], C], /) -> tuple[A, B, C]: ...
    @overload
    async def together(
        self, a: Callable[[], A], b: Callable[[], B], c: Callable[[], C], d: Callable[[], D], /
    ) -> tuple[A, B, C, D]: ...
    @overload
    async def together(self, *calls: Callable[[], A]) -> tuple[A, ...]: ...
    async def together(self, *calls: Callable[[], Any]) -> tuple[Any, ...]:
        """The results of several calls, in their order."""
        if self._threads is None:
            return tuple([call() for call in calls])
        threads = self._threads
        return tuple(await gather_or_cancel(*(self._threaded(threads, call) for call in calls)))

    async def _threaded(self, threads: ThreadPoolExecutor, call: Callable[[], A]) -> A:
        seconds = self._settings.timeout_seconds
        future = asyncio.get_running_loop().run_in_executor(threads, call)
        try:
            async with asyncio.timeout(seconds):
                return await future
        except TimeoutError as error:
            raise StoreUnavailableError(
                f"The store gave no answer within {seconds:g} s.",
                remedy="Check that it is up, or raise search.stores.timeout_seconds.",
            ) from error

    def close(self) -> None:
        """Let the threads go; the stores belong to whoever opened them."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
