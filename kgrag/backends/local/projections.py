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
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
        opened = self._opened(collection, lexical=False)
        return opened[0] if opened else None

    def both(self, collection: str) -> tuple[Columns, Lexical] | None:
        """Columns and lexical index of one published state: every row of the index stands in the columns."""
        opened = self._opened(collection, lexical=True)
        if opened is None:
            return None
        assert opened[1] is not None
        return opened[0], opened[1]

    def _opened(self, collection: str, *, lexical: bool) -> tuple[Columns, Lexical | None] | None:
        state = self._current()
        while True:
            entry = state.collections.get(collection) if state is not None else None
            if entry is None:
                return None
            columns, index = self._columns.get(collection), self._lexical.get(collection)
            if columns is not None and columns.state == entry.columns:
                if not lexical:
                    return columns, None
                if index is not None and index.state == entry.lexical:
                    return columns, index
            missing: FileNotFoundError | None = None
            try:
                opened = self._open(collection, entry, lexical)
            except FileNotFoundError as error:
                missing = error
            self._stamp = None
            newer = self._current()
            # A refresh may have replaced a folder, or committed to the index, since its state was read: then there is
            # a newer state, and what was opened may not fit together.
            if newer is not None and newer.collections.get(collection) == entry:
                if missing is None:
                    return opened
                raise StoreCorruptError(
                    f"A search file of {self._folder} is missing ({missing}).", subject=str(self._folder), remedy=REBUILD
                ) from missing
            state = newer

    def _open(self, collection: str, entry: CollectionState, lexical: bool) -> tuple[Columns, Lexical | None]:
        with self._lock:
            columns = self._columns.get(collection)
            if columns is None or columns.state != entry.columns:
                columns = self._columns[collection] = Columns(self._folder / _COLUMNS, entry.columns, columns)
            if not lexical:
                return columns, None
            from kgrag.backends.local.lexical import Lexical

            index = self._lexical.get(collection)
            if index is None or index.state != entry.lexical:
                index = self._lexical[collection] = Lexical(self._folder / _LEXICAL, entry.lexical, index)
            return columns, index

    def _current(self) -> State | None:
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            # Asked after, not before, the file was looked for: the first refresh may just have published it.
            if not self._db.rows("SELECT published FROM search")[0][0]:
                return None
            try:
                found = os.stat(self._path)
            except FileNotFoundError:
                raise StoreUnavailableError(f"{self._path} is missing.", subject=str(self._path), remedy=REBUILD) from None
        stamp = (found.st_mtime_ns, found.st_ino, found.st_size)
        if stamp != self._stamp:
            self._state = self._read()
            self._stamp = stamp
        return self._state

    def _read(self) -> State:
        return published.load(self._path, self._db.rows("SELECT store FROM search")[0][0])

    # ------------------------------------------------------------ writing

    def refresh(self, *, anew: bool = False) -> bool:
        """Take in every committed row and removal; ``anew`` writes all files from nothing. Returns whether there was
        anything; writes nothing otherwise."""
        if self._db.mode == "read":
            raise failures.read_only(str(self._folder))
        if self._db.in_transaction:
            raise StoreError(
                "refresh() inside a transaction would not see its rows.", subject=str(self._folder), remedy="Call it afterwards."
            )
        self._db.check_fence()
        with failures.of_files(self._folder), self._only_one():
            changed = self._refresh(anew)
        self._db.checkpoint()
        return changed

    def _refresh(self, anew: bool) -> bool:
        state, marks = self._published()
        changed = False
        for collection in COLLECTIONS:
            entry, mark = state.collections.get(collection), marks[collection]
            if entry is None and not mark.slot:
                continue
            if anew or entry is None or not self._sound(collection, entry, mark) or _too_many_gone(entry, mark):
                state = self._take_in(collection, state, None)
            elif not _up_to_date(entry, mark):
                state = self._take_in(collection, state, entry)
            else:
                continue
            changed = True
        self._examined = True
        if changed:
            self._sweep(state)
            self._prune(state)
        return changed

    def _published(self) -> tuple[State, dict[str, _Marks]]:
        """The published state, empty where it is lost or damaged, and how far the rows go."""
        found = self._db.rows("SELECT name, next_slot - 1, next_gone - 1, pruned FROM collections")
        marks = {name: _Marks(slot, gone, pruned) for name, slot, gone, pruned in found}
        try:
            return self._read(), marks
        except (FileNotFoundError, StoreCorruptError):
            return State(store=self._db.rows("SELECT store FROM search")[0][0]), marks

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

    def _take_in(self, collection: str, state: State, entry: CollectionState | None) -> State:
        """Bring one collection up to date, or write its files anew where there is no ``entry``, and publish it.

        What is added to is published in two steps, first the columns, so that they hold every row of the lexical index
        at any moment; what is new in one."""
        from kgrag.backends.local.lexical import LexicalWriter

        version = state.version + 1
        with self._db.snapshot() as read:
            slot, gone = read("SELECT next_slot - 1, next_gone - 1 FROM collections WHERE name=?", (collection,))[0]
            entry = self._with_dimension(collection, entry, read)
            new = entry is None
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
            with contextlib.ExitStack() as stack:
                columns = ColumnsWriter(self._folder / _COLUMNS, entry.columns)
                stack.callback(columns.abandon)
                lexical = LexicalWriter(self._folder / _LEXICAL, entry.lexical, rows=slot - entry.lexical.slot)
                stack.callback(lexical.abandon)
                self._stream(collection, read, entry, columns, lexical)
                entry = msgspec.structs.replace(
                    entry, columns=columns.finish(slot=slot, gone=gone, removed=removed, version=version)
                )
                if not new:
                    state = self._publish(state, collection, entry)
                entry = msgspec.structs.replace(entry, lexical=lexical.commit(slot=slot, gone=gone, removed=removed))
        return self._publish(state, collection, entry)

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


def _too_many_gone(entry: CollectionState, marks: _Marks) -> bool:
    gone = entry.columns.rows - entry.columns.live + marks.gone - entry.columns.gone
    return gone >= _REBUILD_LEAST and gone > _REBUILD_SHARE * entry.columns.rows


def _up_to_date(entry: CollectionState, marks: _Marks) -> bool:
    return all((part.slot, part.gone) == (marks.slot, marks.gone) for part in (entry.columns, entry.lexical))
