"""One engine made of several: a model for some roles, text statistics for others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TypeVar

import msgspec

from kgrag.engine.task import Engine, Outcome, Task

I = TypeVar("I", bound=msgspec.Struct)  # noqa: E741
O = TypeVar("O")  # noqa: E741


class RoutedEngine:
    """Each task goes to the engine of its role, or to ``default``; the engines are closed with this one."""

    def __init__(self, engines: Mapping[str, Engine], default: Engine) -> None:
        self._engines = dict(engines)
        self._default = default

    def identity(self, task: Task[I, O]) -> str:
        return self._of(task.role).identity(task)

    async def ask(self, task: Task[I, O], input: I, *, sample: int = 0) -> Outcome[O]:
        """As the role's engine."""
        return await self._of(task.role).ask(task, input, sample=sample)

    def stream(self, task: Task[I, str], input: I) -> AsyncIterator[str | Outcome[str]]:
        """As the role's engine."""
        return self._of(task.role).stream(task, input)

    async def aclose(self) -> None:
        for engine in {id(engine): engine for engine in (*self._engines.values(), self._default)}.values():
            await engine.aclose()

    def _of(self, role: str) -> Engine:
        return self._engines.get(role, self._default)
