"""``search.json``: which search files are published, and up to where they have taken in the rows.

It is replaced in one step after the files it names are on disk, so a process killed at any moment leaves the last
published state, and what it had begun is done again.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from kgrag.errors import StoreCorruptError, StoreVersionError

FORMAT = 1
"""Of ``search.json`` and the files it names."""

REBUILD = "The next ingest run rebuilds the search files from index.db; nothing is lost."


class ColumnsState(msgspec.Struct, frozen=True, kw_only=True):
    """A collection's columns. ``slot`` and ``gone`` are the marks up to which rows and notes of removal were taken in;
    ``alive`` names the bitmap of the ``live`` rows of ``rows``; ``dimension`` is 0 where no row has a vector."""

    folder: str
    rows: int = 0
    live: int = 0
    slot: int = 0
    gone: int = 0
    dimension: int = 0
    alive: str = ""


class LexicalState(msgspec.Struct, frozen=True, kw_only=True):
    """A collection's lexical index; ``stamp`` grows with every commit."""

    folder: str
    slot: int = 0
    gone: int = 0
    stamp: int = 0


class CollectionState(msgspec.Struct, frozen=True, kw_only=True):
    columns: ColumnsState
    lexical: LexicalState


class State(msgspec.Struct, frozen=True, kw_only=True):
    """``store`` is the database's own id: the files of another one are not believed."""

    store: str
    format: int = FORMAT
    version: int = 0
    collections: dict[str, CollectionState] = {}


class _Format(msgspec.Struct):
    format: int


def load(path: Path, store: str) -> State:
    """Raises FileNotFoundError, StoreCorruptError, StoreVersionError."""
    raw = path.read_bytes()
    try:
        version = msgspec.json.decode(raw, type=_Format).format
        if version > FORMAT:
            raise StoreVersionError(
                f"{path} has format {version}; this kgrag reads up to {FORMAT}.",
                subject=str(path),
                remedy="Upgrade kgrag, or index into another namespace.",
            )
        state = msgspec.json.decode(raw, type=State)
    except msgspec.DecodeError as error:
        raise StoreCorruptError(f"{path} is damaged ({error}).", subject=str(path), remedy=REBUILD) from error
    if state.store != store:
        raise StoreCorruptError(f"{path} belongs to another index.db.", subject=str(path), remedy=REBUILD)
    return state


def save(path: Path, state: State) -> None:
    fresh = path.with_suffix(".new")
    with open(fresh, "wb") as file:
        file.write(msgspec.json.encode(state))
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, path)
