from __future__ import annotations

import asyncio
import re

from kgrag.engine import Engine, Outcome
from kgrag.records import encode
from kgrag.tasks.answers import ANSWER, AnswerInput, ContextItem
from kgrag.tasks.descriptions import DESCRIBE, DescriptionInput
from kgrag.tasks.extraction import CLAIMS, EXTRACT, GLEAN, ClaimsInput, Extraction, ExtractionInput, GleanInput
from kgrag.tasks.query import KEYWORDS, MAP_REPORTS, QUERY_ENTITIES, KeyPoint, Keywords, MapInput, MapReport, QuestionInput
from kgrag.tasks.reports import REPORT, ReportEntity, ReportInput, ReportText

TEXT = "Ada Lovelace met Charles Babbage in London in 1833. Charles Babbage designed the Analytical Engine in 1837."
UNIT = ExtractionInput(title="Ada Lovelace", text=TEXT)
QUESTION = "Whom did Ada Lovelace meet in 1833?"
QUESTIONS = AnswerInput(
    question=QUESTION,
    items=[
        ContextItem(number=1, kind="text_unit", title="Weather", text="It rains in spring."),
        ContextItem(number=2, kind="text_unit", title="Ada Lovelace", text=TEXT),
    ],
)
COMMUNITY = ReportInput(
    name="Level 0 Community 1",
    entities=[
        ReportEntity(name="Ada Lovelace", type="person", description="Ada Lovelace wrote the first program.", rank=2),
        ReportEntity(name="Charles Babbage", type="person", description="Charles Babbage designed engines.", rank=1),
    ],
)


class EngineContract:
    """Needs ``engine``. What every engine promises, whether it asks a model or not."""

    async def test_reading_a_unit_gives_entities_and_relationships_between_them(self, engine: Engine) -> None:
        outcome = await engine.ask(EXTRACT, UNIT)
        assert isinstance(outcome.value, Extraction)
        names = {entity.name for entity in outcome.value.entities}
        assert {"Ada Lovelace", "Charles Babbage"} <= names
        assert all(1 <= entity.confidence <= 10 for entity in outcome.value.entities)
        assert outcome.value.relationships
        assert all({r.source, r.target} <= names for r in outcome.value.relationships)

    async def test_gleaning_and_claims_answer_in_their_form(self, engine: Engine) -> None:
        first = (await engine.ask(EXTRACT, UNIT)).value
        again = GleanInput(title=UNIT.title, text=TEXT, entities=first.entities, relationships=first.relationships)
        assert isinstance((await engine.ask(GLEAN, again)).value, Extraction)
        claims = (await engine.ask(CLAIMS, ClaimsInput(text=TEXT, entities=["Ada Lovelace"]))).value
        assert all(claim.subject for claim in claims)

    async def test_descriptions_and_reports_are_written(self, engine: Engine) -> None:
        lines = ["Ada Lovelace wrote the first program.", "Ada Lovelace was a daughter of Lord Byron."]
        assert (await engine.ask(DESCRIBE, DescriptionInput(name="Ada Lovelace", lines=lines, max_tokens=100))).value
        report = (await engine.ask(REPORT, COMMUNITY)).value
        assert isinstance(report, ReportText)
        assert report.title
        assert report.summary
        assert 0 <= report.rating <= 10

    async def test_questions_are_read(self, engine: Engine) -> None:
        asked = QuestionInput(question=QUESTION)
        assert "Ada Lovelace" in (await engine.ask(QUERY_ENTITIES, asked)).value
        keywords = (await engine.ask(KEYWORDS, asked)).value
        assert isinstance(keywords, Keywords)
        assert keywords.high or keywords.low

    async def test_points_come_from_the_reports_given(self, engine: Engine) -> None:
        reports = [MapReport(number=4, title="Ada", content=TEXT), MapReport(number=7, title="Rain", content="It rains.")]
        points: list[KeyPoint] = (await engine.ask(MAP_REPORTS, MapInput(question=QUESTION, reports=reports))).value
        assert points
        assert all(0 <= point.score <= 100 and set(point.reports) <= {4, 7} for point in points)

    async def test_an_answer_cites_only_what_it_was_given(self, engine: Engine) -> None:
        outcome = await engine.ask(ANSWER, QUESTIONS)
        assert "Babbage" in outcome.value
        assert {int(n) for n in re.findall(r"\[(\d+)\]", outcome.value)} <= {1, 2}
        assert outcome.answers == ()

    async def test_a_streamed_answer_ends_with_its_outcome(self, engine: Engine) -> None:
        *pieces, last = [piece async for piece in engine.stream(ANSWER, QUESTIONS)]
        assert isinstance(last, Outcome)
        assert all(isinstance(piece, str) for piece in pieces)
        assert "".join(map(str, pieces)).strip() == last.value.strip()

    async def test_the_same_question_gets_the_same_answer_alone_and_among_others(self, engine: Engine) -> None:
        alone = await engine.ask(EXTRACT, UNIT)
        others = [ExtractionInput(title="Ada Lovelace", text=f"{TEXT} Number {i}.") for i in range(8)]
        among, *_ = await asyncio.gather(engine.ask(EXTRACT, UNIT), *(engine.ask(EXTRACT, other) for other in others))
        assert encode(among.value) == encode(alone.value)
        assert among.answers == alone.answers

    async def test_identities_stay_and_tell_tasks_apart(self, engine: Engine) -> None:
        identities = [engine.identity(task) for task in (EXTRACT, GLEAN, CLAIMS, DESCRIBE, REPORT)]  # type: ignore[arg-type]
        assert all(identities)
        assert len(set(identities)) == len(identities)
        assert engine.identity(EXTRACT) == identities[0]

    async def test_closing_twice_is_fine(self, engine: Engine) -> None:
        await engine.aclose()
        await engine.aclose()
