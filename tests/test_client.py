"""``kgrag.connect``: from files to answers, from Python."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import kgrag
from kgrag.errors import ConfigurationError, UnknownNamespaceError
from kgrag.records import Answer

QUESTION = "Where was Pál Gábor born?"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose namespace ``films`` was ingested by a client."""
    folder = tmp_path_factory.mktemp("client")
    (folder / "angi.txt").write_text("Angi Vera is a Hungarian film of 1978. It was directed by Pál Gábor.\n", encoding="utf-8")
    (folder / "gabor.md").write_text("# Pál Gábor\n\nPál Gábor was born in Budapest in 1932.\n", encoding="utf-8")
    with kgrag.connect(namespace="films", home=str(folder / "home"), models={"embedding": {"provider": "none"}}) as client:
        report = client.ingest(folder / "angi.txt", folder / "gabor.md")
        assert (report.new, report.failures_total) == (2, 0)
    return folder / "home"


@pytest.fixture
def client(home: Path) -> Iterator[kgrag.Client]:
    with kgrag.connect(namespace="films", home=str(home), models={"embedding": {"provider": "none"}}) as client:
        yield client


def test_search_finds_what_was_ingested(client: kgrag.Client) -> None:
    hit = client.search(QUESTION, top_k=1).hits[0]
    assert hit.path == "gabor.md"
    assert "Budapest" in hit.text


def test_answers_are_cited_down_to_the_span(client: kgrag.Client) -> None:
    answer = client.answer(QUESTION)
    assert "Budapest" in answer.text
    citation = answer.citations[0]
    assert (citation.path, citation.quote[:4]) == ("gabor.md", "# Pá") or "Budapest" in citation.quote
    assert citation.start is not None


def test_streams_end_with_the_answer(client: kgrag.Client) -> None:
    pieces = list(client.stream(QUESTION))
    assert isinstance(pieces[-1], Answer)
    assert "".join(p for p in pieces if isinstance(p, str)).strip() == pieces[-1].text


def test_a_stream_can_be_left_early(client: kgrag.Client) -> None:
    stream = client.stream(QUESTION)
    assert next(stream)
    stream.close()
    assert client.search(QUESTION).hits


def test_documents_are_listed(client: kgrag.Client) -> None:
    assert sorted(document.path for document in client.documents()) == ["angi.txt", "gabor.md"]


async def test_every_method_is_asynchronous_too(client: kgrag.Client) -> None:
    found, said = await asyncio.gather(client.asearch(QUESTION), client.aanswer(QUESTION))
    assert found.hits
    assert said.citations
    assert isinstance([piece async for piece in client.astream(QUESTION)][-1], Answer)
    assert len([document async for document in client.adocuments()]) == 2


def test_one_client_serves_many_threads(client: kgrag.Client) -> None:
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(client.search(QUESTION).hits[0].path)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["gabor.md"] * 8


async def test_ingesting_again_is_seen_by_an_open_client(home: Path, tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("Alpha Beta lives in Gamma City.", encoding="utf-8")
    async with kgrag.connect(namespace="growing", home=str(home), models={"embedding": {"provider": "none"}}) as client:
        await client.aingest(tmp_path)
        assert len((await client.asearch("Who lives in Gamma City?")).hits) == 1
        (tmp_path / "two.txt").write_text("Delta Epsilon lives in Gamma City too.", encoding="utf-8")
        await client.aingest(tmp_path)
        assert len((await client.asearch("Who lives in Gamma City?")).hits) == 2


def test_an_unknown_namespace_says_what_to_do(home: Path) -> None:
    with kgrag.connect(namespace="nowhere", home=str(home)) as client, pytest.raises(UnknownNamespaceError) as refused:
        client.search(QUESTION)
    assert "films" in refused.value.remedy


def test_a_wrong_setting_is_refused_at_once() -> None:
    with pytest.raises(ConfigurationError, match="topk"):
        kgrag.connect(search={"topk": 3})


def test_importing_kgrag_loads_nothing_heavy() -> None:
    code = "import kgrag, sys; print([m for m in ('numpy', 'pydantic', 'msgspec', 'asyncio') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
