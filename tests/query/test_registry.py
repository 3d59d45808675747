from __future__ import annotations

import pytest

from kgrag.backends.local.stores import LocalStores
from kgrag.errors import ConfigurationError
from kgrag.query.found import Found
from kgrag.query.question import Question
from kgrag.query.strategies.registry import BUILT_IN, Registry
from kgrag.query.strategies.strategy import StrategySpec
from tests.query.library import query_engine


class Newest:
    """Text units by words alone."""

    async def find(self, question: Question) -> Found:
        calls = question.rankings("text_units", question.top_k, name="words", search_type="lexical")
        return Found(legs=list(await question.access.together(*calls)), notes=["from elsewhere"])


def spec(name: str = "newest", aliases: tuple[str, ...] = ()) -> StrategySpec:
    return StrategySpec(
        name=name,
        summary="A third party's.",
        methodology="",
        artifacts=frozenset({"text_units"}),
        make=lambda settings: Newest(),
        aliases=aliases,
    )


async def test_a_strategy_of_a_third_party_is_asked_like_any_other(films: LocalStores) -> None:
    engine = query_engine(films, strategies=Registry([spec(aliases=("latest",))]))
    for name in ("newest", "latest"):
        context = await engine.search("Budapest Danube?", strategy=name)
        assert context.strategy == "newest"
        assert context.notes == ["from elsewhere"]
        assert context.hits[0].title == "Budapest"


@pytest.mark.parametrize("taken", [spec("mix"), spec("mine", aliases=("basic",))])
def test_a_taken_name_is_refused(taken: StrategySpec) -> None:
    with pytest.raises(ConfigurationError, match="Two strategies"):
        Registry([taken])


def test_every_built_in_strategy_says_what_it_needs() -> None:
    specs = {s.name: s for s in Registry()}
    assert tuple(specs) == BUILT_IN
    assert all("text_units" in s.artifacts and s.summary and s.methodology for s in specs.values())
    assert Registry().get("hipporag").name == "ppr"
