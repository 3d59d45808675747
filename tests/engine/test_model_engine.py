from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from kgrag.backends.local.openai import OpenAIChat
from kgrag.backends.local.stores import LocalStores, open_stores
from kgrag.backends.scripted import ScriptedChat
from kgrag.engine import Engine, ModelEngine, Outcome
from kgrag.engine.settings import ModelSettings
from kgrag.errors import (
    ConfigurationError,
    LeaseLostError,
    OutputError,
    RejectedError,
    TransientModelError,
    TruncatedError,
)
from kgrag.ports import Message, Reply
from kgrag.records import Usage
from kgrag.tasks.answers import ANSWER, AnswerInput, ContextItem
from kgrag.tasks.extraction import EXTRACT, ExtractionInput
from kgrag.tasks.query import QUERY_ENTITIES, QuestionInput
from kgrag.tasks.repair import FIX
from kgrag.testing.openai_server import OpenAIServer
from kgrag.testing.reader import read
from tests.ports.engine import TEXT, UNIT, EngineContract

ITEM = (
    "<entity><name>{0}</name><type>person</type><description>d</description><confidence>9</confidence><quote>{0}</quote></entity>"
)
GOOD = f"<entities>{ITEM.format('Ada')}{ITEM.format('Charles')}</entities><relationships></relationships>"
QUESTION = AnswerInput(question="Who?", items=[ContextItem(number=1, kind="text_unit", text="Ada.")])


@pytest.fixture
def stores(tmp_path: Path) -> AsyncIterator[LocalStores]:
    opened = open_stores(tmp_path, "models", mode="write", create=True)
    yield opened
    opened.close()


class TestModelEngineContract(EngineContract):
    @pytest.fixture
    def engine(self, stores: LocalStores) -> Engine:
        return ModelEngine({"default": ScriptedChat(read)}, answers=stores.answers)


class TestModelEngineOverASocketContract(EngineContract):
    @pytest.fixture
    async def engine(self, stores: LocalStores) -> AsyncIterator[Engine]:
        async with OpenAIServer() as server:
            settings = ModelSettings(provider="openai", base_url=server.url, model="stub")
            engine = ModelEngine({"default": OpenAIChat(settings)}, answers=stores.answers, threads=True)
            yield engine
            await engine.aclose()


class Script:
    """Replies in order, the last one again and again."""

    def __init__(self, *replies: str | Reply | Exception) -> None:
        self.replies = list(replies)

    def __call__(self, messages: Sequence[Message]) -> str | Reply | Exception:
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


def engine_of(
    *replies: str | Reply | Exception, stores: LocalStores | None = None, **more: object
) -> tuple[ModelEngine, ScriptedChat]:
    chat = ScriptedChat(Script(*replies))
    return ModelEngine({"default": chat}, answers=stores.answers if stores else None, **more), chat  # type: ignore[arg-type]


async def test_a_default_model_is_needed() -> None:
    with pytest.raises(ConfigurationError, match="default"):
        ModelEngine({"answer": ScriptedChat(read)})


async def test_an_accepted_answer_is_paid_once_by_any_run(stores: LocalStores) -> None:
    engine, chat = engine_of(GOOD, stores=stores)
    first = await engine.ask(EXTRACT, UNIT)
    assert first.usage.calls == 1
    assert stores.answers.keys() == list(first.answers)
    assert stores.answers.get_many(first.answers) == {first.answers[0]: GOOD.encode()}

    later, other = engine_of(RejectedError("not to be asked"), stores=stores)
    again = await later.ask(EXTRACT, UNIT)
    assert again.value == first.value
    assert again.answers == first.answers
    assert again.usage == Usage(stored=1)
    assert (chat.calls, other.calls) == (1, 0)


async def test_another_sample_prompt_or_model_is_another_question(stores: LocalStores) -> None:
    engine, chat = engine_of(GOOD, stores=stores)
    revised = ModelEngine({"default": ScriptedChat(lambda messages: GOOD, identity="revised")}, answers=stores.answers)
    keys = [
        (await engine.ask(EXTRACT, UNIT)).answers,
        (await engine.ask(EXTRACT, UNIT, sample=1)).answers,
        (await engine.ask(EXTRACT, ExtractionInput(title=UNIT.title, text=TEXT, language="German"))).answers,
        (await revised.ask(EXTRACT, UNIT)).answers,
    ]
    assert len(set(keys)) == 4
    assert chat.calls == 3


async def test_questions_of_users_are_not_stored(stores: LocalStores) -> None:
    engine, chat = engine_of('{"entities": ["Ada"]}', stores=stores)
    for _ in range(2):
        assert (await engine.ask(QUERY_ENTITIES, QuestionInput(question="Who is Ada?"))).answers == ()
    assert chat.calls == 2
    assert stores.answers.keys() == []


async def test_without_reuse_everything_is_asked_again_and_replaced(stores: LocalStores) -> None:
    old, _ = engine_of(GOOD, stores=stores)
    await old.ask(EXTRACT, UNIT)
    new, chat = engine_of(GOOD.replace("Ada", "Augusta"), stores=stores, reuse=False)
    outcome = await new.ask(EXTRACT, UNIT)
    assert chat.calls == 1
    assert b"Augusta" in stores.answers.get_many(outcome.answers)[outcome.answers[0]]


async def test_a_stored_answer_that_no_longer_parses_is_asked_anew(stores: LocalStores) -> None:
    engine, chat = engine_of(GOOD, stores=stores)
    key = (await engine.ask(EXTRACT, UNIT)).answers[0]
    stores.answers.put_many({key: b"\xff garbage"})
    assert (await engine.ask(EXTRACT, UNIT)).value.entities
    assert chat.calls == 2
    assert stores.answers.get_many([key])[key] == GOOD.encode()


async def test_identical_questions_at_once_are_asked_once(stores: LocalStores) -> None:
    chat = ScriptedChat(lambda messages: GOOD, latency=0.02)
    engine = ModelEngine({"default": chat}, answers=stores.answers)
    outcomes = await asyncio.gather(*(engine.ask(EXTRACT, UNIT) for _ in range(20)))
    assert chat.calls == 1
    assert sum((outcome.usage for outcome in outcomes), Usage()).calls == 1
    assert len({outcome.answers for outcome in outcomes}) == 1


async def test_a_shared_failure_reaches_everyone_and_the_next_one_asks_again() -> None:
    chat = ScriptedChat(Script(TransientModelError("busy"), GOOD), latency=0.02)
    engine = ModelEngine({"default": chat})
    results = await asyncio.gather(*(engine.ask(EXTRACT, UNIT) for _ in range(5)), return_exceptions=True)
    assert all(isinstance(result, TransientModelError) for result in results)
    assert (await engine.ask(EXTRACT, UNIT)).value.entities
    assert chat.calls == 2


async def test_when_the_one_who_asks_is_cancelled_another_takes_over() -> None:
    chat = ScriptedChat(lambda messages: GOOD, latency=0.05)
    engine = ModelEngine({"default": chat})
    asked = [asyncio.ensure_future(engine.ask(EXTRACT, UNIT)) for _ in range(3)]
    await asyncio.sleep(0.01)
    asked[0].cancel()
    results = await asyncio.gather(*asked, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert all(isinstance(result, Outcome) for result in results[1:])
    assert chat.calls == 2


async def test_a_reply_out_of_form_is_repaired_once_and_the_repair_is_stored(stores: LocalStores) -> None:
    prose = "The text mentions Ada & Charles."
    main, fixer = ScriptedChat(lambda messages: prose), ScriptedChat(lambda messages: GOOD)
    engine = ModelEngine({"default": main, "fixing": fixer}, answers=stores.answers)
    outcome = await engine.ask(EXTRACT, UNIT)
    assert [entity.name for entity in outcome.value.entities] == ["Ada", "Charles"]
    assert outcome.usage.calls == 2
    assert stores.answers.get_many(outcome.answers)[outcome.answers[0]] == GOOD.encode()
    assert engine.usage["extraction"].calls == engine.usage["fixing"].calls == 1


async def test_the_fixing_model_is_told_the_form_the_reply_and_what_is_wrong() -> None:
    seen: list[Sequence[Message]] = []

    def fix(messages: Sequence[Message]) -> str:
        seen.append(messages)
        return GOOD

    await ModelEngine({"default": ScriptedChat(lambda messages: "prose"), "fixing": ScriptedChat(fix)}).ask(EXTRACT, UNIT)
    system, user = seen[0]
    assert system.content == FIX.instructions
    assert EXTRACT.instructions in user.content
    assert "\nprose\n" in user.content
    assert "no <entities>" in user.content


async def test_an_item_whose_repair_fails_fails_alone_and_is_not_stored(stores: LocalStores) -> None:
    engine, chat = engine_of("prose", stores=stores)
    with pytest.raises(OutputError, match="repairing it failed") as caught:
        await engine.ask(EXTRACT, UNIT)
    assert caught.value.reply == "prose"
    assert caught.value.subject == "extract"
    assert chat.calls == 2
    assert stores.answers.keys() == []
    assert sum(engine.usage.values(), Usage()).calls == 2


async def test_a_cut_off_reply_keeps_complete_items_and_is_never_stored(stores: LocalStores) -> None:
    engine, chat = engine_of(Reply(text=GOOD[:-90], finish="length", usage=Usage(calls=1)), stores=stores)
    outcome = await engine.ask(EXTRACT, UNIT)
    assert [entity.name for entity in outcome.value.entities] == ["Ada"]
    assert outcome.dropped == 1
    assert outcome.answers == ()
    assert stores.answers.keys() == []
    assert chat.calls == 1


async def test_a_cut_off_reply_without_a_complete_item_is_truncated_and_not_repaired(stores: LocalStores) -> None:
    for text in ("<entities><entity><name>Ad", "", "<think>Let me see"):
        engine, chat = engine_of(Reply(text=text, finish="length"), stores=stores)
        with pytest.raises(TruncatedError, match="max_output_tokens"):
            await engine.ask(EXTRACT, UNIT)
        assert chat.calls == 1
    assert stores.answers.keys() == []


async def test_a_filtered_reply_is_rejected_and_not_stored(stores: LocalStores) -> None:
    engine, _ = engine_of(Reply(text=GOOD, finish="filter"), stores=stores)
    with pytest.raises(RejectedError, match="content filter"):
        await engine.ask(EXTRACT, UNIT)
    assert stores.answers.keys() == []


async def test_an_answer_that_cannot_be_stored_is_not_given(stores: LocalStores) -> None:
    engine, _ = engine_of(GOOD, stores=stores)
    stores.status.acquire_lease("other", 60.0)
    stores.fence(99)
    results = await asyncio.gather(
        *(engine.ask(EXTRACT, ExtractionInput(text=f"Ada {i}")) for i in range(3)), return_exceptions=True
    )
    assert all(isinstance(result, LeaseLostError) for result in results)


async def test_answers_accepted_together_are_stored_in_one_write() -> None:
    class Counting(dict[str, bytes]):
        writes = 0

        def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
            return {key: self[key] for key in keys if key in self}

        def put_many(self, answers: dict[str, bytes]) -> None:
            self.writes += 1
            self.update(answers)

    for threads in (False, True):
        store = Counting()
        engine = ModelEngine({"default": ScriptedChat(lambda messages: GOOD)}, answers=store, threads=threads)  # type: ignore[arg-type]
        await asyncio.gather(*(engine.ask(EXTRACT, ExtractionInput(text=f"Ada {i}")) for i in range(30)))
        assert len(store) == 30
        assert store.writes < 15


async def test_thoughts_of_a_reasoning_model_are_neither_parsed_nor_streamed() -> None:
    draft = f"\n<think>Perhaps {ITEM.format('Nobody')}?</think>\n"
    engine, _ = engine_of(draft + GOOD)
    assert [e.name for e in (await engine.ask(EXTRACT, UNIT)).value.entities] == ["Ada", "Charles"]
    engine, _ = engine_of("<think>Ada is asked for.</think>\n\nIt was Ada [1].")
    *pieces, last = [piece async for piece in engine.stream(ANSWER, QUESTION)]
    assert isinstance(last, Outcome)
    assert "".join(map(str, pieces)) == last.value == "It was Ada [1]."
    engine, _ = engine_of("<thin ice> is cold.")
    *pieces, last = [piece async for piece in engine.stream(ANSWER, QUESTION)]
    assert "".join(map(str, pieces)) == "<thin ice> is cold."


async def test_a_streamed_answer_that_is_filtered_is_an_error_and_a_cut_one_is_counted() -> None:
    engine, _ = engine_of(Reply(text="Ada", finish="filter"))
    with pytest.raises(RejectedError):
        [_ async for _ in engine.stream(ANSWER, QUESTION)]
    engine, _ = engine_of(Reply(text="It was Ada and", finish="length"))
    *_, last = [piece async for piece in engine.stream(ANSWER, QUESTION)]
    assert isinstance(last, Outcome)
    assert (last.value, last.dropped) == ("It was Ada and", 1)


async def test_each_role_asks_its_own_model_and_every_model_is_closed() -> None:
    default, fast = ScriptedChat(lambda m: GOOD), ScriptedChat(lambda m: '{"entities": []}')
    engine = ModelEngine({"default": default, "query_entities": fast, "keywords": fast})
    await engine.ask(EXTRACT, UNIT)
    await engine.ask(QUERY_ENTITIES, QuestionInput(question="Who?"))
    assert (default.calls, fast.calls) == (1, 1)
    assert set(engine.usage) == {"extraction", "query_entities"}
    await engine.aclose()
    assert default.closed
    assert fast.closed


def test_one_engine_serves_several_event_loops(stores: LocalStores) -> None:
    chat = ScriptedChat(lambda messages: GOOD, latency=0.01)
    engine = ModelEngine({"default": chat}, answers=stores.answers)

    async def ask() -> int:
        outcomes = await asyncio.gather(*(engine.ask(EXTRACT, ExtractionInput(text=f"Ada {i % 3}")) for i in range(9)))
        return len(outcomes)

    assert [asyncio.run(ask()) for _ in range(3)] == [9, 9, 9]
    assert chat.calls == 3
