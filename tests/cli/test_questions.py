from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kgrag import sample
from kgrag.query.strategies.registry import BUILT_IN
from tests.cli.conftest import Kgrag, Ran

WORDS = ("--set", "models.embedding.provider=none", "--namespace", "demo")


@pytest.fixture
def demo(kgrag: Kgrag, built_sample: Path, monkeypatch: pytest.MonkeyPatch) -> Kgrag:
    """The command line over the sample."""
    monkeypatch.setenv("KGRAG_HOME", str(built_sample))

    def run(*arguments: str, input: str | None = None) -> Ran:
        return kgrag(*arguments, *WORDS, input=input)

    return run


class TestAsk:
    def test_prints_the_answer_and_where_it_stands(self, demo: Kgrag) -> None:
        run = demo("ask", "How many passengers does the Tern carry?")
        assert run.code == 0
        answer, sources = run.out.split("\n\n", 1)
        assert "180 passengers" in answer
        number = answer.split("[")[1].split("]")[0]
        assert sources.startswith(f"[{number}] ")
        assert "company/ferry-contract.html, characters " in sources

    def test_a_row_and_a_page_are_named(self, demo: Kgrag) -> None:
        assert "company, row" not in demo("ask", "Who owns the cable ship Orsolya?").out
        assert "records/vessels.csv, row " in demo("ask", "Baltmar Shipping Orsolya owner", "-k", "1").out
        assert "records/orsolya-log-2017.pdf, page 1" in demo("ask", "Captain Henrik Dahl commanded", "-k", "1").out

    def test_json_has_the_citations(self, demo: Kgrag) -> None:
        answer = demo("ask", "How many passengers does the Tern carry?", "--json").json
        assert answer["question"] == "How many passengers does the Tern carry?"
        cited = answer["citations"][0]
        assert {"number", "path", "start", "end", "quote"} <= set(cited)

    def test_standard_input(self, demo: Kgrag) -> None:
        assert "180 passengers" in demo("ask", "-", input="How many passengers does the Tern carry?").out

    def test_nothing_found_is_said(self, demo: Kgrag) -> None:
        run = demo("ask", "zzzz qqqq", "--filter", "topic=nowhere")
        assert (run.code, run.out.strip()) == (0, "I cannot answer this from the indexed documents.")

    def test_an_empty_question_is_wrong_use(self, demo: Kgrag) -> None:
        run = demo("ask", " ")
        assert run.code == 2
        assert "empty" in run.err


class TestSearch:
    def test_ranked_passages(self, demo: Kgrag) -> None:
        run = demo("search", "export cable of the Kell Array", "--top-k", "2")
        lines = run.out.splitlines()
        assert (run.code, len(lines)) == (0, 4)
        assert lines[0].split()[0] == "1"
        assert "company/kell-array-2018.txt" in run.out

    @pytest.mark.parametrize("strategy", BUILT_IN)
    def test_every_strategy(self, demo: Kgrag, strategy: str) -> None:
        found = demo("search", "Who built the lighthouse?", "--strategy", strategy, "--json").json
        assert found["strategy"] == strategy
        assert found["hits"][0]["rank"] == 1

    def test_filters_narrow_down(self, demo: Kgrag) -> None:
        found = demo("search", "Kell Array", "--filter", "topic=place", "--filter", "date>=2022-01-01", "--json").json["hits"]
        assert {hit["document"] for hit in found} == {"region/nordhavn.md", "region/port-solenne.md"}
        same = demo("search", "Kell Array", "--filter", '{"topic": "place", "date": {"gte": "2022-01-01"}}', "--json").json["hits"]
        assert same == found

    def test_an_unknown_strategy_lists_those_there_are(self, demo: Kgrag) -> None:
        run = demo("search", "x", "--strategy", "hybird")
        assert run.code == 2
        assert 'Did you mean "hybrid"?' in run.err

    def test_a_bad_filter_says_how_to_write_one(self, demo: Kgrag) -> None:
        run = demo("search", "x", "--filter", "year")
        assert run.code == 2
        assert "field=value" in run.err

    def test_an_unknown_namespace_names_those_there_are(
        self, kgrag: Kgrag, built_sample: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("KGRAG_HOME", str(built_sample))
        run = kgrag("search", "x", "-n", "other")
        assert run.code == 2
        assert "demo" in run.err

    def test_another_embedding_than_the_index_has_is_refused(
        self, kgrag: Kgrag, built_sample: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("KGRAG_HOME", str(built_sample))
        run = kgrag("search", "cable", "-n", "demo", "--search-type", "vector", "--set", "models.embedding.provider=wordllama")
        assert run.code == 2

    def test_either_a_question_or_a_batch(self, kgrag: Kgrag) -> None:
        assert kgrag("search").code == 2
        assert kgrag("search", "x", "--batch", "-").code == 2


class TestBatch:
    def rows(self, run: Ran) -> list[dict[str, Any]]:
        return [json.loads(line) for line in run.out.splitlines()]

    def test_one_object_per_question(self, demo: Kgrag) -> None:
        run = demo("search", "--batch", str(sample.QUESTIONS), "--top-k", "3")
        rows = self.rows(run)
        assert run.code == 0
        assert [row["id"] for row in rows] == [json.loads(line)["id"] for line in sample.QUESTIONS.read_text("utf-8").splitlines()]
        for row in rows:
            assert set(row) == {"id", "hits", "milliseconds"}
            assert [hit["rank"] for hit in row["hits"]] == list(range(1, len(row["hits"]) + 1))
            for hit in row["hits"]:
                assert {"rank", "score", "text_unit_id", "document", "title", "text"} <= set(hit)

    def test_a_bad_line_fails_alone(self, demo: Kgrag) -> None:
        run = demo("search", "--batch", "-", input='{"id": "a", "question": "cable"}\nnot json\n{"id": "c", "question": ""}\n\n')
        rows = self.rows(run)
        assert run.code == 3
        assert [row["id"] for row in rows] == ["a", 2, "c"]
        assert [row.get("error", {}).get("type") for row in rows] == [None, "ConfigurationError", "QueryError"]

    def test_nothing_but_bad_lines_is_a_failure(self, demo: Kgrag) -> None:
        assert demo("search", "--batch", "-", input="[1]\n").code == 1

    def test_what_every_question_would_hit_ends_the_batch(self, demo: Kgrag) -> None:
        run = demo("search", "--batch", str(sample.QUESTIONS), "--strategy", "nope")
        assert (run.code, run.out) == (2, "")

    def test_a_missing_file(self, demo: Kgrag) -> None:
        assert demo("search", "--batch", "none.jsonl").code == 2


def test_neither_command_loads_ray(built_sample: Path) -> None:
    script = (
        "import sys, typer.testing; from kgrag.cli.app import app; "
        f"r = typer.testing.CliRunner().invoke(app, ['ask', 'Who?', *{list(WORDS)}]); "
        "print(r.exit_code, [m for m in ('ray', 'fastapi', 'boto3', 'aiohttp') if m in sys.modules])"
    )
    environment = {**os.environ, "KGRAG_HOME": str(built_sample)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "0 []"
