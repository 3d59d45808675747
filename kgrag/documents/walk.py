"""Walking a folder: which files are taken, and how links are followed without going in circles."""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath

from kgrag.documents.content import unreadable
from kgrag.documents.settings import DocumentSettings
from kgrag.errors import DocumentError

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Found:
    """A file: its path within the source, the real path to read, its size."""

    relative: str
    real: str
    size: int


@dataclass(frozen=True)
class Rules:
    """What of a source is taken. Paths are relative to it, with ``/``."""

    include: Sequence[str]
    exclude: Sequence[str]
    hidden: bool
    symlinks: str
    suffixes: Container[str] | None
    pattern: str

    @classmethod
    def of(cls, settings: DocumentSettings, suffixes: Container[str], pattern: str) -> Rules:
        """A glob names what is wanted, so any suffix will do there, as it does where ``include`` or ``format`` is set."""
        anything = bool(pattern or settings.include or settings.format)
        hidden = settings.hidden or any(part.startswith(".") for part in pattern.split("/"))
        return cls(settings.include, settings.exclude, hidden, settings.symlinks, None if anything else suffixes, pattern)

    def takes(self, path: str, left_out: Counter[str] | None = None) -> bool:
        """Whether a file is read; counts why not, but for what no one would expect to be."""
        if (not self.hidden and _is_hidden(path)) or (self.pattern and not _glob(self.pattern).fullmatch(path)):
            return False
        if any(_matches(path, p) for p in self.exclude) or (self.include and not any(_matches(path, p) for p in self.include)):
            return False
        suffix = PurePosixPath(path).suffix.lower()
        if self.suffixes is not None and suffix not in self.suffixes:
            if left_out is not None:
                left_out[f"of a kind that is not read ({suffix})"] += 1
            return False
        return True

    def enters(self, folder: str) -> bool:
        """Whether a folder may hold files that are read."""
        if not self.hidden and _is_hidden(folder):
            return False
        if any(_matches(folder, p) for p in self.exclude):
            return False
        if not self.pattern:
            return True
        wanted, parts = self.pattern.split("/"), folder.split("/")
        for place, part in enumerate(parts):
            if wanted[place] == "**":
                return True
            if place == len(wanted) - 1:
                return False
            if not fnmatch.fnmatchcase(part, wanted[place]):
                return False
        return True


class _Walk:
    """Real files first, then what links lead to, each real folder and file once."""

    def __init__(self, root: str, rules: Rules, left_out: Counter[str]) -> None:
        self._root, self._rules, self._left_out = root, rules, left_out
        self._folders: set[tuple[int, int]] = set()
        self._linked_files: set[tuple[int, int]] = set()
        self._links: list[str] = []

    def run(self) -> Iterator[Found | DocumentError]:
        yield from self._folder("", self._root)
        while self._links:
            links, self._links = sorted(self._links), []
            for relative in links:
                yield from self._link(relative)

    def _folder(self, relative: str, path: str) -> Iterator[Found | DocumentError]:
        folders = [(relative, path)]
        while folders:
            relative, path = folders.pop()
            try:
                at = os.stat(path)
                if (at.st_dev, at.st_ino) in self._folders:
                    continue
                self._folders.add((at.st_dev, at.st_ino))
                with os.scandir(path) as entries:
                    ordered = sorted(entries, key=lambda e: e.name)
            except OSError as error:
                yield _unlistable(relative, error)
                continue
            below = []
            for entry in ordered:
                inner = f"{relative}/{entry.name}" if relative else entry.name
                if entry.is_symlink():
                    self._links.append(inner)
                elif entry.is_dir():
                    below.append((inner, entry.path))
                elif entry.is_file():
                    if self._rules.takes(inner, self._left_out):
                        yield Found(inner, entry.path, entry.stat().st_size)
                else:
                    self._left_out["that are no regular files"] += 1
            folders += [b for b in reversed(below) if self._rules.enters(b[0])]

    def _link(self, relative: str) -> Iterator[Found | DocumentError]:
        if self._rules.symlinks == "never":
            self._left_out["that are links"] += 1
            return
        try:
            real = os.path.realpath(os.path.join(self._root, relative), strict=True)
            at = os.stat(real)
        except OSError:
            self._left_out["that are broken links"] += 1
            return
        within = inside(real, self._root)
        if not within and self._rules.symlinks == "inside":
            self._left_out["that are links out of the source"] += 1
        elif stat.S_ISDIR(at.st_mode):
            if self._rules.enters(relative):
                yield from self._folder(relative, real)
        elif stat.S_ISREG(at.st_mode) and self._rules.takes(relative, self._left_out):
            read = within and self._rules.takes(os.path.relpath(real, self._root))
            if not read and (at.st_dev, at.st_ino) not in self._linked_files:
                self._linked_files.add((at.st_dev, at.st_ino))
                yield Found(relative, real, at.st_size)


def walk(root: str, rules: Rules, left_out: Counter[str]) -> Iterator[Found | DocumentError]:
    """Files below ``root`` (a real path), a folder's own before those of its subfolders, each by name. A folder that cannot
    be listed is a DocumentError whose subject is its path and a ``/``."""
    return _Walk(root, rules, left_out).run()


def inside(path: str, root: str) -> bool:
    """Whether a real path is ``root`` or below it."""
    return path == root or path.startswith(root.rstrip("/") + "/")


def printable(path: str) -> str:
    """A path any encoder and terminal takes: bytes that are not UTF-8 and control characters are written as ``\\xNN``."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return _CONTROL.sub(lambda m: f"\\x{ord(m[0]):02x}", text)


def _unlistable(relative: str, error: OSError) -> DocumentError:
    subject = printable(relative) + "/" if relative else "/"
    found = unreadable(subject, error)
    return DocumentError(found.message.replace("The file", "The folder"), subject=subject, remedy=found.remedy)


def _is_hidden(path: str) -> bool:
    return path.startswith(".") or "/." in path


def _matches(path: str, pattern: str) -> bool:
    """A pattern without ``/`` is about names, at any depth."""
    return bool(_glob(pattern).fullmatch(path if "/" in pattern else path.rsplit("/", 1)[-1]))


@lru_cache(maxsize=256)
def _glob(pattern: str) -> re.Pattern[str]:
    """``**`` stands for any number of folders; ``*``, ``?`` and ``[...]`` stay within a name."""
    out = []
    parts = pattern.split("/")
    for place, part in enumerate(parts):
        last = place == len(parts) - 1
        if part == "**":
            out.append(".*" if last else "(?:[^/]+/)*")
        else:
            inner = fnmatch.translate(part).removeprefix("(?s:").removesuffix(r")\Z").replace(".*", "[^/]*")
            out.append(re.sub(r"(?<!\\)\.", "[^/]", inner) + ("" if last else "/"))
    return re.compile("".join(out), re.DOTALL)
