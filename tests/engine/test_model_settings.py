from __future__ import annotations

import pytest
from pydantic import ValidationError

from kgrag.engine.settings import ROLES, ModelSettings, ModelsSettings
from kgrag.errors import ConfigurationError
from kgrag.tasks.answers import ANSWER
from kgrag.tasks.descriptions import DESCRIBE
from kgrag.tasks.extraction import CLAIMS, EXTRACT, GLEAN
from kgrag.tasks.query import KEYWORDS, MAP_REPORTS, QUERY_ENTITIES
from kgrag.tasks.repair import FIX
from kgrag.tasks.reports import REPORT

BIG = ModelSettings(provider="openai", model="big")
SMALL = ModelSettings(provider="openai", model="small")
OWN = ModelSettings(provider="openai", model="own")


def test_nothing_set_means_no_model() -> None:
    assert all(ModelsSettings().of(role).provider == "extractive" for role in ROLES)


def test_simple_tasks_ask_the_fast_tier_where_there_is_one() -> None:
    tiers = ModelsSettings(default=BIG, fast=SMALL)
    assert [tiers.of(role).model for role in ("extraction", "answer", "keywords", "fixing")] == ["big", "big", "small", "small"]
    assert ModelsSettings(default=BIG).of("keywords") is BIG


def test_a_role_can_name_a_tier_or_a_model_of_its_own() -> None:
    models = ModelsSettings(default=BIG, fast=SMALL, roles={"reports": "fast", "keywords": "default", "answer": OWN})
    assert [models.of(role).model for role in ("reports", "keywords", "answer", "claims")] == ["small", "big", "own", "big"]


def test_unknown_roles_and_nameless_models_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="extraction, gleaning"):
        ModelsSettings().of("dreaming")
    with pytest.raises(ValidationError):
        ModelsSettings(roles={"dreaming": "fast"})  # type: ignore[dict-item]
    with pytest.raises(ValidationError, match="needs a name"):
        ModelSettings(provider="openai")


def test_every_task_has_a_role_and_every_role_a_task() -> None:
    tasks = (EXTRACT, GLEAN, CLAIMS, DESCRIBE, REPORT, KEYWORDS, QUERY_ENTITIES, MAP_REPORTS, ANSWER, FIX)
    assert {task.role for task in tasks} == set(ROLES)
    assert len({task.name for task in tasks}) == len(tasks)


def test_keys_are_shown_nowhere() -> None:
    shown = ModelsSettings(default=ModelSettings(provider="openai", model="m", api_key="sk-secret"))  # type: ignore[arg-type]
    assert "sk-secret" not in repr(shown)
    assert "sk-secret" not in shown.model_dump_json()
