"""Writing the answer from a packed context, piece by piece, and resolving what it cites."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping

from kgrag.engine import Engine, Outcome
from kgrag.query.cite import CitationStream, citations, clean, numbered
from kgrag.query.found import Style
from kgrag.records import AbstainReason, Answer, Citation, Context, Hit
from kgrag.section import Section
from kgrag.tasks.answers import ANSWER, CANNOT_ANSWER, AnswerInput, ContextItem


class AnswerSettings(Section):
    """How answers are written."""

    style: Style | None = None
    """``concise`` or ``comprehensive``; by default the strategy's own (comprehensive for global, unified-kg-rag §6.1.1)."""
    cannot_answer: str = CANNOT_ANSWER
    """What is said, without a model call, when nothing was found."""


class Draft:
    """One answer in the making. ``pieces`` (or ``whole``) asks the model, ``finish`` gives the answer."""

    def __init__(
        self, question: str, context: Context, settings: AnswerSettings, *, style: Style, language: str, started: float
    ) -> None:
        self.context = context
        self._question = question
        self._settings = settings
        self._started = started
        self._items = numbered(context.sections)
        self._input = AnswerInput(
            question=question,
            items=[_item(n, hit) for n, hit in self._items],
            style=settings.style or style,
            language=language,
        )
        self._used: set[int] = set()
        self._text = ""
        self._usage = context.usage
        self._abstained: AbstainReason = ""

    async def pieces(self, engine: Engine) -> AsyncGenerator[str, None]:
        """The answer's text as it comes, without numbers that do not exist. No call is made for an empty context."""
        if not self._items:
            yield self._abstain()
            return
        stream = CitationStream(len(self._items))
        said: list[str] = []
        async for part in engine.stream(ANSWER, self._input):
            if isinstance(part, Outcome):
                self._usage += part.usage
                continue
            text = stream.feed(part)
            if text:
                said.append(text)
                yield text
        rest = stream.end()
        if rest:
            said.append(rest)
            yield rest
        self._text = "".join(said)
        self._used = stream.used

    async def whole(self, engine: Engine) -> None:
        """Ask for the answer in one reply."""
        if not self._items:
            self._abstain()
            return
        outcome = await engine.ask(ANSWER, self._input)
        self._usage += outcome.usage
        self._text = clean(outcome.value, len(self._items), self._used)

    def cited(self) -> list[Hit]:
        """The context's items that the text cites."""
        return [hit for number, hit in self._items if number in self._used]

    def finish(self, units: Mapping[str, Hit]) -> Answer:
        """``units`` are located text units by id, at least the one ``source_of`` names for each cited item."""
        return Answer(
            question=self._question,
            text=self._text.strip(),
            strategy=self.context.strategy,
            citations=self._citations(units),
            context=self.context,
            abstained=self._abstained,
            usage=self._usage,
            milliseconds=(time.perf_counter() - self._started) * 1000,
        )

    def source_of(self, hit: Hit) -> str:
        """Id of the text unit a citation of ``hit`` points to: the first of its lineage that the model saw as a passage,
        else the first of its lineage; empty where it has none."""
        if hit.kind == "text_unit":
            return hit.id
        lineage = set(hit.text_unit_ids)
        shown = (other.id for _, other in self._items if other.kind == "text_unit" and other.id in lineage)
        return next(shown, min(lineage, default=""))

    def _citations(self, units: Mapping[str, Hit]) -> list[Citation]:
        return citations(self._items, self._used, lambda hit: units.get(self.source_of(hit)))

    def _abstain(self) -> str:
        self._abstained = "no_context"
        self._text = self._settings.cannot_answer
        return self._text


def _item(number: int, hit: Hit) -> ContextItem:
    """A passage is shown under its document's title; the text of any other kind names what it is about."""
    return ContextItem(number=number, kind=hit.kind, title=hit.title if hit.kind == "text_unit" else "", text=hit.text)
