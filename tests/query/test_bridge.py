from math import exp, log

import pytest

from kgrag.query.bridge import BridgeSettings, bridged

SETTINGS = BridgeSettings()


def test_the_home_of_an_entity_named_by_the_best_passage_gains_most():
    scores = bridged({"film": 1.0, "noise": 0.5}, {"film": ["director"]}, {"director": ["film", "director-page", "other"]},
                     {"director": ["director-page"]}, [], SETTINGS)  # fmt: skip
    assert scores["director-page"] == pytest.approx(0.6)
    assert scores["other"] == pytest.approx(0.6 * 0.5 / log(4))
    assert scores["film"] == 1.0
    assert scores["noise"] == 0.5


def test_a_weaker_passage_has_less_say():
    scores = bridged({"a": 1.0, "b": 0.8}, {"b": ["x"]}, {}, {"x": ["home"]}, [], SETTINGS)
    assert scores["home"] == pytest.approx(0.6 * exp(3.0 * -0.2))


def test_an_entity_that_everyone_cites_leads_to_its_home_only():
    units = [f"u{i}" for i in range(21)]
    scores = bridged({"u0": 1.0}, {"u0": ["hub"]}, {"hub": units}, {"hub": ["u20"]}, [], SETTINGS)
    assert set(scores) == {"u0", "u20"}


def test_entities_of_the_question_lift_their_homes_together():
    scores = bridged({"p": 0.3}, {}, {}, {"x": ["p", "q"]}, ["x"], SETTINGS)
    assert scores == pytest.approx({"p": 0.4, "q": 0.1})


def test_no_weight_changes_nothing():
    base = {"a": 1.0, "b": 0.2}
    off = BridgeSettings(weight=0, asked_weight=0)
    scores = bridged(base, {"a": ["x"]}, {"x": ["a", "c"]}, {}, [], off)
    assert {unit: score for unit, score in scores.items() if score} == base
