from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgrag.errors import ConfigurationError
from kgrag.graph.aliases import _links, discriminators, fuzzy_aliases, key_types
from kgrag.graph.resolve import ResolutionSettings, Resolver
from kgrag.ids import entity_id
from kgrag.records import EntityStatement, RelationshipStatement, UnitRecord


def joined(*keys: str, threshold: float = 0.6, **types: str) -> dict[str, str]:
    return fuzzy_aliases({key: types.get(key.replace(" ", "_"), "") for key in keys}, threshold)


def test_similar_spellings_take_the_smallest_key():
    assert joined("northfield medical centre", "northfield medical center", "riverside") == {
        "northfield medical centre": "northfield medical center"
    }


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("apollo program 11", "apollo program 12"),
        ("emperor charles ii", "emperor charles iii"),
        ("group a stage final", "group b stage final"),
        ("가나다라마바사연구원", "가나다라마바사연구소"),
        ("short", "different"),
    ],
)
def test_discriminators_heads_and_distance_keep_names_apart(a, b):
    assert joined(a, b) == {}


def test_names_of_two_types_are_never_joined_not_even_through_a_third():
    assert joined("jupiter stone", "jupiter stones", jupiter_stone="rock", jupiter_stones="band") == {}
    chain = {"northfield centre": "place", "northfield centres": "", "northfield centress": "person"}
    groups = fuzzy_aliases(chain, 0.6)
    assert sorted(groups) in (["northfield centres"], ["northfield centress"])


def test_types_compare_by_schema_key():
    assert joined("jupiter stone", "jupiter stones", jupiter_stone="Rock_Thing", jupiter_stones="rock thing") != {}


def test_discriminators_are_digits_single_letters_and_roman_numerals():
    assert discriminators("boeing 747 b mark iv mixed") == ["747", "b", "iv"]


def test_a_resolver_uses_the_aliases():
    resolver = Resolver(joined=joined("northfield medical centre", "northfield medical center"))
    assert resolver.entity("Northfield Medical Centre") == entity_id("northfield medical center")


def test_a_fuzzy_resolver_without_the_corpus_is_refused():
    with pytest.raises(ConfigurationError, match="whole corpus"):
        Resolver(ResolutionSettings(fuzzy=True))
    assert Resolver(ResolutionSettings(fuzzy=True), {}).entity("A") == Resolver().entity("A")


def test_keys_get_the_type_that_most_statements_give():
    entities = [EntityStatement(name=name, type=kind) for name, kind in [("Ada", "x"), ("ADA", "Y"), ("ada", "y"), ("Bo", "")]]
    record = UnitRecord(
        unit_id="u", document_id="d", entities=entities, relationships=[RelationshipStatement(source="Cy", target="Ada")]
    )
    assert key_types([record], Resolver()) == {"ada": "y", "bo": "", "cy": ""}
    assert set(key_types([record], Resolver(ResolutionSettings(identity="name_and_type"))).values()) == {""}


words = st.text("abcd ", min_size=1, max_size=12).map(str.strip).filter(bool)
typed = st.dictionaries(words, st.sampled_from(["", "", "x", "y"]), max_size=25)


def jaccard(a: str, b: str) -> float:
    own, other = ({f"  {key} "[i : i + 3] for i in range(len(key) + 1)} for key in (a, b))
    return len(own & other) / len(own | other)


@settings(deadline=None)
@given(typed, st.sampled_from([0.0, 0.3, 0.6, 0.9]))
def test_the_index_finds_every_pair_above_the_threshold(types, threshold):
    found = {(a, b) for _, a, b in _links(types, threshold)}
    wanted = {
        (a, b)
        for a in types
        for b in types
        if a < b
        and jaccard(a, b) > threshold
        and not (types[a] and types[b] and types[a] != types[b])
        and discriminators(a) == discriminators(b)
    }
    assert found == wanted


@settings(deadline=None)
@given(typed, st.randoms(use_true_random=False))
def test_aliases_depend_on_the_set_alone_and_lead_to_a_final_key(types, rng: random.Random):
    items = list(types.items())
    rng.shuffle(items)
    found = fuzzy_aliases(types, 0.3)
    assert fuzzy_aliases(dict(items), 0.3) == found
    assert not set(found) & set(found.values())
    assert fuzzy_aliases({**types, "unlike 1": "", "unlike 2": ""}, 0.3) == found
