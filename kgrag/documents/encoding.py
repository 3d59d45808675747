"""Bytes to text: which encoding, and what is cleaned out of the characters.

The order is fixed so that a corpus reads alike on every machine where it can: a byte order mark, UTF-8, UTF-8 with a few
broken bytes, the locale's encoding (unified-kg-rag §8), the one charset-normalizer finds, Latin-1. Mojibake that decodes is
left as it is: what looks broken may be meant.
"""

from __future__ import annotations

import codecs
import locale
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import TextIOWrapper

from kgrag.documents.content import Content
from kgrag.errors import DocumentError

_BLOCK = 1 << 20
_SAMPLE = 128 << 10
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_ASCII = bytes(range(128))
_ESCAPED = re.compile("[\udc80-\udcff]")
_CONTROL_BYTES = bytes(c for c in range(32) if c not in b"\t\n\r\x0b\x0c\x1b") + b"\x7f"

_UTF8_CONTROLS, _LEGACY_CONTROLS = 0.3, 0.02
"""Shares of control bytes from which a file is binary: random bytes have 0.1, and are not UTF-8."""

_SUSPECT = re.compile("[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029\ud800-\udfff\ufeff]")
_NEWLINE = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_ANSI = re.compile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|[@-Z\\\\-_])?")
_CONTROL = re.compile("[\x01-\x08\x0e-\x1f\x7f]")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Encoding:
    """``errors`` is how bytes that do not decode are handled; ``warnings`` say what is not as it was."""

    name: str
    errors: str = "strict"
    warnings: tuple[str, ...] = ()


def find_encoding(content: Content, wanted: str = "") -> Encoding:
    """The encoding of a text file. Raises DocumentError where the file is not text."""
    if wanted:
        return _wanted(content, wanted)
    head = content.read(_SAMPLE)
    for mark, name in _BOMS:
        if head.startswith(mark):
            return _checked(content, name)
    wide = _without_bom(head)
    if wide:
        return Encoding(wide, "replace", (f"It has no byte order mark; read as {wide}.",))
    good, bad = _utf8_bytes(_blocks(content))
    legacy = good < 2 * bad
    controls = len(head) - len(head.translate(None, _CONTROL_BYTES))
    if controls > (_LEGACY_CONTROLS if legacy else _UTF8_CONTROLS) * len(head):
        raise DocumentError(
            "The file holds binary data, not text.", subject=content.name, remedy="Exclude it, or give it its right suffix."
        )
    if not bad:
        return Encoding("utf-8")
    if not legacy:
        return Encoding("utf-8", "replace", (f"Bytes that are not UTF-8 were replaced ({bad}).",))
    return _legacy(content, head)


def decode(content: Content, wanted: str = "") -> tuple[str, list[str]]:
    """A text file's text, not cleaned, and warnings. Raises DocumentError."""
    encoding = find_encoding(content, wanted)
    return content.read().decode(encoding.name, encoding.errors), list(encoding.warnings)


def open_text(content: Content, encoding: Encoding, newline: str) -> TextIOWrapper:
    """A text file as a stream of characters, not cleaned. ``newline`` as in ``open``."""
    return TextIOWrapper(content.open(), encoding=encoding.name, errors=encoding.errors, newline=newline)


def clean(text: str) -> tuple[str, list[str]]:
    """Text that every store and encoder takes, and what was changed: one newline form; no NUL, control character, terminal
    escape or byte order mark; lone surrogates replaced by U+FFFD."""
    if not _SUSPECT.search(text):
        return text, []
    notes = []
    text = _NEWLINE.sub("\n", text).replace("\ufeff", "")
    nul = text.count("\x00")
    if nul:
        text = text.replace("\x00", "")
        notes.append(f"NUL characters were removed ({nul}).")
    text, escapes = _ANSI.subn("", text)
    text, controls = _CONTROL.subn("", text)
    if escapes or controls:
        notes.append(f"Control characters were removed ({escapes + controls}).")
    text, lone = _SURROGATE.subn("\ufffd", text)
    if lone:
        notes.append(f"Lone surrogates were replaced ({lone}).")
    return text, notes


def _wanted(content: Content, name: str) -> Encoding:
    try:
        codecs.lookup(name)
    except LookupError as error:
        raise DocumentError(
            f"There is no encoding {name!r}.", subject=content.name, remedy="Set documents.encoding to a name Python knows."
        ) from error
    return _checked(content, name)


def _checked(content: Content, name: str) -> Encoding:
    if _decodes(content, name):
        return Encoding(name)
    decoder = codecs.getincrementaldecoder(name)("replace")
    lost = sum(decoder.decode(block).count("\ufffd") for block in _blocks(content)) + decoder.decode(b"", True).count("\ufffd")
    return Encoding(name, "replace", (f"Characters that are not {name} were replaced ({lost}).",))


def _without_bom(head: bytes) -> str:
    """UTF-16 of a mostly Latin text: every other byte is NUL."""
    even, odd = head[0::2].count(0), head[1::2].count(0)
    half = len(head) // 2
    if half and odd > 0.3 * half and even < 0.05 * half:
        return "utf-16-le"
    if half and even > 0.3 * half and odd < 0.05 * half:
        return "utf-16-be"
    return ""


def _utf8_bytes(blocks: Iterable[bytes]) -> tuple[int, int]:
    """How many bytes beyond ASCII are part of a valid UTF-8 character, and how many are not."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    beyond = bad = 0
    for block in blocks:
        text = decoder.decode(block)
        beyond += len(block.translate(None, _ASCII))
        bad += 0 if text.isascii() else len(_ESCAPED.findall(text))
    bad += len(_ESCAPED.findall(decoder.decode(b"", True)))
    return beyond - bad, bad


def _legacy(content: Content, head: bytes) -> Encoding:
    preferred = codecs.lookup(locale.getpreferredencoding(False)).name
    if preferred not in ("utf-8", "ascii") and _decodes(content, preferred):
        return Encoding(preferred, warnings=(f"It is not UTF-8; read as {preferred}, the encoding of this machine's locale.",))
    import charset_normalizer

    sample = head if len(head) < _SAMPLE else head[: head.rfind(b"\n") + 1] or head
    for match in charset_normalizer.from_bytes(sample):
        name = "cp1252" if "cp1252" in match.could_be_from_charset else match.encoding
        if _decodes(content, name):
            return Encoding(name, warnings=(f"It is not UTF-8; read as {name}.",))
    return Encoding("latin-1", warnings=("Its encoding is unknown; read as Latin-1, so letters beyond ASCII may be wrong.",))


def _decodes(content: Content, name: str) -> bool:
    decoder = codecs.getincrementaldecoder(name)("strict")
    try:
        for block in _blocks(content):
            decoder.decode(block)
        decoder.decode(b"", True)
    except UnicodeDecodeError:
        return False
    return True


def _blocks(content: Content) -> Iterator[bytes]:
    with content.open() as stream:
        while block := stream.read(_BLOCK):
            yield block
