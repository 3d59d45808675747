"""The engine without a model: every task the system puts, the same contract as the others."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kgrag.backends.local.extractive import ExtractiveEngine
from kgrag.backends.local.extractive.claims import period
from kgrag.engine import Outcome
from kgrag.errors import ConfigurationError
from kgrag.records import Usage
from kgrag.tasks.answers import ANSWER, AnswerInput, ContextItem
from kgrag.tasks.descriptions import DESCRIBE, DescriptionInput
from kgrag.tasks.extraction import CLAIMS, EXTRACT, GLEAN, ClaimsInput, Extraction, ExtractionInput, GleanInput
from kgrag.tasks.query import KEYWORDS, MAP_REPORTS, QUERY_ENTITIES, MapInput, MapReport, QuestionInput
from kgrag.tasks.repair import FIX, FixInput
from kgrag.tasks.reports import REPORT, ReportEntity, ReportInput, ReportRelationship, SubReport
from kgrag.text import count_tokens

ENGINE = ExtractiveEngine()


def ask(task: Any, input: Any) -> Any:
    return asyncio.run(ENGINE.ask(task, input)).value


def test_it_answers_every_task_without_usage() -> None:
    question = QuestionInput(question="Who founded Acme?")
    for task, input in [
        (EXTRACT, ExtractionInput(text="Ada founded Acme.")),
        (GLEAN, GleanInput(text="Ada founded Acme.")),
        (CLAIMS, ClaimsInput(text="Ada founded Acme in 1900.", entities=["Acme"])),
        (DESCRIBE, DescriptionInput(name="Acme", lines=["Acme makes anvils."])),
        (REPORT, ReportInput(name="c", entities=[ReportEntity(name="Acme")])),
        (KEYWORDS, question),
        (QUERY_ENTITIES, question),
        (MAP_REPORTS, MapInput(question="Acme?", reports=[MapReport(number=1, title="t", content="Acme makes anvils.")])),
        (ANSWER, AnswerInput(question="Acme?", items=[ContextItem(number=1, kind="text_unit", text="Acme makes anvils.")])),
    ]:
        outcome = asyncio.run(ENGINE.ask(task, input))
        assert (outcome.usage, outcome.answers, outcome.dropped) == (Usage(), (), 0), task.name


def test_a_task_without_a_rule_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match="fix"):
        ask(FIX, FixInput(instructions="", reply="", problem=""))


def test_identity_tells_tasks_apart_and_stays() -> None:
    assert ENGINE.identity(EXTRACT) == ExtractiveEngine().identity(EXTRACT) != ENGINE.identity(ANSWER)


def test_gleaning_finds_nothing_more() -> None:
    assert ask(GLEAN, GleanInput(text="Ada Lovelace met Charles Babbage.")) == Extraction()


def test_a_stream_ends_with_the_whole_answer() -> None:
    text = "The crane that stands in the northern basin of the old harbour is red, as it has always been."
    input = AnswerInput(question="Which crane is red?", items=[ContextItem(number=1, kind="text_unit", text=text)])

    async def run() -> list[Any]:
        return [part async for part in ENGINE.stream(ANSWER, input)]

    *pieces, last = asyncio.run(run())
    assert isinstance(last, Outcome)
    assert "".join(pieces) == last.value == ask(ANSWER, input)
    assert len(pieces) > 1


def test_a_description_is_of_central_lines_within_its_bound() -> None:
    lines = [f"Acme makes anvils of steel in town {n}." for n in range(80)] + ["Bears sleep."]
    text = ask(DESCRIBE, DescriptionInput(name="Acme", lines=lines, max_tokens=60))
    assert 0 < count_tokens(text) <= 60
    assert "Bears" not in text
    assert all(line in lines for line in (sentence + "." for sentence in text.rstrip(".").split(". ")))


def test_a_description_does_not_depend_on_the_order_of_lines() -> None:
    lines = [f"Acme makes thing {n} of steel." for n in range(200)]
    forward, backward = (ask(DESCRIBE, DescriptionInput(name="Acme", lines=x, max_tokens=50)) for x in (lines, lines[::-1]))
    assert sorted(forward.split(". ")) == sorted(backward.split(". ")) or set(forward.split()) == set(backward.split())


def test_one_line_and_no_line() -> None:
    assert ask(DESCRIBE, DescriptionInput(name="Acme", lines=["Acme makes anvils."])) == "Acme makes anvils."
    assert ask(DESCRIBE, DescriptionInput(name="Acme", lines=[])) == ""


def test_a_line_beyond_the_bound_is_cut_not_lost() -> None:
    text = ask(DESCRIBE, DescriptionInput(name="Acme", lines=["Acme makes " + "anvils and " * 400], max_tokens=50))
    assert text.startswith("Acme makes anvils")
    assert count_tokens(text) <= 50


def test_a_report_names_its_best_connected_and_says_what_joins_them() -> None:
    entities = [
        ReportEntity(name=name, description=f"{name} is a place.", rank=rank) for name, rank in (("B", 1), ("A", 9), ("C", 3))
    ]
    edges = [ReportRelationship(source="A", target="B", description="A trades with B.", weight=5.0)]
    children = [SubReport(name="child", rating=3.0, summary="D lies behind E.")]
    report = ask(REPORT, ReportInput(name="c", entities=entities, relationships=edges, children=children))
    assert report.title == "A, C, B"
    assert "A trades with B." in report.summary
    assert 0 < report.rating <= 10
    assert report.rating_explanation
    assert report.findings[0].summary == "A"
    assert "A trades with B." in report.findings[0].explanation


def test_a_bigger_community_is_rated_higher() -> None:
    def rated(size: int) -> float:
        entities = [ReportEntity(name=f"n{i}", rank=1) for i in range(size)]
        edges = [ReportRelationship(source="n0", target=f"n{i}", description=f"d{i}.") for i in range(1, size)]
        rating: float = ask(REPORT, ReportInput(name="c", entities=entities, relationships=edges)).rating
        return rating

    assert 0 < rated(3) < rated(10) < rated(50) <= 10


def test_dated_sentences_are_claims_about_listed_entities() -> None:
    text = "Acme bought Bolt on 3 May 1932. Acme is big. Nobody came in 1950. Zed left in 1960."
    claims = ask(CLAIMS, ClaimsInput(text=text, entities=["Acme", "Bolt"]))
    assert [(c.subject, c.object, c.start_date, c.end_date) for c in claims] == [("Acme", "Bolt", "1932-05-03", "1932-05-03")]
    assert claims[0].span in text
    assert ask(CLAIMS, ClaimsInput(text=text, entities=["Acme"], about="elections")) == []


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("1932", ("1932", "1932")),
        ("1930s", ("1930", "1939")),
        ("3 May 1932", ("1932-05-03", "1932-05-03")),
        ("May 3, 1932", ("1932-05-03", "1932-05-03")),
        ("January 1960", ("1960-01", "1960-01")),
        ("28. August 1749", ("1749-08-28", "1749-08-28")),
        ("6 de marzo de 1927", ("1927-03-06", "1927-03-06")),
        ("29 января 1860 года", ("1860-01-29", "1860-01-29")),
        ("1867年2月9日", ("1867-02-09", "1867-02-09")),
        ("1443년", ("1443", "1443")),
        ("2020-05-01", ("2020-05-01", "2020-05-01")),
        ("1914–18", ("1914", "1918")),
        ("1914-1918", ("1914", "1918")),
        ("2 अक्टूबर 1869", ("1869-10-02", "1869-10-02")),
        ("yesterday", ("", "")),
    ],
)
def test_periods(date: str, expected: tuple[str, str]) -> None:
    assert period(date) == expected
