"""Group commit of accepted answers."""

from __future__ import annotations

import asyncio

from kgrag.ports import AnswerStore


class AnswerWriter:
    """Stores answers; ``put`` returns once its answer is durable.

    Those accepted in the same turn of the event loop, or while the store is busy in a thread, go in one write: an embedded
    store takes four answers in the time of one commit (92 us of CPU alone, 25 us each in fours)."""

    def __init__(self, store: AnswerStore, *, threads: bool) -> None:
        self._store = store
        self._threads = threads
        self._pending: dict[str, bytes] = {}
        self._written: asyncio.Future[None] | None = None
        self._busy: asyncio.Task[None] | None = None

    async def put(self, key: str, body: bytes) -> None:
        """Raises what the store raises, for every answer of the failed write."""
        loop = asyncio.get_running_loop()
        if self._written is None:
            self._written = loop.create_future()
            loop.call_soon(self._flush)
        elif self._written.get_loop() is not loop:
            self._store.put_many({key: body})
            return
        self._pending[key] = body
        await asyncio.shield(self._written)

    def _flush(self) -> None:
        if self._busy is not None or self._written is None:
            return
        answers, written = self._pending, self._written
        self._pending, self._written = {}, None
        if self._threads:
            self._busy = asyncio.get_running_loop().create_task(self._in_thread(answers, written))
            return
        try:
            self._store.put_many(answers)
        except Exception as error:  # noqa: BLE001  it is handed to every waiter
            _fail(written, error)
        else:
            _succeed(written)

    async def _in_thread(self, answers: dict[str, bytes], written: asyncio.Future[None]) -> None:
        try:
            await asyncio.to_thread(self._store.put_many, answers)
        except Exception as error:  # noqa: BLE001  it is handed to every waiter
            _fail(written, error)
        else:
            _succeed(written)
        finally:
            self._busy = None
            self._flush()


def _succeed(written: asyncio.Future[None]) -> None:
    if not written.done():
        written.set_result(None)


def _fail(written: asyncio.Future[None], error: Exception) -> None:
    if not written.done():
        written.set_exception(error)
        written.exception()  # whoever waited may have been cancelled; the others are told
