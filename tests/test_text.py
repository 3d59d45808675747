"""Tokens, words, sentences and token counts against hand-checked values, in every script that is claimed."""

from __future__ import annotations

import itertools
import pickle
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgrag.function_words import language_of
from kgrag.text import Analyzer, count_tokens, sentences, split_names, truncate, words


@pytest.mark.parametrize(
    ("language", "text", "tokens"),
    [
        ("en", "Alice's C++ and C# cost 1,234.5 in the U.S.", "alic c++ and c# cost 1234.5 in the us"),
        ("en", "Cafés e-mailing foo_bar; 3.14 x²", "cafe e mail foo bar 3.14 x2"),
        ("en", "São Paulo", "sao paulo"),
        ("en", "O’Neill don't", "oneil dont"),
        ("en", "Москва, столица городов", "москв столиц город"),
        ("de", "Häuser und Straßen, 3,14 €", "haus und strass 3.14"),
        ("de", "Die Universitäten", "die universitat"),
        ("fr", "L'homme d’État publié", "l homm d etat publi"),
        ("ru", "Книги о машинах", "книг о машин"),
        ("zh", "我在北京大学。水", "我在 在北 北京 京大 大学 水"),
        ("zh", "用iPhone15手机 reading", "用 iphone15 手机 read"),
        ("ja", "東京タワー・カメラ", "東京 京タ タワ ワー カメ メラ"),
        ("ja", "ﾃﾚﾋﾞ ＡＢＣ１２", "テレ レビ abc12"),
        ("ko", "한국어 위키", "한국 국어 위키"),
        ("th", "ภาษาไทย", "ภา าษ ษา าไ ไท ทย"),
        ("ar", "الكتب في المكتبة", "كتب في مكتب"),
        ("hi", "किताबें और किताब", "किताब और किताब"),
        ("el", "Οι πόλεις", "οι πολ"),
        ("vi", "Hà Nội", "hà nội"),
    ],
)
def test_tokens(language: str, text: str, tokens: str) -> None:
    assert Analyzer(language).tokens(text) == tokens.split()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Müller", "Mu\u0308ller"),
        ("ＡＢＣ", "abc"),
        ("São Paulo", "Sao Paulo"),
        ("running", "runs"),
        ("Łódź", "Lodz"),
        ("1,000", "1000"),
    ],
)
def test_spellings_that_find_each_other(one: str, other: str) -> None:
    analyzer = Analyzer()
    assert analyzer.tokens(one) == analyzer.tokens(other)


def test_c_plus_plus_is_not_c_sharp() -> None:
    analyzer = Analyzer()
    assert len({tuple(analyzer.tokens(name)) for name in ("C", "C++", "C#")}) == 3


@settings(deadline=None)
@given(st.text())
def test_tokens_hold_no_space_and_are_stable(text: str) -> None:
    analyzer = Analyzer()
    tokens = analyzer.tokens(text)
    assert all(token and not any(char.isspace() for char in token) for token in tokens)
    assert tokens == Analyzer().tokens(text)
    assert tokens == " ".join(tokens).split()


def test_an_analyzer_travels_between_processes() -> None:
    analyzer = Analyzer("de-AT")
    copy = pickle.loads(pickle.dumps(analyzer))
    assert (copy.identity, copy.tokens("Häuser")) == (analyzer.identity, ["haus"])


def test_identity_tells_languages_apart() -> None:
    assert Analyzer("en").identity != Analyzer("de").identity


@pytest.mark.parametrize(
    ("language", "question", "tokens"),
    [
        ("en", "Who directed the film Titanic?", "direct film titan"),
        ("en", "Where did the US and the WHO meet?", "us who meet"),
        ("en", "The Who", "the who"),
        ("en", "What is it?", "what is it"),
        ("en", "Wo wurde Goethe geboren?", "goeth geboren"),
        ("de", "Wo wurde Goethe geboren?", "goth gebor"),
        ("ru", "Где родился Чехов?", "род чех"),
        ("zh", "清华大学", "清华 华大 大学"),
    ],
)
def test_a_search_leaves_out_function_words(language: str, question: str, tokens: str) -> None:
    assert Analyzer(language).query_tokens(question) == tokens.split()


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("the city is in the north of it", "en"),
        ("die Stadt ist nicht im Norden und sie war es auch", "de"),
        ("la ville est dans le nord avec des ponts", "fr"),
        ("la ciudad es muy grande y fue fundada por el rey", "es"),
        ("город был основан на реке и это его", "ru"),
        ("", "en"),
    ],
)
def test_language_of_function_words(text: str, language: str) -> None:
    assert language_of(set(words(text))) == language


def test_words_are_casefolded_and_unstemmed() -> None:
    assert words("Straßen, Cafés & 北京大学 हिन्दी") == ["strassen", "cafés", "北京大学", "हिन्दी"]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("abc", 1),
        ("abcd", 1),
        ("abcde", 2),
        ("北京大学", 4),
        ("한국어", 3),
        ("カメラ", 3),
        ("北京 abc", 3),
        ("привет мир", 3),
    ],
)
def test_count_tokens(text: str, count: int) -> None:
    assert count_tokens(text) == count


@settings(deadline=None)
@given(st.text(max_size=200), st.text(max_size=200))
def test_count_tokens_grows_and_never_beyond_the_sum(a: str, b: str) -> None:
    assert max(count_tokens(a), count_tokens(b)) <= count_tokens(a + b) <= count_tokens(a) + count_tokens(b)


@settings(deadline=None)
@given(st.text(max_size=200), st.integers(0, 60))
def test_truncate_is_a_start_within_the_budget(text: str, limit: int) -> None:
    cut = truncate(text, limit)
    assert text.startswith(cut)
    assert count_tokens(cut) <= limit
    assert cut == text or count_tokens(text) > limit


def test_truncate_cuts_between_words() -> None:
    assert truncate("one two three four", 3) == "one two"
    assert truncate("北京大学在北京", 4) == "北京大学"


@pytest.mark.parametrize(
    "parts",
    [
        ["Dr. J. Smith paid $3.5 million in the U.S. Army.", "He left at 5 p.m. on Jan. 5.", "Did he?", "Yes!"],
        ["Acme Inc. was sold, e.g. to Bob.", '"Why?" she asked.', "End"],
        ["Am 3. März kam z.B. Herr Dr. Müller.", "Er ging."],
        ["Родился в 1890 г. в Москве.", "Умер там же."],
        ["我在北京。", "你好！", "他说：“走吧。”", "完"],
        ["今日は晴れ。", "「行こう。」", "はい"],
        ["한국은 나라다.", "서울은 수도이다."],
        ["هل أنت هنا؟", "نعم."],
        ["यह एक वाक्य है।", "यह दूसरा है।"],
        ["Es war 1.5 km.", "Version 2.0.1 kam."],
        [
            "He fought in World War I.",
            "During it he wrote.",
            "He moved to the U.S.",
            "The army of George W. Bush came to St. Louis.",
        ],
        ["Dr. The Nguyen met Mr. In.", "No. 5 is vol. 2 of fig. 3."],
    ],
)
def test_sentences(parts: list[str]) -> None:
    text = " ".join(parts)
    assert [text[a:b] for a, b in sentences(text)] == parts


def test_sentences_of_scripts_without_spaces_between_them() -> None:
    text = "我在北京。你好！走"
    assert [text[a:b] for a, b in sentences(text)] == ["我在北京。", "你好！", "走"]


def test_headings_items_and_wrapped_lines() -> None:
    text = "A heading\n\nA paragraph that was wrapped after some words\nand goes on here.\n- one item\n- another item\n1. first\n2. second"
    assert [text[a:b] for a, b in sentences(text)] == [
        "A heading",
        "A paragraph that was wrapped after some words\nand goes on here.",
        "- one item",
        "- another item",
        "1. first",
        "2. second",
    ]


def test_long_thai_is_cut_at_its_spaces() -> None:
    phrase = "ประเทศไทยเป็นประเทศที่ตั้งอยู่ในเอเชียตะวันออกเฉียงใต้"
    text = " ".join([phrase] * 6)
    assert [text[a:b] for a, b in sentences(text)] == [phrase] * 6


@settings(deadline=None)
@given(st.text(alphabet="aB.!?。\n \"'”1०।ก", max_size=120))
def test_sentences_cover_all_but_whitespace(text: str) -> None:
    spans = sentences(text)
    assert all(a < b for a, b in spans)
    assert all(b <= c for (_, b), (c, _) in itertools.pairwise(spans))
    assert "".join("".join(text[a:b].split()) for a, b in spans) == "".join(text.split())


@pytest.mark.parametrize("piece", [".", ". ", "?!", "\n", "\n ", "a.", ":", "。", "ก ", "Mr. ", '."', "A. "])
def test_sentences_take_linear_time(piece: str) -> None:
    def seconds(count: int) -> float:
        start = time.process_time()
        sentences(piece * count)
        return time.process_time() - start

    assert seconds(200_000) < 20 * max(seconds(20_000), 0.01)


def test_split_names() -> None:
    assert split_names("Alice, Bob；北京、上海，東京\n ;李") == ["Alice", "Bob", "北京", "上海", "東京", "李"]
