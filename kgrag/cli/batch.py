"""``kgrag search --batch``: many questions, one JSON object per line."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kgrag.cli.outcome import DONE, FAILED, PARTLY
from kgrag.cli.output import print_json
from kgrag.cli.questions import hits_json
from kgrag.errors import (
    ConfigurationError,
    DeadlineExceededError,
    InvalidFilterError,
    ItemError,
    KgragError,
    MethodologyNotIndexedError,
    QueryError,
    UnknownNamespaceError,
    UnknownStrategyError,
)
from kgrag.query.engine import QueryEngine

EVERY_QUESTION = (UnknownNamespaceError, UnknownStrategyError, InvalidFilterError, MethodologyNotIndexedError)
"""Errors that would come back for each question of the batch: it ends at the first."""


async def search_all(engine: QueryEngine, name: str, options: dict[str, Any]) -> int:
    """Search for every question of a file (``-``: standard input); the exit code."""
    done = failed = 0
    for identity, question, problem in _questions(name):
        error: KgragError | None = problem
        started = time.perf_counter()
        if error is None:
            try:
                context = await engine.search(question, **options)
            except EVERY_QUESTION:
                raise
            except (QueryError, DeadlineExceededError, ItemError) as failure:
                error = failure
        milliseconds = round((time.perf_counter() - started) * 1000, 3)
        if error is None:
            done += 1
            print_json({"id": identity, "hits": hits_json(context), "milliseconds": milliseconds})
        else:
            failed += 1
            told = {"type": type(error).__name__, "message": error.message, "remedy": error.remedy}
            print_json({"id": identity, "error": told, "milliseconds": milliseconds})
    if not failed:
        return DONE
    return PARTLY if done else FAILED


def _questions(name: str) -> Iterator[tuple[Any, str, KgragError | None]]:
    """(id, question, what is wrong with the line)."""
    for number, line in enumerate(_lines(name), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            question = row["question"]
        except (ValueError, KeyError, TypeError):
            question = None
            row = {}
        if isinstance(question, str):
            yield row.get("id", number), question, None
        else:
            remedy = 'Write {"id": ..., "question": "..."} on each line.'
            yield number, "", ConfigurationError(f"Line {number} holds no question.", subject=name, remedy=remedy)


def _lines(name: str) -> Iterator[str]:
    if name == "-":
        yield from sys.stdin
        return
    try:
        with Path(name).open(encoding="utf-8") as stream:
            yield from stream
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f'The questions in "{name}" cannot be read: {getattr(error, "strerror", None) or error}.',
            subject=name,
            remedy="Name a JSON Lines file in UTF-8.",
        ) from error
