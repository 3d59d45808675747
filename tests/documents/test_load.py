"""Sources to files."""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kgrag import schemas
from kgrag.documents.content import file_digest, local_path, local_uri
from kgrag.documents.load import file_tables, list_files, resolve_sources
from kgrag.documents.settings import DocumentSettings
from kgrag.errors import ConfigurationError


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    root = tmp_path / "docs"
    for name in ("a.txt", "b.md", "sub/c.txt", "sub/deep/d.csv", ".hidden.txt", ".git/config.txt", "image.png", "README"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"text of {name}")
    return root


def paths(*given: str | Path, left_out: Counter[str] | None = None, **settings: Any) -> list[str]:
    chosen = DocumentSettings(**settings)
    return [f.path for f in list_files(resolve_sources([str(g) for g in given], chosen), chosen, left_out)]


def test_a_folder_gives_the_files_of_known_kinds_in_order(docs: Path) -> None:
    left_out: Counter[str] = Counter()
    assert paths(docs, left_out=left_out) == ["README", "a.txt", "b.md", "sub/c.txt", "sub/deep/d.csv"]
    assert left_out == {"of a kind that is not read (.png)": 1}


def test_hidden_files_are_read_where_the_setting_or_the_user_says_so(docs: Path) -> None:
    assert {".git/config.txt", ".hidden.txt"} <= set(paths(docs, hidden=True))
    assert paths(docs / ".hidden.txt") == [".hidden.txt"]
    assert paths(docs, docs / ".git")[-1] == "config.txt"


def test_patterns_choose(docs: Path) -> None:
    assert paths(docs, include=["*.txt"]) == ["a.txt", "sub/c.txt"]
    assert paths(docs, include=["sub/**"]) == ["sub/c.txt", "sub/deep/d.csv"]
    assert paths(docs, exclude=["sub", "README"]) == ["a.txt", "b.md"]
    assert paths(docs, exclude=["**/deep/*"]) == ["README", "a.txt", "b.md", "sub/c.txt"]
    assert paths(docs, include=["*.png"]) == ["image.png"]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.txt", ["a.txt"]),
        ("**/*.txt", ["a.txt", "sub/c.txt"]),
        ("sub/*", ["c.txt"]),
        ("*/*/*.csv", ["sub/deep/d.csv"]),
        ("[ab].*", ["a.txt", "b.md"]),
        ("**", ["README", "a.txt", "b.md", "image.png", "sub/c.txt", "sub/deep/d.csv"]),
        ("nothing*", []),
    ],
)
def test_globs_name_what_they_match(docs: Path, pattern: str, found: list[str]) -> None:
    assert paths(docs / pattern) == found


def test_a_file_has_one_scope_however_the_sources_overlap(docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link").symlink_to(docs)
    monkeypatch.chdir(tmp_path)
    given = ["docs", "./docs/", str(docs), "link", "docs/sub", "docs/a.txt", "docs/*.md"]
    chosen = DocumentSettings()
    sources = resolve_sources(given, chosen)
    files = list(list_files(sources, chosen))
    assert {f.scope for f in files} == {str(docs)}
    assert len(files) == len({f.uri for f in files}) == 5
    assert [s.scope for s in resolve_sources(given[::-1], chosen)] == [s.scope for s in sources]


def test_what_a_folder_leaves_out_is_still_read_when_it_is_named(docs: Path) -> None:
    assert paths(docs, docs / "image.png", docs / "*.png").count("image.png") == 1


def test_a_path_that_holds_wildcards_is_itself_first(docs: Path) -> None:
    (docs / "a[1].txt").write_text("x")
    assert paths(docs / "a[1].txt") == ["a[1].txt"]


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="There is no file or folder"):
        paths(tmp_path / "nothing")
    with pytest.raises(ConfigurationError, match="ftp://"):
        paths("ftp://host/x")
    with pytest.raises(ConfigurationError, match="credentials") as caught:
        paths("s3://key:secret@bucket/x")
    assert "secret" not in str(caught.value)


def test_links_within_the_source_are_followed_once_and_loops_end(docs: Path, tmp_path: Path) -> None:
    (docs / "loop").symlink_to(docs)
    (docs / "sub" / "up").symlink_to("..")
    (docs / "self").symlink_to("self")
    (docs / "again.txt").symlink_to("a.txt")
    (docs / "config.txt").symlink_to(".git/config.txt")
    (docs / "config2.txt").symlink_to(".git/config.txt")
    (tmp_path / "outside.txt").write_text("secret")
    (docs / "out.txt").symlink_to(tmp_path / "outside.txt")
    usual = ["README", "a.txt", "b.md", "sub/c.txt", "sub/deep/d.csv"]
    left_out: Counter[str] = Counter()
    assert paths(docs, left_out=left_out) == [*usual, "config.txt"]
    assert left_out["that are links out of the source"] == 1
    assert left_out["that are broken links"] == 1
    assert paths(docs, symlinks="anywhere") == [*usual, "config.txt", "out.txt"]
    assert paths(docs, symlinks="never") == usual


def test_special_files_are_left_out(docs: Path) -> None:
    os.mkfifo(docs / "pipe.txt")
    left_out: Counter[str] = Counter()
    assert "pipe.txt" not in paths(docs, left_out=left_out)
    assert left_out["that are no regular files"] == 1


def test_hostile_names_survive_and_can_be_encoded(docs: Path) -> None:
    for name in (b"bad\xff.txt", b"new\nline.txt", b"esc\x1b[31m.txt", "한국 어#?%.txt".encode()):
        (docs / os.fsdecode(name)).write_bytes(name)
    chosen = DocumentSettings()
    found = {f.path: f for f in list_files(resolve_sources([str(docs)], chosen), chosen)}
    for path, raw in (
        (r"bad\xff.txt", b"bad\xff.txt"),
        (r"new\x0aline.txt", b"new\nline.txt"),
        ("한국 어#?%.txt", "한국 어#?%.txt".encode()),
    ):
        path.encode("utf-8")
        assert Path(os.fsdecode(local_path(found[path].uri))).read_bytes() == raw
    assert r"esc\x1b[31m.txt" in found


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_reported(docs: Path) -> None:
    (docs / "sub").chmod(0)
    try:
        chosen = DocumentSettings()
        found = [f for f in list_files(resolve_sources([str(docs)], chosen), chosen) if f.error]
    finally:
        (docs / "sub").chmod(0o755)
    assert found[0].path == "sub/"
    assert "may not be read" in str(found[0].error)


def test_a_folder_that_vanishes_while_it_is_read_is_reported(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.scandir

    def failing(path: Any) -> Any:
        if str(path).endswith("sub"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", failing)
    chosen = DocumentSettings()
    tables = list(file_tables(list_files(resolve_sources([str(docs)], chosen), chosen)))
    row = next(r for t in tables for r in t.to_pylist() if r["error"])
    assert row["path"] == "sub/"
    assert row["digest"] == ""


def test_tables_hold_digests_of_the_bytes(docs: Path) -> None:
    chosen = DocumentSettings()
    tables = list(file_tables(list_files(resolve_sources([str(docs)], chosen), chosen), rows=2))
    assert [t.num_rows for t in tables] == [2, 2, 1]
    whole = pa.concat_tables(tables)
    assert whole.schema == schemas.FILES
    first = whole.to_pylist()[1]
    assert first["digest"] == file_digest(local_uri(str(docs / "a.txt")), "a.txt")
    before = first["digest"]
    (docs / "a.txt").write_text("changed")
    assert file_digest(first["uri"], "a.txt") != before


def test_listing_is_a_stream(tmp_path: Path) -> None:
    for folder in range(20):
        (tmp_path / f"{folder:02}").mkdir()
        for name in range(20):
            (tmp_path / f"{folder:02}" / f"{name}.txt").touch()
    chosen = DocumentSettings()
    first = next(iter(list_files(resolve_sources([str(tmp_path)], chosen), chosen)))
    assert first.path == "00/0.txt"
    assert len(paths(tmp_path)) == 400


def test_standard_input_is_named_by_its_content_or_by_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    def piped(data: bytes, **settings: Any) -> Any:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        chosen = DocumentSettings(**settings)
        source = resolve_sources(["-"], chosen)[0]
        file = next(iter(source.files(chosen, Counter())))
        assert Path(os.fsdecode(local_path(file.uri))).read_bytes() == data
        return file

    assert piped(b"one").scope != piped(b"two").scope
    assert piped(b"one").scope == piped(b"one").scope
    assert piped(b"one", standard_input="news").scope == piped(b"two", standard_input="news").scope == "stdin:news"


# ---------------------------------------------------------------- s3


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    moto = pytest.importorskip("moto.server")
    boto3 = pytest.importorskip("boto3")
    server = moto.ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    keys = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_EC2_METADATA_DISABLED": "true"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in keys.items():
            patch.setenv(name, value)
        client = boto3.client("s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1")
        client.create_bucket(Bucket="docs")
        for key in ("in/a.txt", "in/sub/b c#1.md", "in/.hidden.txt", "in/image.png", "other.txt"):
            client.put_object(Bucket="docs", Key=key, Body=f"text of {key}".encode())
        client.close()
        yield f"?endpoint_override={host}:{port}&scheme=http&region=us-east-1"
    server.stop()


def test_a_prefix_of_a_bucket_is_a_folder(bucket: str) -> None:
    chosen = DocumentSettings()
    sources = resolve_sources([f"s3://docs/in/{bucket}", f"s3://docs/in{bucket}", f"s3://docs/in/a.txt{bucket}"], chosen)
    files = list(list_files(sources, chosen))
    assert [(f.scope, f.path) for f in files] == [("s3://docs/in", "a.txt"), ("s3://docs/in", "sub/b c#1.md")]
    table = next(iter(file_tables(files)))
    assert table["digest"].to_pylist()[0] == file_digest(files[0].uri, "a.txt") != ""


def test_a_bucket_s_files_are_read_like_others(bucket: str) -> None:
    from kgrag.documents.stages import ParseStage

    chosen = DocumentSettings()
    stage = ParseStage(chosen)
    files = list_files(resolve_sources([f"s3://docs/in/**/*.md{bucket}", f"s3://docs/other.txt{bucket}"], chosen), chosen)
    rows = [r for t in file_tables(files) for r in stage.batch(t).to_pylist()]
    assert sorted((r["scope"], r["path"], r["text"]) for r in rows) == [
        ("s3://docs/in/**/*.md", "sub/b c#1.md", "text of in/sub/b c#1.md"),
        ("s3://docs/other.txt", "other.txt", "text of other.txt"),
    ]
