"""The stores of a run on a Ray cluster: one actor holds them and the lease, on the node that owns their files.

The actor is not detached: it dies with its driver, and its lease runs out."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

from kgrag.errors import ConfigurationError, KgragError, LeaseHeldError, MissingExtraError, StoreUnavailableError
from kgrag.ingest.lease import namespace_lease
from kgrag.ingest.run import IngestParts
from kgrag.ingest.side import StoreSide
from kgrag.ingest.stop import Stop
from kgrag.ingest.tables import TableRoot

P = ParamSpec("P")
R = TypeVar("R")

POLL_SECONDS = 0.25
"""How often a process of the cluster asks whether the run is to stop."""

_GROUPS = {"steps": 1, "answers": 8, "control": 2}
"""Threads of the store actor: steps run one at a time, answers and the stop beside them."""


class StoreActor:
    """The stores and the lease of a run, in one process."""

    def __init__(self, parts: IngestParts) -> None:
        self._parts = parts
        self._stop = Stop()
        self._lease: Any = None
        self._side: StoreSide | None = None

    def open(self) -> None:
        """Raises LeaseHeldError, StoreError."""
        stores = self._parts.open_stores()
        settings = self._parts.settings.run
        lease = namespace_lease(stores, settings.lease_seconds)
        try:
            lease.__enter__()
        except BaseException:
            stores.close()
            raise
        self._lease = lease
        self._side = StoreSide(stores, TableRoot(settings.tables or self._parts.tables), settings, self._stop, uuid.uuid4().hex)

    def step(self, step: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return step(self._held, *args, **kwargs)

    def close(self) -> None:
        side, self._side = self._side, None
        if side is not None:
            try:
                self._lease.__exit__(None, None, None)
            finally:
                side.stores.close()

    def ask_stop(self) -> None:
        self._stop.ask()

    def stopping(self) -> bool:
        return self._stop.asked

    def get_answers(self, keys: list[str]) -> dict[str, bytes]:
        return self._held.stores.answers.get_many(keys)

    def put_answers(self, answers: dict[str, bytes]) -> None:
        self._held.stores.answers.put_many(answers)

    def delete_answers(self, keys: list[str]) -> None:
        self._held.stores.answers.delete_many(keys)

    def answer_keys(self, after: str, limit: int) -> list[str]:
        return self._held.stores.answers.keys(after=after, limit=limit)

    @property
    def _held(self) -> StoreSide:
        if self._side is None:
            raise StoreUnavailableError("The run's stores are closed.", remedy="Start the run again; it goes on.")
        return self._side


class StoreHandle:
    """The store actor as the driver sees it. ``there`` schedules work on its node."""

    def __init__(self, ray: Any, parts: IngestParts) -> None:
        self._ray = ray
        self.there = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            node_id=ray.get_runtime_context().get_node_id(), soft=False
        )
        made = ray.remote(num_cpus=0, max_restarts=0, max_task_retries=0, concurrency_groups=_GROUPS)(StoreActor)
        name = f"kgrag-store-{parts.namespace}"
        try:
            self.actor = made.options(name=name, scheduling_strategy=self.there).remote(parts)
        except ValueError as error:
            raise LeaseHeldError(
                f'A run of namespace "{parts.namespace}" is at work on this cluster.', subject=name, remedy="Wait for it to end."
            ) from error

    async def step(self, step: Callable[Concatenate[StoreSide, P], R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a step in the actor."""
        found: R = await self.call("step", step, args, kwargs)
        return found

    async def call(self, method: str, *args: Any) -> Any:
        reference = getattr(self.actor, method).options(concurrency_group="steps").remote(*args)
        try:
            return await asyncio.wrap_future(reference.future())
        except self._ray.exceptions.RayError as error:
            raise cause_of(error) from None

    async def pass_on(self, stop: Stop) -> None:
        """Tell the cluster of a stop once it is asked for."""
        while not stop.asked:  # noqa: ASYNC110  a signal handler sets it, which knows no event loop
            await asyncio.sleep(POLL_SECONDS)
        self.actor.ask_stop.options(concurrency_group="control").remote()

    async def close(self) -> None:
        try:
            await self.call("close")
        finally:
            self._ray.kill(self.actor)


class StoredAnswers:
    """The answers of a run, asked of the store actor. What a lost worker had asked is found there by its replacement."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        found: dict[str, bytes] = self._call("get_answers", list(keys))
        return found

    def put_many(self, answers: Mapping[str, bytes]) -> None:
        self._call("put_answers", dict(answers))

    def delete_many(self, keys: Iterable[str]) -> None:
        self._call("delete_answers", list(keys))

    def keys(self, *, after: str = "", limit: int = 1000) -> list[str]:
        found: list[str] = self._call("answer_keys", after, limit)
        return found

    def _call(self, method: str, *args: Any) -> Any:
        import ray

        return ray.get(getattr(self._store, method).options(concurrency_group="answers").remote(*args))


class NoAnswers:
    """For an engine that is only asked who it is."""

    def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        return {}

    def put_many(self, answers: Mapping[str, bytes]) -> None:
        """Nothing is kept."""

    def delete_many(self, keys: Iterable[str]) -> None:
        """Nothing is there."""

    def keys(self, *, after: str = "", limit: int = 1000) -> list[str]:
        return []


def cause_of(error: BaseException) -> BaseException:
    """The error of ours that Ray wrapped, if there is one; a lost store actor by what it means."""
    from ray.exceptions import ActorDiedError, ActorUnavailableError

    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        found = waiting.pop()
        if found is None or id(found) in seen:
            continue
        seen.add(id(found))
        if isinstance(found, KgragError) and type(found).__module__ == KgragError.__module__:
            return found
        waiting += [found.__context__, found.__cause__, getattr(found, "cause", None)]
    if isinstance(error, (ActorDiedError, ActorUnavailableError)):
        return StoreUnavailableError("The process that holds the stores was lost.", remedy="Run the same command again to go on.")
    return error


def connected_ray() -> Any:
    """Ray, connected to a cluster on which this process runs. Raises MissingExtraError, ConfigurationError."""
    try:
        import ray
        import ray.data
        import ray.util.scheduling_strategies
    except ModuleNotFoundError as error:
        raise MissingExtraError("Ray is not installed.", remedy='pip install "kgrag[ray]"') from error
    if not ray.is_initialized():
        raise ConfigurationError("This process is connected to no Ray cluster.", remedy="Call ray.init() first.")
    as_client: Any = ray.util.client.ray.is_connected
    if as_client():
        raise ConfigurationError(
            "A Ray Client connection cannot pin the stores to the node that owns their files.",
            remedy="Run on the cluster itself: ray job submit -- python jobs/ingest.py ...",
        )
    return ray
