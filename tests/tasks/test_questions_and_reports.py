from __future__ import annotations

import json

import pytest

from kgrag.errors import OutputError
from kgrag.records import Finding
from kgrag.tasks.answers import ANSWER, CANNOT_ANSWER, AnswerInput, ContextItem
from kgrag.tasks.descriptions import DESCRIBE, DescriptionInput
from kgrag.tasks.query import KEYWORDS, MAP_REPORTS, QUERY_ENTITIES, KeyPoint, Keywords, MapInput, MapReport, QuestionInput
from kgrag.tasks.repair import FIX, FixInput
from kgrag.tasks.reports import REPORT, ReportEntity, ReportInput, ReportRelationship, ReportText, SubReport

QUESTION = QuestionInput(question="Who met Ada?")
REPORTS = MapInput(
    question="Who?", reports=[MapReport(number=1, title="A", content="a"), MapReport(number=2, title="B", content="b")]
)
COMMUNITY = ReportInput(
    name="Level 0 Community 12",
    entities=[ReportEntity(name="Ada", type="person", description="Ada\nwrote.", rank=3)],
    relationships=[ReportRelationship(source="Ada", target="Charles", description="met", weight=7.5)],
    claims=["Ada claimed it"],
    children=[SubReport(name="Child", rating=6.5, summary="Sums up.")],
)


def test_keywords_come_on_two_levels() -> None:
    reply = '{"high": ["meetings", "meetings"], "low": ["Ada", ""]}'
    assert KEYWORDS.parse(reply, QUESTION, False).value == Keywords(high=["meetings"], low=["Ada"])
    assert KEYWORDS.parse('{"low": null, "high": "one"}', QUESTION, False).value == Keywords(high=["one"])
    with pytest.raises(OutputError):
        KEYWORDS.parse('{"keywords": []}', QUESTION, False)
    assert "in German" in KEYWORDS.render(QuestionInput(question="?", language="German"))


def test_entities_of_a_question() -> None:
    assert QUERY_ENTITIES.parse('{"entities": ["Ada", "Washington, D.C."]}', QUESTION, False).value == ["Ada", "Washington, D.C."]
    assert QUERY_ENTITIES.parse('{"entities": []}', QUESTION, False).value == []
    with pytest.raises(OutputError):
        QUERY_ENTITIES.parse("Ada, Charles", QUESTION, False)


def test_points_have_scores_and_reports_of_the_batch() -> None:
    points = [
        {"description": "one", "score": 80, "reports": [2, 2, 9]},
        {"description": "two", "score": "150", "reports": "1"},
        {"description": "three", "score": None},
        {"description": ""},
        "prose",
    ]
    parsed = MAP_REPORTS.parse(json.dumps({"points": points}), REPORTS, False)
    assert parsed.value == [
        KeyPoint(text="one", score=80.0, reports=[2]),
        KeyPoint(text="two", score=100.0, reports=[1]),
        KeyPoint(text="three", score=0.0),
    ]
    assert parsed.dropped == 2
    assert MAP_REPORTS.parse('{"points": []}', REPORTS, False).value == []
    for reply in ("{}", '{"points": "none"}'):
        with pytest.raises(OutputError):
            MAP_REPORTS.parse(reply, REPORTS, False)
    cut = MAP_REPORTS.parse('{"points": [{"description": "one", "score": 8, "reports": [1]}, {"description": "tw', REPORTS, True)
    assert (len(cut.value), cut.dropped) == (1, 1)


def test_a_report_is_read_and_clamped() -> None:
    reply = {
        "title": "Ada\nand Charles",
        "summary": " S ",
        "rating": "12",
        "rating_explanation": "E",
        "findings": [{"summary": "a", "explanation": "b"}, {"explanation": "only"}, "text", {}, 3],
    }
    parsed = REPORT.parse(json.dumps(reply), COMMUNITY, False)
    assert parsed.value == ReportText(
        title="Ada and Charles",
        summary="S",
        rating=10.0,
        rating_explanation="E",
        findings=[Finding(summary="a", explanation="b"), Finding(summary="only"), Finding(summary="text")],
    )
    assert parsed.dropped == 2
    assert REPORT.parse('{"title": "T", "summary": "S"}', COMMUNITY, False).value == ReportText(title="T", summary="S")
    for reply in ('{"title": "T"}', '{"title": "", "summary": "S"}', "prose"):
        with pytest.raises(OutputError):
            REPORT.parse(reply, COMMUNITY, False)


def test_a_report_s_context_is_shown_whole() -> None:
    prompt = REPORT.render(COMMUNITY)
    for shown in (
        "Ada (person, 3 connections): Ada wrote.",
        "Ada -> Charles (weight 7.5): met",
        "Ada claimed it",
        "Child (rating 6.5): Sums up.",
    ):
        assert shown in prompt
    bare = REPORT.render(ReportInput(name="n", entities=COMMUNITY.entities))
    assert "<<<relationships" not in bare
    assert "<<<claims" not in bare


def test_a_description_is_prose_up_to_its_last_whole_sentence() -> None:
    given = DescriptionInput(name="Ada", lines=["a\nb", "c"], max_tokens=100)
    assert "at most 75 words" in DESCRIBE.render(given)
    assert "\na b\nc\n" in DESCRIBE.render(given)
    assert "words" not in DESCRIBE.render(DescriptionInput(name="Ada", lines=["a"]))
    assert DESCRIBE.parse("Whole.", given, False).value == "Whole."
    cut = DESCRIBE.parse("Whole. Half of", given, True)
    assert (cut.value, cut.dropped) == ("Whole.", 1)
    with pytest.raises(OutputError):
        DESCRIBE.parse("Half of", given, True)
    with pytest.raises(OutputError):
        DESCRIBE.parse(" ", given, False)


def test_an_answer_is_told_how_to_cite_and_to_abstain() -> None:
    given = AnswerInput(question="Who?", items=[ContextItem(number=1, kind="entity", title="Ada", text="x")])
    assert CANNOT_ANSWER in ANSWER.instructions
    assert "[1][3]" in ANSWER.instructions
    assert "concise" in ANSWER.render(given)
    assert ANSWER.parse(" Ada [1]. ", given, False).value == "Ada [1]."
    assert ANSWER.parse("Ada [1", given, True).dropped == 1
    assert not ANSWER.stored
    assert not KEYWORDS.stored
    assert not QUERY_ENTITIES.stored
    assert not MAP_REPORTS.stored


def test_a_repair_shows_the_reply_with_its_tags() -> None:
    given = FixInput(instructions="the form", reply="<entity><name>Ada</name>", problem="cut")
    prompt = FIX.render(given)
    assert "<entity><name>Ada</name>" in prompt
    assert "Problem: cut" in prompt
    assert FIX.parse("<entities/>", given, False).value == "<entities/>"
