from __future__ import annotations

import codecs

import pytest

from kgrag.documents.encoding import clean
from kgrag.errors import DocumentError
from tests.documents.conftest import Read

GERMAN = "Die Straße nach Gößweinstein führt über Würzburg. Frau Müller kaufte zwölf Äpfel, günstig, sagte sie.\n" * 3
JAPANESE = "知識強化生成は専門領域の知識ベースに基づく論理推論フレームワークである。\n" * 5


@pytest.mark.parametrize("mark", [codecs.BOM_UTF8, b""])
def test_utf8_with_and_without_a_byte_order_mark_is_the_same_text(read: Read, mark: bytes) -> None:
    assert read("a.txt", mark + GERMAN.encode()).only.text == GERMAN


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-16-le", "utf-16-be"])
def test_wide_encodings_are_read(read: Read, encoding: str) -> None:
    assert read("a.txt", GERMAN.encode(encoding)).only.text == GERMAN


@pytest.mark.parametrize(
    ("encoding", "text"), [("latin-1", GERMAN), ("cp1252", GERMAN), ("euc-jp", JAPANESE), ("shift-jis", JAPANESE)]
)
def test_legacy_encodings_are_found_and_named_in_a_warning(read: Read, encoding: str, text: str) -> None:
    found = read("a.txt", text.encode(encoding)).only
    assert found.text == text
    assert "not UTF-8; read as" in found.warnings[0]


def test_a_stated_encoding_is_taken(read: Read) -> None:
    assert read("a.txt", "Привет".encode("koi8-r"), encoding="koi8-r").only.text == "Привет"


def test_an_unknown_encoding_is_refused_with_the_setting_to_change(read: Read) -> None:
    error = read("a.txt", "x", encoding="utf-99").error
    assert isinstance(error, DocumentError)
    assert "documents.encoding" in error.remedy


def test_broken_utf8_keeps_the_good_and_counts_the_rest(read: Read) -> None:
    found = read("a.txt", "서울의 봄\n".encode() + b"bad \xff byte\n" + "끝".encode()).only
    assert found.text == "서울의 봄\nbad \ufffd byte\n끝"
    assert found.warnings == ["Bytes that are not UTF-8 were replaced (1)."]


def test_noise_is_refused_as_binary(read: Read) -> None:
    noise = bytes((i * 197 + i // 7 * 31 + (i * i) % 251) % 256 for i in range(20_000))
    assert "binary" in str(read("a.txt", noise).error)


@pytest.mark.parametrize(
    ("raw", "cleaned"),
    [
        ("a\r\nb\rc\x85d\u2028e\u2029f\x0bg\x0ch", "a\nb\nc\nd\ne\nf\ng\nh"),
        ("a\x00b", "ab"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("bell\x07", "bell"),
        ("\ufeffa\ufeffb", "ab"),
        ("x \ud800 y", "x \ufffd y"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("voilÃ\xa0 â€œmojibakeâ€\x9d", "voilÃ\xa0 â€œmojibakeâ€\x9d"),
    ],
)
def test_text_is_cleaned_of_what_stores_refuse_and_of_nothing_else(raw: str, cleaned: str) -> None:
    text, _ = clean(raw)
    assert text == cleaned
    text.encode("utf-8")
