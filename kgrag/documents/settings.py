"""What is read from a source, and within which limits."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr

from kgrag.section import Section

MIB = 1 << 20


class DocumentSettings(Section):
    """Which files of a source are read, how, and what one file may cost.

    A file over a limit is a failure of that file, never cut short in silence."""

    include: list[str] = []
    """Glob patterns (``**`` crosses folders) of paths within a source; empty takes every file of a known kind."""

    exclude: list[str] = []
    """Glob patterns of paths within a source that are left out, whatever ``include`` says."""

    hidden: bool = False
    """Whether files and folders whose name starts with a dot are read. A file that is named itself always is."""

    symlinks: Literal["inside", "anywhere", "never"] = "inside"
    """Links that are followed: those that stay inside the source, all, or none. A real file or folder is read once per
    source however many links lead to it, so loops end. The source itself may be a link."""

    format: str = ""
    """The format of every file (``csv``, ``jsonl``, ...); empty finds it from content and name."""

    encoding: str = ""
    """The encoding of text files; empty takes UTF-8, then the locale's, then the one charset-normalizer finds."""

    standard_input: str = ""
    """A name for what is piped in: piping again under the same name replaces it. Empty names it by its content."""

    id_column: str = ""
    """The column or key that identifies a row; empty finds one by name (id, doc_id, ...), ``-`` uses none."""

    title_column: str = ""
    """The column or key with a row's title; empty finds one by name (title, name, ...), ``-`` uses none."""

    text_column: str = ""
    """The column or key with a row's text; empty finds one by name (text, content, body, ...). A file without any has
    its columns joined as ``name: value`` lines; ``-`` always joins."""

    passwords: list[SecretStr] = []
    """Passwords tried on encrypted PDF files, besides the empty one."""

    max_file_bytes: int = Field(default=256 * MIB, gt=0)
    """Bytes of a file that is read as a whole. CSV and JSONL files are streamed, and only ``max_rows`` bounds them."""

    max_characters: int = Field(default=20_000_000, gt=0)
    """Characters of one document: a book has half a million."""

    max_rows: int = Field(default=2_000_000, gt=0)
    """Rows of one file: their keys, which find a second row of the same id, take about 0.3 GB for that many."""

    max_pages: int = Field(default=10_000, gt=0)
    """Pages or slides of one document."""

    max_expanded_bytes: int = Field(default=1024 * MIB, gt=0)
    """Bytes of all parts of an Office file once unpacked."""

    max_expansion: int = Field(default=200, gt=0)
    """How many times its packed size an Office file of more than 64 MiB unpacked may have; honest ones stay under 100."""

    max_seconds: float = Field(default=120.0, gt=0)
    """Seconds for one file that is parsed in the separate process: all of hostile formats, and large ones."""

    max_memory_bytes: int = Field(default=2048 * MIB, ge=256 * MIB)
    """Address space of that process."""

    max_metadata_characters: int = Field(default=1000, gt=0)
    """Characters of one metadata value: filters need short ones, and every text unit carries them. A longer one is left
    out of the metadata (never of the text), and said so."""
