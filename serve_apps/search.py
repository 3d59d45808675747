"""Ray Serve: one ingress, one deployment per strategy, and one that embeds questions in batches where that pays.

    serve run serve_apps.search:app                                         # configuration from KGRAG_CONFIG
    serve run serve_apps.search:build config=configs/local.yaml namespace=films strategies=mix,naive

A request takes one hop, from the ingress to its strategy; a question is embedded in the strategy's own replica where the
model is local and light, else in the shared deployment (facts: a hop costs more than a retrieval)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import numpy as np
from fastapi import FastAPI
from ray import serve
from ray.exceptions import RayActorError, RayTaskError
from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError
from ray.serve.handle import DeploymentHandle

from kgrag import build as parts
from kgrag.errors import KgragError, StoreUnavailableError, UnknownStrategyError
from kgrag.ports import Embedder, Vector
from kgrag.query.engine import QueryEngine
from kgrag.query.serving import OpenEngines
from kgrag.query.strategies.registry import Registry
from kgrag.settings import Settings, load
from serve_apps.api import Reply, make_app
from serve_apps.replica import Replica

EMBEDDING = "embedding"


class SharedEmbedder:
    """The embedder of a strategy's replica: its questions are embedded by the shared deployment. Passages are not."""

    def __init__(self, own: Embedder, handle: DeploymentHandle) -> None:
        self.identity, self.dimension, self.strong, self.remote = own.identity, own.dimension, own.strong, own.remote
        self._own = own
        self._handle = handle

    async def queries(self, texts: Sequence[str]) -> Vector:
        try:
            vectors: Vector = await self._handle.embed.remote(list(texts))
        except RayTaskError as error:
            raise (error.cause if isinstance(error.cause, KgragError) else error) from None
        return vectors

    async def passages(self, texts: Sequence[str]) -> Vector:
        return await self._own.passages(texts)

    async def aclose(self) -> None:
        await self._own.aclose()


class Embedding:
    """Questions of all strategies, embedded together: one call at a time, what arrives during a call makes the next.

    ``serve.batch`` closes a batch after its wait even while an earlier one still runs, so questions are held back until no
    call runs: one that comes alone is embedded at once, those of many clients come in full batches."""

    def __init__(self, settings: Settings) -> None:
        self._embedder = parts.make_embedder(settings)
        self._idle = asyncio.Event()
        self._idle.set()
        self._together.set_max_batch_size(settings.serve.embedding_batch_size)
        self._together.set_batch_wait_timeout_s(settings.serve.embedding_batch_wait_seconds)

    async def embed(self, texts: list[str]) -> Vector:
        """One vector per text."""
        await self._idle.wait()
        vectors: Vector = await self._together(texts)
        return vectors

    @serve.batch(max_concurrent_batches=1)
    async def _together(self, requests: list[list[str]]) -> list[Vector]:
        self._idle.clear()
        try:
            vectors = await self._embedder.queries([text for texts in requests for text in texts])
        finally:
            self._idle.set()
        ends = np.cumsum([len(texts) for texts in requests])
        return np.split(vectors, ends[:-1])


class StrategyReplica:
    """One strategy over every namespace it is asked for."""

    def __init__(self, settings: Settings, embedding: DeploymentHandle | None) -> None:
        engine = parts.make_engine(settings)
        embedder = parts.make_embedder(settings)
        if embedder is not None and embedding is not None:
            embedder = SharedEmbedder(embedder, embedding)

        async def open_engine(namespace: str) -> QueryEngine:
            return await parts.open_query_engine(settings, namespace, engine=engine, embedder=embedder)

        engines = OpenEngines(open_engine, settings.serve.open_namespaces)
        self._replica = Replica(engines, settings.namespace, settings.serve)

    async def search(self, asked: dict[str, Any]) -> Reply:
        return await self._replica.search(asked)

    async def answer(self, asked: dict[str, Any]) -> Reply:
        return await self._replica.answer(asked)

    async def stream(self, asked: dict[str, Any]) -> AsyncGenerator[Reply | bytes, None]:
        async for piece in self._replica.stream(asked):
            yield piece


class RayBackend:
    """Requests to the deployments of their strategies."""

    cancels = True  # Ray Serve cancels the request of a client that goes away, and what it called

    def __init__(self, settings: Settings, handles: dict[str, DeploymentHandle]) -> None:
        self._settings = settings
        self._handles = handles
        self._streams = {name: handle.options(stream=True) for name, handle in handles.items()}
        self._strategies = Registry()
        self._refusals = Replica(OpenEngines(_no_engine, 1), settings.namespace, settings.serve)

    async def search(self, asked: dict[str, Any]) -> Reply:
        return await self._call("search", asked)

    async def answer(self, asked: dict[str, Any]) -> Reply:
        return await self._call("answer", asked)

    async def stream(self, asked: dict[str, Any]) -> AsyncGenerator[Reply | bytes, None]:
        try:
            async for piece in self._streams[self._name(asked)].stream.remote(asked):
                yield piece
        except KgragError as error:
            yield self._refusals.failed(error)
        except BackPressureError:
            yield self._refusals.overloaded()
        except (RayActorError, DeploymentUnavailableError) as error:
            yield self._refusals.failed(_down(error))

    async def namespaces(self) -> list[str]:
        return parts.namespaces(self._settings)

    async def _call(self, method: str, asked: dict[str, Any]) -> Reply:
        try:
            reply: Reply = await getattr(self._handles[self._name(asked)], method).remote(asked)
            return reply
        except KgragError as error:
            return self._refusals.failed(error)
        except BackPressureError:
            return self._refusals.overloaded()
        except (RayActorError, DeploymentUnavailableError) as error:
            return self._refusals.failed(_down(error))

    def _name(self, asked: dict[str, Any]) -> str:
        name = self._strategies.get(asked.get("strategy") or self._settings.search.strategy).name
        if name not in self._handles:
            raise UnknownStrategyError(
                f'Strategy "{name}" is not served here.', subject=name, remedy=f"Served: {', '.join(sorted(self._handles))}."
            )
        return name


def deploy(settings: Settings, strategies: Sequence[str]) -> serve.Application:
    """The application with these strategies. A request that names none gets the configured one, or the first where that is
    not served."""
    if Registry().get(settings.search.strategy).name not in strategies:
        settings = settings.model_copy(update={"search": settings.search.model_copy(update={"strategy": strategies[0]})})
    own = settings.serve
    options = {
        "max_ongoing_requests": own.max_ongoing_requests,
        "max_queued_requests": own.max_queued_requests,
        "ray_actor_options": {"num_cpus": own.replica_cpus},
        "autoscaling_config": {
            "min_replicas": 1,
            "max_replicas": own.max_replicas,
            "target_ongoing_requests": own.target_ongoing_requests,
        },
    }
    embedding = None
    if own.shared_embedding if own.shared_embedding is not None else parts.shares_embedding(settings):
        wide = {**options, "max_ongoing_requests": 4 * own.embedding_batch_size, "max_queued_requests": -1}
        embedding = serve.deployment(Embedding).options(name=EMBEDDING, **wide).bind(settings)
    replicas = {
        name: serve.deployment(StrategyReplica).options(name=name, **options).bind(settings, embedding) for name in strategies
    }

    def make() -> FastAPI:
        backend = RayBackend(settings, {name: serve.get_deployment_handle(name) for name in strategies})
        return make_app(lambda: backend, max_body_bytes=own.max_body_bytes)

    everyone = own.max_ongoing_requests * max(len(strategies), 1)
    ingress = serve.deployment(serve.ingress(make)()).options(
        name="ingress",
        max_ongoing_requests=everyone + own.max_queued_requests,
        ray_actor_options={"num_cpus": own.replica_cpus},
    )
    return ingress.bind(*replicas.values())


def build(args: dict[str, str]) -> serve.Application:
    """The application of ``serve run serve_apps.search:build``: ``config`` is a configuration file, ``strategies`` a
    comma-separated list (all by default), ``namespace`` the default one; any other argument is a setting by its dotted name."""
    given = dict(args)
    config = given.pop("config", None)
    wanted = given.pop("strategies", "")
    settings = load(config, flags=[f"{key}={value}" for key, value in given.items()]).settings
    registry = Registry()
    names = [registry.get(name.strip()).name for name in wanted.split(",") if name.strip()] or [spec.name for spec in registry]
    return deploy(settings, names)


def __getattr__(name: str) -> Any:
    if name == "app":  # built when it is asked for, so that importing this module reads no configuration
        return build({})
    raise AttributeError(name)


async def _no_engine(namespace: str) -> QueryEngine:
    raise StoreUnavailableError("The ingress opens no index.", subject=namespace)


def _down(error: Exception) -> StoreUnavailableError:
    return StoreUnavailableError("The strategy's replica went away.", subject=type(error).__name__, remedy="Ask again.")
