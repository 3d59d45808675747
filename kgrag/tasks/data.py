"""How text that others wrote is put into a prompt: as data between delimiters that it cannot contain."""

from __future__ import annotations

import re

from kgrag.ids import digest

_CHAT = r"\|[^|<>\n]{1,40}\|>|/?(?:s|start_of_turn|end_of_turn|think|tool_call)>"
_ITEMS = (
    r"/?(?:entit(?:y|ies)|relationships?|claims?|name|type|description|confidence|strength|quote|source|target|subject"
    r"|object|status|start_date|end_date)>"
)
_INST = r"\[(?=/?INST\])"
_CONTROL_TOKEN = re.compile(rf"<(?={_CHAT}|{_ITEMS})|{_INST}", re.IGNORECASE)
_CHAT_TOKEN = re.compile(rf"<(?={_CHAT})|{_INST}", re.IGNORECASE)


def block(label: str, text: str, *, tags: bool = False) -> str:
    """``text`` between two lines that name ``label`` and a mark derived from the text, so that the text can neither
    hold the closing line nor guess it. Control tokens of chat templates and the tags that replies are made of get a
    space behind their first character: a local server would read the former as the end of the message, and the
    parsers would take the latter, quoted by a model, for items (``tags`` leaves those as they are, where the text is a reply)."""
    if "<" in text or "[" in text:
        text = (_CHAT_TOKEN if tags else _CONTROL_TOKEN).sub(lambda found: found.group() + " ", text)
    mark = digest(text)[:8]
    while mark in text:
        mark = digest(mark, text)[:8]
    return f"<<<{label} {mark}\n{text}\n{label} {mark}>>>"


def line(text: str) -> str:
    """One line of a list inside a block: line breaks and runs of spaces become one space."""
    return " ".join(text.split())


def language_rule(language: str, what: str, *, of: str = "text") -> str:
    """Which language ``what`` is to be written in: the named one, or that of the ``of`` block."""
    return f"Write {what} in {language or f'the language of the {of}'}."
