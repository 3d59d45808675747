"""Questions and answers by text statistics, in several languages."""

from __future__ import annotations

import pytest

from kgrag.backends.local.extractive.answering import asked_names, best_sentences, cannot, key_points, question_keywords
from kgrag.tasks.answers import CANNOT_ANSWER, AnswerInput, ContextItem
from kgrag.tasks.query import MapInput, MapReport


def answer(question: str, *texts: str, style: str = "concise") -> str:
    items = [ContextItem(number=n, kind="text_unit", title="", text=text) for n, text in enumerate(texts, 1)]
    return best_sentences(AnswerInput(question=question, items=items, style=style))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("question", "texts", "said"),
    [
        ("Who directed Titanic?", ["It rained. The weather was bad.", "Titanic sold well. Titanic was directed by James Cameron."],
         "Titanic was directed by James Cameron. [2]"),
        ("When was the bridge opened?", ["The bridge was opened by the mayor.", "The bridge was opened on 3 May 1932."],
         "The bridge was opened on 3 May 1932. [2]"),
        ("How many people live in Elmsworth?", ["People live well in Elmsworth.", "Elmsworth has 4,200 people that live there."],
         "Elmsworth has 4,200 people that live there. [2]"),
        ("Wo wurde Goethe geboren?", ["Goethe schrieb Faust.", "Goethe wurde in Frankfurt geboren."], "Goethe wurde in Frankfurt geboren. [2]"),
        ("Где родился Чехов?", ["Чехов писал пьесы.", "Чехов родился в Таганроге."], "Чехов родился в Таганроге. [2]"),
        ("清华大学成立于哪一年？", ["北京很大。", "清华大学在北京。清华大学成立于1911年。"], "清华大学成立于1911年。 [2]"),
        ("夏目漱石はどこで生まれましたか？", ["夏目漱石は江戸で生まれた。", "猫がいる。"], "夏目漱石は江戸で生まれた。 [1]"),
        ("훈민정음은 누가 창제했나요?", ["날씨가 좋다.", "세종대왕은 훈민정음을 창제했다."], "세종대왕은 훈민정음을 창제했다. [2]"),
        ("أين ولد نجيب محفوظ؟", ["الطقس جميل.", "ولد نجيب محفوظ في القاهرة."], "ولد نجيب محفوظ في القاهرة. [2]"),
        ("गांधी का जन्म कहाँ हुआ?", ["मौसम अच्छा है।", "गांधी का जन्म पोरबंदर में हुआ।"], "गांधी का जन्म पोरबंदर में हुआ। [2]"),
    ],
)  # fmt: skip
def test_the_sentence_that_answers_is_cited_first(question: str, texts: list[str], said: str) -> None:
    assert answer(question, *texts).startswith(said)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Who painted the ceiling of the chapel?", CANNOT_ANSWER),
        ("Wer malte die Decke der Kapelle?", "Das lässt sich"),
        ("Кто расписал потолок капеллы?", "На основании"),
        ("谁画了教堂的天花板？", "无法"),
        ("誰が天井を描きましたか？", "索引"),
        ("누가 천장을 그렸나요?", "색인"),
        ("من رسم سقف الكنيسة؟", "لا يمكن"),
        ("छत किसने बनाई?", "अनुक्रमित"),
        ("ใครวาดเพดาน", "ไม่สามารถ"),
    ],
)
def test_what_nothing_supports_is_not_answered(question: str, said: str) -> None:
    reply = answer(question, "The harbour has four cranes.", "Rain fell in spring.")
    assert reply.startswith(said)
    assert "[" not in reply
    assert cannot(question) == reply


def test_no_context_and_no_words_are_no_answer() -> None:
    assert answer("Who?") == CANNOT_ANSWER
    assert answer("???", "Something is here.") == CANNOT_ANSWER


def test_a_comprehensive_answer_says_more_and_repeats_nothing() -> None:
    texts = [
        f"The harbour of Port {name} has a {thing}."
        for name, thing in zip("ABCDE", ["crane", "pier", "mole", "dock", "quay"], strict=True)
    ]
    question = "Which harbour has a crane, pier, mole, dock and quay?"
    concise, comprehensive = answer(question, *texts), answer(question, *texts, *texts, style="comprehensive")
    assert concise.count("[") == 3
    assert comprehensive.count("[") == 5


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Who is the spouse of the director of Jaws?", ["Jaws"]),
        ("When did Ada Lovelace meet Charles Babbage?", ["Ada Lovelace", "Charles Babbage"]),
        ("who directed the film titanic", ["directed", "film", "titanic"]),
        ("《战国无双3》是由哪两个公司开发的？", ["战国无双3"]),
        ("Wer gründete die Siemens AG?", ["Siemens AG"]),
    ],
)
def test_names_of_a_question(question: str, names: list[str]) -> None:
    assert asked_names(question) == names


def test_keywords_have_two_levels() -> None:
    keywords = question_keywords("Which treaty ended the war between Norland and Sudland?")
    assert keywords.low == ["Norland", "Sudland"]
    assert keywords.high == ["treaty ended war"]


def test_key_points_are_scored_and_traced() -> None:
    reports = [
        MapReport(number=1, title="Cranes", content="The harbour has four cranes. It is old."),
        MapReport(number=2, title="Rain", content="Rain fell in spring."),
    ]
    (point,) = key_points(MapInput(question="How many cranes has the harbour?", reports=reports))
    assert (point.text, point.reports) == ("The harbour has four cranes.", [1])
    assert 50 < point.score <= 100
