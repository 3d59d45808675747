"""The lexical index of one collection: tantivy over tokens that are only split at spaces.

Scores are Lucene's BM25 (k1 1.2, b 0.75; tantivy's own, which keep the factor k1 + 1, divided by it).
A document is a row that has tokens; it carries its slot, and nothing else.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import tantivy

from kgrag.backends.local import failures
from kgrag.backends.local.published import REBUILD, LexicalState
from kgrag.errors import StoreCorruptError, StoreError, StoreUnavailableError

_K1_PLUS_1 = 2.2
_ANALYZER = "spaces"
_SMALL_HEAP, _LARGE_HEAP = 15_000_000, 40_000_000
"""Bytes; the smaller is the least tantivy takes, the larger keeps a bulk load in few segments."""

_LARGE_LOAD = 5_000
_DIGITS = 4
"""Scores are rounded to so many decimals: a sum in another order must not break a tie."""


class Lexical:
    """A snapshot for searching."""

    def __init__(self, root: Path, state: LexicalState, before: Lexical | None = None) -> None:
        """``before`` is an older snapshot, reloaded where it stands in the same folder.
        Raises FileNotFoundError where the folder is gone, StoreCorruptError, StoreUnavailableError."""
        folder = self._folder = root / state.folder
        self.state = state
        self._index: Any
        self._private: bool
        if before is not None and before.state.folder == state.folder and not before._private:
            self._index, self._private = before._index, False
            with _tantivy_errors(folder):
                self._index.reload()
        else:
            self._index, self._private = _opened(folder)
        self._searcher = self._index.searcher()
        self._schema = self._index.schema

    def search(self, tokens: Sequence[str], limit: int, slots: Sequence[int] | None = None) -> list[tuple[float, int]]:
        """(score, slot) of the best documents that share a token, best first, among ``slots`` where given."""
        query = self._query(tokens)
        if slots is not None:
            inside = tantivy.Query.const_score_query(tantivy.Query.term_set_query(self._schema, "slot", list(slots)), 0.0)
            query = tantivy.Query.boolean_query([(tantivy.Occur.Must, query), (tantivy.Occur.Must, inside)])
        with _tantivy_errors(self._folder):
            hits = self._searcher.search(query, limit, False).hits
            found = self._searcher.fast_field_values("slot", [address for _, address in hits])
        return [(round(score / _K1_PLUS_1, _DIGITS), slot) for (score, _), slot in zip(hits, found, strict=True)]

    def _query(self, tokens: Sequence[str]) -> Any:
        clauses = []
        for token, count in Counter(tokens).items():
            clause = tantivy.Query.term_query(self._schema, "tokens", token, "freq")
            clauses.append((tantivy.Occur.Should, tantivy.Query.boost_query(clause, float(count)) if count > 1 else clause))
        return tantivy.Query.boolean_query(clauses)


class LexicalWriter:
    """Collects additions and removals; nothing is seen before ``commit``, a killed one leaves the index as it was."""

    def __init__(self, root: Path, state: LexicalState, *, rows: int) -> None:
        self._folder = root / state.folder
        self._state = state
        self._folder.mkdir(parents=True, exist_ok=True)
        with _tantivy_errors(self._folder):
            if (self._folder / "meta.json").exists():
                self._index = tantivy.Index.open(str(self._folder))
            else:
                self._index = tantivy.Index(_schema(), path=str(self._folder))
            self._index.config_reader("manual", 0)
            _register(self._index)
            self._known = _last_slot(self._index.searcher())
            self._schema = self._index.schema
            self._writer = self._index.writer(_LARGE_HEAP if rows >= _LARGE_LOAD else _SMALL_HEAP, 1)

    def append(self, slots: Sequence[int], tokens: Sequence[str]) -> None:
        """Slots in ascending order; those an earlier, unpublished commit already took in are passed over."""
        add, make, schema = self._writer.add_document, tantivy.Document.from_dict, self._schema
        with _tantivy_errors(self._folder):
            for slot, text in zip(slots, tokens, strict=True):
                if text and slot > self._known:
                    add(make({"slot": slot, "tokens": text}, schema))

    def commit(self, *, slot: int, gone: int, removed: Sequence[int]) -> LexicalState:
        """The state to publish."""
        with _tantivy_errors(self._folder):
            if removed:
                self._writer.delete_documents_by_query(tantivy.Query.term_set_query(self._schema, "slot", list(removed)))
            stamp = int(self._writer.commit())
            self._writer.wait_merging_threads()
        return msgspec.structs.replace(self._state, slot=slot, gone=gone, stamp=stamp)

    def abandon(self) -> None:
        """Let go of the index's lock, whoever still holds this object; harmless after ``commit``."""
        with contextlib.suppress(ValueError, RuntimeError):
            self._writer.wait_merging_threads()


def _last_slot(searcher: Any) -> int:
    """The highest slot an index holds; 0 where it is empty."""
    hits = searcher.search(tantivy.Query.all_query(), 1, False, order_by_field="slot").hits
    return int(hits[0][0]) if hits else 0


def _schema() -> Any:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("tokens", stored=False, tokenizer_name=_ANALYZER, index_option="freq")
    builder.add_integer_field("slot", stored=False, indexed=True, fast=True)
    return builder.build()


def _register(index: Any) -> None:
    index.register_tokenizer(_ANALYZER, tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())


def _opened(folder: Path) -> tuple[Any, bool]:
    """(index, whether it was opened through a private view).

    tantivy takes a lock file to open an index; in a folder that is not writable a temporary one of links stands in."""
    if not (folder / "meta.json").exists():
        raise FileNotFoundError(folder)
    private = not os.access(folder, os.W_OK)
    view = Path(tempfile.mkdtemp(prefix="kgrag-lexical-")) if private else folder
    try:
        if private:
            for path in folder.iterdir():
                if path.name in ("meta.json", ".managed.json"):
                    shutil.copyfile(path, view / path.name)
                elif path.suffix != ".lock":
                    (view / path.name).symlink_to(path.absolute())
        with _tantivy_errors(folder):
            index = tantivy.Index.open(str(view))
            index.config_reader("manual", 0)
            _register(index)
    finally:
        if private:  # every file is mapped by now
            shutil.rmtree(view, ignore_errors=True)
    return index, private


@contextlib.contextmanager
def _tantivy_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise _explained(str(error), folder) from error
    except BaseException as error:
        # What the Rust code did not expect of its files derives from no other exception.
        if type(error).__name__ != "PanicException":
            raise
        raise _explained(str(error), folder) from error


def _explained(text: str, folder: Path) -> StoreError:
    subject = str(folder)
    if any(sign in text for sign in ("No space left", "StorageFull", "File too large", "FileTooLarge", "quota")):
        return failures.full(subject)
    if "writer was killed" in text:  # tantivy keeps to itself what its thread met
        if failures.no_space(folder):
            return failures.full(subject)
        return StoreUnavailableError(
            f"Writing to {folder} failed ({text}).",
            subject=subject,
            remedy="Check the disk, then run again; nothing committed is lost.",
        )
    if "PermissionDenied" in text or "ReadOnlyFilesystem" in text:
        return failures.not_writable(subject)
    if "LockBusy" in text:
        return StoreUnavailableError(f"{folder} is being written by another process.", subject=subject, remedy="Try again later.")
    return StoreCorruptError(f"{folder} is damaged ({text}).", subject=subject, remedy=REBUILD)
