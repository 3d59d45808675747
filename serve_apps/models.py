"""The bodies of requests and responses, as OpenAPI shows them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Kind = Literal["text_unit", "entity", "relationship", "report", "claim", "summary", "point"]
Scalar = str | int | float | bool
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class Asked(_Body):
    """What searches and answers have in common."""

    question: Annotated[str, Field(min_length=1)]
    """What to look for, in any language."""
    namespace: Name | None = None
    """Which index; by default the server's own."""
    strategy: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    """How to look; by default as configured."""
    top_k: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Most text units."""
    filter: dict[str, Any] | None = None
    """Only what documents with these fields state: `{"year": 2020}`, `{"year": [2020, 2021]}`, `{"year": {"gte": 2000}}`,
    `{"year": {"exists": true}}`, `{"not": {"lang": "en"}}`; several keys must all hold."""
    search_type: Literal["hybrid", "lexical", "vector"] | None = None
    """By words and meaning, or one of them."""
    language: Annotated[str, Field(max_length=32)] | None = None
    """Language of question and answer; by default the question's own."""
    timeout_seconds: Annotated[float, Field(gt=0, le=3600)] | None = None
    """Longest time for the whole question."""


class SearchRequest(Asked):
    """A search."""

    kinds: Annotated[list[Kind], Field(min_length=1, max_length=7)] = ["text_unit"]
    """What to return, each ranked on its own."""


class AnswerRequest(Asked):
    """A question to be answered."""

    stream: bool = False
    """Send the answer as server-sent events: `text` pieces as they are written, then `answer`, or `error`."""


class HitModel(_Body):
    """A ranked result."""

    kind: Kind
    id: str
    score: float
    """1 where every ranking has it first."""
    rank: int = 0
    title: str = ""
    text: str = ""
    document_id: str = ""
    path: str = ""
    page: int | None = None
    row: int | None = None
    start: int | None = None
    """Where the text starts in the document's parsed text, in characters."""
    end: int | None = None
    text_unit_ids: list[str] = []
    """The text units it stands on."""
    metadata: dict[str, Scalar | list[Scalar]] = {}
    sources: list[str] = []
    """Which rankings found it."""


class SectionModel(_Body):
    """Results of one kind, best first."""

    kind: Kind
    hits: list[HitModel]


class UsageModel(_Body):
    """What model calls cost."""

    calls: int = 0
    stored: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0


class ContextModel(_Body):
    """What was found."""

    strategy: str
    sections: list[SectionModel] = []
    notes: list[str] = []
    usage: UsageModel = UsageModel()


class SearchResponse(ContextModel):
    """Ranked results, one section per kind."""


class CitationModel(_Body):
    """What `[number]` in an answer stands for."""

    number: int
    kind: Kind
    id: str
    title: str = ""
    path: str = ""
    document_id: str = ""
    text_unit_id: str = ""
    page: int | None = None
    row: int | None = None
    start: int | None = None
    end: int | None = None
    quote: str = ""


class AnswerResponse(_Body):
    """An answer, the citations it uses, and the context it was written from."""

    question: str
    text: str
    strategy: str
    citations: list[CitationModel] = []
    context: ContextModel
    abstained: Literal["", "no_context", "marker", "insufficient_context"] = ""
    usage: UsageModel = UsageModel()
    milliseconds: float = 0.0


class Namespace(_Body):
    """An index that can be asked."""

    name: str


class NamespaceList(_Body):
    """Every index of this server."""

    namespaces: list[Namespace]


class Health(_Body):
    """That the server answers."""

    status: Literal["ok"] = "ok"
    version: str


class ErrorModel(_Body):
    """What went wrong, with which thing, and what to do."""

    type: str
    message: str
    remedy: str = ""
    subject: str = ""


class ErrorResponse(_Body):
    """Every error has this form."""

    error: ErrorModel
