"""Text units: exact, bounded, and stable under edits."""

from __future__ import annotations

import random
import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from kgrag.documents.chunk import ChunkSettings, chunk
from kgrag.ids import digest
from kgrag.records import Document, Span, TextUnit
from kgrag.text import count_tokens, sentences

_SYLLABLES = ["ka", "to", "mi", "ren", "sol", "va", "ne", "dor", "pi", "lu", "sha", "gre", "ost", "um"]


def document(text: str, id: str = "d") -> Document:
    return Document(id=id, scope="s", path="p.txt", title="T", text=text, digest=digest(text), metadata={"year": 1999})


def units(text: str, **options: int) -> list[tuple[TextUnit, Span]]:
    return chunk(document(text), ChunkSettings(**options))


def check(text: str, found: list[tuple[TextUnit, Span]], max_tokens: int) -> None:
    covered = bytearray(len(text))
    for unit, span in found:
        assert text[span.start : span.end] == unit.text
        assert unit.text.strip() == unit.text != ""
        assert unit.tokens == count_tokens(unit.text) <= max_tokens
        assert span.unit_id == unit.id
        covered[span.start : span.end] = b"\1" * (span.end - span.start)
    assert all(seen or char.isspace() for seen, char in zip(covered, text, strict=True))
    assert len({unit.id for unit, _ in found}) == len(found)
    starts = [span.start for _, span in found]
    assert starts == sorted(starts)


def english(rng: random.Random, count: int) -> str:
    """Prose with paragraphs and headings."""
    out = []
    for number in range(count):
        words = ["".join(rng.choices(_SYLLABLES, k=rng.randint(1, 4))) for _ in range(rng.randint(4, 30))]
        out.append(" ".join(words).capitalize() + ".")
        if number % 40 == 39:
            out.append(f"\n\n## Part {number}\n\n")
        else:
            out.append("\n\n" if rng.random() < 0.15 else " ")
    return "".join(out)


def chinese(rng: random.Random, count: int) -> str:
    out = []
    for _ in range(count):
        out.append("".join(chr(rng.randrange(0x4E00, 0x5E00)) for _ in range(rng.randint(6, 50))) + "。")
        out.append("\n\n" if rng.random() < 0.15 else "")
    return "".join(out)


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=600), st.integers(32, 80))
@settings(max_examples=150, deadline=None)
def test_any_text_is_covered_exactly_within_the_bound(text: str, most: int) -> None:
    check(text, units(text, max_tokens=most, overlap_tokens=most // 8), most)


@given(
    st.lists(
        st.sampled_from(["Word ", "字", ".", "\n", "\n\n", "# H", "```\n", "- item\n", "\u0301", "👩‍👩‍👧", "x" * 90, "。"]),
        max_size=300,
    )
)
@settings(max_examples=150, deadline=None)
def test_any_structure_is_covered_exactly_within_the_bound(parts: list[str]) -> None:
    text = "".join(parts)
    check(text, units(text, max_tokens=40, overlap_tokens=8), 40)


@pytest.mark.parametrize("make", [english, chinese])
def test_an_edit_anywhere_makes_few_new_units(make: object) -> None:
    """90 of 100 edits of one sentence, inserted, replaced or deleted, make at most 5 units (and drop as many)."""
    rng = random.Random(7)
    text = make(rng, 1500)  # type: ignore[operator]
    before = {unit.id for unit, _ in units(text)}
    assert len(before) > 60
    spans = sentences(text)
    new = make(rng, 1).strip()  # type: ignore[operator]
    added, removed = [], []
    for number in range(120):
        start, end = rng.choice(spans)
        kept = text[start:end] if number % 3 == 0 else ""
        edited = text[:start] + (new if number % 3 != 2 else "") + kept + text[end:]
        after = {unit.id for unit, _ in units(edited)}
        added.append(len(after - before))
        removed.append(len(before - after))
    for changes in (added, removed):
        changes.sort()
        assert changes[int(0.9 * len(changes))] <= 5
        assert changes[-1] <= 12


def test_the_first_sentence_changes_as_little_as_any() -> None:
    text = english(random.Random(3), 600)
    before = {unit.id for unit, _ in units(text)}
    after = {unit.id for unit, _ in units("A new beginning. " + text)}
    assert len(after - before) <= 3


def test_a_short_document_is_one_unit_with_its_metadata() -> None:
    [(unit, span)] = units("  Ada runs Orbit.\n")
    assert (unit.text, span.start, span.end) == ("Ada runs Orbit.", 2, 17)
    assert unit.title == "T"
    assert unit.metadata == {"year": 1999, "document_id": "d", "path": "p.txt"}
    assert units(" \n\t ") == units("") == []


def test_units_begin_at_headings_and_paragraphs_where_they_can() -> None:
    rng = random.Random(5)
    sections = [f"## Section {n}\n\n" + " ".join(english(rng, 12).split()) for n in range(12)]
    text = "\n\n".join(sections)
    found = units(text, max_tokens=300, overlap_tokens=30)
    headed = [unit.text for unit, _ in found if "## Section" in unit.text]
    assert sum(t.startswith("## Section") for t in headed) >= 10
    assert not any(t.splitlines()[-1].startswith("## Section") for t in headed)


def test_a_number_sign_in_code_is_no_heading() -> None:
    code = "```\n" + "# comment\nvalue = 1\n" * 100 + "```\n"
    text = "Intro. " * 60 + "\n\n" + code + "\n# Real heading\n\n" + "Body. " * 200
    assert any(unit.text.startswith("# Real heading") for unit, _ in units(text))


def test_overlap_repeats_whole_sentences_but_not_across_a_heading() -> None:
    text = english(random.Random(11), 300)
    found = units(text, max_tokens=200, overlap_tokens=50)
    overlaps = 0
    for (_, a), (unit, b) in pairwise(found):
        if b.start < a.end:
            overlaps += 1
            assert count_tokens(text[b.start : a.end]) <= 50
            assert b.start in {start for start, _ in sentences(text)}
            assert not unit.text.startswith("## ")
    assert overlaps > len(found) / 3
    plain = units(text, max_tokens=200, overlap_tokens=0)
    assert all(a.end <= b.start for (_, a), (_, b) in pairwise(plain))


def test_the_same_passage_twice_is_two_units_and_in_another_document_another() -> None:
    text = ("The same words again and again. " * 12 + "\n\n") * 40
    found = units(text)
    assert len({unit.id for unit, _ in found}) == len(found)
    other = chunk(document(text, "e"), ChunkSettings())
    assert not {unit.id for unit, _ in found} & {unit.id for unit, _ in other}


@pytest.mark.parametrize(
    "text",
    [
        "the " * 500_000,
        "a" * 2_000_000,
        " ".join(f"w{i * 7919 % 10007}" for i in range(300_000)),
        "".join(chr(0x4E00 + i * 7919 % 5003) for i in range(500_000)),
        "\n" * 1_000_000 + "x",
        "e\u0301" * 400_000,
        "." * 1_000_000,
        "# " * 500_000,
        "```\n" * 200_000,
    ],
    ids=["one word", "one letter", "no punctuation", "no spaces", "blank", "marks", "full stops", "number signs", "fences"],
)
def test_degenerate_text_takes_linear_time(text: str) -> None:
    begin = time.process_time()
    found = units(text)
    assert time.process_time() - begin < 6
    assert max((unit.tokens for unit, _ in found), default=0) <= ChunkSettings().max_tokens


def test_marks_stay_with_their_letter() -> None:
    assert not any(unit.text[0] == "\u0301" for unit, _ in units("e\u0301" * 5000))


def test_an_overlap_of_more_than_half_is_refused() -> None:
    with pytest.raises(ValidationError, match="overlap_tokens"):
        ChunkSettings(max_tokens=100, overlap_tokens=60)
