"""An engine that answers with a function of the task and its input, and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kgrag.engine import Outcome, Task
from kgrag.records import Usage


class Replies:
    def __init__(self, answer: Callable[[str, Any], Any]) -> None:
        self._answer = answer
        self.asked: list[Any] = []

    def identity(self, task: Task[Any, Any]) -> str:
        return task.identity

    async def ask(self, task: Task[Any, Any], input: Any, *, sample: int = 0) -> Outcome[Any]:
        self.asked.append(input)
        return Outcome(
            value=self._answer(task.name, input), answers=(f"{task.name}-{len(self.asked)}",), usage=Usage(calls=1, input_tokens=10)
        )

    async def aclose(self) -> None: ...
