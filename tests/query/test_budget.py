from __future__ import annotations

from kgrag.query.budget import BudgetSettings, pack
from kgrag.records import Hit, HitKind, Section
from kgrag.text import count_tokens

SETTINGS = BudgetSettings(max_context_tokens=1000, prompt_tokens=100)


def section(kind: HitKind, *words: int) -> Section:
    return Section(
        kind=kind, hits=[Hit(kind=kind, id=f"{kind}{n}", score=1.0, text="word " * many) for n, many in enumerate(words)]
    )


def tokens(sections: list[Section]) -> dict[str, int]:
    return {s.kind: sum(count_tokens(h.text) for h in s.hits) for s in sections}


def test_what_fits_is_left_alone() -> None:
    sections = [section("text_unit", 20, 20), section("entity", 10)]
    assert pack("q", sections, SETTINGS) == sections


def test_every_kind_gets_its_share_and_the_first_that_overflows_is_truncated() -> None:
    packed = pack(
        "q", [section("text_unit", *[100] * 20), section("entity", *[100] * 20), section("relationship", *[100] * 20)], SETTINGS
    )
    used = tokens(packed)
    assert sum(used.values()) <= 900
    assert 0.55 < used["text_unit"] / 900 < 0.61
    assert 0.2 < used["entity"] / 900 < 0.25
    assert 0.12 < used["relationship"] / 900 < 0.17
    last = packed[0].hits[-1]
    assert 0 < len(last.text) < len("word " * 100)


def test_what_one_kind_leaves_goes_to_the_preferred_kinds_first() -> None:
    wanting = [section("text_unit", *[100] * 20), section("entity", *[100] * 20), section("relationship", 5)]
    to_text = tokens(pack("q", wanting, SETTINGS, ("text_unit",)))
    to_entities = tokens(pack("q", wanting, SETTINGS, ("entity",)))
    assert to_text["text_unit"] > to_entities["text_unit"]
    assert to_text["entity"] < to_entities["entity"]
    assert to_text["relationship"] == to_entities["relationship"] == count_tokens("word " * 5)


def test_points_are_seated_before_everything_else() -> None:
    packed = tokens(pack("q", [section("point", *[100] * 6), section("report", *[100] * 20)], SETTINGS))
    assert packed["point"] == 6 * count_tokens("word " * 100)
    assert packed["report"] <= 900 - packed["point"]


def test_the_question_counts() -> None:
    sections = [section("text_unit", *[100] * 20)]
    assert tokens(pack("word " * 500, sections, SETTINGS))["text_unit"] < tokens(pack("q", sections, SETTINGS))["text_unit"]


def test_the_reference_shares() -> None:
    """18072, 7228 and 4698 of 30,000 tokens for text, entities and relationships (defaults of unified-kg-rag §7)."""
    shares = BudgetSettings().shares
    three = [shares[kind] for kind in ("text_unit", "entity", "relationship")]
    assert [round(30_000 * share / sum(three)) for share in three] == [18072, 7229, 4699]
