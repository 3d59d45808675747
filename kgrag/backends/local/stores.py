"""All embedded stores of one namespace, opened together."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from pathlib import Path

from kgrag.backends.local import answers, failures, graph, records, rows, status
from kgrag.backends.local.answers import LocalAnswers
from kgrag.backends.local.database import Database, Mode
from kgrag.backends.local.filesystem import require_local
from kgrag.backends.local.graph import LocalGraph
from kgrag.backends.local.records import LocalRecords
from kgrag.backends.local.search import LocalSearch
from kgrag.backends.local.status import LocalStatus
from kgrag.errors import ConfigurationError, UnknownNamespaceError

FORMAT = 1
"""Of ``index.db``; a newer one is refused by name."""

_NAMESPACE = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class LocalStores:
    """``kgrag.ports.Stores`` over ``index.db`` and ``answers.db`` of one folder."""

    def __init__(self, folder: Path, *, mode: Mode, create: bool = False, dimension: int | None = None) -> None:
        self.folder = folder
        schema = rows.SCHEMA + records.SCHEMA + graph.SCHEMA + status.SCHEMA
        self._index = Database(folder / "index.db", schema=schema, version=FORMAT, mode=mode, create=create)
        paid = folder / "answers.db"
        self._paid: Database | None = None
        if mode == "write" or paid.exists():
            self._paid = Database(paid, schema=answers.SCHEMA, version=answers.FORMAT, mode=mode, create=mode == "write")
        self.search = LocalSearch(self._index, folder, dimension)
        self._check_dimension(dimension)
        self.records = LocalRecords(self._index)
        self.graph = LocalGraph(self._index)
        self.status = LocalStatus(self._index)
        self.answers = LocalAnswers(self._paid, self._index.check_fence)

    @property
    def remote(self) -> bool:
        return False

    def fence(self, epoch: int | None) -> None:
        self._index.epoch = epoch

    def transaction(self) -> AbstractContextManager[None]:
        return self._index.transaction()

    def compact(self) -> None:
        """Write every file anew without anything that was deleted: afterwards no byte of it is left in the folder."""
        self.search.forget_unused_metadata()
        self._index.vacuum()
        self.search.rebuild()
        self._index.vacuum()
        if self._paid is not None:
            self._paid.vacuum()

    def _check_dimension(self, dimension: int | None) -> None:
        held = self.search.dimension()
        if dimension and held and held != dimension:
            self.close()
            raise ConfigurationError(
                f"{self.folder} holds vectors of {held} dimensions; the embedding model gives {dimension}.",
                subject=str(self.folder),
                remedy="Use the embedding model the index was built with, or build it anew (`kgrag ingest --reset`).",
            )

    def close(self) -> None:
        self._index.close()
        if self._paid is not None:
            self._paid.close()


def check_namespace(name: str) -> str:
    """The name itself where it is valid. Raises ConfigurationError otherwise."""
    if not _NAMESPACE.fullmatch(name):
        raise ConfigurationError(
            f'"{name}" is not a namespace name.',
            subject=name,
            remedy="Use lower-case letters, digits, - and _, starting with a letter or digit, at most 64.",
        )
    return name


def namespaces(home: Path) -> list[str]:
    """Names of the namespaces that hold an index, sorted."""
    if not home.is_dir():
        return []
    return sorted(p.parent.name for p in home.glob("*/index.db") if _NAMESPACE.fullmatch(p.parent.name))


def open_stores(home: Path, namespace: str, *, mode: Mode, create: bool = False, dimension: int | None = None) -> LocalStores:
    """The stores of one namespace. ``create`` makes the folder where there is none (``mode="write"`` only);
    ``dimension`` is the embedding's, checked against what is stored.
    Raises UnknownNamespaceError, ConfigurationError, StoreError."""
    folder = home / check_namespace(namespace)
    if not (folder / "index.db").exists():
        if not (create and mode == "write"):
            held = namespaces(home)
            raise UnknownNamespaceError(
                f'There is no index named "{namespace}" in {home}.',
                subject=namespace,
                remedy=f"Known: {', '.join(held)}." if held else "Run `kgrag ingest` first, or check KGRAG_HOME.",
            )
        require_local(folder)
        with failures.of_files(folder):
            folder.mkdir(parents=True, exist_ok=True)
    return LocalStores(folder, mode=mode, create=create, dimension=dimension)
