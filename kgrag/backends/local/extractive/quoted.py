"""Titles between quotation marks, in the marks of every script."""

from __future__ import annotations

import re
from functools import cache

from kgrag.backends.local.extractive.names import CASED, Mention, capitals
from kgrag.scripts import script

_QUOTED = re.compile(
    r"``\s?([^`\n]{2,80}?)\s?''|\"([^\"\n]{2,80})\"|“([^“”\n]{2,80})”|«([^«»\n]{2,80})»|„([^„“”\n]{2,80})[“”]"
    r"|《([^《》\n]{1,40})》|〈([^〈〉\n]{1,40})〉|「([^「」\n]{2,30})」|『([^『』\n]{1,40})』|‘([^‘’\n]{2,60})’(?!\w)"
)
_MARKS = ("``", '"', "“", "«", "„", "《", "〈", "「", "『", "‘")
_SENTENCE_MARKS = re.compile(r"[。！？!?，؟।]|[,.;:]\s")
_LONGEST = 8


@cache
def _words() -> re.Pattern[str]:
    return re.compile(rf"[{CASED}][{CASED}'’]*")


@cache
def _capital() -> re.Pattern[str]:
    return re.compile(rf"[{capitals()}0-9]")


def quoted_mentions(text: str) -> list[Mention]:
    """Quoted passages that read like a title, not like speech: mostly capitalised, or short where a script has no capitals."""
    if not any(mark in text for mark in _MARKS):
        return []
    found = []
    for match in _QUOTED.finditer(text):
        group = match.lastindex or 0
        name = match.group(group).strip(" ,.，。、")
        if name and _is_title(name, in_title_marks=text[match.start()] in "《『"):
            found.append(Mention(name, match.start(group), match.end(group), "quoted"))
    return found


def _is_title(name: str, *, in_title_marks: bool) -> bool:
    if in_title_marks:
        return True
    if script(name) in ("latin", "cyrillic", "greek", "armenian"):
        words = _words().findall(name)
        capitalised = sum(1 for word in words if _capital().match(word))
        return bool(_capital().match(name)) and capitalised * 2 >= len(words) and len(words) <= _LONGEST
    return not _SENTENCE_MARKS.search(name) and len(name.split()) <= 4 and len(name) <= 24 and any(c.isalpha() for c in name)
