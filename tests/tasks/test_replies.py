from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgrag.errors import OutputError
from kgrag.tasks.replies import json_object, listed, number, plain, text_of, whole_sentences, without_reasoning

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def test_an_object_is_found_in_what_models_write_around_it() -> None:
    for reply in ('{"a": 1}', '```json\n{"a": 1}\n```', 'Sure: {"a": 1} Done.', '{"a": 1} {"b": 2}'):
        assert json_object(reply, False) == ({"a": 1}, 0)
    assert json_object('{"a": "line\nbreak"}', False)[0] == {"a": "line\nbreak"}


@pytest.mark.parametrize("reply", ["", "none", "[1]", '{"a": ', "{'a': 1}", "{" * 100_000, '{"a":' * 20_000])
def test_other_replies_are_refused(reply: str) -> None:
    with pytest.raises(OutputError):
        json_object(reply, False)


def test_a_cut_object_keeps_whole_members_and_whole_items() -> None:
    whole = '{"title": "T", "tags": ["a", "b"], "findings": [{"summary": "a", "x": [1, {"y": 2}]}, {"summary": "b"}], "n": 12}'
    seen = []
    for at in range(1, len(whole)):
        try:
            value, dropped = json_object(whole[:at], True)
        except OutputError:
            assert at < whole.index(', "tags"') + 1
            continue
        assert dropped == 1
        assert value.get("title") == "T"
        assert all(item in ({"summary": "a", "x": [1, {"y": 2}]}, {"summary": "b"}) for item in value.get("findings", []))
        seen.append(len(value.get("findings", [])))
    assert seen == sorted(seen)
    assert seen[-1] == 2
    assert json_object(whole, True) == (json.loads(whole), 0)


@settings(deadline=None, max_examples=200)
@given(st.dictionaries(st.text(max_size=5), json_values, min_size=1, max_size=4), st.integers(0, 400))
def test_what_a_cut_object_keeps_was_said(value: dict[str, object], at: int) -> None:
    reply = json.dumps(value)[:at]
    try:
        kept, _ = json_object(reply, True)
    except OutputError:
        return
    for key, item in kept.items():
        if not isinstance(item, list):
            assert value[key] == item
        else:
            assert _is_start(item, value[key])


def _is_start(kept: object, said: object) -> bool:
    """Equal, or a list that ends early."""
    if isinstance(kept, list) and isinstance(said, list) and kept != said:
        return (
            len(kept) <= len(said)
            and kept[:-1] == said[: len(kept)][:-1]
            and (not kept or _is_start(kept[-1], said[len(kept) - 1]))
        )
    return kept == said


def test_thoughts_go_and_unfinished_thoughts_leave_nothing() -> None:
    assert without_reasoning("<think>a\nb</think>\nanswer") == "\nanswer"
    assert without_reasoning("  <thinking>x</thinking>answer") == "answer"
    assert without_reasoning("<think>for ever") == ""
    assert without_reasoning("a <think>b</think>") == "a <think>b</think>"


def test_plain_text_loses_its_fence_only_where_one_is_not_expected() -> None:
    assert plain(" text \n") == "text"
    assert plain("```\ntext\n```") == "text"
    assert plain("```text\na\n\nb\n```") == "a\n\nb"
    assert plain("```python\nx\n```\nand more", fenced=False) == "```python\nx\n```\nand more"
    for reply in ("", " \n", "```\n\n```"):
        with pytest.raises(OutputError):
            plain(reply)


def test_whole_sentences_of_a_cut_text() -> None:
    assert whole_sentences('One. Two "three." Four fi') == 'One. Two "three."'
    assert whole_sentences("一句话。还有一") == "一句话。"
    assert whole_sentences("Version 3.5 is") == ""
    assert whole_sentences("Ends here.") == "Ends here."


def test_numbers_lists_and_texts() -> None:
    assert number("7 of 10", 0, 10, 5) == 7
    assert number("", 0, 10, 5) == 5
    assert listed(["a", " a ", None, 3, "b\n c", "none"]) == ["a", "b c"]
    assert listed("one") == ["one"]
    assert listed("one, 二、drei; one") == ["one", "二", "drei"]
    assert listed({"a": 1}) == []
    assert (text_of(" a "), text_of(3), text_of(2.5), text_of(True), text_of(None), text_of([1])) == ("a", "3", "2.5", "", "", "")
