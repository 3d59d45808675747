from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgrag.errors import OutputError
from kgrag.records import ClaimStatement, EntityStatement, RelationshipStatement
from kgrag.tasks.extraction import CLAIMS, EXTRACT, GLEAN, MISSING_SCORE, ClaimsInput, Extraction, ExtractionInput, GleanInput

UNIT = ExtractionInput(text="...")
ADA = (
    "<entity><name>Ada Lovelace</name><type>Person</type><description>Wrote the first program.</description>"
    "<confidence>9</confidence><quote>Ada wrote it</quote></entity>"
)
BABBAGE = (
    "<entity>\n  <name> Charles\n Babbage </name>\n  <type>Person</type>\n  <description>Designed engines.</description>\n"
    "  <confidence>8</confidence>\n  <quote>Babbage designed</quote>\n</entity>"
)
MET = (
    "<relationship><source>Ada Lovelace</source><target>Charles Babbage</target><type>met</type><description>They met.</description>"
    "<strength>7</strength><quote>they met</quote></relationship>"
)
WHOLE = f"<entities>\n{ADA}\n{BABBAGE}\n</entities>\n<relationships>\n{MET}\n</relationships>"
EXPECTED = Extraction(
    entities=[
        EntityStatement(
            name="Ada Lovelace", type="Person", description="Wrote the first program.", confidence=9.0, span="Ada wrote it"
        ),
        EntityStatement(
            name="Charles Babbage", type="Person", description="Designed engines.", confidence=8.0, span="Babbage designed"
        ),
    ],
    relationships=[
        RelationshipStatement(
            source="Ada Lovelace", target="Charles Babbage", type="met", description="They met.", strength=7.0, span="they met"
        )
    ],
)


PIECES = [
    "<",
    ">",
    "/",
    "<entity>",
    "</entity>",
    "<entities>",
    "</entities>",
    "<name>",
    "</name>",
    "&",
    "&#9;",
    "a",
    " ",
    "]]>",
    "<![CDATA[",
]


def parse(reply: str, *, cut: bool = False) -> tuple[Extraction, int]:
    parsed = EXTRACT.parse(reply, UNIT, cut)
    return parsed.value, parsed.dropped


@pytest.mark.parametrize(
    "reply",
    [
        WHOLE,
        f"Here you are:\n```xml\n<result>\n{WHOLE}\n</result>\n```\nAnything else?",
        WHOLE.replace("</entities>", "").replace("</relationships>", ""),
        WHOLE.replace("entity>", "Entity>").replace("<name>", "<NAME>").replace("</name>", "</NAME>"),
        WHOLE.replace("<entity>", '<entity id="1">').replace("<quote>", '<quote lang="en">'),
        ADA + BABBAGE + MET,
    ],
    ids=["as asked", "wrapped", "sections left open", "capitals", "attributes", "no sections"],
)
def test_whole_replies_in_many_dresses(reply: str) -> None:
    assert parse(reply) == (EXPECTED, 0)


@pytest.mark.parametrize("nothing", ["", " ", "None", "n/a", "NULL", "-", "\n  none\n"])
def test_sections_of_nothing_are_empty(nothing: str) -> None:
    reply = f"<entities>{nothing}</entities><relationships>{nothing}</relationships>"
    assert parse(reply) == (Extraction(), 0)
    assert parse(f"<entities>{ADA}</entities><relationships>{nothing}</relationships>")[0].relationships == []
    assert parse("<entities/><relationships />") == (Extraction(), 0)


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "None",
        "I cannot do that.",
        '{"entities": []}',
        "<entities>There is Ada Lovelace.</entities>",
        "<entities><item>Ada</item></entities>",
        "<entities><entity><name></name><type>x</type></entity></entities>",
        "<entities><entity name='Ada'/></entities><relationships><relationship><source>A</source></relationship></relationships>",
        "<entities",
    ],
)
def test_any_other_shape_is_for_the_fixing_model(reply: str) -> None:
    with pytest.raises(OutputError):
        parse(reply)


def test_raw_markup_in_values_and_references_are_read() -> None:
    entity = ADA.replace(
        "Wrote the first program.", "if a < b && b > c &amp; &lt;x&gt; &#233; &#x1F600; AT&T R&D; <![CDATA[<raw>]]>"
    )
    (found,) = parse(f"<entities>{entity}</entities>")[0].entities
    assert found.description == "if a < b && b > c & <x> é 😀 AT&T R&D; <raw>"
    assert found.name == "Ada Lovelace"


def test_missing_and_odd_scores_and_fields() -> None:
    def score(text: str) -> float:
        return parse(f"<entities>{ADA.replace('<confidence>9</confidence>', text)}</entities>")[0].entities[0].confidence

    assert score("") == score("<confidence>high</confidence>") == score("<confidence>nan</confidence>") == MISSING_SCORE
    assert score("<confidence>8/10</confidence>") == 8
    assert score("<confidence>7,5</confidence>") == 7.5
    assert score("<confidence>99</confidence>") == score("<confidence>1e999</confidence>") == 10
    assert score("<confidence>-3</confidence>") == 1
    only_name = parse("<entities><entity><name>Ada</name></entity></entities>")[0].entities
    assert only_name == [EntityStatement(name="Ada", confidence=MISSING_SCORE)]
    (swapped,) = parse("<entities><entity><type>N/A</type><name>Ada</name></entity></entities>")[0].entities
    assert (swapped.name, swapped.type) == ("Ada", "")


def test_a_cut_reply_keeps_every_complete_item_wherever_it_was_cut() -> None:
    ends = {WHOLE.index(item) + len(item): count for count, item in enumerate((ADA, BABBAGE, MET), 1)}
    for at in range(len(WHOLE)):
        complete = max((count for end, count in ends.items() if end <= at), default=0)
        begun = sum(WHOLE[:at].count(f"<{tag}>") for tag in ("entity", "relationship"))
        try:
            value, dropped = parse(WHOLE[:at], cut=True)
        except OutputError:
            assert complete == 0
            continue
        assert len(value.entities) + len(value.relationships) == complete
        assert dropped == begun - complete


def test_items_without_a_name_or_an_end_are_counted() -> None:
    value, dropped = parse(
        f"<entities>{ADA}<entity><type>x</type></entity><entity><name>Open</name>{BABBAGE}</entities>"
        "<relationships><relationship><source>Ada</source><target>-</target></relationship></relationships>"
    )
    assert [entity.name for entity in value.entities] == ["Ada Lovelace", "Charles Babbage"]
    assert dropped == 3


@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_no_reply_breaks_the_parser(reply: str) -> None:
    try:
        value, dropped = parse(reply, cut=True)
    except OutputError:
        return
    assert dropped >= 0
    assert all(entity.name for entity in value.entities)


@pytest.mark.parametrize(
    "piece", ["<entity>", "<entity><name>", "<entities>", "<", "&", "<entity x ", "<entity><name>a</name>", "&amp;" * 3]
)
def test_hostile_replies_take_linear_time(piece: str) -> None:
    def seconds(times: int) -> float:
        reply = piece * times
        begun = time.process_time()
        with contextlib.suppress(OutputError):
            parse(reply, cut=True)
        return time.process_time() - begun

    assert seconds(20_000) < 1.0


def test_parsing_costs_less_than_a_quarter_of_a_millisecond() -> None:
    reply = f"<entities>{ADA * 10}</entities><relationships>{MET * 20}</relationships>"
    best = min(_timed(reply) for _ in range(30))
    assert best < 0.25e-3 * 4  # four times, for a machine that does other things


def _timed(reply: str) -> float:
    begun = time.process_time()
    for _ in range(10):
        parse(reply)
    return (time.process_time() - begun) / 10


def test_the_prompt_names_types_languages_and_the_unit() -> None:
    given = ExtractionInput(
        title="T", text="body", entity_types=["person", "place\n2"], relationship_types=["met"], language="German"
    )
    prompt = EXTRACT.render(given)
    assert "Entity types: person, place 2" in prompt
    assert "Relationship types: met" in prompt
    assert "in German" in prompt
    assert prompt.index("<<<title") < prompt.index("<<<text")


def test_gleaning_lists_what_was_read() -> None:
    given = GleanInput(text="body", entities=EXPECTED.entities, relationships=EXPECTED.relationships)
    prompt = GLEAN.render(given)
    assert "Ada Lovelace (Person): Wrote the first program." in prompt
    assert "Ada Lovelace -> Charles Babbage (met): They met." in prompt
    assert GLEAN.parse("<entities></entities><relationships></relationships>", given, False).value == Extraction()
    assert "nothing" in GLEAN.render(GleanInput(text="body"))


def test_claims_are_read_and_need_subject_and_description() -> None:
    given = ClaimsInput(text="body", entities=["Acme"], about="fraud")
    assert "Claims wanted: fraud" in CLAIMS.render(given)
    assert "Acme" in CLAIMS.render(given)
    claim = (
        "<claim><subject>Acme</subject><object>None</object><type>fine</type><status>true</status><description>Acme was fined."
        "</description><start_date>2020-01</start_date><end_date>-</end_date><quote>was fined</quote></claim>"
    )
    parsed = CLAIMS.parse(f"<claims>{claim}<claim><subject>x</subject></claim></claims>", given, False)
    assert parsed.value == [
        ClaimStatement(
            subject="Acme", type="fine", status="TRUE", description="Acme was fined.", start_date="2020-01", span="was fined"
        )
    ]
    assert parsed.dropped == 1
    assert CLAIMS.parse("<claims>None</claims>", given, False).value == []
    for reply in ("no claims", "<claims>some</claims>", "<claims><claim><subject>Acme</subject></claim></claims>"):
        with pytest.raises(OutputError):
            CLAIMS.parse(reply, given, False)


def test_tasks_tell_apart_by_name_version_and_prompt() -> None:
    assert len({EXTRACT.identity, GLEAN.identity, CLAIMS.identity}) == 3
    assert (EXTRACT.stored, GLEAN.stored, CLAIMS.stored) == (True, True, True)
