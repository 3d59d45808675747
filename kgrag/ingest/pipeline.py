"""A run, step by step. A first build is the delta from an empty index: there is one path.

Every step beside the stores is safe to repeat, and their order lets a run die anywhere (``ingest.evidence``): the next one
comes to what an undisturbed one would have left.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kgrag.errors import ConfigurationError
from kgrag.graph.resolve import Resolver
from kgrag.ids import digest
from kgrag.index.profile import BuildRecord, builds_communities, builds_graph, methodologies_held
from kgrag.ingest import aliases, changes, commit, communities, evidence, items
from kgrag.ingest.aliases import Aliases
from kgrag.ingest.changes import DocumentScan, FileScan, Listing, UnitScan
from kgrag.ingest.evidence import Evidence
from kgrag.ingest.plan import Fingerprint
from kgrag.ingest.report import Failure
from kgrag.ingest.runner import Runner
from kgrag.ingest.stages import Stages
from kgrag.ingest.tables import Table


@dataclass(kw_only=True)
class Outcome:
    """What a run did."""

    files: FileScan
    documents: DocumentScan | None = None
    failures: list[Failure] = field(default_factory=list)
    failures_total: int = 0
    warnings: list[str] = field(default_factory=list)
    wrote: bool = False


class Pipeline:
    """One run. ``runner`` carries out its stages and steps."""

    def __init__(self, runner: Runner, stages: Stages) -> None:
        self._runner, self._stages = runner, stages
        self._graph = builds_graph(stages.target.artifacts)
        self._reports_failed = 0

    async def run(self, listing: Listing) -> Outcome:
        """Bring the index up to date with these files."""
        runner = self._runner
        fingerprint = await self._fingerprint()
        keys = await self._keys()
        before = await runner.store(commit.held)
        self._check_dimension(before)
        files = await runner.store(changes.compare_files, listing, fingerprint)
        outcome = Outcome(files=files)
        renewed = {name for name, key in keys.items() if before is not None and before.keys.get(name) != key}
        left = await runner.store(commit.unfinished)
        if not files.files.rows and not files.gone and not renewed and before is not None and not left:
            return outcome
        documents, units = await self._changes(files, fingerprint)
        outcome.documents = documents
        outcome.failures += documents.failures
        outcome.failures_total += documents.failures_total
        outcome.warnings += documents.warnings
        if not documents.plan.rows and not renewed and before is not None and not left:
            await runner.store(commit.settle_files, files, documents, fingerprint)
            return outcome
        await self._carry_out(outcome, units, renewed, fingerprint, first=before is None)
        await runner.store(commit.write_build, self._build(keys))
        outcome.wrote = True
        return outcome

    async def _changes(self, files: FileScan, fingerprint: Fingerprint) -> tuple[DocumentScan, UnitScan]:
        parsed = await self._runner.run(self._stages.parse, files.files)
        documents = await self._runner.store(changes.compare_documents, parsed, files, fingerprint)
        cut = await self._runner.run(self._stages.chunk, documents.changed)
        return documents, await self._runner.store(changes.compare_units, cut, documents.plan)

    async def _carry_out(
        self, outcome: Outcome, units: UnitScan, renewed: set[str], fingerprint: Fingerprint, *, first: bool
    ) -> None:
        runner = self._runner
        anew = "rows" in renewed
        records = await runner.run(self._stages.extract, units.read) if self._graph else None
        found = await self._aliases(units, records, renewed)
        await runner.store(evidence.write_ahead, units.plan)
        unread = await self._put_records(units, records, found) if records else None
        await self._write_units(units, anew=anew)
        if records:
            await self._write_graph(outcome, units, unread, found, renewed, first=first)
        await runner.store(items.delete_units, units.plan)
        await runner.store(commit.refresh)
        failed = await runner.store(
            commit.commit,
            units.plan,
            unread,
            units.failed,
            outcome.files,
            self._documents(outcome),
            fingerprint,
            found.joined if found else None,
        )
        outcome.failures += failed.named
        outcome.failures_total += failed.total

    async def _aliases(self, units: UnitScan, records: Table | None, renewed: set[str]) -> Aliases | None:
        """Similar spellings to join, where that is asked for or was before."""
        resolution = self._stages.resolution
        if records is None or not (resolution.fuzzy or "aliases" in renewed):
            return None
        return await self._runner.store(aliases.find_aliases, resolution, units.plan, records)

    async def _put_records(self, units: UnitScan, records: Table, found: Aliases | None) -> Table:
        resolver = Resolver(self._stages.resolution, found.joined if found else {})
        unread = await self._runner.store(evidence.put_records, records, resolver, units.remade)
        if units.restated or (found and found.units.rows):
            await self._runner.store(evidence.restate, units.plan, found.units if found else None, resolver)
        return unread

    async def _write_units(self, units: UnitScan, *, anew: bool) -> None:
        """Rows of text units that are new, or whose document's title or fields changed; all of them for another embedding."""
        tables = [units.read, units.rewrite]
        for number, table in enumerate(tables):
            if table.rows:
                rows = await self._runner.run(self._stages.unit_rows, table, f"unit_rows_{number}")
                await self._write(rows, anew=anew)
        if anew:
            table = await self._runner.store(items.stored_units)
            await self._write(await self._runner.run(self._stages.unit_rows, table, "unit_rows_all"), anew=anew)

    async def _write_graph(
        self, outcome: Outcome, units: UnitScan, unread: Table | None, joined: Aliases | None, renewed: set[str], *, first: bool
    ) -> None:
        runner, stages = self._runner, self._stages
        anew = "rows" in renewed
        everything = anew or "derive" in renewed
        also = joined.units if joined else None
        found = await runner.store(evidence.export_statements, units.plan, unread, also, everything=everything)
        if found.groups:
            made = await runner.run(stages.derive, found.statements)
            if await runner.store(items.any_needed, made, stages.describe):
                made = await runner.run(stages.describe, made)
                self._note(outcome, made, "descriptions could not be summarised and keep their lines")
            await self._write(await runner.run(stages.item_rows, made, "item_rows"), anew=anew)
            await runner.store(items.delete_items, found.gone)
        if builds_communities(self._stages.target.artifacts) and (found.groups or renewed or first):
            await self._write_communities(outcome, found, renewed, first=first)

    async def _write_communities(self, outcome: Outcome, found: Evidence, renewed: set[str], *, first: bool) -> None:
        runner, stages = self._runner, self._stages
        cold = first or bool(renewed & {"communities"})
        scan = await runner.store(
            communities.find_communities,
            stages.communities,
            stages.reports,
            found.ends,
            found.affected,
            cold=cold,
            fresh="reports" in renewed,
            anew="rows" in renewed,
        )
        for level in scan.levels:
            inputs = await runner.store(communities.pack_reports, level)
            made = await runner.run(stages.report, inputs, f"reports_{level}")
            self._reports_failed = await runner.store(communities.take_reports, made)
            self._note(outcome, made, f"reports of level {level} could not be written")
        rows = await runner.run(stages.report_rows, await runner.store(communities.made_reports), "report_rows")
        await runner.store(communities.write_communities, rows, await self._vectors(rows))

    async def _write(self, rows: Table, *, anew: bool) -> None:
        await self._runner.store(items.write_rows, rows, await self._vectors(rows), anew=anew)

    async def _vectors(self, rows: Table) -> Table | None:
        if self._stages.embed is None:
            return None
        passages = await self._runner.store(items.mark_passages, rows)
        return await self._runner.run(self._stages.embed, passages, f"{rows.name}_vectors") if passages.rows else None

    async def _fingerprint(self) -> Fingerprint:
        s = self._stages
        extraction = await self._runner.identity(s.extract) if self._graph else ""
        return Fingerprint(
            reading=digest("reading", str(s.parse.version), s.parse.key(), str(s.chunk.version), s.chunk.key()),
            extraction=digest("extraction", str(s.extract.version), extraction),
            resolution=Resolver(s.resolution, {}).digest,
        )

    async def _keys(self) -> dict[str, str]:
        """What derived rows are made with, beyond the documents themselves. ``unwritten`` counts the reports that failed, so that
        the next run tries them again."""
        s = self._stages
        keys = {"rows": digest("rows", str(s.item_rows.version), s.item_rows.key())}
        if self._graph:
            keys["aliases"] = str(s.resolution.similarity_threshold) if s.resolution.fuzzy else ""
            keys["derive"] = digest(
                str(s.derive.version), s.derive.key(), str(s.describe.version), await self._runner.identity(s.describe)
            )
        if builds_communities(self._stages.target.artifacts):
            keys["communities"] = digest(s.communities.model_dump_json())
            keys["unwritten"] = "0"
            keys["reports"] = digest(s.reports.model_dump_json(), await self._runner.identity(s.report))
        return keys

    def _build(self, keys: dict[str, str]) -> BuildRecord:
        target = self._stages.target
        if self._reports_failed:
            keys = {**keys, "unwritten": str(self._reports_failed)}
        return BuildRecord(
            artifacts=sorted(target.artifacts),
            methodologies=list(methodologies_held(target.artifacts)),
            embedding=target.embedding,
            dimension=target.dimension,
            strong=target.strong,
            vectors=target.vectors,
            analyzer=target.analyzer,
            language=target.language,
            keys=keys,
        )

    def _check_dimension(self, before: BuildRecord | None) -> None:
        wanted = self._stages.target.dimension
        if before is not None and before.dimension and wanted and before.dimension != wanted:
            raise ConfigurationError(
                f"The index holds vectors of {before.dimension} numbers ({before.embedding}); {self._stages.target.embedding} gives {wanted}.",
                subject="models.embedding",
                remedy="Use the embedding model the index was built with, or build an index of another namespace with this one.",
            )

    @staticmethod
    def _note(outcome: Outcome, table: Table, what: str) -> None:
        if table.failed:
            outcome.warnings.append(f"{table.failed} {what}.")

    @staticmethod
    def _documents(outcome: Outcome) -> DocumentScan:
        assert outcome.documents is not None
        return outcome.documents
