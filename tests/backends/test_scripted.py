from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from kgrag.backends.scripted import ScriptedChat, ScriptedEngine
from kgrag.engine import Engine, Task
from kgrag.errors import ConfigurationError, RejectedError
from kgrag.ports import ChatModel, Message
from kgrag.tasks.answers import ANSWER
from kgrag.tasks.descriptions import DESCRIBE, DescriptionInput
from kgrag.tasks.extraction import CLAIMS, EXTRACT, GLEAN
from kgrag.tasks.query import KEYWORDS, MAP_REPORTS, QUERY_ENTITIES
from kgrag.tasks.reports import REPORT
from kgrag.testing.reader import read
from tests.ports.chat_model import ChatModelContract
from tests.ports.engine import UNIT, EngineContract

TASKS: list[Task] = [ANSWER, DESCRIBE, CLAIMS, EXTRACT, GLEAN, KEYWORDS, MAP_REPORTS, QUERY_ENTITIES, REPORT]


class TestScriptedEngineContract(EngineContract):
    @pytest.fixture
    def engine(self) -> Engine:
        def answer(task: Task) -> Callable[[object], object]:
            return lambda given: task.parse(read(task.messages(given)), given, False).value

        return ScriptedEngine({task.name: answer(task) for task in TASKS})


class TestScriptedChatContract(ChatModelContract):
    @pytest.fixture
    def make_chat(self) -> Callable[..., ChatModel]:
        def chat(reply: Callable[[Sequence[Message]], str]) -> ChatModel:
            return ScriptedChat(reply)

        return chat


async def test_calls_are_counted_and_failures_raised() -> None:
    engine = ScriptedEngine({"describe": lambda given: given.name, "extract": RejectedError("too long")}, latency=0.001)
    assert (await engine.ask(DESCRIBE, DescriptionInput(name="Ada", lines=[]))).value == "Ada"
    with pytest.raises(RejectedError):
        await engine.ask(EXTRACT, UNIT)
    with pytest.raises(ConfigurationError, match="describe, extract"):
        await engine.ask(GLEAN, UNIT)  # type: ignore[arg-type]
    assert engine.calls == {"describe": 1, "extract": 1, "glean": 1}
    assert [name for name, _ in engine.inputs] == ["describe", "extract", "glean"]


async def test_a_later_function_answers_anew() -> None:
    engine = ScriptedEngine({"describe": "one"}, latency=lambda given: 0.0)
    engine.answers["describe"] = "two"
    assert (await engine.ask(DESCRIBE, DescriptionInput(name="Ada", lines=[]))).value == "two"
