"""Memory-mapped columns of one collection: who stands in which slot, and the vectors to search.

Files only ever grow (a row's place never changes its content); which rows are still there is a bitmap of its own for
each published state. A snapshot maps what its state counts, so a reader never sees a half-written row.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
from numpy.typing import NDArray

from kgrag.backends.local.knn import Codes, quantized
from kgrag.backends.local.published import REBUILD, ColumnsState
from kgrag.errors import StoreCorruptError
from kgrag.ports import Vector

ID_BYTES = 32
"""Ids of up to so many ASCII characters stand in the file; others are looked up in SQLite."""

_FIXED: dict[str, Any] = {"slots": np.dtype("<i8"), "metadata": np.dtype("<i4"), "ids": np.dtype(f"S{ID_BYTES}")}
_PER_VECTOR: dict[str, Any] = {"scales": np.dtype("<f4")}


class Columns:
    """A snapshot: arrays of ``state.rows`` entries in slot order."""

    def __init__(self, root: Path, state: ColumnsState, before: Columns | None = None) -> None:
        """``before`` is an older snapshot whose prepared codes are taken over. Raises StoreCorruptError, FileNotFoundError."""
        folder = root / state.folder
        self.state = state
        n, d = state.rows, state.dimension
        self.slots: NDArray[np.int64] = _mapped(folder / "slots", _FIXED["slots"], n)
        self.metadata: NDArray[np.int32] = _mapped(folder / "metadata", _FIXED["metadata"], n)
        self.ids: NDArray[np.bytes_] = _mapped(folder / "ids", _FIXED["ids"], n)
        self.alive = _read_bitmap(folder / state.alive, n)
        self.floats: Vector = _mapped(folder / "floats", np.dtype("<f4"), n * d).reshape(n, d)
        self.scales: Vector = _mapped(folder / "scales", _PER_VECTOR["scales"], n if d else 0)
        codes = _mapped(folder / "codes", np.dtype("i1"), n * d).reshape(n, d)
        taken = before.codes if before is not None and before.state.folder == state.folder else None
        self._codes: Codes = Codes(codes, self.scales, taken)
        self._index: tuple[NDArray[np.uint64], NDArray[np.int64]] | None = None
        self._unsearchable: NDArray[np.int64] | None = None

    @property
    def codes(self) -> Codes:
        return self._codes

    @property
    def unsearchable(self) -> NDArray[np.int64]:
        """Places that are gone or have no vector."""
        if self._unsearchable is None:
            self._unsearchable = np.flatnonzero(~self.alive | (self.scales == 0))
        return self._unsearchable

    def places_of_slots(self, slots: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
        """Places of those slots that stand here, in the order given."""
        wanted = np.asarray(slots, np.int64)
        places = np.searchsorted(self.slots, wanted)
        inside = places < len(self.slots)
        inside[inside] = self.slots[places[inside]] == wanted[inside]
        return places[inside]

    def places_of_ids(self, ids: Sequence[str]) -> NDArray[np.int64]:
        """Places of those ids (at most ``ID_BYTES`` ASCII characters each) that are alive here, in no order."""
        if self._index is None:
            living = np.flatnonzero(self.alive)
            keys = _hashed(np.ascontiguousarray(self.ids[living]))
            order = np.argsort(keys)
            self._index = keys[order], living[order]
        keys, places = self._index
        wanted = np.array(ids, np.dtype(f"S{ID_BYTES}"))
        at = np.searchsorted(keys, _hashed(wanted))
        at[at == len(keys)] = 0
        found = places[at] if len(keys) else places
        return found[self.ids[found] == wanted] if len(keys) else found


class ColumnsWriter:
    """Appends rows behind what is published, then writes the bitmap; nothing is seen before its state is published."""

    def __init__(self, root: Path, state: ColumnsState) -> None:
        self._folder = root / state.folder
        self._folder.mkdir(parents=True, exist_ok=True)
        self._state = state
        self._rows = state.rows
        self._slots: list[NDArray[np.int64]] = []
        self._files: dict[str, BinaryIO] = {}
        names = ["slots", "metadata", "ids", *(["floats", "codes", "scales"] if state.dimension else [])]
        widths = {
            "slots": 8,
            "metadata": 4,
            "ids": ID_BYTES,
            "floats": 4 * state.dimension,
            "codes": state.dimension,
            "scales": 4,
        }
        try:
            for name in names:
                self._files[name] = open(self._folder / name, "r+b" if (self._folder / name).exists() else "w+b")  # noqa: SIM115
                self._files[name].seek(state.rows * widths[name])
        except BaseException:
            self.abandon()
            raise

    def append(self, slots: Sequence[int], ids: Sequence[str], metadata: Sequence[int], vectors: Sequence[bytes | None]) -> None:
        held = np.array(slots, np.int64)
        self._slots.append(held)
        self._files["slots"].write(held.astype("<i8").tobytes())
        self._files["metadata"].write(np.array(metadata, "<i4").tobytes())
        short = [key if len(key) <= ID_BYTES and key.isascii() else "" for key in ids]
        self._files["ids"].write(np.array(short, f"S{ID_BYTES}").tobytes())
        if self._state.dimension:
            empty = bytes(4 * self._state.dimension)
            matrix = np.frombuffer(b"".join([v or empty for v in vectors]), np.float32).reshape(-1, self._state.dimension)
            unit, codes, scales = quantized(matrix)
            self._files["floats"].write(unit.astype("<f4", copy=False).tobytes())
            self._files["codes"].write(codes.tobytes())
            self._files["scales"].write(scales.astype("<f4", copy=False).tobytes())
        self._rows += len(held)

    def finish(self, *, slot: int, gone: int, removed: Sequence[int], version: int) -> ColumnsState:
        """The state to publish, with the slots ``removed`` taken out; all of it is on disk."""
        old = self._state
        alive = np.ones(self._rows, np.bool_)
        slots = np.concatenate([_read(self._folder / "slots", _FIXED["slots"], old.rows), *self._slots])
        if old.alive:
            alive[: old.rows] = _read_bitmap(self._folder / old.alive, old.rows)
        if removed and len(slots):
            wanted = np.array(removed, np.int64)
            places = np.searchsorted(slots, wanted)
            places[places == len(slots)] = 0
            alive[places[slots[places] == wanted]] = False
        for file in self._files.values():
            file.flush()
            os.fdatasync(file.fileno())
        name = f"alive-{version}"
        with open(self._folder / name, "wb") as file:
            file.write(np.packbits(alive).tobytes())
            file.flush()
            os.fdatasync(file.fileno())
        self.abandon()
        return msgspec.structs.replace(old, rows=self._rows, live=int(alive.sum()), slot=slot, gone=gone, alive=name)

    def abandon(self) -> None:
        """Close the files; what could not be written is not published either."""
        for file in self._files.values():
            with contextlib.suppress(OSError):
                file.close()


def intact(root: Path, state: ColumnsState) -> bool:
    """Whether every file is there and long enough."""
    n, d = state.rows, state.dimension
    sizes = {"slots": 8 * n, "metadata": 4 * n, "ids": ID_BYTES * n, state.alive: (n + 7) // 8}
    if d:
        sizes |= {"floats": 4 * n * d, "codes": n * d, "scales": 4 * n}
    try:
        return all((root / state.folder / name).stat().st_size >= size for name, size in sizes.items())
    except OSError:
        return False


def _mapped(path: Path, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    if not count:
        return np.empty(0, dtype)
    size = count * dtype.itemsize
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size < size:
            raise StoreCorruptError(f"{path} is shorter than it must be.", subject=str(path), remedy=REBUILD)
        return np.frombuffer(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ), dtype)


def _read(path: Path, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    return np.fromfile(path, dtype, count) if count else np.empty(0, dtype)


def _read_bitmap(path: Path, count: int) -> NDArray[np.bool_]:
    if not count:
        return np.zeros(0, np.bool_)
    bits = np.fromfile(path, np.uint8)
    if len(bits) * 8 < count:
        raise StoreCorruptError(f"{path} is shorter than it must be.", subject=str(path), remedy=REBUILD)
    return np.unpackbits(bits, count=count).astype(np.bool_)


def _hashed(ids: NDArray[np.bytes_]) -> NDArray[np.uint64]:
    """64 bits per id; two ids that share them are told apart by comparing the ids themselves."""
    words = ids.view("<u8").reshape(len(ids), ID_BYTES // 8)
    key = np.zeros(len(ids), np.uint64)
    for column in range(words.shape[1]):
        key = (key ^ words[:, column]) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    return key
