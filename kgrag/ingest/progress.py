"""The live view of a run: stage, rows, rate, failures, calls, tokens, cost, time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TextIO

from kgrag.ingest.report import StageTime
from kgrag.records import Usage

if TYPE_CHECKING:
    from rich.table import Table


class Progress(Protocol):
    """Hears how a run gets on. ``begin`` may be told 0 rows where their number is not known."""

    def begin(self, stage: str, rows: int) -> None: ...
    def advance(self, rows: int, failed: int = 0, usage: Usage = Usage()) -> None: ...  # noqa: B008
    def end(self) -> None: ...


class Meter:
    """Counts, silently. What it counted is in the run's report."""

    def __init__(self) -> None:
        self.done: list[StageTime] = []
        self.current = ""
        self.total = self.rows = self.failed = 0
        self.usage = Usage()
        self.started = time.monotonic()
        self._stage_started = 0.0

    def begin(self, stage: str, rows: int) -> None:
        self.current, self.total = stage, rows
        self.rows = self.failed = 0
        self.usage = Usage()
        self._stage_started = time.monotonic()

    def advance(self, rows: int, failed: int = 0, usage: Usage = Usage()) -> None:  # noqa: B008
        self.rows += rows
        self.failed += failed
        self.usage += usage

    def end(self) -> None:
        if self.current:
            self.done.append(
                StageTime(name=self.current, rows=self.rows, failed=self.failed, seconds=self.seconds, usage=self.usage)
            )
            self.current = ""

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._stage_started

    @property
    def paid(self) -> Usage:
        """Usage of the whole run so far."""
        total = self.usage if self.current else Usage()
        for stage in self.done:
            total += stage.usage
        return total

    def times(self) -> tuple[StageTime, ...]:
        """Stages of one name added up, in the order they first ran."""
        merged: dict[str, StageTime] = {}
        for stage in self.done:
            before = merged.get(stage.name, StageTime(name=stage.name))
            merged[stage.name] = StageTime(
                name=stage.name,
                rows=before.rows + stage.rows,
                failed=before.failed + stage.failed,
                seconds=round(before.seconds + stage.seconds, 3),
                usage=before.usage + stage.usage,
            )
        return tuple(merged.values())

    def line(self) -> str:
        """The current stage in one line."""
        parts = [f"{self.rows:,}" + (f"/{self.total:,}" if self.total else "") + " rows"]
        rate = self.rows / self.seconds if self.seconds > 0 else 0.0
        if rate:
            parts.append(f"{rate:,.0f}/s")
        if self.failed:
            parts.append(f"{self.failed:,} failed")
        paid = self.paid
        if paid.calls:
            parts.append(f"{paid.calls:,} calls")
        if paid.input_tokens or paid.output_tokens:
            parts.append(f"{paid.input_tokens + paid.output_tokens:,} tokens")
        if paid.cost:
            parts.append(f"cost {paid.cost:.4f}")
        if rate and self.total > self.rows:
            parts.append(f"{_clock((self.total - self.rows) / rate)} left")
        return f"{self.current}: " + ", ".join(parts)


class LineMeter(Meter):
    """A line when a stage ends and, in a long one, every ``seconds``: for logs and pipes."""

    def __init__(self, stream: TextIO, seconds: float = 10.0) -> None:
        super().__init__()
        self._stream, self._every = stream, seconds
        self._spoke = 0.0

    def begin(self, stage: str, rows: int) -> None:
        super().begin(stage, rows)
        self._spoke = time.monotonic()

    def advance(self, rows: int, failed: int = 0, usage: Usage = Usage()) -> None:  # noqa: B008
        super().advance(rows, failed, usage)
        if time.monotonic() - self._spoke >= self._every:
            self._spoke = time.monotonic()
            print(self.line(), file=self._stream, flush=True)

    def end(self) -> None:
        if self.current and (self.rows or self.seconds >= 1):
            print(f"{self.line()}, {self.seconds:.1f} s", file=self._stream, flush=True)
        super().end()


def stage_table(meter: Meter) -> Table:
    """Finished stages and the one at work, as rich draws them."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for title in ("stage", "rows", "failed", "calls", "seconds"):
        table.add_column(title, justify="left" if title == "stage" else "right")
    for stage in meter.times():
        calls = f"{stage.usage.calls:,}" if stage.usage.calls else ""
        table.add_row(stage.name, f"{stage.rows:,}", f"{stage.failed:,}" if stage.failed else "", calls, f"{stage.seconds:.1f}")
    if meter.current:
        table.add_row(meter.line(), style="bold")
    return table


@contextmanager
def progress_for(stream: TextIO | None = None, *, quiet: bool = False) -> Iterator[Meter]:
    """The view that suits where the run's messages go: live on a terminal, lines elsewhere, nothing when ``quiet``."""
    stream = stream or sys.stderr
    if quiet:
        yield Meter()
    elif not stream.isatty():
        yield LineMeter(stream)
    else:
        from rich.console import Console
        from rich.live import Live

        meter = Meter()
        with Live(console=Console(file=stream), get_renderable=lambda: stage_table(meter), refresh_per_second=4, transient=True):
            yield meter


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
