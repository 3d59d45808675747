"""What an index holds, and whether a strategy can be served from it: checked before any model call."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import msgspec

from kgrag.errors import ConfigurationError, MethodologyNotIndexedError, UnknownNamespaceError
from kgrag.index.profile import BuildRecord, methodologies_held
from kgrag.query.access import Access

_FRESH_SECONDS = 2.0


class BuildCheck:
    """The build record of one namespace. It is read again after two seconds, and always before a refusal, so that an index
    built by another process is seen without a restart."""

    def __init__(self, access: Access, namespace: str) -> None:
        self._access = access
        self._namespace = namespace
        self._record: BuildRecord | None = None
        self._read_at = float("-inf")

    async def record(self) -> BuildRecord:
        """Raises UnknownNamespaceError where nothing was ever built."""
        if time.monotonic() - self._read_at > _FRESH_SECONDS:
            await self._read()
        record = self._record if self._record is not None else await self._read()
        if record is None:
            raise UnknownNamespaceError(
                f'Namespace "{self._namespace}" holds no index.',
                subject=self._namespace,
                remedy=f"Build one: kgrag ingest --namespace {self._namespace} <documents>.",
            )
        return record

    async def require(self, strategy: str, artifacts: Iterable[str], embedding: str | None, analyzer: str) -> BuildRecord:
        """The record, if it holds ``artifacts`` and was built with this embedding (None: vectors are not used) and analyzer.

        Raises MethodologyNotIndexedError, ConfigurationError, UnknownNamespaceError."""
        record = await self.record()
        if _fits(record, artifacts, embedding, analyzer):
            return record
        self._read_at = float("-inf")
        record = await self.record()
        _refuse_missing(record, strategy, frozenset(artifacts), self._namespace)
        _refuse_other(record, embedding, analyzer, self._namespace)
        return record

    async def _read(self) -> BuildRecord | None:
        value: Any = await self._access.one(lambda: self._access.status.read_value("build"))
        self._record = None if value is None else msgspec.convert(value, BuildRecord)
        self._read_at = time.monotonic()
        return self._record


def _fits(record: BuildRecord, artifacts: Iterable[str], embedding: str | None, analyzer: str) -> bool:
    same_vectors = embedding is None or not record.embedding or record.embedding == embedding
    return same_vectors and record.analyzer in ("", analyzer) and set(artifacts) <= set(record.artifacts)


def _refuse_missing(record: BuildRecord, strategy: str, artifacts: frozenset[str], namespace: str) -> None:
    missing = artifacts - set(record.artifacts)
    if not missing:
        return
    held = ", ".join(methodologies_held(record.artifacts)) or "none"
    raise MethodologyNotIndexedError(
        f'Strategy "{strategy}" reads {_words(missing)}, which namespace "{namespace}" does not hold (complete there: {held}).',
        subject=strategy,
        remedy="Choose another strategy, or ingest again with a methodology that builds them in index.methodologies.",
    )


def _refuse_other(record: BuildRecord, embedding: str | None, analyzer: str, namespace: str) -> None:
    if embedding is not None and record.embedding not in ("", embedding):
        raise ConfigurationError(
            f'Namespace "{namespace}" was embedded with {record.embedding}, the configuration embeds questions with {embedding}.',
            subject=namespace,
            remedy="Configure the index's embedding, or rebuild it: kgrag ingest --reset.",
        )
    if record.analyzer not in ("", analyzer):
        raise ConfigurationError(
            f'Namespace "{namespace}" was analysed with {record.analyzer}, the configuration analyses questions with {analyzer}.',
            subject=namespace,
            remedy="Configure the index's language, or rebuild it: kgrag ingest --reset.",
        )


def _words(names: Iterable[str]) -> str:
    return " and ".join(name.replace("_", " ") for name in sorted(names))
