"""The project's own files: what a clone installs, and the sample it ships."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kgrag import sample

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]


def name_of(requirement: str) -> str:
    return re.split(r"[\[<>=!~;@ ]", requirement, maxsplit=1)[0].lower().replace("_", "-")


class TestPackaging:
    def test_the_extras(self) -> None:
        assert {"local", "ray", "aws", "openai", "formats", "viz", "eval", "dev"} <= set(EXTRAS)
        everything = set(EXTRAS) - {"dev"}
        assert re.search(r"kgrag\[([^]]*)\]", EXTRAS["dev"][0])[1].split(",") == sorted(everything, key=list(EXTRAS).index)  # type: ignore[index]

    def test_every_requirement_is_bounded(self) -> None:
        exempt = {"kgrag", "regex", "types-pyyaml"}  # our own, and calendar versions
        for requirement in [*PROJECT["dependencies"], *(r for extra in EXTRAS.values() for r in extra)]:
            if name_of(requirement) not in exempt:
                assert ">=" in requirement, requirement
                assert "<" in requirement, requirement

    def test_the_lock_holds_every_direct_requirement_and_no_place(self) -> None:
        lines = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8").splitlines()
        assert all(re.match(r"[a-z0-9-]+==[^ ]+( ;.*)?$", line) for line in lines)
        locked = {name_of(line) for line in lines}
        wanted = [*PROJECT["dependencies"], *(r for extra in EXTRAS.values() for r in extra if name_of(r) != "kgrag")]
        assert {name_of(requirement) for requirement in wanted} <= locked

    def test_importing_the_package_loads_nothing_heavy(self) -> None:
        heavy = ["numpy", "pyarrow", "pydantic", "msgspec", "ray", "rich", "typer", "aiohttp", "tantivy"]
        script = f"import sys, kgrag; print([m for m in {heavy} if m in sys.modules])"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
        assert done.stdout.strip() == "[]"

    def test_nothing_names_a_place_outside_the_project(self) -> None:
        listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, cwd=ROOT, check=False)
        if listed.returncode != 0:
            pytest.skip("not a git checkout")
        place = re.compile(rb"/(?:root|work|tmp/wt)/\w")
        for name in filter(None, listed.stdout.decode().split("\0")):
            path = ROOT / name
            if path.suffix in {".pdf", ".docx", ".lock"} or not path.is_file():
                continue
            assert not place.search(path.read_bytes()), name


def questions() -> list[dict[str, Any]]:
    return [json.loads(line) for line in sample.QUESTIONS.read_text(encoding="utf-8").splitlines()]


class TestSample:
    def test_it_has_the_breadth_a_demo_needs(self) -> None:
        files = [path for path in sample.DOCUMENTS.rglob("*") if path.is_file()]
        assert len(files) >= 25
        assert {path.suffix for path in files} >= {".txt", ".md", ".html", ".csv", ".json", ".jsonl", ".pdf", ".docx"}
        assert sum(path.stat().st_size for path in files) < 200_000
        asked = questions()
        assert len(asked) >= 40
        assert len({q["id"] for q in asked}) == len(asked)
        assert {q["language"] for q in asked} == {"en", "de", "ja", "ko"}
        hops = Counter(q["hops"] for q in asked)
        assert hops[2] >= 10
        assert hops[3] >= 2
        assert hops[0] >= 3

    @pytest.mark.parametrize("question", questions(), ids=lambda q: str(q["id"]))
    def test_a_question_is_whole(self, question: dict[str, Any]) -> None:
        assert set(question) == {"id", "question", "answer", "aliases", "hops", "language", "gold"}
        assert bool(question["answer"]) == bool(question["gold"]) == (question["hops"] > 0)
        assert len(question["gold"]) >= question["hops"]
        for passage in question["gold"]:
            path = sample.DOCUMENTS / passage["path"]
            assert path.is_file(), passage["path"]
            if path.suffix in {".md", ".txt", ".csv", ".json", ".html"}:
                assert passage["quote"] in path.read_text(encoding="utf-8")
            elif path.suffix == ".jsonl":
                rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
                assert any(passage["quote"] in row["text"] for row in rows)
