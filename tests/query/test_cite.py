from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag.query.cite import CitationStream, clean

CASES = [
    ("Budapest [1].", "Budapest [1].", {1}),
    ("Budapest [9].", "Budapest.", set()),
    ("Budapest [1, 9].", "Budapest [1].", {1}),
    ("A [1][2] and B [3,2].", "A [1][2] and B [3, 2].", {1, 2, 3}),
    ("布达佩斯【2】。", "布达佩斯[2]。", {2}),
    ("布达佩斯［1，3］。", "布达佩斯[1, 3]。", {1, 3}),
    ("In [2020] it was [sic] so [0].", "In [2020] it was [sic] so.", set()),
    ("Open [1", "Open [1", set()),
    ("No marks at all", "No marks at all", set()),
]


@pytest.mark.parametrize(("text", "cleaned", "used"), CASES)
def test_only_numbers_that_exist_stay(text: str, cleaned: str, used: set[int]) -> None:
    seen: set[int] = set()
    assert clean(text, 3, seen) == cleaned
    assert seen == used


@pytest.mark.parametrize(("text", "cleaned", "used"), CASES)
def test_pieces_give_the_same_text_as_the_whole(text: str, cleaned: str, used: set[int]) -> None:
    stream = CitationStream(3)
    assert "".join([*map(stream.feed, text), stream.end()]) == cleaned
    assert stream.used == used


@given(st.lists(st.text(alphabet="ab [],19【】\n"), max_size=8))
def test_any_cut_gives_the_same_text_as_the_whole(pieces: list[str]) -> None:
    stream = CitationStream(3)
    seen: set[int] = set()
    assert "".join([*map(stream.feed, pieces), stream.end()]) == clean("".join(pieces), 3, seen)
    assert stream.used == seen


def test_plain_text_is_not_held_back() -> None:
    stream = CitationStream(3)
    assert stream.feed("It rained") == "It rained"
    assert stream.feed(" [see note") == " [see note"
    assert stream.feed(" [1") == ""
    assert stream.feed("]. Then") == " [1]. Then"
