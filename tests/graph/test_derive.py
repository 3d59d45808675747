from __future__ import annotations

import json
from math import fsum

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgrag import schemas
from kgrag.graph.derive import DeriveStage, derive
from kgrag.graph.resolve import Resolver
from kgrag.graph.statements import statements_of
from kgrag.records import (
    ClaimStatement,
    Entity,
    EntityStatement,
    Relationship,
    RelationshipStatement,
    Statement,
    UnitRecord,
    decode,
    encode,
    pack_statements,
)


def entity(unit: str, name: str, type: str = "", description: str = "", score: float = 5.0, document: str = "d") -> Statement:
    return Statement(
        kind="entity", group="g", unit_id=unit, document_id=document, name=name, type=type, description=description, score=score
    )


def mention(unit: str, name: str, edge: str) -> Statement:
    return Statement(kind="mention", group="g", unit_id=unit, document_id="d", name=name, other_id=edge)


def test_the_name_cited_by_most_units_wins_and_the_smallest_breaks_a_tie():
    assert derive([entity("u1", "B"), entity("u2", "B"), entity("u3", "A")], {}).name == "B"
    assert derive([entity("u1", "B"), entity("u1", "B", "t"), entity("u2", "A")], {}).name == "A"
    assert derive([entity("sg-1", "B"), entity("sg-2", "B"), entity("u", "A")], {}).name == "A"


def test_the_type_most_statements_give_wins_whatever_its_case_and_an_empty_one_never_does():
    made = derive(
        [entity("u1", "A", "Person"), entity("u2", "A", "PERSON"), entity("u3", "A", "PERSON"), entity("u4", "A", "city")], {}
    )
    assert made.type == "PERSON"
    assert derive([entity("u1", "A"), entity("u2", "A"), entity("u3", "A", "zoo")], {}).type == "zoo"
    assert derive([entity("sg-1", "A", "a"), entity("sg-2", "A", "a"), entity("u", "A", "z")], {}).type == "z"


def test_description_lines_stand_once_documents_before_seeds():
    stated = [entity("u1", "A", description="one"), entity("u2", "A", description="one"), entity("sg-1", "A", description="seed")]
    assert derive(stated, {}).description == "one\nseed"
    two = [entity("u1", "A", description="one"), entity("u2", "A", description="two")]
    assert derive(two, {}).description == derive(two[::-1], {}).description


def test_an_entity_only_mentioned_is_a_stub_with_lineage_and_degree():
    made = derive([mention("u2", "A", "e1"), mention("u1", "A", "e1"), mention("u1", "A", "e2"), mention("sg-1", "A", "e3")], {})
    assert made == Entity(id="g", name="A", rank=2, text_unit_ids=["sg-1", "u1", "u2"])


def test_confidence_is_the_highest_of_the_documents():
    assert derive([entity("u1", "A", score=3), entity("u2", "A", score=8), entity("sg-1", "A", score=10)], {}).confidence == 8
    assert derive([entity("sg-1", "A", score=10)], {}).confidence == 10


def test_metadata_is_the_union_of_the_documents():
    documents = {"d1": {"year": 2020, "tags": ["b", "a"], "done": True}, "d2": {"year": 1999, "tags": "a", "done": 1}}
    made = derive(
        [entity("u1", "A", document="d1"), entity("u2", "A", document="d2"), entity("u3", "A", document="gone")], documents
    )
    assert made.metadata == {"done": [True, 1], "tags": ["a", "b"], "year": [1999, 2020]}


def test_a_relationships_weight_is_the_exact_sum_of_its_strengths():
    strengths = [0.1] * 10 + [1e16, 1.0, -1e16]
    stated = [
        Statement(
            kind="relationship", group="g", unit_id=f"u{i}", document_id="d", score=s, source_id="a", target_id="b", source_name="A"
        )
        for i, s in enumerate(strengths)
    ]
    made = derive(stated, {})
    assert isinstance(made, Relationship)
    assert made.weight == fsum(strengths) == 2.0
    assert (made.source_id, made.target_id, made.source_name) == ("a", "b", "A")


def test_an_empty_group_is_refused():
    with pytest.raises(ValueError, match="without statements"):
        derive([], {})


names = st.sampled_from(["Ada", "ADA", "Ada Inc", "Bolt", "Çelik", "北京", "Zed"])
words = st.sampled_from(["", "one", "two", "three"])
records = st.lists(
    st.builds(
        UnitRecord,
        unit_id=st.sampled_from(["u1", "u2", "u3", "u4", "sg-1", "sg-2"]),
        document_id=st.sampled_from(["d1", "d2", "d3"]),
        entities=st.lists(
            st.builds(EntityStatement, name=names, type=words, description=words, confidence=st.floats(1, 10)), max_size=3
        ),
        relationships=st.lists(
            st.builds(RelationshipStatement, source=names, target=names, type=words, description=words, strength=st.floats(1, 10)),
            max_size=3,
        ),
        claims=st.lists(st.builds(ClaimStatement, subject=names, object=names, type=words, status=words), max_size=2),
    ),
    max_size=5,
)
fields = {"d1": {"year": 1, "tag": ["x"]}, "d2": {"year": 2}, "d3": {"tag": "y"}}


def statement_table(rows: list[UnitRecord]) -> pa.Table:
    stated = [statement for row in rows for statement in statements_of(row, Resolver())]
    return pa.table(
        [
            [s.group for s in stated],
            [s.unit_id for s in stated],
            [s.document_id for s in stated],
            [json.dumps(fields[s.document_id]) for s in stated],
            [pack_statements([s]) for s in stated],
        ],
        schema=schemas.STATEMENTS,
    )


@settings(deadline=None)  # a first call pays for imports
@given(records, st.randoms(use_true_random=False))
def test_order_repetition_and_batches_do_not_matter(rows, random):
    stage = DeriveStage()
    whole = stage.table(statement_table(rows))
    parts = [statement_table([row]) for row in rows]
    parts += random.sample(parts, k=len(parts) // 2)
    random.shuffle(parts)
    mixed = pa.concat_tables([schemas.STATEMENTS.empty_table(), *parts])
    mixed = mixed.take(pa.array(random.sample(range(len(mixed)), k=len(mixed)), pa.int64()))
    assert stage.table(mixed).equals(whole)


@settings(deadline=None)  # a first call pays for imports
@given(records)
def test_groups_derived_alone_equal_the_stages_and_point_at_existing_ends(rows):
    table = DeriveStage().table(statement_table(rows))
    groups: dict[str, list[Statement]] = {}
    for row in rows:
        for statement in statements_of(row, Resolver()):
            groups.setdefault(statement.group, []).append(statement)
    by_id = dict(zip(table["id"].to_pylist(), table["body"].to_pylist(), strict=True))
    assert by_id == {group: encode(derive(statements, fields)) for group, statements in groups.items()}
    edges = table.filter(pc.equal(table["kind"], "relationship"))
    for item in (decode(body, Relationship) for body in edges["body"].to_pylist()):
        ends = [decode(by_id[end], Entity) for end in (item.source_id, item.target_id)]
        assert all(set(item.text_unit_ids) <= set(end.text_unit_ids) for end in ends)


def test_no_statements_make_no_items():
    assert len(DeriveStage().table(statement_table([]))) == 0
