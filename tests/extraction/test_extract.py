from __future__ import annotations

from typing import Any

import pytest

from kgrag.errors import OutputError, TransientModelError
from kgrag.extraction.extract import ExtractionSettings, ExtractStage
from kgrag.extraction.ground import Grounding
from kgrag.extraction.schema import ExtractionSchema
from kgrag.records import ClaimStatement, EntityStatement, RelationshipStatement, UnitRecord, Usage, decode
from kgrag.stage import RowError
from kgrag.tasks.extraction import ClaimsInput, Extraction, GleanInput
from tests.graph.replies import Replies

TEXT = "Ada Lovelace wrote the first program, for Charles Babbage’s Analytical Engine, in  London."
PLAIN = ExtractionSettings(gleaning=False)


def entity(name: str, **fields: Any) -> EntityStatement:
    return EntityStatement(name=name, **fields)


def edge(source: str, target: str, **fields: Any) -> RelationshipStatement:
    return RelationshipStatement(source=source, target=target, **fields)


def unit(text: str = TEXT, error: str = "") -> dict[str, Any]:
    return {"id": "u", "document_id": "d", "title": "T", "text": text, "metadata": '{"year":1843}', "error": error}


async def read(
    settings: ExtractionSettings, *extractions: Extraction | Exception, claims: Any = None
) -> tuple[dict[str, Any], Replies]:
    left = iter(extractions)

    def answer(task: str, input: Any) -> Any:
        value = claims if task == "claims" else next(left)
        if isinstance(value, Exception):
            raise value
        return value

    engine = Replies(answer)
    return await ExtractStage(settings).row(unit(), engine), engine


def record(row: dict[str, Any]) -> UnitRecord:
    return decode(row["body"], UnitRecord)


async def test_a_unit_becomes_its_record_in_canonical_order():
    found = Extraction(
        entities=[entity("London"), entity("Ada Lovelace"), entity("London")], relationships=[edge("Ada Lovelace", "London")]
    )
    row, engine = await read(PLAIN, found)
    assert record(row) == UnitRecord(
        unit_id="u",
        document_id="d",
        entities=[entity("Ada Lovelace"), entity("London")],
        relationships=found.relationships,
        answers=["extract-1"],
    )
    assert (row["unit_id"], row["metadata"], row["error"]) == ("u", '{"year":1843}', "")
    assert decode(row["usage"], Usage) == Usage(calls=1, input_tokens=10)
    assert len(engine.asked) == 1


async def test_what_the_text_does_not_have_is_dropped_with_its_edges():
    found = Extraction(
        entities=[
            entity("Ada Lovelace"),
            entity("Grace Hopper", span="nowhere in it"),
            entity("Engine inventor", span="CHARLES  BABBAGE'S"),
        ],
        relationships=[
            edge("Ada Lovelace", "Grace Hopper", span="Ada"),
            edge("Ada Lovelace", "Engine inventor", span="wrote the first program"),
        ],
    )
    kept = record((await read(PLAIN, found))[0])
    assert [e.name for e in kept.entities] == ["Ada Lovelace", "Engine inventor"]
    assert [r.target for r in kept.relationships] == ["Engine inventor"]
    off = record((await read(ExtractionSettings(gleaning=False, grounding=False), found))[0])
    assert len(off.entities) == 3


async def test_confidence_below_the_threshold_drops_an_entity():
    found = Extraction(entities=[entity("Ada Lovelace", confidence=3), entity("London", confidence=9)])
    kept = record((await read(ExtractionSettings(gleaning=False, entity_confidence_threshold=4), found))[0])
    assert [e.name for e in kept.entities] == ["London"]


async def test_gleaning_corrects_and_adds_until_an_answer_adds_nothing():
    first = Extraction(entities=[entity("Ada Lovelace", type="city")])
    second = Extraction(entities=[entity("ada lovelace", type="person"), entity("London")])
    third = Extraction(entities=[entity("London", type="city")])
    row, engine = await read(ExtractionSettings(), first, second, third)
    assert {(e.name, e.type) for e in record(row).entities} == {("ada lovelace", "person"), ("London", "city")}
    assert [type(i) for i in engine.asked[1:]] == [GleanInput, GleanInput]
    assert [e.name for e in engine.asked[1].entities] == ["Ada Lovelace"]
    assert decode(row["usage"], Usage).calls == 3


async def test_gleaning_ends_after_its_last_round():
    answers = [Extraction(entities=[entity(name)]) for name in ("Ada", "London", "Engine", "Babbage")]
    _, engine = await read(ExtractionSettings(gleaning_max_rounds=2), *answers)
    assert len(engine.asked) == 3


async def test_claims_are_asked_about_the_units_own_entities():
    said = [ClaimStatement(subject="Ada Lovelace", type="AUTHORSHIP", description="She wrote it.")]
    row, engine = await read(
        ExtractionSettings(gleaning=False, claims=True, claims_about="who made what"),
        Extraction(entities=[entity("London"), entity("Ada Lovelace")]),
        claims=said,
    )
    assert record(row).claims == said
    assert isinstance(engine.asked[1], ClaimsInput)
    assert (engine.asked[1].entities, engine.asked[1].about) == (["Ada Lovelace", "London"], "who made what")


async def test_failed_claims_leave_the_record_and_say_so():
    row, _ = await read(
        ExtractionSettings(gleaning=False, claims=True), Extraction(entities=[entity("London")]), claims=OutputError("no")
    )
    assert [e.name for e in record(row).entities] == ["London"]
    assert decode(row["error"], RowError).stage == "claims"


async def test_a_failed_gleaning_leaves_the_extraction_and_a_transient_failure_does_not():
    row, _ = await read(ExtractionSettings(), Extraction(entities=[entity("London")]), OutputError("no"))
    assert ([e.name for e in record(row).entities], decode(row["error"], RowError).stage) == (["London"], "glean")
    with pytest.raises(TransientModelError):
        await read(ExtractionSettings(), Extraction(entities=[entity("London")]), TransientModelError("busy"))


async def test_empty_and_failed_units_ask_nothing():
    engine = Replies(lambda task, input: 1 / 0)
    stage = ExtractStage()
    assert decode((await stage.row(unit(" \n"), engine))["body"], UnitRecord) == UnitRecord(unit_id="u", document_id="d")
    failed = await stage.row(unit(error='{"stage":"chunk"}'), engine)
    assert (failed["body"], failed["error"]) == (b"", '{"stage":"chunk"}')
    assert stage.failed(unit(), RowError("extract", "OutputError", "no"))["body"] == b""


@pytest.mark.parametrize(
    ("passage", "there"),
    [
        ("Ada Lovelace", True),
        ("ADA  lovelace", True),
        ("babbage's analytical-engine", True),
        ("Ａｄａ", True),
        ("", False),
        (" ", False),
        ("…", False),
        ("Turing", False),
    ],
)
def test_grounding_ignores_case_width_and_punctuation(passage, there):
    assert Grounding(TEXT).holds(passage) is there


def test_labels_are_written_as_declared_once_relationship_types_are():
    found = ([entity("a", type="PERSON"), entity("b", type="Robot")], [edge("a", "b", type="works  for")])
    assert ExtractionSchema(["Person"]).declared(*found) == found
    entities, relationships = ExtractionSchema(["Person"], ["Works_For"]).declared(*found)
    assert [e.type for e in entities] == ["Person", "Robot"]
    assert relationships[0].type == "Works_For"
    assert ExtractionSchema(["Person"], ["Works_For"], mode="off").declared(*found) == found


def test_a_strict_schema_drops_what_is_off_it():
    schema = ExtractionSchema(["Person", "City"], ["born in"], [("Person", "born in", "City")], "strict")
    entities = [entity("Ada", type="person"), entity("Rome", type="city"), entity("X", type="robot")]
    assert [schema.allows_entity(e) for e in entities] == [True, True, False]
    edges = [
        edge("Ada", "Rome", type="BORN_IN"),
        edge("Rome", "Ada", type="born in"),
        edge("Ada", "Rome", type="likes"),
        edge("Ada", "?", type="born in"),
    ]
    assert schema.allowed_relationships(entities, edges) == [edges[0], edges[3]]


async def test_a_strict_stage_keeps_a_name_that_one_statement_types_in_schema():
    settings = ExtractionSettings(gleaning=False, schema_mode="strict", entity_types=["Person"])
    found = Extraction(
        entities=[entity("Ada Lovelace", type="robot"), entity("ada lovelace", type="person"), entity("London", type="city")],
        relationships=[edge("Ada Lovelace", "London")],
    )
    kept = record((await read(settings, found))[0])
    assert ([(e.name, e.type) for e in kept.entities], kept.relationships) == ([("ada lovelace", "Person")], [])
