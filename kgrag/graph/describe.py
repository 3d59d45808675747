"""Descriptions that are too long to keep: summarised as a tree over their lines.

Lines are cut into chunks where their own content says so, each chunk is summarised, and the summaries are the next
level's lines. A chunk depends on its lines alone, so one added or removed line asks anew along one path only, and the
result does not depend on history.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec
import pyarrow as pa
from pydantic import Field

from kgrag import schemas
from kgrag.engine import Engine
from kgrag.ids import digest
from kgrag.records import Entity, Relationship, Usage, decode, encode
from kgrag.section import Section
from kgrag.stage import CallStage, RowError
from kgrag.tasks.descriptions import DESCRIBE, DescriptionInput
from kgrag.text import count_tokens

_RECORDS: dict[str, type[Entity] | type[Relationship]] = {"entity": Entity, "relationship": Relationship}


class DescriptionSettings(Section):
    """When the description of an entity or relationship is summarised."""

    max_tokens: int = Field(default=600, ge=1)
    """Tokens above which a description is summarised. From the July 2026 release of the reference."""
    summary_max_tokens: int = Field(default=256, ge=16)
    """Tokens a summary is asked to have at most. From the July 2026 release of the reference."""
    chunk_tokens: int = Field(default=4000, ge=2)
    """Tokens of the lines that one call summarises; more make a tree. From the report budget of the reference."""
    kept_tokens: int = Field(default=8000, ge=1)
    """Tokens of whole lines kept where a summary failed. Twice a call's input."""


def overlong(rows: pa.Table, settings: DescriptionSettings) -> list[int]:
    """Positions of the items (``schemas.ITEMS``) whose description needs a summary."""
    limit = settings.max_tokens
    found = []
    for i, (kind, body) in enumerate(zip(rows["kind"].to_pylist(), rows["body"].to_pylist(), strict=True)):
        if len(body) > limit and kind in _RECORDS:  # a token is at least one character, so a shorter body cannot be over it
            description = decode(body, _Description).description
            if len(description) > limit and count_tokens(description) > limit:
                found.append(i)
    return found


def chunks(lines: Sequence[str], tokens: Sequence[int], limit: int) -> list[list[str]]:
    """Lines cut into chunks of at most ``limit`` tokens (a longer line stands alone), half of it on average: a chunk ends
    after a line whose hash says so, the likelier the longer it is, so that most cuts outlive any other line."""
    out: list[list[str]] = []
    size = 0
    open_chunk = False
    for line, cost in zip(lines, tokens, strict=True):
        if not open_chunk or size + cost > limit:
            out.append([])
            size = 0
        out[-1].append(line)
        size += cost
        open_chunk = int(digest("cut", line)[:8], 16) * limit >= 2 * cost * 2**32
    return out


async def summarise(
    name: str, lines: list[str], engine: Engine, settings: DescriptionSettings, language: str = ""
) -> tuple[str, Usage]:
    """One description of what the lines say, and what it cost. Raises what the engine raises."""
    usage = Usage()
    while True:
        tokens = [count_tokens(line) for line in lines]
        whole = len(lines) == 1 or sum(tokens) <= settings.chunk_tokens
        parts = [lines] if whole else chunks(lines, tokens, settings.chunk_tokens)
        if not whole and len(parts) == len(lines):  # nothing joins: pair neighbours, so that each level is shorter
            parts = [lines[i : i + 2] for i in range(0, len(lines), 2)]
        asked = [
            DescriptionInput(name=name, lines=part, language=language, max_tokens=settings.summary_max_tokens)
            for part in parts
            if whole or len(part) > 1
        ]
        outcomes = await asyncio.gather(*(engine.ask(DESCRIBE, input) for input in asked))
        for outcome in outcomes:
            usage += outcome.usage
        if whole:
            return outcomes[0].value, usage
        answers = iter(outcomes)
        lines = [next(answers).value if len(part) > 1 else part[0] for part in parts]


class DescribeStage(CallStage):
    """Items with their long descriptions summarised. A row whose summary failed keeps its lines, capped, and its error."""

    name: ClassVar[str] = "describe"
    reads: ClassVar[pa.Schema] = schemas.ITEMS
    writes: ClassVar[pa.Schema] = schemas.ITEMS
    role: ClassVar[str] = DESCRIBE.role
    tasks = (DESCRIBE,)

    def __init__(self, settings: DescriptionSettings | None = None, language: str = "") -> None:
        self.settings = settings or DescriptionSettings()
        self.language = language

    def key(self) -> str:
        return digest(self.settings.model_dump_json(), self.language)

    def needed(self, rows: pa.Table) -> list[int]:
        return overlong(rows, self.settings)

    async def row(self, row: dict[str, Any], engine: Engine) -> dict[str, Any]:
        record = _RECORDS.get(row["kind"])
        if record is None:
            return row
        item = decode(row["body"], record)
        if count_tokens(item.description) <= self.settings.max_tokens:
            return row
        name = item.name if isinstance(item, Entity) else f"{item.source_name} - {item.target_name}"
        text, usage = await summarise(name, item.description.split("\n"), engine, self.settings, self.language)
        return {**row, "body": encode(msgspec.structs.replace(item, description=text)), "usage": encode(usage).decode()}

    def failed(self, row: dict[str, Any], error: RowError) -> dict[str, Any]:
        item = decode(row["body"], _RECORDS[row["kind"]])
        kept: list[str] = []
        left = self.settings.kept_tokens
        for line in item.description.split("\n"):
            left -= count_tokens(line)
            if left < 0 and kept:
                break
            kept.append(line)
        body = encode(msgspec.structs.replace(item, description="\n".join(kept)))
        return {**row, "body": body, "error": msgspec.json.encode(error).decode()}


class _Description(msgspec.Struct):
    description: str = ""
