"""The stages of a run, made from its settings."""

from __future__ import annotations

from dataclasses import dataclass

from kgrag.documents.chunk import ChunkSettings
from kgrag.documents.settings import DocumentSettings
from kgrag.documents.stages import ChunkStage, ParseStage
from kgrag.extraction.extract import ExtractionSettings, ExtractStage
from kgrag.graph.communities import CommunitySettings
from kgrag.graph.derive import DeriveStage
from kgrag.graph.describe import DescribeStage, DescriptionSettings
from kgrag.graph.packing import ReportSettings
from kgrag.graph.reports import ReportStage
from kgrag.graph.resolve import ResolutionSettings
from kgrag.index.embed import PassageStage
from kgrag.index.profile import IndexSettings, artifacts_of, collections_with_vectors
from kgrag.index.write import ReportRowStage, RowStage, TextUnitRowStage
from kgrag.ingest.settings import RunSettings
from kgrag.ports import Collection, Embedder
from kgrag.stage import MapStage


@dataclass(frozen=True, kw_only=True)
class IngestSettings:
    """The sections of the configuration that a run reads."""

    documents: DocumentSettings = DocumentSettings()
    chunking: ChunkSettings = ChunkSettings()
    extraction: ExtractionSettings = ExtractionSettings()
    resolution: ResolutionSettings = ResolutionSettings()
    descriptions: DescriptionSettings = DescriptionSettings()
    communities: CommunitySettings = CommunitySettings()
    reports: ReportSettings = ReportSettings()
    index: IndexSettings = IndexSettings()
    run: RunSettings = RunSettings()


@dataclass(frozen=True, kw_only=True)
class Target:
    """What a run is to leave behind: what it builds, and with which embedding and analysis."""

    artifacts: frozenset[str]
    embedding: str
    dimension: int
    strong: bool
    vectors: list[Collection]
    analyzer: str
    language: str


@dataclass(frozen=True, kw_only=True)
class Stages:
    """Every stage of a run. ``embed`` is None where no row gets a vector."""

    parse: MapStage
    chunk: MapStage
    extract: ExtractStage
    resolution: ResolutionSettings
    derive: DeriveStage
    describe: DescribeStage
    unit_rows: TextUnitRowStage
    item_rows: RowStage
    report_rows: ReportRowStage
    embed: PassageStage | None
    communities: CommunitySettings
    reports: ReportSettings
    report: ReportStage
    target: Target


def stages_of(settings: IngestSettings, embedder: Embedder | None) -> Stages:
    """Every stage of a run with these settings."""
    vectors = collections_with_vectors(settings.index, embedder)
    identity = embedder.identity if embedder is not None and vectors else ""
    rows = (settings.index.language, identity, vectors)
    item_rows = RowStage(*rows)
    return Stages(
        parse=ParseStage(settings.documents),
        chunk=ChunkStage(settings.chunking),
        extract=ExtractStage(settings.extraction),
        resolution=settings.resolution,
        derive=DeriveStage(),
        describe=DescribeStage(settings.descriptions, settings.extraction.language),
        unit_rows=TextUnitRowStage(*rows),
        item_rows=item_rows,
        report_rows=ReportRowStage(*rows),
        embed=PassageStage(settings.index.batch_size, identity) if identity else None,
        communities=settings.communities,
        reports=settings.reports,
        report=ReportStage(),
        target=Target(
            artifacts=artifacts_of(settings.index),
            embedding=identity,
            dimension=embedder.dimension if embedder is not None and identity else 0,
            strong=embedder.strong if embedder is not None and identity else False,
            vectors=sorted(vectors),
            analyzer=item_rows.analyzer.identity,
            language=settings.index.language,
        ),
    )
