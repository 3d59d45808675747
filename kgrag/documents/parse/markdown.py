"""Markdown: the source text itself, for its marks tell a reader (and a model) what is a heading, a table or code.

Taken out are the front matter (it becomes metadata), HTML comments (they are not shown) and images inlined as ``data:``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime
from itertools import pairwise
from typing import Any

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from kgrag.documents.content import Content
from kgrag.documents.encoding import clean, decode
from kgrag.documents.parse.formats import Parsed
from kgrag.documents.rows import fields
from kgrag.documents.settings import DocumentSettings

_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_MAX_FRONT = 64 << 10
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_LABEL = re.compile(r"!\[([^\]\n]{0,300})\Z")
_INLINE_MARKS = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|[*_`]+(?=\w)|(?<=\w)[*_`]+|<[^>]*>")


def parse(content: Content, settings: DocumentSettings) -> Iterator[Parsed]:
    raw, warnings = decode(content, settings.encoding)
    text, notes = clean(raw)
    warnings += notes
    front, text = _front_matter(text, warnings)
    text, title = _body(text)
    metadata = fields(((k, _plain(v)) for k, v in front.items()), settings, warnings)
    title = str(metadata.get("title") or title)
    yield Parsed(text=text, title=title, metadata=metadata, warnings=warnings)


def _front_matter(text: str, warnings: list[str]) -> tuple[dict[str, Any], str]:
    match = _FRONT.match(text)
    if match is None:
        return {}, text
    reason = "it is too long"
    if len(match[1]) <= _MAX_FRONT:
        try:
            # an alias can stand for the whole tree above it, so a few lines unfold without end
            if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(match[1], _Loader)):
                reason = "it uses aliases"
            else:
                found = yaml.load(match[1], _Loader)  # noqa: S506
                if isinstance(found, dict):
                    return found, text[match.end() :].lstrip("\n")
                if found is None:
                    return {}, text[match.end() :].lstrip("\n")
                return {}, text  # a rule, text, and another rule
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            reason = " ".join(str(error).split())[:200] or type(error).__name__
    warnings.append(f"The front matter cannot be read and was kept as text: {reason}.")
    return {}, text


def _plain(value: Any) -> Any:
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return value


def _body(text: str) -> tuple[str, str]:
    """The text without what is not shown, and its first heading of the first level."""
    tokens = _blocks().parse(text)
    title = _title(tokens)
    if "<!--" not in text and "data:" not in text:
        return text, title
    lines = text.splitlines(keepends=True)
    code = [t.map for t in tokens if t.type in ("fence", "code_block") and t.map]
    kept, at = [], 0
    for first, end in code:
        kept += [_shown("".join(lines[at:first])), "".join(lines[first:end])]
        at = end
    kept.append(_shown("".join(lines[at:])))
    return "".join(kept), title


def _blocks() -> MarkdownIt:
    """Block structure only: inline marks stay as they are written."""
    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _title(tokens: list[Token]) -> str:
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open" and opening.tag == "h1" and opening.level == 0:
            return " ".join(_INLINE_MARKS.sub(lambda m: m[1] or "", inline.content).split())
    return ""


def _shown(text: str) -> str:
    """Without comments and inlined images. Scans forward only: patterns would take quadratic time on hostile text."""
    kept, at = [], 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start)) >= 0:
        kept.append(text[at:start])
        at = end + 4 if text.startswith("\n", end + 3) and text[start - 1 : start] in ("", "\n") else end + 3
    text = "".join([*kept, text[at:]])
    kept, at = [], 0
    while (start := text.find("](data:", at)) >= 0 and (end := text.find(")", start)) >= 0:
        label = _LABEL.search(text, max(at, start - 304), start)
        kept.append(text[at : label.start()] + label[1] if label else text[at : start + 2])
        at = end + 1 if label else start + 2
    return "".join([*kept, text[at:]])
