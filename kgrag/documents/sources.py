"""The kinds of source there are. Each lists its files as a stream, in a fixed order per folder."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from typing import Any, BinaryIO, Protocol
from urllib.parse import quote, unquote_to_bytes, urlsplit

import msgspec

from kgrag.documents.content import file_digest, local_uri, remote
from kgrag.documents.parse.formats import suffixes
from kgrag.documents.settings import DocumentSettings
from kgrag.documents.walk import Rules, inside, printable, walk
from kgrag.errors import DocumentError


class SourceFile(msgspec.Struct, frozen=True):
    """A file of a source: ``path`` within the source ``scope``, ``uri`` where to read it, ``size`` in bytes (-1: unknown).
    ``error`` is why it, or all that is under it where ``path`` ends in ``/``, cannot be listed."""

    scope: str
    path: str
    uri: str
    size: int
    error: DocumentError | None = None


class Source(Protocol):
    """Where documents come from. ``scope`` names it for good: with a path in it, it identifies a document."""

    @property
    def scope(self) -> str: ...

    def files(self, settings: DocumentSettings, left_out: Counter[str]) -> Iterator[SourceFile]:
        """Its files. ``left_out`` counts what the settings leave out, by reason."""
        ...

    def holds(self, uri: str, settings: DocumentSettings) -> bool:
        """Whether ``files`` yields this URI."""
        ...


class LocalSource:
    """A folder, or the files below ``root`` that match a glob ``pattern``. Its files are read from the real folder, so two
    sources that are one folder are known as one."""

    def __init__(self, root: str, pattern: str = "") -> None:
        self.root = os.path.realpath(root)
        self.pattern = pattern
        self.scope = printable(os.path.abspath(root) + (f"/{pattern}" if pattern else ""))

    def files(self, settings: DocumentSettings, left_out: Counter[str]) -> Iterator[SourceFile]:
        for found in walk(self.root, self._rules(settings), left_out):
            if isinstance(found, DocumentError):
                yield SourceFile(self.scope, found.subject, local_uri(self.root), -1, found)
            else:
                yield SourceFile(self.scope, printable(found.relative), local_uri(found.real), found.size)

    def holds(self, uri: str, settings: DocumentSettings) -> bool:
        root = local_uri(self.root).rstrip("/") + "/"
        if not uri.startswith(root):
            return False
        return self._rules(settings).takes(_unquoted(uri[len(root) :]))

    def holds_folder(self, root: str, settings: DocumentSettings) -> bool:
        """Whether all of another folder is read with this one."""
        real = os.path.realpath(root)
        if self.pattern or not inside(real, self.root):
            return False
        return self._rules(settings).enters(os.path.relpath(real, self.root)) if real != self.root else True

    def _rules(self, settings: DocumentSettings) -> Rules:
        return Rules.of(settings, suffixes(), self.pattern)


class FileSource:
    """One file that was named itself: read whatever its name."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self.scope = printable(self.path)
        self.uri = local_uri(os.path.realpath(path))

    def files(self, settings: DocumentSettings, left_out: Counter[str]) -> Iterator[SourceFile]:
        yield SourceFile(self.scope, printable(os.path.basename(self.path)), self.uri, os.path.getsize(self.path))

    def holds(self, uri: str, settings: DocumentSettings) -> bool:
        return uri == self.uri


class StreamSource:
    """What can be read once only: standard input, a pipe. Its bytes are kept in a temporary file of this process."""

    def __init__(self, stream: BinaryIO, name: str = "") -> None:
        self._copy = tempfile.NamedTemporaryFile(prefix="kgrag-input-")  # noqa: SIM115 lives as long as the source
        shutil.copyfileobj(stream, self._copy)
        self._copy.flush()
        self.uri = local_uri(self._copy.name)
        self.scope = f"stdin:{name or file_digest(self.uri, 'stdin')}"

    def files(self, settings: DocumentSettings, left_out: Counter[str]) -> Iterator[SourceFile]:
        yield SourceFile(self.scope, "stdin", self.uri, os.path.getsize(self._copy.name))

    def holds(self, uri: str, settings: DocumentSettings) -> bool:
        return uri == self.uri


class RemoteSource:
    """An object, a prefix or a glob of a bucket (``s3://bucket/prefix``), one listing call per folder."""

    def __init__(self, url: str) -> None:
        filesystem, key = remote(url)
        parts = urlsplit(url)
        self._filesystem: Any = filesystem
        self._prefix = f"{parts.scheme}://"
        self._query = f"?{parts.query}" if parts.query else ""
        self.scope = printable(self._prefix + key.rstrip("/"))
        fixed, self.pattern = split_glob(key)
        self._root = fixed.rstrip("/")

    def files(self, settings: DocumentSettings, left_out: Counter[str]) -> Iterator[SourceFile]:
        from pyarrow import fs

        root = self._filesystem.get_file_info(self._root)
        if root.type == fs.FileType.File and not self.pattern:
            yield self._file(self._root.rsplit("/", 1)[-1], root)
            return
        rules = Rules.of(settings, suffixes(), self.pattern)
        folders = [self._root]
        while folders:
            entries = self._filesystem.get_file_info(fs.FileSelector(folders.pop(), allow_not_found=True))
            for info in sorted(entries, key=lambda i: i.path):
                relative = info.path[len(self._root) + 1 :]
                if info.type == fs.FileType.File and rules.takes(relative, left_out):
                    yield self._file(relative, info)
            below = [i.path for i in entries if i.type == fs.FileType.Directory and rules.enters(i.path[len(self._root) + 1 :])]
            folders += sorted(below, reverse=True)

    def holds(self, uri: str, settings: DocumentSettings) -> bool:
        root = self._prefix + quote(self._root)
        if uri == root + self._query:
            return not self.pattern
        if not uri.startswith(root + "/") or not uri.endswith(self._query):
            return False
        relative = uri[len(root) + 1 : len(uri) - len(self._query)]
        return Rules.of(settings, suffixes(), self.pattern).takes(_unquoted(relative))

    def _file(self, relative: str, info: Any) -> SourceFile:
        uri = self._prefix + quote(info.path) + self._query
        return SourceFile(self.scope, printable(relative), uri, info.size)


def split_glob(path: str) -> tuple[str, str]:
    """The folder before the first part with a wildcard, and the pattern from there on (empty without one)."""
    parts = path.split("/")
    for place, part in enumerate(parts):
        if re.search(r"[*?\[]", part):
            return "/".join(parts[:place]) or ("/" if path.startswith("/") else "."), "/".join(parts[place:])
    return path, ""


def _unquoted(path: str) -> str:
    return os.fsdecode(unquote_to_bytes(path))
