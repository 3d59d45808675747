"""What a run did, on screen and as JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from kgrag.records import Usage


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A file, document or item that could not be processed, why, and what to do. ``kind`` is the class of the error."""

    path: str
    stage: str
    kind: str
    reason: str
    remedy: str = ""


class StageTime(msgspec.Struct, frozen=True, kw_only=True):
    """One stage of a run. ``seconds`` is wall time."""

    name: str
    rows: int = 0
    failed: int = 0
    seconds: float = 0.0
    usage: Usage = Usage()


class RunReport(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of documents are of this run; units, entities, relationships and communities are what the index holds now."""

    namespace: str = ""
    files: int = 0
    unchanged_files: int = 0
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    deleted: int = 0
    failed: int = 0
    units: int = 0
    entities: int = 0
    relationships: int = 0
    claims: int = 0
    communities: int = 0
    reports: int = 0
    failures: tuple[Failure, ...] = ()
    failures_total: int = 0
    warnings: tuple[str, ...] = ()
    usage: Usage = Usage()
    seconds: float = 0.0
    stages: tuple[StageTime, ...] = ()
    methodologies: tuple[str, ...] = ()
    embedding: str = ""
    wrote: bool = False

    @property
    def exit_code(self) -> int:
        """0 all done, 3 some of it, 1 nothing of it."""
        if not self.failures_total:
            return 0
        return 3 if self.new + self.changed + self.unchanged + self.unchanged_files > 0 else 1

    def as_json(self) -> dict[str, Any]:
        """Plain values, with the exit code."""
        return {**_plain(self), "exit_code": self.exit_code}

    def lines(self) -> list[str]:
        """The report for a reader."""
        out = [self._documents(), self._index()]
        if self.usage.calls or self.usage.stored:
            out.append(self._cost())
        if self.embedding:
            out.append(f"Embedding: {self.embedding}")
        timed = [f"{s.name} {s.seconds:.1f} s" for s in self.stages if s.seconds >= max(0.1, 0.03 * self.seconds)]
        out.append(f"Time: {self.seconds:.1f} s" + (f" ({', '.join(timed)})" if timed else ""))
        out += [f"Note: {warning}" for warning in self.warnings]
        if self.failures_total:
            out.append(f"Failed: {self.failures_total}")
            out += [f"  {f.path}: {f.reason}" + (f" {f.remedy}" if f.remedy else "") for f in self.failures]
            if self.failures_total > len(self.failures):
                out.append(f"  ... and {self.failures_total - len(self.failures)} more")
        return out

    def _documents(self) -> str:
        parts = [f"{n} {word}" for n, word in ((self.new, "new"), (self.changed, "changed"), (self.deleted, "deleted")) if n]
        quiet = f"{self.unchanged} unchanged" if self.unchanged else ""
        skipped = f"{self.unchanged_files} of {self.files} files unchanged" if self.unchanged_files else ""
        rest = [part for part in (quiet, skipped) if part]
        return "Documents: " + (", ".join(parts + rest) or "none") + ("" if self.wrote else "; nothing to do")

    def _index(self) -> str:
        counts = (
            (self.units, "text units"),
            (self.entities, "entities"),
            (self.relationships, "relationships"),
            (self.claims, "claims"),
            (self.communities, "communities"),
            (self.reports, "reports"),
        )
        return "Index: " + (", ".join(f"{n:,} {word}" for n, word in counts if n) or "empty")

    def _cost(self) -> str:
        usage = self.usage
        line = f"Model: {usage.calls:,} calls, {usage.stored:,} answers from earlier"
        if usage.input_tokens or usage.output_tokens:
            line += f", {usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"
        return line + (f", cost {usage.cost:.4f}" if usage.cost else "")


def _plain(record: msgspec.Struct) -> dict[str, Any]:
    """Every field, those at their default included."""
    return {name: _value(getattr(record, name)) for name in record.__struct_fields__}


def _value(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return _plain(value)
    return [_value(item) for item in value] if isinstance(value, tuple) else value


MAX_FAILURES = 100
"""Failures a report names; it counts them all."""
