"""The peers' stub model server, taught to answer kgrag's prompts as well.

    python benchmarks/peer_stub.py --peers FOLDER --port 8123 [--latency-ms 200]

``FOLDER`` is the harness that measures other systems; its ``stub_llm.py`` reads entities and pairs out of a passage, so
both sides are given the same graph. What it does not know is this project's reply format, which is added here.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
from typing import Any

_BLOCK = re.compile(r"<<<([^\n]*?) ([0-9a-f]{8})\n(.*?)\n\1 \2>>>", re.DOTALL)


def blocks(prompt: str) -> list[tuple[str, str]]:
    """(label, text) of every delimited block of a prompt."""
    return [(match[1], match[3]) for match in _BLOCK.finditer(prompt)]


def answer_ours(stub: Any, system: str, user: str) -> tuple[str, str] | None:
    """(kind, reply) where the prompt is one of kgrag's."""
    found = blocks(user)
    if not found:
        return None
    by_label = dict(found)
    if "<entity><name>" in system:
        if "listed so far" in by_label:
            return "glean", "<entities></entities><relationships></relationships>"
        title = by_label.get("title", "")
        entities, relations = stub.extract(f"{title}\n{by_label['text']}" if title else by_label["text"])
        return "extract", _items(entities, relations)
    if '"findings"' in system:
        return "report", _report(by_label)
    if "question" in by_label:
        return _question(stub, system, by_label["question"], found)
    if "lines" in by_label:
        return "describe", " ".join(line[:160] for line in dict.fromkeys(by_label["lines"].split("\n")))[:900]
    return None


def _question(stub: Any, system: str, question: str, found: list[tuple[str, str]]) -> tuple[str, str]:
    given = "\n".join(text for label, text in found if label != "question")
    if '"high"' in system:
        return "keywords", json.dumps({"high": [" ".join(stub.words(question)[:5]) or question], "low": stub.q_entities(question)})
    if '{"entities"' in system:
        return "query_entities", json.dumps({"entities": stub.q_entities(question)})
    if '"points"' in system:
        points = [{"description": s, "score": 70} for s in stub.best_sentences(given, question, n=4).split(". ")]
        return "map", json.dumps({"points": points})
    return "answer", stub.best_sentences(given, question) + " [1]"


def _items(entities: list[Any], relations: list[Any]) -> str:
    out = ["<entities>"]
    out += [
        f"<entity><name>{n}</name><type>{t}</type><description>{d}</description><confidence>8</confidence><quote></quote></entity>"
        for n, t, d in entities
    ]
    out.append("</entities><relationships>")
    out += [
        f"<relationship><source>{s}</source><target>{o}</target><type></type><description>{d}</description>"
        "<strength>6</strength><quote></quote></relationship>"
        for s, o, d in relations
    ]
    return "\n".join([*out, "</relationships>"])


def _report(by_label: dict[str, str]) -> str:
    names = [line.split(" (", 1)[0] for line in by_label.get("entities", "").split("\n")]
    lines = by_label.get("relationships", by_label.get("entities", "")).split("\n")
    facts = list(dict.fromkeys(line.split(": ", 1)[-1][:250] for line in lines if len(line) > 30))[:6] or ["No details."]
    return json.dumps(
        {
            "title": " and ".join(names[:3])[:120],
            "summary": " ".join(facts[:3])[:700],
            "rating": min(9, 3 + len(facts)),
            "rating_explanation": "Rated by the number of connected facts.",
            "findings": [{"summary": f"{names[i % len(names)]}: {fact[:60]}", "explanation": fact} for i, fact in enumerate(facts)],
        }
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", required=True, help="folder of the peers' harness")
    options, rest = parser.parse_known_args()
    sys.path.insert(0, options.peers)
    stub = importlib.import_module("stub_llm")
    original = stub.answer

    def answer(messages: list[dict[str, Any]], body: dict[str, Any]) -> tuple[str, str]:
        system = "".join(m["content"] for m in messages if m["role"] == "system" and isinstance(m["content"], str))
        user = next((m["content"] for m in reversed(messages) if m["role"] == "user"), "")
        ours = answer_ours(stub, system, user) if isinstance(user, str) else None
        return ours or original(messages, body)

    stub.answer = answer
    sys.argv = [sys.argv[0], *rest]
    stub.main()


if __name__ == "__main__":
    main()
