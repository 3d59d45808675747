"""Which format a file has, and what each gives."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kgrag.documents.parse import formats as formats_module
from kgrag.documents.parse.extras import package
from kgrag.documents.parse.formats import Format, Parsed
from kgrag.errors import EmptyDocumentError, MissingExtraError
from tests.documents.conftest import Read
from tests.documents.files import pdf, zipped

HTML = """<!doctype html><html lang=de><head><title>Der Titel</title><meta name="author" content="A. B.">
<style>p {color: red}</style><script>alert(1)</script></head><body><!-- secret --><nav>Menu</nav>
<h1>Erste &amp; letzte</h1><p>Ein <b>Absatz</b>
über zwei Zeilen.</p><ul><li>eins</li><li>zwei</li></ul>
<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table><pre>x = 1
  y = 2</pre></body></html>"""


def test_html_shows_what_a_browser_shows(read: Read) -> None:
    found = read("a.html", HTML).only
    assert found.title == "Der Titel"
    assert found.metadata == {"author": "A. B.", "language": "de", "title": "Der Titel"}
    assert found.text == (
        "# Erste & letzte\n\nEin Absatz über zwei Zeilen.\n\n- eins\n- zwei\n\n| a | b |\n| 1 | 2 |\n\nx = 1\n  y = 2"
    )


def test_html_encodings_are_those_the_page_states(read: Read) -> None:
    page = '<html><head><meta charset="windows-1251"></head><body>Привет, мир</body></html>'
    assert read("a.html", page.encode("cp1251")).only.text == "Привет, мир"
    assert read("a.html", page.encode()).only.text == "Привет, мир"  # bytes that are UTF-8 are


def test_html_is_read_however_deep_or_refused(read: Read) -> None:
    def nested(depth: int) -> str:
        return "<div>" * depth + "deep" + "</div>" * depth + "<p>after</p>"

    assert read("a.html", nested(1500)).only.text.split() == ["deep", "after"]
    assert "nested too deeply" in str(read("a.html", nested(50_000)).error)


def test_markdown_keeps_its_text_and_gives_its_front_matter(read: Read) -> None:
    found = read("a.md", "---\ntitle: T\ndate: 2020-01-02\ntags: [a, b]\n---\n\n# H\n\nBody *x*.\n").only
    assert found.text == "# H\n\nBody *x*.\n"
    assert found.title == "T"
    assert found.metadata == {"title": "T", "date": "2020-01-02", "tags": ["a", "b"]}


@pytest.mark.parametrize(
    "front", ["a: [", "a: &x [1, 1]\nb: [*x, *x]", "a: 2020-13-45", "? [x]\n: y\n? {a: b}\n: c", "!!python/object:os.system x"]
)
def test_bad_front_matter_is_kept_as_text_and_said_so(read: Read, front: str) -> None:
    found = read("a.md", f"---\n{front}\n---\nBody.\n").only
    assert "Body." in found.text
    assert "front matter" in " ".join(found.warnings) or found.metadata


def test_markdown_leaves_out_comments_and_inlined_images_but_not_in_code(read: Read) -> None:
    text = "Setext\n======\n\n<!-- secret -->\n![logo](data:image/png;base64,AAAA) end\n\n```\n# no <!-- heading -->\n```\n"
    found = read("a.md", text).only
    assert found.title == "Setext"
    assert "secret" not in found.text
    assert "base64" not in found.text
    assert "logo end" in found.text
    assert "# no <!-- heading -->" in found.text


@pytest.mark.parametrize("text", ["<!--" * 60_000, "](data:" * 60_000, "![" * 60_000, "*" * 100_000, "[" * 50_000, "> " * 20_000])
def test_hostile_markdown_takes_no_long_time(read: Read, text: str) -> None:
    assert read("a.md", text).documents


def test_pdf_pages_metadata_and_paragraphs(read: Read) -> None:
    line = "This line of the page reaches the right mar-"
    found = read(
        "a.pdf", pdf([[line, "gin and goes on in the next one, as prose.", "Short end."], ["Page two."]], title="A Paper")
    ).only
    assert found.title == "A Paper"
    assert found.text.startswith("This line of the page reaches the right margin and goes on in the next one, as prose.")
    assert found.text[found.pages[1] :] == "Page two."


def test_pdf_without_text_says_to_run_ocr(read: Read) -> None:
    error = read("a.pdf", pdf([[]])).error
    assert isinstance(error, EmptyDocumentError)
    assert "OCR" in error.remedy


def test_pdf_pages_are_bounded(read: Read) -> None:
    assert "documents.max_pages" in read("a.pdf", pdf([["x"]] * 3), max_pages=2).error.remedy  # type: ignore[union-attr]


def test_an_encrypted_pdf_needs_its_password(read: Read, tmp_path: Path) -> None:
    pypdf = pytest.importorskip("pypdf")
    plain = tmp_path / "plain.pdf"
    plain.write_bytes(pdf([["Inside."]]))
    writer = pypdf.PdfWriter(clone_from=plain)
    writer.encrypt("open sesame", algorithm="AES-256")
    writer.write(tmp_path / "b.pdf")
    assert "documents.passwords" in read(tmp_path / "b.pdf").error.remedy  # type: ignore[union-attr]
    assert read(tmp_path / "b.pdf", passwords=["no", "open sesame"]).only.text == "Inside."


def test_word_in_order_with_headings_tables_links_and_pages(read: Read, tmp_path: Path) -> None:
    docx = pytest.importorskip("docx")
    document = docx.Document()
    document.add_heading("Minutes", 0)
    document.add_heading("Present", 2)
    document.add_paragraph("Ada and Bo.")
    document.add_paragraph("first", style="List Bullet")
    table = document.add_table(rows=2, cols=2)
    table.cell(0, 0).merge(table.cell(0, 1)).text = "wide"
    table.cell(1, 0).text, table.cell(1, 1).text = "a", "b"
    document.add_page_break()
    document.add_paragraph("Second page.")
    document.save(tmp_path / "a.docx")
    found = read(tmp_path / "a.docx").only
    assert found.text == "# Minutes\n\n## Present\n\nAda and Bo.\n\n- first\n\n| wide |\n| a | b |\n\nSecond page."
    assert found.title == "Minutes"
    assert found.text[found.pages[1] :].strip() == "Second page."


def test_slides_are_pages(read: Read, tmp_path: Path) -> None:
    pptx = pytest.importorskip("pptx")
    deck = pptx.Presentation()
    for title, body in (("One", "Alpha"), ("Two", "Beta")):
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = body
    slide.notes_slide.notes_text_frame.text = "Say this."
    deck.save(tmp_path / "a.pptx")
    found = read(tmp_path / "a.pptx").only
    assert found.title == "One"
    assert found.text[found.pages[1] :] == "# Two\nBeta\n\nSay this."


def test_sheets_are_tables(read: Read, tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "People"
    for row in ([], ["id", "name", "text"], [1, "Ada", "Ada runs Orbit."], [], [2, "Bo", 42]):
        book.active.append(row)
    other = book.create_sheet("More")
    other.append(["id", "text"])
    other.append([1, "The same id in another sheet."])
    book.save(tmp_path / "a.xlsx")
    found = read(tmp_path / "a.xlsx")
    assert [(d.text, d.row, d.metadata["sheet"]) for d in found.documents] == [
        ("Ada runs Orbit.", 3, "People"),
        ("42", 5, "People"),
        ("The same id in another sheet.", 2, "More"),
    ]
    assert len({d.id for d in found.documents}) == 3


def test_content_decides_where_the_name_lies(read: Read) -> None:
    assert read("a.txt", pdf([["Inside."]])).only.text == "Inside."
    found = read("a.pdf", "Plain text.").only
    assert found.text == "Plain text."
    assert ".pdf" in found.warnings[0]
    assert read("a", HTML).only.title == "Der Titel"
    assert read("a", '{"text": "x"}\n{"text": "y"}\n').documents[1].text == "y"
    assert read("a", '[{"text": "x"}]').only.text == "x"
    assert read("a", "ID3 is an algorithm. BZh, GIF8 and RIFF are words.").only.text.startswith("ID3")


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.pdf", "a.docx", "a"])
@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00", "PNG"),
        (b"\x1f\x8b\x08\x00\x00", "gzip"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\x00", "Office file from before 2007"),
        (zipped({"a.txt": b"x"}), "zip archive"),
        (b"PK\x03\x04 cut", "damaged"),
        (b"", "no text"),
        (b"\xef\xbb\xbf", "text"),
        (b" \n\t ", "text"),
    ],
)
def test_what_is_no_document_is_one_failure_with_its_reason(read: Read, name: str, head: bytes, kind: str) -> None:
    found = read(name, head)
    assert not found.documents
    assert found.error is not None
    assert kind in found.error.message
    assert found.error.remedy


def test_an_unknown_format_is_refused_with_the_known_ones(read: Read) -> None:
    assert "markdown" in read("a.txt", "x", format="docbook").error.remedy  # type: ignore[union-attr]


def test_a_file_over_the_limit_is_refused(read: Read) -> None:
    assert "documents.max_file_bytes" in read("a.txt", "x" * 200, max_file_bytes=100).error.remedy  # type: ignore[union-attr]
    assert "documents.max_characters" in read("a.txt", "x" * 200, max_characters=100).error.remedy  # type: ignore[union-attr]


def test_a_missing_package_names_the_pip_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pypdf", None)
    with pytest.raises(MissingExtraError) as caught:
        package("pypdf", "PDF files")
    assert 'pip install "kgrag[formats]"' in caught.value.remedy


def test_a_third_party_adds_a_format_by_entry_point(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    shouting = Format("shout", (".shout",), lambda content, settings: iter([Parsed(text=content.read().decode().upper())]))

    class Point:
        name, value = "shout", "pkg:shout"

        def load(self) -> Format:
            return shouting

    monkeypatch.setattr(formats_module, "entry_points", lambda group: [Point()])
    formats_module.formats.cache_clear()
    formats_module.suffixes.cache_clear()
    try:
        assert read("a.shout", "hey").only.text == "HEY"
    finally:
        monkeypatch.undo()
        formats_module.formats.cache_clear()
        formats_module.suffixes.cache_clear()
