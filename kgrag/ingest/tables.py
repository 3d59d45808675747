"""Tables of a run: Parquet shards with a manifest, on a local path or any file system ``pyarrow.fs`` knows (``s3://``).

A table is ``<root>/<name>/shard-00000.parquet ...`` and ``manifest.json``, written last. Every file appears whole or not at
all (written beside, then renamed), and both runners write the same bytes: one writer, one row order, one way to cut shards.
The manifest's key says what the table was made from, so a run that was killed reads the tables it had finished.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from kgrag.ids import digest
from kgrag.records import Usage

SHARD_BYTES = 8 << 20
"""A shard of a cut table is closed once it holds this many bytes, whatever its rows."""

_FORMAT = 1
_REPEATED = ("collection", "kind", "scope", "document_id", "metadata", "file", "path", "error")


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One written file: which shard it belongs to, its rows, those with an error, and what its calls cost."""

    shard: int
    part: int = 0
    rows: int
    failed: int = 0
    retryable: int = 0
    digest: str = ""
    usage: Usage = Usage()

    @property
    def file(self) -> str:
        return part_file(self.shard, self.part)


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A finished table, small enough to travel anywhere. ``key`` names what it was made from."""

    root: str
    name: str
    key: str
    parts: tuple[Part, ...] = ()

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    def rows_of(self, shard: int) -> int:
        return sum(part.rows for part in self.parts if part.shard == shard)

    @property
    def failed(self) -> int:
        return sum(part.failed for part in self.parts)

    @property
    def usage(self) -> Usage:
        total = Usage()
        for part in self.parts:
            total += part.usage
        return total

    @property
    def shards(self) -> list[int]:
        return sorted({part.shard for part in self.parts})


def part_file(shard: int, part: int) -> str:
    return f"shard-{shard:05d}.parquet" if part == 0 else f"shard-{shard:05d}.{part}.parquet"


class TableRoot:
    """Where the tables of one namespace's run live. ``uri`` is a local path or a file-system URI."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self._fs, self._path = _filesystem(uri)

    def __reduce__(self) -> tuple[object, ...]:
        return (TableRoot, (self.uri,))

    # ------------------------------------------------------------ writing

    def start(self, name: str, key: str) -> set[str]:
        """Make room for a table and return the files that a killed run of the same key left finished."""
        marker = f"{name}/key"
        if self._read(marker) == key.encode():
            infos = self._fs.get_file_info(pafs.FileSelector(f"{self._path}/{name}"))
            return {info.base_name for info in infos if info.base_name.endswith(".parquet")}
        return self.begin(name, key)

    def begin(self, name: str, key: str) -> set[str]:
        """Make room for a table of which nothing a killed run left counts."""
        self.drop(name)
        self._write(f"{name}/key", key.encode())
        return set()

    def write_part(self, name: str, shard: int, rows: pa.Table, *, part: int = 0) -> Part:
        """Write one file. The ``usage`` of its rows is added up and taken out: what a call cost is no part of the data."""
        usage, failed, retryable = Usage(), 0, 0
        if "usage" in rows.schema.names and rows.num_rows:
            rows, usage = _without_usage(rows)
        if "error" in rows.schema.names:
            errors = [error for error in rows["error"].to_pylist() if error]
            failed, retryable = len(errors), sum('"retryable":true' in error for error in errors)
        raw = to_parquet(rows)
        self._write(f"{name}/{part_file(shard, part)}", raw)
        return Part(
            shard=shard,
            part=part,
            rows=rows.num_rows,
            failed=failed,
            retryable=retryable,
            digest=digest(raw.to_pybytes()),
            usage=usage,
        )

    def existing_part(self, name: str, shard: int) -> Part | None:
        """The facts of a finished one-part shard of a killed run; None where its failed rows are worth another try."""
        raw = self._read(f"{name}/{part_file(shard, 0)}")
        if raw is None:
            return None
        rows = pq.read_table(pa.BufferReader(raw))
        errors = [error for error in rows["error"].to_pylist() if error] if "error" in rows.schema.names else []
        if any('"retryable":true' in error for error in errors):
            return None
        return Part(shard=shard, rows=rows.num_rows, failed=len(errors), digest=digest(raw))

    def finish(self, name: str, key: str, parts: Iterable[Part], **facts: Any) -> Table:
        """Write the manifest; from here on the table counts. An empty ``key`` is taken from the content."""
        ordered = tuple(sorted(parts, key=lambda part: (part.shard, part.part)))
        key = key or digest(name, *(part.digest for part in ordered))
        usage = Usage()
        for part in ordered:
            usage += part.usage
        manifest = {
            "format": _FORMAT,
            "name": name,
            "key": key,
            **facts,
            "rows": sum(part.rows for part in ordered),
            "files": [part.file for part in ordered],
            "usage": msgspec.structs.asdict(usage),
            "parts": [msgspec.structs.asdict(msgspec.structs.replace(part, usage=Usage())) | {"usage": {}} for part in ordered],
        }
        self._write(f"{name}/manifest.json", json.dumps(manifest, indent=1, sort_keys=True).encode())
        return Table(root=self.uri, name=name, key=key, parts=ordered)

    # ------------------------------------------------------------ reading

    def find(self, name: str, key: str) -> Table | None:
        """A finished table of this key, unless some of its rows failed for a reason that may have passed."""
        raw = self._read(f"{name}/manifest.json")
        if raw is None:
            return None
        manifest = json.loads(raw)
        if manifest.get("format") != _FORMAT or manifest.get("key") != key:
            return None
        parts = msgspec.convert(manifest["parts"], tuple[Part, ...])
        if any(part.retryable for part in parts):
            return None
        return Table(root=self.uri, name=name, key=key, parts=parts)

    def read_shard(self, table: Table, shard: int) -> pa.Table:
        """All rows of one shard."""
        found = [self._load(f"{table.name}/{part.file}") for part in table.parts if part.shard == shard]
        return found[0] if len(found) == 1 else pa.concat_tables(found)

    def batches(self, table: Table, columns: list[str] | None = None, *, collection: str = "") -> Iterator[pa.Table]:
        """The table file by file, in order; of a table of rows, those of one collection."""
        for part in table.parts:
            if not part.rows:
                continue
            if not collection:
                yield self._load(f"{table.name}/{part.file}", columns)
                continue
            file = self._open(f"{table.name}/{part.file}")
            group = _group_of(file.metadata, collection)
            if group is not None:
                yield file.read_row_group(group, columns, use_threads=False)

    # ------------------------------------------------------------ removing

    def drop(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._fs.delete_dir(f"{self._path}/{name}")

    def clear(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._fs.delete_dir(self._path)

    # ------------------------------------------------------------ files

    def _load(self, path: str, columns: list[str] | None = None) -> pa.Table:
        return self._open(path).read(columns, use_threads=False)

    def _open(self, path: str) -> pq.ParquetFile:
        # No memory map: the pages of a table that was read once must not stay in the process.
        raw = self._read(path)
        if raw is None:
            raise FileNotFoundError(f"{self._path}/{path}")
        return pq.ParquetFile(pa.BufferReader(raw), pre_buffer=False)

    def _read(self, path: str) -> bytes | None:
        try:
            with self._fs.open_input_file(f"{self._path}/{path}") as stream:
                return bytes(stream.readall())
        except FileNotFoundError:
            return None

    def _write(self, path: str, raw: bytes | pa.Buffer) -> None:
        final = f"{self._path}/{path}"
        self._fs.create_dir(final.rsplit("/", 1)[0], recursive=True)
        if not isinstance(self._fs, pafs.LocalFileSystem):
            with self._fs.open_output_stream(final) as stream:  # an object appears whole
                stream.write(raw)
            return
        with self._fs.open_output_stream(final + ".tmp") as stream:
            stream.write(raw)
        self._fs.move(final + ".tmp", final)


class ShardWriter:
    """Cuts a stream of rows into shards of ``rows_per_shard`` (or ``SHARD_BYTES``), deterministically."""

    def __init__(self, root: TableRoot, name: str, schema: pa.Schema, rows_per_shard: int) -> None:
        self._root, self._name, self._schema, self._limit = root, name, schema, rows_per_shard
        self._held: list[pa.Table] = []
        self._rows = 0
        self._parts: list[Part] = []
        root.drop(name)

    def add(self, rows: pa.Table) -> None:
        """Rows in order; a table is cut where a shard is full."""
        if not rows.num_rows:
            return
        step = max(1, min(self._limit, SHARD_BYTES * rows.num_rows // max(1, rows.nbytes)))
        start = 0
        while start < rows.num_rows:
            piece = rows.slice(start, min(step, self._limit - self._rows))
            self._held.append(piece)
            self._rows += piece.num_rows
            start += piece.num_rows
            if self._rows >= self._limit or sum(held.nbytes for held in self._held) >= SHARD_BYTES:
                self._flush()

    def shard(self, rows: pa.Table) -> None:
        """These rows as a shard of their own."""
        self._flush()
        self._parts.append(self._root.write_part(self._name, len(self._parts), rows))

    def close(self, key: str = "", **facts: Any) -> Table:
        self._flush()
        return self._root.finish(self._name, key, self._parts, **facts)

    def _flush(self) -> None:
        if self._held:
            rows = pa.concat_tables(self._held).cast(self._schema)
            self._parts.append(self._root.write_part(self._name, len(self._parts), rows))
            self._held, self._rows = [], 0


def to_parquet(rows: pa.Table) -> pa.Buffer:
    """The file both runners write for these rows, whatever chunks they came in: one row group, or one per collection of a
    table whose first column is ``collection``."""
    sink = pa.BufferOutputStream()
    repeated = [name for name in _REPEATED if name in rows.schema.names]
    by_collection = rows.schema.names[0] == "collection"
    with pq.ParquetWriter(
        sink,
        rows.schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=repeated,
        write_statistics=["collection"] if by_collection else False,
    ) as out:
        for part in _by_collection(rows) if by_collection else [rows]:
            out.write_table(part.combine_chunks(), row_group_size=max(1, part.num_rows))
    return sink.getvalue()


def _by_collection(rows: pa.Table) -> list[pa.Table]:
    names = pc.unique(rows["collection"]).to_pylist()
    return [rows] if len(names) < 2 else [rows.filter(pc.equal(rows["collection"], name)) for name in names]


def _group_of(metadata: pq.FileMetaData, collection: str) -> int | None:
    for group in range(metadata.num_row_groups):
        if metadata.row_group(group).column(0).statistics.min == collection:
            return group
    return None


def _without_usage(rows: pa.Table) -> tuple[pa.Table, Usage]:
    total = Usage()
    for text in rows["usage"].to_pylist():
        if text:
            total += msgspec.json.decode(text, type=Usage)
    index = rows.schema.get_field_index("usage")
    empty = pa.array([""] * rows.num_rows, rows.schema.field(index).type)
    return rows.set_column(index, rows.schema.field(index), empty), total


def _filesystem(uri: str) -> tuple[pafs.FileSystem, str]:
    if "://" in uri:
        filesystem, path = pafs.FileSystem.from_uri(uri)
        return filesystem, path.rstrip("/")
    return pafs.LocalFileSystem(), uri.rstrip("/")
