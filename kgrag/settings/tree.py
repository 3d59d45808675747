"""The whole configuration, composed of the sections that each module keeps for itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import field_validator

from kgrag.documents.chunk import ChunkSettings
from kgrag.documents.settings import DocumentSettings
from kgrag.engine.settings import ModelsSettings
from kgrag.extraction.extract import ExtractionSettings
from kgrag.graph.communities import CommunitySettings
from kgrag.graph.describe import DescriptionSettings
from kgrag.graph.packing import ReportSettings
from kgrag.graph.resolve import ResolutionSettings
from kgrag.index.profile import IndexSettings
from kgrag.ingest.settings import RunSettings
from kgrag.query.answer import AnswerSettings
from kgrag.query.serving import ServeSettings
from kgrag.query.settings import SearchSettings
from kgrag.section import Section

Backend = Literal["local"]


class Settings(Section):
    """Every value that can be configured."""

    backend: Backend = "local"
    """Where the index lives: `local` keeps it in embedded stores on this machine. Chooses a preset of other values."""

    home: Path = Path("~/.kgrag")
    """Folder of the embedded stores, one folder per namespace in it. The variable `KGRAG_HOME` sets it too."""

    namespace: str = "default"
    """Which index is written and read: one per tenant or version of a corpus."""

    models: ModelsSettings = ModelsSettings()
    documents: DocumentSettings = DocumentSettings()
    chunk: ChunkSettings = ChunkSettings()
    extraction: ExtractionSettings = ExtractionSettings()
    resolution: ResolutionSettings = ResolutionSettings()
    descriptions: DescriptionSettings = DescriptionSettings()
    communities: CommunitySettings = CommunitySettings()
    reports: ReportSettings = ReportSettings()
    index: IndexSettings = IndexSettings()
    search: SearchSettings = SearchSettings()
    answer: AnswerSettings = AnswerSettings()
    run: RunSettings = RunSettings()
    serve: ServeSettings = ServeSettings()

    @field_validator("home", mode="after")
    @classmethod
    def _expanded(cls, value: Path) -> Path:
        return value.expanduser()


PRESETS: Mapping[Backend, Mapping[str, Any]] = {"local": {}}
"""What choosing a backend changes, before file, environment and flags. The defaults are the local backend's."""
