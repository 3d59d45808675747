from __future__ import annotations

import pytest

from kgrag.errors import ConfigurationError
from kgrag.graph.resolve import ResolutionSettings, Resolver
from kgrag.graph.statements import statements_of
from kgrag.ids import entity_id, relationship_id
from kgrag.records import ClaimStatement, EntityStatement, RelationshipStatement, Statement, UnitRecord


def record(**fields: object) -> UnitRecord:
    return UnitRecord(unit_id="u1", document_id="d1", **fields)  # type: ignore[arg-type]


def of_kind(statements: list[Statement], kind: str) -> list[Statement]:
    return [s for s in statements if s.kind == kind]


def test_a_relationship_is_stated_with_a_mention_of_each_end():
    stated = statements_of(
        record(relationships=[RelationshipStatement(source="Ada", target="London", type="born in", strength=7)]), Resolver()
    )
    ada, london = entity_id("ada"), entity_id("london")
    edge = relationship_id(ada, london, "born in")
    [relationship] = of_kind(stated, "relationship")
    assert (relationship.group, relationship.source_id, relationship.target_id, relationship.score) == (edge, ada, london, 7)
    assert [(m.group, m.name, m.other_id) for m in of_kind(stated, "mention")] == [(ada, "Ada", edge), (london, "London", edge)]


def test_spellings_with_one_compact_key_are_one_group():
    names = ["Acme Inc.", "ACME", "acme  ltd", "“Acme”"]
    stated = statements_of(record(entities=[EntityStatement(name=n) for n in names]), Resolver())
    assert {s.group for s in stated} == {entity_id("acme")}
    assert [s.name for s in stated] == ["Acme Inc.", "ACME", "acme ltd", "“Acme”"]


@pytest.mark.parametrize(("fold", "same"), [(True, True), (False, False)])
def test_accents_fold_where_the_language_lets_them(fold, same):
    resolver = Resolver(ResolutionSettings(fold_accents=fold))
    assert (resolver.entity("São Paulo") == resolver.entity("Sao Paulo")) is same


def test_a_relationship_between_two_spellings_of_one_name_is_dropped():
    assert statements_of(record(relationships=[RelationshipStatement(source="Acme", target="Acme Inc")]), Resolver()) == []


def test_nameless_items_state_nothing():
    empty = record(entities=[EntityStatement(name=" \n ")], relationships=[RelationshipStatement(source="", target="X")])
    assert statements_of(empty, Resolver()) == []


def test_aliases_follow_chains_and_refuse_circles():
    resolver = Resolver(ResolutionSettings(aliases={"Big Blue": "I.B.M.", "I.B.M": "IBM"}))
    assert resolver.entity("big blue") == resolver.entity("IBM")
    with pytest.raises(ConfigurationError, match="circle"):
        Resolver(ResolutionSettings(aliases={"a": "b", "b": "c", "c": "b"}))


def test_types_tell_entities_apart_only_where_asked():
    entities = [EntityStatement(name="Java", type="Island"), EntityStatement(name="Java", type="language")]
    edge = RelationshipStatement(source="Java", target="Indonesia")
    assert len({s.group for s in of_kind(statements_of(record(entities=entities), Resolver()), "entity")}) == 1
    typed = Resolver(ResolutionSettings(identity="name_and_type"))
    stated = statements_of(record(entities=[*entities, EntityStatement(name="java", type="ISLAND")], relationships=[edge]), typed)
    assert len({s.group for s in of_kind(stated, "entity")}) == 2
    assert of_kind(stated, "relationship")[0].source_id == entity_id("java", "island")


def test_a_claim_needs_a_subject_the_unit_lists_and_keeps_a_literal_object():
    listed = [EntityStatement(name="Acme Inc"), EntityStatement(name="Bolt")]
    claims = [
        ClaimStatement(subject="ACME", object="Bolt", type="Acquisition", status="TRUE", start_date="2020-01-01"),
        ClaimStatement(subject="acme", object="a  fine", type="penalty"),
        ClaimStatement(subject="Nobody", object="Bolt"),
    ]
    named_in_edge = [RelationshipStatement(source="Nobody", target="Bolt")]
    stated = of_kind(statements_of(record(entities=listed, relationships=named_in_edge, claims=claims), Resolver()), "claim")
    assert [(c.source_id, c.target_id, c.target_name, c.status) for c in stated] == [
        (entity_id("acme"), entity_id("bolt"), "", "TRUE"),
        (entity_id("acme"), "", "a fine", ""),
    ]
    assert stated[0].group != stated[1].group


def test_a_resolver_survives_a_trip_between_processes():
    import pickle

    resolver = Resolver(ResolutionSettings(aliases={"x": "y"}), {"y": "z"})
    again = pickle.loads(pickle.dumps(resolver))
    assert again.entity("X") == resolver.entity("X") == entity_id("z")
    assert again.digest == resolver.digest
