"""Hostile files reach a limit, and only they do."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from kgrag.documents.content import Content
from kgrag.documents.parse.isolated import ParserProcess
from kgrag.documents.settings import DocumentSettings
from kgrag.errors import DocumentError
from tests.documents.conftest import Read
from tests.documents.files import pdf, zipped

_LOOP = b"""%PDF-1.4
1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj
2 0 obj << /Type /Pages /Kids [2 0 R] /Count 1 >> endobj
trailer << /Root 1 0 R >>
startxref
0
%%EOF"""


def content(path: Path) -> Content:
    return Content(path.name, os.fsencode(path), path.stat().st_size)


def bomb(path: Path, size: int) -> None:
    """A Word file whose body unfolds to ``size`` bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("word/document.xml", "w") as part:
        block = b"<w:p/>" * (1 << 16)
        for _ in range(size // len(block)):
            part.write(block)


def test_a_file_that_takes_too_long_is_ended_and_the_next_is_read(tmp_path: Path) -> None:
    slow = tmp_path / "slow.pdf"
    slow.write_bytes(pdf([["word " * 10] * 40] * 3000))
    with ParserProcess() as process:
        begin = time.monotonic()
        with pytest.raises(DocumentError, match=r"not parsed within 0\.5 seconds"):
            list(process.parse(content(slow), "pdf", DocumentSettings(max_seconds=0.5)))
        assert time.monotonic() - begin < 5
        small = tmp_path / "small.pdf"
        small.write_bytes(pdf([["Read."]]))
        assert [p.text for p in process.parse(content(small), "pdf", DocumentSettings())] == ["Read."]  # type: ignore[union-attr]


def test_a_file_that_needs_too_much_memory_is_refused(tmp_path: Path) -> None:
    deep = tmp_path / "deep.json"
    deep.write_text("[" + "[],[1.5]," * 2_000_000 + "1]")
    with ParserProcess() as process, pytest.raises(DocumentError, match="needs more than 256 MiB"):
        list(process.parse(content(deep), "json", DocumentSettings(max_memory_bytes=256 << 20)))


def test_a_parser_that_dies_fails_its_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf([["word " * 10] * 40] * 3000))
    with ParserProcess() as process:
        parsing = process.parse(content(path), "pdf", DocumentSettings())
        pipe = process._started(DocumentSettings())
        assert process._process is not None
        os.kill(process._process.pid, signal.SIGKILL)
        process._process.wait()
        process._process.poll = lambda: None  # type: ignore[method-assign] as if it died after it was given the file
        with pytest.raises(DocumentError, match="died"):
            next(parsing)
        assert pipe.closed
        path.write_bytes(pdf([["Again."]]))
        assert [p.text for p in process.parse(content(path), "pdf", DocumentSettings())] == ["Again."]  # type: ignore[union-attr]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems end the process when its pipe closes")
def test_the_process_ends_with_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf([["x"]]))
    code = f"""
import os, signal
from pathlib import Path
from kgrag.documents.parse.isolated import ParserProcess
from kgrag.documents.content import Content
from kgrag.documents.settings import DocumentSettings
process = ParserProcess()
list(process.parse(Content("a.pdf", {str(path).encode()!r}, {path.stat().st_size}), "pdf", DocumentSettings()))
print(process._process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    child = Path(f"/proc/{out.stdout.strip()}/stat")
    deadline = time.monotonic() + 10
    while child.exists() and child.read_text().split()[2] != "Z" and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not child.exists() or child.read_text().split()[2] == "Z"


def test_a_page_tree_that_is_its_own_child_is_refused(read: Read) -> None:
    assert isinstance(read("a.pdf", _LOOP).error, DocumentError)


def test_a_zip_bomb_is_refused_by_its_size_and_by_its_ratio(read: Read, tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    bomb(path, 100 << 20)
    assert "times its size" in read(path).error.message  # type: ignore[union-attr]
    assert "documents.max_expanded_bytes" in read(path, max_expanded_bytes=1 << 20).error.remedy  # type: ignore[union-attr]


def test_a_zip_that_lies_about_its_sizes_is_refused(read: Read, tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    bomb(path, 30 << 20)
    raw = bytearray(path.read_bytes())
    at = raw.rfind(b"PK\x01\x02")
    raw[at + 24 : at + 28] = (1000).to_bytes(4, "little")
    path.write_bytes(raw)
    assert isinstance(read(path).error, DocumentError)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_xml_entities_are_refused(read: Read, encoding: str) -> None:
    secret = Path("/etc/hostname").as_uri()
    xml = f'<?xml version="1.0"?><!DOCTYPE d [<!ENTITY e SYSTEM "{secret}">]><w:document>&e;</w:document>'
    parts = {"[Content_Types].xml": b"<Types/>", "word/document.xml": xml.encode(encoding)}
    found = read("a.docx", zipped(parts))
    assert "entities" in found.error.message  # type: ignore[union-attr]


@pytest.mark.parametrize("suffix", ["docx", "pptx", "xlsx"])
def test_office_files_that_are_none_inside_are_damaged(read: Read, suffix: str) -> None:
    part = {"docx": "word/document.xml", "pptx": "ppt/presentation.xml", "xlsx": "xl/workbook.xml"}[suffix]
    found = read(f"a.{suffix}", zipped({part: b"<nothing/>"}))
    assert isinstance(found.error, DocumentError)
    assert "damaged" in found.error.message


def test_a_sheet_that_claims_to_be_huge_is_read_for_what_it_holds(read: Read, tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["id", "text"])
    book.active.append([1, "x"])
    out = io.BytesIO()
    book.save(out)
    source = zipfile.ZipFile(out)
    parts = {name: source.read(name) for name in source.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    parts[sheet] = parts[sheet].replace(b'ref="A1:B2"', b'ref="A1:XFD1048576"')
    assert read("a.xlsx", zipped(parts)).only.text == "x"
