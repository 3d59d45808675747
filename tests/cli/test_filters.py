from __future__ import annotations

from typing import Any

import pytest

from kgrag import filters
from kgrag.cli.filters import filter_of
from kgrag.errors import InvalidFilterError


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ([], None),
        (["topic=place"], {"topic": ["place"]}),
        (["year=2020"], {"year": [2020, "2020"]}),
        (["open=true"], {"open": [True, "true"]}),
        (["topic=place", "topic=person"], {"topic": ["place", "person"]}),
        (["year>=2000", "year<2010"], {"year": {"gte": 2000, "lt": 2010}}),
        (["date>2020-01-31"], {"date": {"gt": "2020-01-31"}}),
        (["topic!=place"], {"not": {"topic": ["place"]}}),
        (["url=https://a.example/?q=1"], {"url": ["https://a.example/?q=1"]}),
        (["title = Port Solenne "], {"title": ["Port Solenne"]}),
        (['{"year": {"exists": true}}', "topic=x"], {"year": {"exists": True}, "topic": ["x"]}),
    ],
)
def test_conditions(given: list[str], wanted: dict[str, Any] | None) -> None:
    assert filter_of(given) == wanted
    filters.parse(wanted)


@pytest.mark.parametrize("given", [["topic"], ["=x"], ["{"], ["[1]"], ["a=1", "a>2"], ["a!=1", "b!=2"]])
def test_refusals(given: list[str]) -> None:
    with pytest.raises(InvalidFilterError):
        filter_of(given)
