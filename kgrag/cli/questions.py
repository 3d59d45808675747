"""``kgrag ask`` and ``kgrag search``: questions to answers and to passages. Neither ever starts Ray."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from kgrag.cli.filters import filter_of
from kgrag.cli.options import ConfigOption, DebugOption, JsonOption, NamespaceOption, SetOption, settings_of
from kgrag.cli.outcome import command
from kgrag.cli.output import print_json, shortened

if TYPE_CHECKING:
    from kgrag.query.engine import QueryEngine
    from kgrag.records import Answer, Citation, Context, Hit
    from kgrag.settings import Settings

SearchType = Literal["hybrid", "lexical", "vector"]

StrategyOption = Annotated[
    str | None,
    typer.Option("--strategy", "-s", help="How to look; default: search.strategy. An unknown name lists all.", metavar="NAME"),
]
TopKOption = Annotated[int | None, typer.Option("--top-k", "-k", help="Most passages.", min=1, max=1000)]
FilterOption = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        "-f",
        help="Only documents with this field: topic=place, year>=2020, or JSON. Repeat to narrow down.",
        metavar="FIELD=VALUE",
    ),
]
SearchTypeOption = Annotated[
    SearchType | None, typer.Option("--search-type", help="By words and meaning (hybrid), or one of them.", metavar="TYPE")
]

ASK = """Answer a question from the indexed documents, with citations.

\b
Examples:
  kgrag ask "Who founded Veyra Tidal?"
  kgrag ask "What changed in 2022?" --strategy global --filter "date>=2022-01-01"
  kgrag ask "Wer leitet die Studie?" --namespace demo --json

A question of - is read from standard input.
"""


@command
def ask(
    question: Annotated[str, typer.Argument(help="The question, in any language.")],
    strategy: StrategyOption = None,
    top_k: TopKOption = None,
    filters: FilterOption = None,
    search_type: SearchTypeOption = None,
    language: Annotated[str | None, typer.Option("--language", help="Language of the answer.", metavar="NAME")] = None,
    config: ConfigOption = None,
    assignments: SetOption = None,
    namespace: NamespaceOption = None,
    json_: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    settings = settings_of(config, assignments, namespace).settings
    asked = sys.stdin.read() if question == "-" else question
    options: dict[str, Any] = {
        "strategy": strategy,
        "top_k": top_k,
        "filter": filter_of(filters or []),
        "search_type": search_type,
        "language": language,
    }
    _run(settings, lambda engine: _ask(engine, asked, options, as_json=json_))


async def _ask(engine: QueryEngine, question: str, options: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(plain(await engine.answer(question, **options)))
        return
    answer: Answer | None = None
    pieces: AsyncIterator[str | Answer] = engine.stream(question, **options)
    async for piece in pieces:
        if isinstance(piece, str):
            print(piece, end="", flush=True)
        else:
            answer = piece
    print()
    if answer is not None:
        print_sources(answer)


def print_sources(answer: Answer) -> None:
    """The numbered citations of an answer: where each stands, and its sentence that is nearest to what was said."""
    if answer.citations:
        print()
    for citation in answer.citations:
        print(f"[{citation.number}] {place_of(citation)}")
        print(f"    {shortened(_nearest_sentence(citation.quote, answer.text), 150)}")
    for note in answer.context.notes:
        print(f"Note: {note}", file=sys.stderr)


def _nearest_sentence(quote: str, answer: str) -> str:
    """The first of the sentences that share the largest part of their words with the answer."""
    from kgrag.text import sentences, words

    said = set(words(answer))

    def shared(sentence: str) -> float:
        own = set(words(sentence))
        return len(own & said) / (len(own) + 3)  # two words that both happen to be there prove little

    return max((quote[start:end] for start, end in sentences(quote)), key=shared, default=quote)


def place_of(found: Citation | Hit) -> str:
    """Title, document, page or row, and span of characters."""
    where = [found.path] if found.path else []
    if found.page is not None:
        where.append(f"page {found.page}")
    if found.row is not None:
        where.append(f"row {found.row}")
    if found.start is not None and found.end is not None:
        where.append(f"characters {found.start}-{found.end}")
    parts = [part for part in (found.title, ", ".join(where)) if part]
    return " - ".join(parts) or found.kind.replace("_", " ")


SEARCH = """Find the passages that answer a question.

\b
Examples:
  kgrag search "export cable of the Kell Array" --top-k 3
  kgrag search "turbines damaged by a storm" --strategy ppr --filter topic=incident
  kgrag search --batch questions.jsonl --strategy mix > found.jsonl

--batch reads one {"id", "question"} per line (- is standard input) and prints one JSON object per line: id, hits
(rank, score, text_unit_id, document, title, text, and where it stands) and milliseconds. A question that fails has
an error instead of hits, and the command then exits with 3.
"""


@command
def search(
    question: Annotated[str | None, typer.Argument(help="What to look for, in any language.")] = None,
    batch: Annotated[str | None, typer.Option("--batch", help="Questions as JSON Lines.", metavar="FILE")] = None,
    strategy: StrategyOption = None,
    top_k: TopKOption = None,
    filters: FilterOption = None,
    search_type: SearchTypeOption = None,
    config: ConfigOption = None,
    assignments: SetOption = None,
    namespace: NamespaceOption = None,
    json_: JsonOption = False,
    debug: DebugOption = False,
) -> int | None:
    from kgrag.errors import ConfigurationError

    if (question is None) == (batch is None):
        raise ConfigurationError("Give either a question or --batch.", remedy='For example: kgrag search "tidal turbines"')
    settings = settings_of(config, assignments, namespace).settings
    options: dict[str, Any] = {
        "strategy": strategy,
        "top_k": top_k,
        "filter": filter_of(filters or []),
        "search_type": search_type,
    }
    if batch is not None:
        from kgrag.cli.batch import search_all

        name = batch
        code: int = _run(settings, lambda engine: search_all(engine, name, options))
        return code
    asked = question or ""
    _run(settings, lambda engine: _search(engine, asked, options, as_json=json_))
    return None


async def _search(engine: QueryEngine, question: str, options: dict[str, Any], *, as_json: bool) -> None:
    context = await engine.search(question, **options)
    if as_json:
        print_json({"question": question, "strategy": context.strategy, "hits": hits_json(context), "notes": context.notes})
        return
    hits = [hit for section in context.sections for hit in section.hits]
    for hit in hits:
        print(f"{hit.rank:>3}  {hit.score:.4f}  {place_of(hit)}")
        print(f"     {shortened(hit.text, 200)}")
    if not hits:
        print("Nothing was found.")
    for note in context.notes:
        print(f"Note: {note}", file=sys.stderr)


def hits_json(context: Context) -> list[dict[str, Any]]:
    """The text units of a search, for programs."""
    return [
        {
            "rank": hit.rank,
            "score": hit.score,
            "text_unit_id": hit.id,
            "document": hit.path,
            "document_id": hit.document_id,
            "title": hit.title,
            "text": hit.text,
            "page": hit.page,
            "row": hit.row,
            "start": hit.start,
            "end": hit.end,
            "sources": hit.sources,
        }
        for section in context.sections
        if section.kind == "text_unit"
        for hit in section.hits
    ]


def _run(settings: Settings, use: Callable[[QueryEngine], Coroutine[Any, Any, Any]]) -> Any:
    async def main() -> Any:
        async with opened(settings) as engine:
            return await use(engine)

    return asyncio.run(main())


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[QueryEngine]:
    """A query engine that is closed at the end."""
    from kgrag import build

    engine = await build.open_query_engine(settings)
    try:
        yield engine
    finally:
        await engine.aclose()


def plain(record: Any) -> Any:
    """A record as values of JSON."""
    import msgspec

    return json.loads(msgspec.json.encode(record))
