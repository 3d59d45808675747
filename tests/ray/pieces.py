"""A chat model for tests on a cluster: it writes down every call, in whatever process it is made."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from kgrag.engine import Engine, ModelEngine
from kgrag.ids import digest
from kgrag.ports import AnswerStore, Message, Reply
from kgrag.records import Usage, encode
from kgrag.tasks.reports import ReportText
from tests.ingest.pieces import read_capitals


class WrittenDown:
    """Answers in ``seconds`` and notes each call in a file of its own process under ``folder``."""

    identity = "written-down"

    def __init__(self, folder: Path, seconds: float) -> None:
        self._file = folder / uuid.uuid4().hex
        self._seconds = seconds
        folder.mkdir(parents=True, exist_ok=True)

    async def complete(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> Reply:
        prompt = messages[-1].content
        await asyncio.sleep(self._seconds)
        with self._file.open("a") as out:
            out.write(digest(messages[0].content, prompt) + "\n")
        if "JSON" in messages[0].content:
            text = encode(ReportText(title=f"Report {digest(prompt)[:6]}", summary="What it says.", rating=5.0)).decode()
        else:
            found = read_capitals("", prompt)
            items = "".join(f"<entity><name>{e.name}</name><type>Thing</type></entity>" for e in found.entities)
            pairs = "".join(
                f"<relationship><source>{r.source}</source><target>{r.target}</target><type>near</type></relationship>"
                for r in found.relationships
            )
            text = f"<entities>{items}</entities><relationships>{pairs}</relationships>"
        return Reply(text=text, usage=Usage(calls=1, input_tokens=len(prompt) // 4, output_tokens=len(text) // 4))

    def stream(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> AsyncIterator[str | Reply]:
        raise AssertionError("ingestion streams nothing")

    async def aclose(self) -> None:
        """Nothing is open."""


def open_engine(folder: Path, seconds: float, answers: AnswerStore, *, threads: bool = False) -> Engine:
    return ModelEngine({"default": WrittenDown(folder, seconds)}, answers=answers, threads=threads)


def calls(folder: Path) -> Counter[str]:
    """How often each prompt was put, by all processes."""
    return Counter(line for file in folder.iterdir() for line in file.read_text().split())


def processes(folder: Path) -> int:
    return len(os.listdir(folder))
