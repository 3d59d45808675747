"""Reading replies: flat tagged items, JSON objects, plain text; tolerant of what models add around them.

Replies hold raw ``<`` and ``&``, and may have been steered by hostile text, so no XML parser reads them: a scanner
that knows the task's own tags and nothing else does, in time linear in the reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from kgrag.errors import OutputError
from kgrag.text import split_names

_REASONING = re.compile(r"\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_ENTITY = re.compile(r"&(?:(lt|gt|amp|quot|apos)|#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6}));")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_NUMBER = re.compile(r"-?\d+(?:[.,]\d+)?")
_NOTHING = frozenset({"", "none", "n/a", "null", "-"})
_TAG = re.compile(r"<(/?)([A-Za-z_]+)(?:\s[^<>]*)?>")
_SENTENCE_END = re.compile(r"[.!?…](?=[\"'”’)\]]*(?:\s|$))[\"'”’)\]]*|[。！？।؟]|\n\s*\n")
_FENCE = re.compile(r"```[\w-]*[ \t]*\n")


def without_reasoning(reply: str) -> str:
    """The reply without a leading block of a reasoning model's thoughts, which may hold drafts of items.
    Empty where the thoughts never end."""
    if not reply.lstrip().startswith("<think"):
        return reply
    found = _REASONING.match(reply)
    return reply[found.end() :] if found else ""


def unescape(value: str) -> str:
    """The five XML entities and numeric references, if closed by ``;``; any other ``&`` stays as it is."""
    if "<![CDATA[" in value:
        value = value.replace("<![CDATA[", "").replace("]]>", "")
    return _ENTITY.sub(_character, value) if "&" in value else value


@lru_cache(maxsize=64)
def _whole_items(tag: str, fields: tuple[str, ...]) -> re.Pattern[str]:
    """Items with every field, in order, and no ``<`` in any value: what nearly all replies consist of."""
    inner = r"\s*".join(rf"<{name}>([^<]*)</{name}>" for name in fields)
    return re.compile(rf"<{tag}>\s*{inner}\s*</{tag}>")


def items(reply: str, section: str, tag: str, fields: tuple[str, ...]) -> tuple[list[Sequence[str]], int] | None:
    """The complete ``<tag>`` items of a reply, as the values of ``fields`` in order (missing ones empty), and how many
    incomplete ones were left out. None where the reply has neither the section nor an item. Raises OutputError for
    a section that holds something else."""
    opening, closing = f"<{tag}>", f"</{tag}>"
    begun = reply.count(opening)
    if not begun:
        inner = _between(reply, section)
        if inner is not None and inner.strip().lower() not in _NOTHING:
            raise OutputError(f"The section <{section}> holds no <{tag}>.", reply=reply)
        return None if inner is None else ([], 0)
    clean = _value if "&" in reply or "<![" in reply else _raw_value
    whole = _whole_items(tag, fields).findall(reply)
    if len(whole) == begun:
        return [[clean(value) for value in row] for row in whole], 0
    pairs = [(f"<{name}>", f"</{name}>") for name in fields]
    found: list[Sequence[str]] = []
    dropped = 0
    for body in _bodies(reply, opening, closing):
        if body is None:
            dropped += 1
        else:
            found.append([clean(_field(body, start, end)) for start, end in pairs])
    return found, dropped


def canonical_tags(reply: str, known: frozenset[str]) -> str:
    """The reply with known tags in lower case and without attributes, for models that decorate them."""
    return _TAG.sub(lambda m: f"<{m[1]}{m[2].lower()}>" if m[2].lower() in known else m[0], reply)


def number(text: str, low: float, high: float, missing: float) -> float:
    """The first number of ``text``, clamped; ``missing`` where there is none."""
    try:
        value = float(text)
        if low <= value <= high:
            return value
    except ValueError:
        found = _NUMBER.search(text)
        if found is None:
            return missing
        value = float(found.group().replace(",", "."))
    return min(max(value, low), high) if value == value else missing


def json_object(reply: str, cut: bool) -> tuple[dict[str, Any], int]:
    """The JSON object in a reply, and how many unfinished parts a cut-off one lost. Raises OutputError."""
    start = reply.find("{")
    if start < 0:
        raise OutputError("The reply holds no JSON object.", reply=reply)
    body = reply[start:]
    try:
        value, _ = _decoder.raw_decode(body)
    except (ValueError, RecursionError) as error:
        value = _shortened(body) if cut else None
        if value is None:
            raise OutputError(f"The reply is not valid JSON ({error}).", reply=reply) from None
        return value, 1
    return value, 0


def plain(reply: str, *, fenced: bool = True) -> str:
    """The text of a reply that should be nothing but text: without a code fence around it where models
    put one (``fenced``). Raises OutputError where nothing is left."""
    text = reply.strip()
    if fenced and (opening := _FENCE.match(text)):
        text = text[opening.end() :].removesuffix("```").strip()
    if not text:
        raise OutputError("The reply is empty.", reply=reply)
    return text


def whole_sentences(text: str) -> str:
    """A cut-off text up to the end of its last complete sentence or paragraph; empty where there is none."""
    end = max((m.end() for m in _SENTENCE_END.finditer(text)), default=0)
    return text[:end].rstrip()


def listed(value: Any) -> list[str]:
    """The non-empty strings of a JSON list, each once; a lone string is parted at commas and semicolons (unified-kg-rag §8)."""
    if isinstance(value, str):
        value = split_names(value)
    if not isinstance(value, list):
        return []
    texts = (" ".join(v.split()) for v in value if isinstance(v, str))
    return list(dict.fromkeys(t for t in texts if t.lower() not in _NOTHING))


def text_of(value: Any) -> str:
    """A JSON value as text: strings stripped, numbers printed, anything else empty."""
    if isinstance(value, str):
        return value.strip()
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else ""


_decoder = json.JSONDecoder(strict=False)


def _character(found: re.Match[str]) -> str:
    named, decimal, hexadecimal = found.groups()
    if named:
        return _NAMED[named]
    code = int(decimal) if decimal else int(hexadecimal, 16)
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else found.group()


def _bodies(reply: str, opening: str, closing: str) -> Iterator[str | None]:
    """The inside of each item; None for one that another opening or the end of the reply comes before its close."""
    start = reply.find(opening)
    while start >= 0:
        start += len(opening)
        following = reply.find(opening, start)
        end = reply.find(closing, start, following if following >= 0 else len(reply))
        yield reply[start:end] if end >= 0 else None
        start = following


def _field(body: str, opening: str, closing: str) -> str:
    start = body.find(opening)
    if start < 0:
        return ""
    start += len(opening)
    end = body.find(closing, start)
    return body[start:end] if end >= 0 else ""


def _raw_value(value: str) -> str:
    value = value.strip()
    return "" if len(value) < 5 and value.lower() in _NOTHING else value


def _value(value: str) -> str:
    return _raw_value(unescape(value))


def _between(reply: str, section: str) -> str | None:
    if f"<{section}/>" in reply or f"<{section} />" in reply:
        return ""
    start = reply.find(f"<{section}>")
    end = reply.find(f"</{section}>", start)
    return reply[start + len(section) + 2 : end] if 0 <= start < end else None


def _shortened(body: str) -> dict[str, Any] | None:
    """The object up to its last complete member or list element, with what is open closed. A half-read object inside
    a list goes as a whole, because an item without its other half is not what was said."""
    closers: list[str] = []
    quoted = escaped = False
    best: tuple[int, str] | None = None
    for at, char in enumerate(body):
        if quoted:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                quoted = False
        elif char == '"':
            quoted = True
        elif char in "{[":
            closers.append("}" if char == "{" else "]")
        elif char in "}]" and closers:
            closers.pop()
            if closers and "}" not in closers[1:]:
                best = (at + 1, "".join(reversed(closers)))
        elif char == "," and closers and "}" not in closers[1:]:
            best = (at, "".join(reversed(closers)))
    if best is None:
        return None
    try:
        value = _decoder.decode(body[: best[0]] + best[1])
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
