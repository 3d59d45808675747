"""The search files beside ``index.db``: found, opened, and brought up to date.

Readers notice a newly published state by the time of ``search.json`` and never need a lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from kgrag.backends.local import failures, published
from kgrag.backends.local.columns import Columns, ColumnsWriter, intact
from kgrag.backends.local.database import Database
from kgrag.backends.local.published import REBUILD, CollectionState, ColumnsState, LexicalState, State
from kgrag.errors import StoreCorruptError, StoreError, StoreUnavailableError
from kgrag.ports import COLLECTIONS

if TYPE_CHECKING:
    from kgrag.backends.local.lexical import Lexical

_STATE = "search.json"
_LOCK = "search.lock"
_COLUMNS = "vectors"
_LEXICAL = "lexical"
_BATCH = 1000
_LOCK_SECONDS = 60.0
_REBUILD_SHARE = 0.25
"""Share of a collection's places that may be gone before its files are written anew: it bounds what removed rows weigh
in BM25's statistics and in a scan, at an amortised cost of a few row writes per removal."""
_REBUILD_LEAST = 1000


class _Marks(msgspec.Struct, frozen=True):
    """How far the rows of one collection go: the last slot, the last note of removal, the last note thrown away."""

    slot: int
    gone: int
    pruned: int


_Part = TypeVar("_Part", "Columns", "Lexical")


class Projections:
    """Snapshots for readers, ``refresh`` for the writer. Safe for threads and forks."""

    def __init__(self, folder: Path, database: Database) -> None:
        self._folder = folder
        self._path = folder / _STATE
        self._db = database
        self._lock = threading.Lock()
        self._stamp: tuple[int, ...] | None = None
        self._state: State | None = None
        self._columns: dict[str, Columns] = {}
        self._lexical: dict[str, Lexical] = {}
        self._examined = False

    # ------------------------------------------------------------ reading

    def columns(self, collection: str) -> Columns | None:
        """The published columns; None where nothing was published. Raises StoreUnavailableError, StoreCorruptError."""

        def opened(state: CollectionState, before: Columns | None) -> Columns:
            return Columns(self._folder / _COLUMNS, state.columns, before)

        return self._part(collection, self._columns, lambda state: state.columns, opened)

    def lexical(self, collection: str) -> Lexical | None:
        """The published lexical index; None where nothing was published."""
        from kgrag.backends.local.lexical import Lexical

        def opened(state: CollectionState, before: Lexical | None) -> Lexical:
            return Lexical(self._folder / _LEXICAL, state.lexical, before)

        return self._part(collection, self._lexical, lambda state: state.lexical, opened)

    def _part(
        self,
        collection: str,
        held: dict[str, _Part],
        of: Callable[[CollectionState], Any],
        opened: Callable[[CollectionState, _Part | None], _Part],
    ) -> _Part | None:
        state = self._current()
        while True:
            entry = state.collections.get(collection) if state is not None else None
            if entry is None:
                return None
            part = held.get(collection)
            if part is not None and part.state == of(entry):
                return part
            with self._lock:
                try:
                    held[collection] = part = opened(entry, held.get(collection))
                    return part
                except FileNotFoundError as error:
                    # A refresh may have replaced the folder since its state was read; then there is a newer state.
                    held.pop(collection, None)
                    missing = error
            self._stamp = None
            newer = self._current()
            if newer is None or newer.collections.get(collection) == entry:
                raise StoreCorruptError(
                    f"A search file of {self._folder} is missing ({missing}).", subject=str(self._folder), remedy=REBUILD
                ) from missing
            state = newer

    def _current(self) -> State | None:
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            if self._db.rows("SELECT published FROM search")[0][0]:
                raise StoreUnavailableError(f"{self._path} is missing.", subject=str(self._path), remedy=REBUILD) from None
            return None
        stamp = (found.st_mtime_ns, found.st_ino, found.st_size)
        if stamp != self._stamp:
            self._state = self._read()
            self._stamp = stamp
        return self._state

    def _read(self) -> State:
        return published.load(self._path, self._db.rows("SELECT store FROM search")[0][0])

    # ------------------------------------------------------------ writing

    def refresh(self, *, anew: bool = False) -> None:
        """Take in every committed row and removal; ``anew`` writes all files from nothing. Writes nothing where
        nothing changed."""
        if self._db.mode == "read":
            raise failures.read_only(str(self._folder))
        if self._db.in_transaction:
            raise StoreError(
                "refresh() inside a transaction would not see its rows.", subject=str(self._folder), remedy="Call it afterwards."
            )
        self._db.check_fence()
        with failures.of_files(self._folder), self._only_one():
            self._refresh(anew)
        self._db.checkpoint()

    def _refresh(self, anew: bool) -> None:
        state, marks = self._believed(anew)
        changed = False
        for collection in COLLECTIONS:
            entry = state.collections.get(collection)
            mark = marks[collection]
            if entry is not None and self._too_many_gone(entry, mark):
                entry = None
            if entry is None and not mark.slot:
                continue
            if entry is None or not _up_to_date(entry, mark):
                state = self._take_in(collection, state, entry)
                changed = True
        if changed:
            self._sweep(state)
            self._prune(state)

    def _believed(self, anew: bool) -> tuple[State, dict[str, _Marks]]:
        """The published state without what must be written anew, and how far the rows go."""
        store = self._db.rows("SELECT store FROM search")[0][0]
        found = self._db.rows("SELECT name, next_slot - 1, next_gone - 1, pruned FROM collections")
        marks = {name: _Marks(slot, gone, pruned) for name, slot, gone, pruned in found}
        try:
            state = self._read()
        except (FileNotFoundError, StoreCorruptError):
            return State(store=store), marks
        if anew:
            return msgspec.structs.replace(state, collections={}), marks
        sound = {c: entry for c, entry in state.collections.items() if self._sound(c, entry, marks[c])}
        self._examined = True
        return msgspec.structs.replace(state, collections=sound), marks

    def _sound(self, collection: str, entry: CollectionState, marks: _Marks) -> bool:
        """Whether the files can be built upon: neither ahead of the rows (an older index.db was restored) nor behind
        notes thrown away, and all there."""
        for part in (entry.columns, entry.lexical):
            if part.slot > marks.slot or not marks.pruned <= part.gone <= marks.gone:
                return False
        if not intact(self._folder / _COLUMNS, entry.columns):
            return False
        if self._examined:
            return (self._folder / _LEXICAL / entry.lexical.folder / "meta.json").exists()
        from kgrag.backends.local.lexical import Lexical

        try:
            Lexical(self._folder / _LEXICAL, entry.lexical)
        except (FileNotFoundError, StoreCorruptError):
            return False
        return True

    @staticmethod
    def _too_many_gone(entry: CollectionState, marks: _Marks) -> bool:
        gone = entry.columns.rows - entry.columns.live + marks.gone - entry.columns.gone
        return gone >= _REBUILD_LEAST and gone > _REBUILD_SHARE * entry.columns.rows

    def _take_in(self, collection: str, state: State, entry: CollectionState | None) -> State:
        """Bring one collection up to date and publish it: first the columns, in which every slot of the lexical index
        must be found, then the lexical index."""
        from kgrag.backends.local.lexical import LexicalWriter

        version = state.version + 1
        with self._db.snapshot() as read:
            slot, gone = read("SELECT next_slot - 1, next_gone - 1 FROM collections WHERE name=?", (collection,))[0]
            entry = self._with_dimension(collection, entry, read)
            if entry is None:
                name = f"{collection}-{version}"
                for kind in (_COLUMNS, _LEXICAL):
                    shutil.rmtree(self._folder / kind / name, ignore_errors=True)
                dimension = self._dimension(collection, read)
                entry = CollectionState(
                    columns=ColumnsState(folder=name, dimension=dimension, gone=gone), lexical=LexicalState(folder=name, gone=gone)
                )
            first_gone = min(entry.columns.gone, entry.lexical.gone)
            removed = [s for (s,) in read(f"SELECT slot FROM {collection}_gone WHERE seq>? ORDER BY seq", (first_gone,))]
            columns = ColumnsWriter(self._folder / _COLUMNS, entry.columns)
            try:
                lexical = LexicalWriter(self._folder / _LEXICAL, entry.lexical, rows=slot - entry.lexical.slot)
                self._stream(collection, read, entry, columns, lexical)
                new = columns.finish(slot=slot, gone=gone, removed=removed, version=version)
            finally:
                columns.abandon()
        state = self._publish(state, collection, msgspec.structs.replace(entry, columns=new))
        done = lexical.commit(slot=slot, gone=gone, removed=removed)
        return self._publish(state, collection, CollectionState(columns=new, lexical=done))

    @staticmethod
    def _stream(collection: str, read: Any, entry: CollectionState, columns: ColumnsWriter, lexical: Any) -> None:
        last = min(entry.columns.slot, entry.lexical.slot)
        sql = (
            f"SELECT r.slot, r.id, r.metadata, r.tokens, v.vector FROM {collection} r LEFT JOIN {collection}_vectors v"
            " ON v.slot = r.slot WHERE r.slot > ? ORDER BY r.slot LIMIT ?"
        )
        while rows := read(sql, (last, _BATCH)):
            last = rows[-1][0]
            slots, _, _, tokens, _ = zip(*rows, strict=True)
            lexical.append(slots, tokens)
            fresh = [row for row in rows if row[0] > entry.columns.slot]
            if fresh:
                slots, ids, metadata, _, vectors = zip(*fresh, strict=True)
                columns.append(slots, ids, metadata, vectors)

    def _dimension(self, collection: str, read: Any) -> int:
        """Of this collection's vectors; 0 where it has none."""
        if not read(f"SELECT 1 FROM {collection}_vectors LIMIT 1"):
            return 0
        return int(read("SELECT dimension FROM search")[0][0])

    def _with_dimension(self, collection: str, entry: CollectionState | None, read: Any) -> CollectionState | None:
        """The entry, or None where its files hold vectors of another dimension than the rows."""
        dimension = self._dimension(collection, read)
        return None if entry is not None and dimension not in (0, entry.columns.dimension) else entry

    def _publish(self, state: State, collection: str, entry: CollectionState) -> State:
        state = msgspec.structs.replace(state, version=state.version + 1, collections={**state.collections, collection: entry})
        published.save(self._path, state)
        return state

    def _sweep(self, state: State) -> None:
        """Drop what no published state names; a reader that still has it open keeps it."""
        for kind in (_COLUMNS, _LEXICAL):
            parts = [e.columns if kind == _COLUMNS else e.lexical for e in state.collections.values()]
            named = {part.folder for part in parts}
            for path in (self._folder / kind).iterdir():
                if path.name not in named:
                    shutil.rmtree(path, ignore_errors=True)
        for entry in state.collections.values():
            for path in (self._folder / _COLUMNS / entry.columns.folder).glob("alive-*"):
                if path.name != entry.columns.alive:
                    path.unlink(missing_ok=True)

    def _prune(self, state: State) -> None:
        """Throw away the notes of removal that every file has taken in."""
        with self._db.transaction():
            for collection, entry in state.collections.items():
                gone = min(entry.columns.gone, entry.lexical.gone)
                if self._db.execute("UPDATE collections SET pruned=? WHERE name=? AND pruned<?", (gone, collection, gone)):
                    self._db.execute(f"DELETE FROM {collection}_gone WHERE seq<=?", (gone,))
            self._db.execute("UPDATE search SET published=1 WHERE published=0")

    @contextlib.contextmanager
    def _only_one(self) -> Iterator[None]:
        """One refresh at a time, whatever process it is in; the lock dies with its process."""
        deadline = time.monotonic() + _LOCK_SECONDS
        descriptor = os.open(self._folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise StoreUnavailableError(
                            f"Another process has been refreshing {self._folder} for {_LOCK_SECONDS:.0f} s.",
                            subject=str(self._folder),
                            remedy="Wait for it to end, then try again.",
                        ) from None
                    time.sleep(0.02)
            yield
        finally:
            os.close(descriptor)


def _up_to_date(entry: CollectionState, marks: _Marks) -> bool:
    return all((part.slot, part.gone) == (marks.slot, marks.gone) for part in (entry.columns, entry.lexical))
