"""What a pipeline stage is: a pure function over Arrow tables, with what it reads and writes declared.

No stage knows Ray. ``ingest.runner`` runs them in process, ``ingest.ray_runner`` on a cluster; both give identical tables.
A row that fails stays a row: its ``error`` column says stage, type, message and whether a retry may help.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import msgspec
import pyarrow as pa

from kgrag.engine import Engine, Task
from kgrag.errors import KgragError, TransientModelError
from kgrag.ids import digest
from kgrag.ports import Embedder


class RowError(msgspec.Struct, frozen=True):
    """What the ``error`` column holds, as JSON; empty where the row is fine."""

    stage: str
    type: str
    message: str
    remedy: str = ""
    retryable: bool = False

    @classmethod
    def of(cls, stage: str, error: Exception) -> RowError:
        message = error.message if isinstance(error, KgragError) else str(error)
        remedy = error.remedy if isinstance(error, KgragError) else ""
        return cls(stage, type(error).__name__, message, remedy, isinstance(error, TransientModelError))


class Stage(ABC):
    """``reads`` and ``writes`` are the schemas of its input and output rows; a subclass without them is refused.
    ``version`` grows when the same input and settings give another output."""

    name: ClassVar[str]
    reads: ClassVar[pa.Schema]
    writes: ClassVar[pa.Schema]
    version: ClassVar[int] = 1

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if ABC in cls.__bases__:
            return
        missing = [a for a in ("name", "reads", "writes") if not hasattr(cls, a)]
        if missing:
            raise TypeError(f"Stage {cls.__name__} declares no {', '.join(missing)}.")

    def key(self) -> str:
        """Digest of the settings that change this stage's output."""
        return ""


class MapStage(Stage, ABC):
    """Batches of rows to batches of rows; pure, no model."""

    @abstractmethod
    def batch(self, rows: pa.Table) -> pa.Table: ...

    def batches(self, rows: pa.Table) -> Iterator[pa.Table]:
        """The same rows, cut where they are too many for one table."""
        yield self.batch(rows)


class CallStage(Stage, ABC):
    """One awaited answer per row from an engine or embedder; rows run concurrently up to the model's own limit."""

    role: ClassVar[str]
    """The model role that answers."""
    tasks: ClassVar[tuple[Task[Any, Any], ...]] = ()
    """What it may ask."""

    def needed(self, rows: pa.Table) -> Sequence[int] | None:
        """Positions of the rows that need an answer; the others pass as they are (``reads`` and ``writes`` are one schema
        then). None: all of them."""
        return None

    def identity(self, engine: Engine) -> str:
        """What decides this stage's answers besides its rows: its settings, and who answers its tasks."""
        return digest(self.key(), *(engine.identity(task) for task in self.tasks))

    @abstractmethod
    async def row(self, row: dict[str, Any], engine: Engine) -> dict[str, Any]:
        """One output row. An ItemError or TransientModelError becomes the row's error; others end the run."""

    @abstractmethod
    def failed(self, row: dict[str, Any], error: RowError) -> dict[str, Any]:
        """The output row of an input row that failed."""


class EmbedStage(Stage, ABC):
    """Batches to batches with an embedder."""

    @abstractmethod
    async def batch(self, rows: pa.Table, embedder: Embedder) -> pa.Table: ...


class TableStage(Stage, ABC):
    """One shard's rows (every row whose ``shard_key`` falls in it) to that shard's output."""

    shard_key: ClassVar[str]

    @abstractmethod
    def table(self, rows: pa.Table) -> pa.Table: ...
