"""What every strategy gets from the engine: checks, filters, budget, answers, citations."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kgrag.backends.local.stores import LocalStores
from kgrag.errors import (
    ConfigurationError,
    DeadlineExceededError,
    InvalidFilterError,
    MethodologyNotIndexedError,
    QueryError,
    UnknownNamespaceError,
    UnknownStrategyError,
)
from kgrag.query.settings import SearchSettings
from kgrag.records import Answer
from tests.query.library import ScriptedEngine, WordEmbedder, query_engine, write_index

STRATEGIES = ["naive", "simple", "local", "global", "hybrid", "mix", "ppr", "bridge"]
QUESTION = "Where was Pál Gábor born?"


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_every_strategy_returns_ranked_located_text_units(films: LocalStores, embedder: WordEmbedder, strategy: str) -> None:
    engine = query_engine(films, embedder=embedder)
    context = await engine.search(QUESTION, strategy=strategy, top_k=3)
    hits = context.hits
    assert context.strategy == strategy
    assert [hit.rank for hit in hits] == [1, 2, 3]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert "Pál Gábor" in {hit.title for hit in hits}
    top = hits[0]
    assert (top.kind, top.path, top.start, top.end) == ("text_unit", "films.jsonl", 0, len(top.text))
    assert top.row is not None
    assert top.page == 1
    assert {section.kind for section in context.sections} == {"text_unit"}


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_every_strategy_works_without_vectors(tmp_path: Path, strategy: str) -> None:
    stores = await write_index(tmp_path)
    context = await query_engine(stores).search(QUESTION, strategy=strategy)
    assert "Pál Gábor" in {hit.title for hit in context.hits}
    stores.close()


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_every_strategy_works_with_vectors_of_text_units_only(tmp_path: Path, strategy: str) -> None:
    embedder = WordEmbedder()
    stores = await write_index(tmp_path, embedder=embedder, vectors=["text_units", "reports"])
    context = await query_engine(stores, embedder=embedder).search(QUESTION, strategy=strategy)
    assert "Pál Gábor" in {hit.title for hit in context.hits}
    assert all(call == [QUESTION] for call in embedder.calls)
    stores.close()


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_the_question_is_embedded_once(films: LocalStores, embedder: WordEmbedder, strategy: str) -> None:
    await query_engine(films, embedder=embedder).search(QUESTION, strategy=strategy)
    assert len(embedder.calls) == 1


@pytest.mark.parametrize("strategy", [s for s in STRATEGIES if s != "global"])
async def test_a_filter_holds_in_every_kind(films: LocalStores, embedder: WordEmbedder, strategy: str) -> None:
    engine = query_engine(films, embedder=embedder)
    where = {"year": {"lt": 1950}, "lang": "en"}
    context = await engine.search(
        QUESTION, strategy=strategy, filter=where, kinds=("text_unit", "entity", "relationship", "report")
    )
    hits = context.hits
    assert hits
    assert {hit.title for hit in hits} <= {"Pál Gábor", "Budapest"}
    passing = {hit.id for hit in (await engine.search("Budapest Gábor", strategy="naive", filter=where, top_k=50)).hits}
    for section in context.sections:
        assert section.kind != "report"
        assert all(passing & set(hit.text_unit_ids) for hit in section.hits), section.kind


async def test_global_refuses_a_filter(films: LocalStores) -> None:
    with pytest.raises(InvalidFilterError, match="global"):
        await query_engine(films).search(QUESTION, strategy="global", filter={"year": 1932})


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_answers_cite_what_the_model_saw(films: LocalStores, embedder: WordEmbedder, strategy: str) -> None:
    engine = query_engine(
        films, embedder=embedder, engine=ScriptedEngine(answer=lambda given: "Budapest [1], see [99] and [1][2].")
    )
    answer = await engine.answer(QUESTION, strategy=strategy)
    assert answer.text == "Budapest [1], see and [1][2]."
    assert [c.number for c in answer.citations] == [1, 2]
    shown = [hit for section in answer.context.sections for hit in section.hits]
    for citation in answer.citations:
        hit = shown[citation.number - 1]
        assert (citation.kind, citation.id) == (hit.kind, hit.id)
        assert citation.text_unit_id in hit.text_unit_ids
        assert citation.path == "films.jsonl"
        assert citation.row is not None
        assert citation.end == len(citation.quote)
    assert answer.usage.calls >= 1
    assert answer.milliseconds > 0


async def test_streaming_gives_text_before_the_end_and_then_the_answer(films: LocalStores) -> None:
    engine = query_engine(films, engine=ScriptedEngine(answer=lambda given: "In Budapest [1] [77], on the Danube."))
    parts = [part async for part in engine.stream(QUESTION)]
    answer = parts[-1]
    assert isinstance(answer, Answer)
    assert len(parts) > 4
    assert "".join(p for p in parts if isinstance(p, str)).strip() == answer.text == "In Budapest [1], on the Danube."
    assert [c.number for c in answer.citations] == [1]


async def test_an_empty_context_is_answered_without_a_model(films: LocalStores) -> None:
    model = ScriptedEngine()
    engine = query_engine(films, engine=model)
    answer = await engine.answer("xylophone zebra?", strategy="naive")
    assert answer.abstained == "no_context"
    assert answer.citations == []
    assert model.asked == []
    parts = [part async for part in engine.stream("xylophone zebra?", strategy="naive")]
    assert parts[0] == answer.text
    assert isinstance(parts[1], Answer)


async def test_an_index_without_the_methodology_is_refused_before_any_model_call(tmp_path: Path) -> None:
    stores = await write_index(tmp_path, artifacts=frozenset({"text_units", "entities", "relationships", "graph"}))
    model = ScriptedEngine()
    engine = query_engine(stores, engine=model)
    with pytest.raises(MethodologyNotIndexedError, match="communities and reports"):
        await engine.answer(QUESTION, strategy="local")
    assert model.asked == []
    assert (await engine.search(QUESTION, strategy="naive")).hits
    stores.close()


async def test_an_index_of_another_embedding_is_refused(films: LocalStores) -> None:
    with pytest.raises(ConfigurationError, match="words-64") as refused:
        await query_engine(films, embedder=WordEmbedder(identity="other")).search(QUESTION)
    assert "ingest" in refused.value.remedy


async def test_a_rebuilt_index_is_seen_without_a_restart(films: LocalStores, embedder: WordEmbedder) -> None:
    record = films.status.read_value("build")
    films.status.write_value("build", {**record, "artifacts": ["text_units"]})
    engine = query_engine(films, embedder=embedder)
    with pytest.raises(MethodologyNotIndexedError):
        await engine.search(QUESTION, strategy="ppr")
    films.status.write_value("build", record)
    assert (await engine.search(QUESTION, strategy="ppr")).hits


async def test_a_namespace_without_a_build_is_unknown(films: LocalStores) -> None:
    films.status.write_value("build", None)
    with pytest.raises(UnknownNamespaceError, match="films"):
        await query_engine(films).search(QUESTION)


@pytest.mark.parametrize(
    ("question", "options", "error"),
    [
        ("  ", {}, QueryError),
        ("x" * 20_001, {}, QueryError),
        (QUESTION, {"top_k": 0}, QueryError),
        (QUESTION, {"timeout_seconds": 0}, QueryError),
        (QUESTION, {"filter": {"year": {"near": 3}}}, InvalidFilterError),
        (QUESTION, {"strategy": "locl"}, UnknownStrategyError),
        (QUESTION, {"search_type": "vector"}, ConfigurationError),
    ],
)
async def test_wrong_requests_say_what_to_do(films: LocalStores, question: str, options: dict, error: type[Exception]) -> None:
    with pytest.raises(error) as refused:
        await query_engine(films).search(question, **options)
    assert refused.value.remedy


async def test_an_unknown_strategy_names_the_nearest(films: LocalStores) -> None:
    with pytest.raises(UnknownStrategyError, match='Did you mean "local"'):
        await query_engine(films).search(QUESTION, strategy="locl")


async def test_a_question_past_its_time_ends(films: LocalStores) -> None:
    class Slow(ScriptedEngine):
        async def ask(self, task, input, *, sample=0):
            await asyncio.sleep(30)

    engine = query_engine(films, engine=Slow())
    with pytest.raises(DeadlineExceededError):
        await engine.answer(QUESTION, timeout_seconds=0.05)
    with pytest.raises(DeadlineExceededError):
        [_ async for _ in engine.stream(QUESTION, timeout_seconds=0.05)]


async def test_a_weak_embedding_does_not_lead(films: LocalStores) -> None:
    embedder = WordEmbedder(strong=False)
    weak = query_engine(films, embedder=embedder, settings=SearchSettings(vector_weight=5.0))
    context = await weak.search(QUESTION, strategy="naive")
    lexical = await weak.search(QUESTION, strategy="naive", search_type="lexical")
    assert context.hits[0].id == lexical.hits[0].id


async def test_chinese_questions_find_chinese_text(films: LocalStores, embedder: WordEmbedder) -> None:
    hits = (await query_engine(films, embedder=embedder).search("战国无双3是由哪两个公司开发的？", strategy="mix")).hits
    assert hits[0].title == "战国无双3"
