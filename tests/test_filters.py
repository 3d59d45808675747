"""Filters: what parses, what is refused by name, and what matches; stores are held to ``matches``."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag.errors import InvalidFilterError
from kgrag.filters import All, Exists, Not, Range, Term, canonical, matches, parse
from kgrag.records import Metadata

ROW: Metadata = {"year": 2020, "share": 0.5, "lang": "en", "tags": ["a", "b"], "draft": True, "date": "2020-05-01"}


@pytest.mark.parametrize("spec", [None, {}])
def test_nothing_asked_is_no_filter(spec: dict[str, Any] | None) -> None:
    assert parse(spec) is None


def test_the_forms_of_a_filter() -> None:
    assert parse({"year": 2020}) == Term("year", (2020,))
    assert parse({"year": [2020, 2021]}) == Term("year", (2020, 2021))
    assert parse({"year": {"gte": 2000, "lt": 2010}}) == Range("year", gte=2000, lt=2010)
    assert parse({"year": {"exists": True}}) == Exists("year")
    assert parse({"year": {"exists": False}}) == Not(Exists("year"))
    assert parse({"not": {"lang": "en"}}) == Not(Term("lang", ("en",)))
    assert parse({"lang": "en", "year": 2020}) == All((Term("lang", ("en",)), Term("year", (2020,))))


@pytest.mark.parametrize(
    "spec",
    [
        {"year": {"around": 2000}},
        {"year": {}},
        {"year": {"gte": True}},
        {"year": {"gte": [1]}},
        {"year": {"exists": "yes"}},
        {"year": []},
        {"year": None},
        {"year": [None]},
        {"year": [{"gte": 1}]},
        {"not": {}},
        {"not": "en"},
    ],
)
def test_a_malformed_filter_names_its_field(spec: dict[str, Any]) -> None:
    with pytest.raises(InvalidFilterError) as refused:
        parse(spec)
    assert refused.value.subject == next(iter(spec))
    assert refused.value.remedy


@pytest.mark.parametrize(
    ("spec", "passes"),
    [
        ({"year": 2020}, True),
        ({"year": 2020.0}, True),
        ({"year": "2020"}, False),
        ({"year": 2021}, False),
        ({"lang": ["de", "en"]}, True),
        ({"tags": "b"}, True),
        ({"tags": "c"}, False),
        ({"draft": True}, True),
        ({"draft": 1}, False),
        ({"draft": "true"}, False),
        ({"year": {"gte": 2020, "lt": 2021}}, True),
        ({"year": {"gt": 2020}}, False),
        ({"year": {"lte": 2020}}, True),
        ({"year": {"gte": "2020"}}, False),
        ({"date": {"gte": "2020-01-01", "lt": "2021-01-01"}}, True),
        ({"share": {"lt": 1}}, True),
        ({"missing": 1}, False),
        ({"missing": {"exists": False}}, True),
        ({"missing": {"gte": 1}}, False),
        ({"tags": {"exists": True}}, True),
        ({"not": {"lang": "en"}}, False),
        ({"not": {"missing": 1}}, True),
        ({"not": {"lang": "en", "year": 1999}}, True),
        ({"lang": "en", "year": {"gte": 2000}, "not": {"draft": False}}, True),
    ],
)
def test_matches(spec: dict[str, Any], passes: bool) -> None:
    clause = parse(spec)
    assert clause is not None
    assert matches(clause, ROW) is passes


SCALARS = st.booleans() | st.integers(-5, 5) | st.floats(-5, 5) | st.text(max_size=3)


@given(SCALARS)
def test_a_value_matches_itself_and_its_negation_does_not(value: Any) -> None:
    clause = Term("field", (value,))
    assert matches(clause, {"field": value})
    assert matches(clause, {"field": ["other value", value]})
    assert not matches(Not(clause), {"field": value})


@given(SCALARS, SCALARS)
def test_canonical_joins_equal_numbers_and_nothing_else(one: Any, other: Any) -> None:
    same_kind = isinstance(one, bool) == isinstance(other, bool)
    assert (canonical(one) == canonical(other)) == (same_kind and one == other)
