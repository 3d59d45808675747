"""Sources to files: folders, files, globs, standard input and ``s3://`` through one listing.

A source's ``scope`` is what was given, made absolute; together with a file's path in it, it identifies a document. Within
one run no file has two: a source inside another is dropped, and what an earlier source reads a later one leaves out.
"""

from __future__ import annotations

import logging
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import msgspec
import pyarrow as pa

from kgrag import schemas
from kgrag.documents.content import file_digest, local_path
from kgrag.documents.settings import DocumentSettings
from kgrag.documents.sources import FileSource, LocalSource, RemoteSource, Source, SourceFile, StreamSource, split_glob
from kgrag.errors import ConfigurationError, DocumentError
from kgrag.stage import RowError

_log = logging.getLogger(__name__)
_THREADS = 4
"""Digests at once: hashing leaves the interpreter lock, and remote files wait for the network."""


def resolve_sources(given: Sequence[str], settings: DocumentSettings) -> list[Source]:
    """The sources of a run, none within another, in an order that does not depend on that of ``given``. ``-`` reads standard
    input to its end. Raises ConfigurationError where one does not exist."""
    local: dict[str, LocalSource] = {}
    globs: dict[str, Source] = {}
    files: dict[str, FileSource] = {}
    others: dict[str, Source] = {}
    found = [_source(name, settings) for name in dict.fromkeys(given)]
    for source in sorted(found, key=_by_scope):
        if isinstance(source, LocalSource) and not source.pattern:
            local.setdefault(source.root, source)
        elif isinstance(source, FileSource):
            files.setdefault(source.uri, source)
        elif isinstance(source, LocalSource):
            globs.setdefault(source.scope, source)
        else:
            others.setdefault(source.scope, source)
    folders = [
        s for root, s in sorted(local.items()) if not any(o.holds_folder(root, settings) for o in local.values() if o is not s)
    ]
    rest = [sources[key] for sources in (globs, others) for key in sorted(sources)]
    named = [files[key] for key in sorted(files)]
    before: list[Source] = [*folders, *rest]
    return [*before, *(f for f in named if not any(s.holds(f.uri, settings) for s in before))]


def list_files(sources: Sequence[Source], settings: DocumentSettings, left_out: Counter[str] | None = None) -> Iterator[SourceFile]:
    """Every file once, as a stream. ``left_out`` counts what the settings leave out, by reason."""
    counts: Counter[str] = Counter() if left_out is None else left_out
    for place, source in enumerate(sources):
        earlier = sources[:place]
        for file in source.files(settings, counts):
            if file.error is not None or not any(s.holds(file.uri, settings) for s in earlier):
                yield file
    for reason, count in sorted(counts.items()):
        _log.warning("%d files %s were left out.", count, reason)


def file_tables(files: Iterable[SourceFile], rows: int = 1024) -> Iterator[pa.Table]:
    """Tables of ``schemas.FILES`` with the digest of each file's bytes. A file that cannot be read has an empty one: parsing
    it says why."""
    stream = iter(files)
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="digest") as pool:
        while part := list(islice(stream, rows)):
            digests = list(pool.map(_digest, part))
            columns = [
                [f.scope for f in part],
                [f.path for f in part],
                [f.uri for f in part],
                digests,
                [f.size for f in part],
                ["" if f.error is None else msgspec.json.encode(RowError.of("load", f.error)).decode() for f in part],
            ]
            yield pa.table(columns, schema=schemas.FILES)


def _digest(file: SourceFile) -> str:
    if file.error is not None:
        return ""
    try:
        return file_digest(file.uri, file.path)
    except DocumentError:
        return ""


def _by_scope(source: Source) -> tuple[bool, str]:
    """Of the names of one folder its real one comes first, then the others by name."""
    return isinstance(source, LocalSource) and source.scope != source.root, source.scope


def _source(name: str, settings: DocumentSettings) -> Source:
    if name == "-":
        return StreamSource(sys.stdin.buffer, settings.standard_input)
    if name.startswith("file://"):
        name = os.fsdecode(local_path(name))
    elif "://" in name:
        return RemoteSource(name)
    path = os.path.expanduser(name)
    if os.path.isdir(path):
        return LocalSource(path)
    if os.path.isfile(path):
        return FileSource(path)
    if os.path.exists(path):
        with open(path, "rb") as stream:
            return StreamSource(stream, settings.standard_input)
    root, pattern = split_glob(path)
    if pattern and os.path.isdir(root):
        return LocalSource(root, pattern)
    raise ConfigurationError(
        f"There is no file or folder {name}.", subject=name, remedy="Check the path; relative ones start at the current folder."
    )
