from __future__ import annotations

from math import exp, log
from pathlib import Path

import pytest

from kgrag.backends.local.stores import LocalStores
from kgrag.query.bridge import BridgeSettings, bridged, shared_out
from kgrag.query.settings import SearchSettings
from tests.query.library import Passage, query_engine, write_index

SETTINGS = BridgeSettings()


def test_the_home_of_an_entity_named_by_the_best_passage_gains_most() -> None:
    gained = bridged(
        {"film": 1.0}, {"film": ["director"]}, {"director": ["film", "page", "other"]}, {"director": ["page"]}, SETTINGS
    )
    assert gained == pytest.approx({"page": 1.0, "other": 0.5 / log(4)})


def test_a_weaker_passage_has_less_say_and_the_strongest_bridge_counts() -> None:
    cited = {"a": ["x"], "b": ["x", "y"]}
    lineage = {"x": ["a", "b", "home"], "y": ["b", "yard"]}
    gained = bridged({"a": 1.0, "b": 0.8}, cited, lineage, {"x": ["home"], "y": ["yard"]}, SETTINGS)
    assert gained["home"] == 1.0
    assert gained["yard"] == pytest.approx(exp(3.0 * -0.2))


def test_an_entity_that_everyone_cites_leads_to_its_home_only() -> None:
    units = [f"u{i}" for i in range(21)]
    assert bridged({"u0": 1.0}, {"u0": ["hub"]}, {"hub": units}, {"hub": ["u20"]}, SETTINGS) == {"u20": 1.0}


def test_entities_of_the_question_lift_their_homes_together() -> None:
    assert shared_out({"x": ["p", "q"], "y": ["q"]}, ["x", "y", "x", "z"]) == {"p": 0.5, "q": 1.0}


QUESTION = "In which city was the director of Angi Vera born?"


async def titles(stores: LocalStores, bridge: BridgeSettings) -> list[str]:
    settings = SearchSettings(bridge=bridge)
    return [hit.title for hit in (await query_engine(stores, settings=settings).search(QUESTION, strategy="bridge")).hits]


async def test_the_second_hop_is_found_over_the_bridge(tmp_path: Path) -> None:
    decoys = [Passage(f"City {n}", f"In which city was the director {n} born? Nobody knows the city.", [], []) for n in range(5)]
    films = [
        Passage("Angi Vera", "Angi Vera is a film by Pál Gábor.", ["Angi Vera", "Pál Gábor"], []),
        Passage("Pal Gabor (filmmaker)", "He came from Budapest.", ["Budapest"], []),
    ]
    stores = await write_index(tmp_path, [*films, *decoys])
    with_bridges = await titles(stores, BridgeSettings(top_passages=8))
    without = await titles(stores, BridgeSettings(weight=0, asked_weight=0))
    assert "Pal Gabor (filmmaker)" not in without
    assert "Pal Gabor (filmmaker)" in with_bridges[:3]
    stores.close()


async def test_titles_named_in_the_question_lead_home_in_every_script(films: LocalStores) -> None:
    for question, title in (("tell me about free guy", "Free Guy"), ("请介绍战国无双3这个游戏", "战国无双3")):
        context = await query_engine(films).search(question, strategy="bridge")
        top = context.hits[0]
        assert top.title == title
        assert "named_homes" in top.sources


async def test_bridges_keep_to_the_filter(films: LocalStores) -> None:
    context = await query_engine(films).search("Who made Angi Vera?", strategy="bridge", filter={"year": 1978})
    assert {hit.title for hit in context.hits} == {"Angi Vera"}
